"""Bodies of decisions as the log stores them: columns instead of records, compressed.

A packed body is a zlib stream of: the length of a header (4 bytes), the header (JSON), and the
bytes of all arrays, plane by plane: the first byte of every number, then the second, and so on.
Signs and exponents compress well beside each other; mantissas hardly do.

    header["body"]      values that are neither arrays nor columns
    header["arrays"]    [name, dtype, length] of the arrays of the body
    header["columns"]   name and values of each feature; null where they are numbers
    header["numbers"]   [width, kind, names] of features that are floats (width 0), or vectors of
                        `width` floats

    kind      the numbers are
    0 to 8    integers over 10^kind, in 4 bytes
    "<f4"     single precision, in 4 bytes
    "<f8"     double precision, in 8 bytes
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from pydantic_core import from_json, to_json

from oclok.typing import FloatArray, IntArray

Kind: TypeAlias = int | str
Array: TypeAlias = np.ndarray[Any, Any]

#: How numbers may be stored, those of the fewest digits first.
KINDS: tuple[Kind, ...] = (0, 3, 6, 8, "<f4", "<f8")
#: Of zlib; higher levels take twice the time for a percent.
LEVEL = 1


def pack(body: dict[str, Any]) -> bytes:
    """Return a body as bytes: values for JSON, arrays of floats, and "columns" of features."""
    columns: dict[str, Any] = dict(body["columns"])
    plain = {k: v for k, v in body.items() if k != "columns" and not isinstance(v, np.ndarray)}
    arrays = {name: value for name, value in body.items() if isinstance(value, np.ndarray)}
    parts = [_planes(value) for value in arrays.values()]
    numbers: list[tuple[int, Kind, list[str]]] = []
    for width, names in _floats(body["columns"]).items():
        block = np.array([columns[name] for name in names]).reshape(len(names), -1)
        for kind, rows, stored in _encoded(block):
            numbers.append((width, kind, [names[row] for row in rows.tolist()]))
            parts.append(_planes(stored.ravel()))
        columns |= dict.fromkeys(names)
    header = {
        "body": plain,
        "arrays": [(name, value.dtype.str, len(value)) for name, value in arrays.items()],
        "columns": list(columns.items()),
        "numbers": numbers,
    }
    text = to_json(header)
    return zlib.compress(b"".join([len(text).to_bytes(4), text, *parts]), LEVEL)


def unpack(packed: bytes) -> dict[str, Any]:
    """Return the body that `pack` was given."""
    content = zlib.decompress(packed)
    start = 4 + int.from_bytes(content[:4])
    header = from_json(content[4:start])
    body: dict[str, Any] = header["body"]
    for name, dtype, length in header["arrays"]:
        body[name], start = _array(content, start, dtype, length)
    body["columns"] = dict(header["columns"])
    for width, kind, names in header["numbers"]:
        shape = len(names), len(body["ids"]), *([width] if width else [])
        dtype = kind if isinstance(kind, str) else "<i4"
        stored, start = _array(content, start, dtype, int(np.prod(shape)))
        x: FloatArray = _decoded(stored, kind).reshape(shape)
        body["columns"].update(zip(names, x.tolist(), strict=True))
    return body


def records(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the arms of a body as requests give them: `{"id": …, "features": {…}}`."""
    names = list(body["columns"])
    rows = zip(*body["columns"].values(), strict=True)
    return [
        {"id": arm, "features": dict(zip(names, row, strict=True))}
        for arm, row in zip(body["ids"], rows, strict=True)
    ]


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


def _encoded(block: FloatArray) -> Iterator[tuple[Kind, IntArray, Array]]:
    """Yield each kind with the rows that it stores without loss, and their numbers so stored."""
    left = np.arange(len(block))
    for kind in KINDS:
        x = block[left]
        with np.errstate(over="ignore"):
            if isinstance(kind, str):
                stored = x.astype(kind)
            else:
                stored = np.clip(np.rint(x * 10.0**kind), -(2**31), 2**31 - 1).astype("<i4")
            restored = _decoded(stored, kind)
        fits = (restored.view(np.int64) == x.view(np.int64)).all(axis=1)
        if fits.any():
            yield kind, left[fits], stored[fits]
        left = left[~fits]


def _decoded(stored: Array, kind: Kind) -> FloatArray:
    return stored.astype(np.float64) if isinstance(kind, str) else stored / 10.0**kind


def _planes(numbers: Array) -> bytes:
    return numbers.view(np.uint8).reshape(-1, numbers.itemsize).T.tobytes()


def _array(content: bytes, start: int, dtype: str, count: int) -> tuple[Array, int]:
    size = np.dtype(dtype).itemsize
    planes = np.frombuffer(content, np.uint8, size * count, start).reshape(size, count)
    return np.ascontiguousarray(planes.T).view(dtype).ravel(), start + size * count
