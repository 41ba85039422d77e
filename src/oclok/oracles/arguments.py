"""An oracle's constructor arguments, read back from it: for its repr, its JSON form and saving.

As in scikit-learn, an argument is kept as an attribute of the same name. In JSON,
`{"kind": "Knapsack", "costs": "price", "budget": 100}`, the kind is the name of the class and the
fields are the arguments of its constructor, which checks them; arguments at their default are left
out. Numbers, strings, lists and objects stand for themselves, and further

    null            for an infinite bound, which JSON cannot express
    "log1p"         for a NumPy function of one argument
    {"1": 2}        for {1: 2}: keys are strings in JSON

An oracle in JSON is a description: the position of a random generator is not part of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

import numpy as np

from oclok.errors import InputError

if TYPE_CHECKING:
    from oclok.oracles.base import Oracle

#: Arrays of at most this many values are written out in a repr.
LONGEST_WRITTEN_OUT = 6


def oracle_from_json(form: Mapping[str, Any]) -> Oracle:
    """Return the oracle that `form`, an object parsed from JSON, describes.

    Examples:
        >>> oracle_from_json({"kind": "Knapsack", "costs": "price", "budget": 100})
        Knapsack(costs='price', budget=100.0)
    """
    if not isinstance(form, Mapping):
        raise InputError(f'an oracle must be an object such as {{"kind": "TopK"}}; got {form!r}')
    kinds = oracle_kinds()
    kind = form.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise InputError(f"kind must be one of {', '.join(kinds)}; got {kind!r}")
    fields = {name: value for name, value in form.items() if name != "kind"}
    parameters = parameters_of(kinds[kind])
    has = f"it has {', '.join(parameters)}"
    for name in fields:
        if name not in parameters:
            raise InputError(f"{kind} has no field {name!r}; {has}")
    for name, parameter in parameters.items():
        if parameter.default is Parameter.empty and name not in fields:
            raise InputError(f"{kind} needs the field {name!r}; {has}")
    try:
        return kinds[kind](**fields)
    except (ValueError, TypeError, OverflowError) as reason:  # InputError is a ValueError
        raise InputError(f"{kind}: {reason}") from None


def to_json(oracle: Oracle) -> dict[str, Any]:
    """Return `oracle` as plain values, from which `oracle_from_json` makes an equal one."""
    fields = {name: _plain(value, name) for name, value in arguments_of(oracle).items()}
    return {"kind": type(oracle).__name__, **fields}


def json_key(label: object) -> str | None:
    """Return `label` as a key of a JSON object, as `json.dumps` writes it; None if it cannot."""
    if isinstance(label, str):
        return label
    return json.dumps(label) if isinstance(label, bool | int | float) else None


def parameters_of(cls: type) -> dict[str, Parameter]:
    """Return the parameters of the constructor of `cls` by name."""
    return dict(signature(cls).parameters)


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


def oracle_kinds() -> dict[str, type[Oracle]]:
    """Return the oracles of `oclok.oracles` that can be made, by name."""
    from oclok import oracles
    from oclok.oracles.parametric import ParametricOracle

    public = {name: getattr(oracles, name) for name in oracles.__all__}
    return {
        name: cls
        for name, cls in public.items()
        if isinstance(cls, type) and issubclass(cls, ParametricOracle)
    }


def _plain(value: Any, name: str) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_plain(item, name) for item in value]
    if isinstance(value, Mapping):
        keys = [json_key(key) for key in value]
        if None not in keys and len(set(keys)) == len(keys):
            return dict(zip(keys, (_plain(v, name) for v in value.values()), strict=True))
    if isinstance(value, np.ufunc):
        return value.__name__
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist(), name)
    if hasattr(value, "toarray"):
        return _plain(value.toarray(), name)
    raise InputError(f"{name} has no JSON form; it is {str(value)[:80]}")


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
