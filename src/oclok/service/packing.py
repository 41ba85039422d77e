"""Bodies of decisions as the log stores them: columns instead of records, compressed.

A packed body is one byte, `PACKED`, and a zlib stream of: the length of a header (4 bytes), the
header (JSON), and the bytes of all arrays, plane by plane: the first byte of every number, then the
second, and so on. Signs and exponents compress well beside each other; mantissas hardly do.

    header["body"]      values that are neither arrays nor columns
    header["arrays"]    [name, dtype, length] of the arrays of the body
    header["columns"]   [name, values] of a feature that is stored as JSON,
                        [name, width, kind] of floats (width 0) or of vectors of `width` floats

    kind      the numbers are
    0 to 8    integers over 10^kind, in 4 bytes
    "<f4"     single precision, in 4 bytes
    "<f8"     double precision, in 8 bytes

Features come back bit by bit. Logs of before bodies were packed have JSON objects with a record
per arm; `unpack` reads them, too.
"""

from __future__ import annotations

import itertools
import zlib
from typing import Any, TypeAlias

import numpy as np
from pydantic_core import from_json, to_json

from oclok.typing import FloatArray

Kind: TypeAlias = int | str
Array: TypeAlias = np.ndarray[Any, Any]

PACKED = b"\x01"
#: Decimals of floats that are tried.
DIGITS = (0, 3, 6, 8)
#: Of zlib; higher levels take twice the time for a percent.
LEVEL = 1


def pack(body: dict[str, Any]) -> bytes:
    """Return a body as bytes: values for JSON, arrays of floats, and "columns" of features."""
    columns: dict[str, list[Any]] = body["columns"]
    plain = {k: v for k, v in body.items() if k != "columns" and not isinstance(v, np.ndarray)}
    arrays = {name: value for name, value in body.items() if isinstance(value, np.ndarray)}
    parts = [_planes(value) for value in arrays.values()]
    stored: dict[str, list[Any]] = {}
    for width, names in _floats(columns).items():
        block = np.array([columns[name] for name in names]).reshape(len(names), -1)
        kinds = _kinds(block)
        stored.update((name, [name, width, k]) for name, k in zip(names, kinds, strict=True))
        parts += [_planes(_encoded(block, kinds, kind)) for kind in dict.fromkeys(kinds)]
    header = {
        "body": plain,
        "arrays": [(name, value.dtype.str, len(value)) for name, value in arrays.items()],
        "columns": [stored.get(name) or [name, columns[name]] for name in columns],
    }
    text = to_json(header)
    return PACKED + zlib.compress(b"".join([len(text).to_bytes(4), text, *parts]), LEVEL)


def unpack(stored: bytes) -> dict[str, Any]:
    """Return the body that `pack` was given, or that of a log from before."""
    if stored[:1] != PACKED:
        return _from_records(from_json(stored))
    content = zlib.decompress(stored[1:])
    start = 4 + int.from_bytes(content[:4])
    header = from_json(content[4:start])
    body: dict[str, Any] = header["body"]
    for name, dtype, length in header["arrays"]:
        body[name], start = _array(content, start, dtype, length)
    columns = {entry[0]: entry[1] for entry in header["columns"]}
    by_width: dict[int, dict[Kind, list[str]]] = {}
    for name, width, *kind in header["columns"]:
        if kind:
            by_width.setdefault(width, {}).setdefault(kind[0], []).append(name)
    for width, kinds in by_width.items():
        for kind, names in kinds.items():
            shape = (len(names), len(body["ids"])) + ((width,) if width else ())
            dtype = kind if isinstance(kind, str) else "<i4"
            numbers, start = _array(content, start, dtype, int(np.prod(shape)))
            x = numbers / 10.0**kind if isinstance(kind, int) else numbers.astype(np.float64)
            columns.update(zip(names, x.reshape(shape).tolist(), strict=True))
    return {**body, "columns": columns}


def records(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the arms of a body as requests give them: `{"id": …, "features": {…}}`."""
    names = list(body["columns"])
    rows = zip(*body["columns"].values(), strict=True)
    return [
        {"id": arm, "features": dict(zip(names, row, strict=True))}
        for arm, row in zip(body["ids"], rows, strict=True)
    ]


def _from_records(body: dict[str, Any]) -> dict[str, Any]:
    arms = body.pop("arms")
    names = dict.fromkeys(name for arm in arms for name in arm["features"])
    body["ids"] = [arm["id"] for arm in arms]
    body["columns"] = {name: [arm["features"].get(name) for arm in arms] for name in names}
    for name in ("index", "mean", "std"):
        if body[name] is not None:
            body[name] = np.array(body[name])
            body[f"exact_{name}"] = body[name][body["chosen"]]
    return {"group": "agent", **body}


def _floats(columns: dict[str, list[Any]]) -> dict[int, list[str]]:
    """Return the names of columns of floats, and of vectors of floats, by their width."""
    found: dict[int, list[str]] = {}
    for name, values in columns.items():
        types = set(map(type, values))
        if types == {float}:
            found.setdefault(0, []).append(name)
        elif types == {list} and set(map(type, itertools.chain(*values))) == {float}:
            widths = set(map(len, values))
            if len(widths) == 1:
                found.setdefault(widths.pop(), []).append(name)
    return found


def _kinds(block: FloatArray) -> list[Kind]:
    """Return how the numbers of each row can be stored without loss, in the fewest digits."""
    kinds: list[Kind] = ["<f8"] * len(block)
    left = np.arange(len(block))
    for kind in (*DIGITS, "<f4"):
        x = block[left]
        with np.errstate(over="ignore"):
            if isinstance(kind, str):
                restored = x.astype(kind).astype(np.float64)
            else:
                scaled = np.rint(x * 10.0**kind) + 0.0  # integers have no -0.0
                scaled[np.abs(scaled) >= 2**31] = np.nan
                restored = scaled / 10.0**kind
        fits = (restored.view(np.int64) == x.view(np.int64)).all(axis=1)
        for row in left[fits].tolist():
            kinds[row] = kind
        left = left[~fits]
        if not left.size:
            break
    return kinds


def _encoded(block: FloatArray, kinds: list[Kind], kind: Kind) -> Array:
    rows = block[[place for place, own in enumerate(kinds) if own == kind]].ravel()
    return rows.astype(kind) if isinstance(kind, str) else np.rint(rows * 10.0**kind).astype("<i4")


def _planes(numbers: Array) -> bytes:
    return numbers.view(np.uint8).reshape(-1, numbers.itemsize).T.tobytes()


def _array(content: bytes, start: int, dtype: str, count: int) -> tuple[Array, int]:
    size = np.dtype(dtype).itemsize
    planes = np.frombuffer(content, np.uint8, size * count, start).reshape(size, count)
    return np.ascontiguousarray(planes.T).view(dtype).ravel(), start + size * count
