"""What the conformance suites share: bad input to try, and assertions that say what failed."""
# Tested in tests/testing/test_policies.py: the suites fail through it.

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from oclok.errors import OclokError, StorageError
from oclok.persistence import Persistent, Thing, dumps, loads
from oclok.typing import ArrayLike, FloatArray


def check(condition: object, message: str) -> None:
    """Raise an `AssertionError` with `message` unless `condition` holds."""
    if not condition:
        raise AssertionError(message)


def check_equal(actual: Any, expected: Any, message: str) -> None:
    """Assert that two arrays are equal to the bit."""
    check(np.array_equal(actual, expected), message)


def check_close(
    actual: ArrayLike, expected: ArrayLike, tolerance: float, what: str, scale: float = 1.0
) -> None:
    """Assert that two arrays of one shape differ by at most `tolerance` times `scale`."""
    a, b = np.asarray(actual, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    check(a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}")
    apart, most = float(np.abs(a - b).max(initial=0.0)), tolerance * scale
    check(apart <= most, f"{what}: differs by {apart:.3g}, more than {most:.3g}")


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


def reloaded(thing: Thing) -> Thing:
    """Return an independent object in the same state: what a save and a load make of `thing`."""
    twin = loads(saved(thing))
    check(type(twin) is type(thing), f"saved as {type(thing)}, but loaded as {type(twin)}")
    return cast("Thing", twin)


def check_alike(one: Persistent, other: Persistent, what: str, tolerance: float = 1e-9) -> None:
    """Assert that two objects would be saved as the same file, numbers to `tolerance`.

    Rounding differs in the last bits where one computes anew what the other was handed on.
    """
    (tree, numbers), (wanted, expected) = _contents(saved(one)), _contents(saved(other))
    check(tree == wanted, f"{what}: the states differ in more than numbers")
    for a, b in zip(numbers, expected, strict=True):
        check_close(a, b, tolerance, what, max(1.0, float(np.abs(b).max(initial=0.0))))


def _contents(content: bytes) -> tuple[Any, list[Any]]:
    """Return the tree of a saved object with 0 for every float, those floats, and the arrays."""
    floats: list[float] = []

    def collect(text: str) -> float:
        floats.append(float(text))
        return 0.0

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        tree = json.loads(archive.read("state.json"), parse_float=collect)
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        return tree, [floats, *(np.lib.format.read_array(archive.open(name)) for name in names)]


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
    nan, infinite, rows = good.copy(), good.copy(), good.tolist()
    nan[-1, -1] = np.nan
    infinite[0, 0] = -np.inf
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
    bad: dict[str, Any] = {
        "an infinite outcome": np.append(good[:-1], np.inf),
        "an outcome too many": np.append(good, 0.5),
        "an outcome too few": good[:-1],
        "outcomes with two axes": good[:, None],
        "outcomes with a string": [*good.tolist()[:-1], "high"],
        "outcomes that are None": None,
    }
    if nan_is_bad:
        bad["an outcome that is NaN"] = np.append(good[:-1], np.nan)
    return bad
