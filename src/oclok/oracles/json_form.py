"""Oracles as JSON: `{"kind": "Knapsack", "costs": "price", "budget": 100}`, and back.

The kind is the name of the class and the fields are the arguments of its constructor, which
checks them; arguments at their default are left out. Numbers, strings, lists and objects stand
for themselves, and further

    null            for an infinite bound, which JSON cannot express
    "log1p"         for a NumPy function of one argument
    {"1": 2}        for {1: 2}: keys are strings in JSON

An oracle in JSON is a description: the position of a random generator is not part of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from oclok.errors import InputError
from oclok.oracles.arguments import arguments_of, parameters_of

if TYPE_CHECKING:
    from oclok.oracles.base import Oracle


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
    parameters = parameters_of(kinds[kind])
    fields = {name: value for name, value in form.items() if name != "kind"}
    unknown = [name for name in fields if name not in parameters]
    if unknown:
        raise InputError(f"{kind} has no field {unknown[0]!r}; it has {', '.join(parameters)}")
    required = [name for name, p in parameters.items() if p.default is p.empty]
    missing = [name for name in required if name not in fields]
    if missing:
        raise InputError(f"{kind} needs the field {missing[0]!r}; it has {', '.join(parameters)}")
    try:
        return kinds[kind](**fields)
    except (ValueError, TypeError, OverflowError) as reason:  # InputError is a ValueError
        raise InputError(f"{kind}: {reason}") from None


def to_json(oracle: Oracle) -> dict[str, Any]:
    """Return `oracle` as plain values, from which `oracle_from_json` makes an equal one."""
    kind = type(oracle).__name__
    fields = {name: _plain(value, name) for name, value in arguments_of(oracle).items()}
    return {"kind": kind, **fields}


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


def json_key(label: object) -> str | None:
    """Return `label` as a key of a JSON object, as `json.dumps` writes it; None if it cannot."""
    if isinstance(label, str):
        return label
    return json.dumps(label) if isinstance(label, bool | int | float) else None
