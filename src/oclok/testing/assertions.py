"""What the conformance suites share: bad input to try, and assertions that say what failed."""
# Tested in tests/testing/test_policies.py: the suites fail through it.

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from oclok.errors import OclokError, StorageError
from oclok.persistence import Persistent, dumps
from oclok.typing import ArrayLike, FloatArray


def check(condition: object, message: str) -> None:
    """Raise an `AssertionError` with `message` unless `condition` holds."""
    if not condition:
        raise AssertionError(message)


def check_close(
    actual: ArrayLike, expected: ArrayLike, tolerance: float, what: str, scale: float = 1.0
) -> None:
    """Assert that two arrays of one shape differ by at most `tolerance` times `scale`."""
    a, b = np.asarray(actual, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    check(a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}")
    apart = float(np.abs(a - b).max(initial=0.0))
    check(
        apart <= tolerance * scale,
        f"{what}: differs by {apart:.3g}, more than {tolerance * scale:.3g}",
    )


@contextmanager
def unchanged(thing: Persistent, after: str) -> Iterator[None]:
    """Assert that what `dumps` writes of `thing` is, after the block, what it was before."""
    before = saved(thing)
    yield
    check(saved(thing) == before, f"{after} changed the saved state of {type(thing).__name__}")


def saved(thing: Persistent) -> bytes:
    """Return what `dumps` writes of `thing`, which it must be able to write."""
    try:
        return dumps(thing)
    except StorageError as reason:
        raise AssertionError(f"{type(thing).__name__} cannot be saved: {reason}") from reason


def check_alike(one: Persistent, other: Persistent, what: str, tolerance: float = 1e-9) -> None:
    """Assert that two objects would be saved as the same file, numbers to `tolerance`.

    Rounding differs in the last bits where one computes anew what the other was handed on.
    """
    trees, archives = [], []
    for content in (saved(one), saved(other)):
        archive = zipfile.ZipFile(io.BytesIO(content))
        trees.append(archive.read("state.json"))
        archives.append(archive)
    plain = [json.loads(tree, parse_float=lambda _: 0.0) for tree in trees]
    check(plain[0] == plain[1], f"{what}: the states differ in more than numbers")
    floats: list[list[float]] = [[], []]
    for tree, found in zip(trees, floats, strict=True):
        json.loads(tree, parse_float=_collector(found))
    scale = max(1.0, float(np.abs(floats[1]).max(initial=0.0)))
    check_close(floats[0], floats[1], tolerance, what, scale)
    for name in archives[0].namelist():
        if name.endswith(".npy"):
            a, b = (np.lib.format.read_array(archive.open(name)) for archive in archives)
            check_close(a, b, tolerance, what, max(1.0, float(np.abs(b).max(initial=0.0))))


def _collector(found: list[float]) -> Callable[[str], float]:
    def collect(text: str) -> float:
        found.append(float(text))
        return found[-1]

    return collect


def check_refused(
    thing: Persistent,
    what: str,
    call: Callable[..., Any],
    *args: Any,
    error: type[OclokError] = OclokError,
) -> None:
    """Assert that `call(*args)` raises `error`, with a message, and leaves `thing` as it was."""
    with unchanged(thing, f"refusing {what}"):
        try:
            call(*args)
        except error as reason:
            check(str(reason), f"the {type(reason).__name__} for {what} has no message")
        except Exception as reason:
            raise AssertionError(
                f"{what} must raise {error.__name__}; got {type(reason).__name__}: {reason}"
            ) from reason
        else:
            raise AssertionError(f"{what} must raise {error.__name__}; nothing was raised")


def bad_contexts(good: FloatArray) -> dict[str, Any]:
    """Return contexts that must be refused, by description, made of `good` ones (M, D)."""
    nan, infinite = good.copy(), good.copy()
    nan[-1, -1] = np.nan
    infinite[0, 0] = -np.inf
    rows = good.tolist()
    return {
        "contexts with a NaN": nan,
        "contexts with an infinity": infinite,
        "contexts of another dimension": np.hstack([good, good[:, :1]]),
        "contexts with one axis": good[0],
        "contexts with three axes": good[None],
        "contexts in ragged lists": [*rows, [*rows[0], 0.5]],
        "contexts without base arms": good[:0],
        "contexts without columns": good[:, :0],
        "contexts with a string": [*rows[:-1], ["north", *rows[-1][1:]]],
        "complex contexts": good + 1j,
        "contexts that are None": None,
    }


def bad_outcomes(good: FloatArray, *, nan_is_bad: bool = True) -> dict[str, Any]:
    """Return outcomes that must be refused, by description, made of `good` ones (N,)."""
    infinite, nan = good.copy(), good.copy()
    infinite[-1] = np.inf
    nan[-1] = np.nan
    bad: dict[str, Any] = {
        "an infinite outcome": infinite,
        "an outcome too many": np.append(good, 0.5),
        "an outcome too few": good[:-1],
        "outcomes with two axes": good[:, None],
        "outcomes with a string": [*good.tolist()[:-1], "high"],
        "outcomes that are None": None,
    }
    if nan_is_bad:
        bad["an outcome that is NaN"] = nan
    return bad
