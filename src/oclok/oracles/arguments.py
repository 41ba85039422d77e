"""An oracle's constructor arguments, read back from it: for its repr, its JSON form and saving.

As in scikit-learn, an argument is kept as an attribute of the same name.
"""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

import numpy as np

#: Arrays of at most this many values are written out in a repr.
LONGEST_WRITTEN_OUT = 6


def parameters_of(cls: type) -> dict[str, Parameter]:
    """Return the parameters of the constructor of `cls` by name, without `self`."""
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return {}
    return dict(list(signature(cls.__init__).parameters.items())[1:])  # type: ignore[misc]


def arguments_of(thing: object) -> dict[str, Any]:
    """Return the arguments that `thing` keeps as attributes, without those left at the default."""
    return {
        name: getattr(thing, name)
        for name, parameter in parameters_of(type(thing)).items()
        if hasattr(thing, name) and not _is_default(getattr(thing, name), parameter.default)
    }


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """Return the text of a call, such as `Knapsack(costs=<60 values>, budget=6.0)`."""
    return f"{name}({', '.join(f'{key}={_text(value)}' for key, value in arguments.items())})"


def _is_default(value: Any, default: Any) -> bool:
    if not isinstance(value, str | int | float | None):
        return False
    return isinstance(value, bool) == isinstance(default, bool) and bool(value == default)


def _text(value: Any) -> str:
    if isinstance(value, np.ufunc):
        return f"np.{value.__name__}"
    if hasattr(value, "shape") and len(value.shape) > 1:
        return f"<{'×'.join(map(str, value.shape))} values>"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple | dict) and len(value) > LONGEST_WRITTEN_OUT:
        return f"<{len(value)} values>"
    return repr(value)
