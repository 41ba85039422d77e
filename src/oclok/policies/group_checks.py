"""What comes with base arms in groups: labels, thresholds and outcomes in pairs, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oclok.errors import InputError, OutcomeError
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_outcomes, as_vector


def as_groups(groups: ArrayLike, arms: int) -> tuple[list[Any], IntArray]:
    """Return the labels, and which of them each base arm has, shape (M,)."""
    array = as_array(groups)
    if array is None or array.shape != (arms,) or array.dtype.kind not in "biuU":
        seen = "ragged lists" if array is None else f"shape {array.shape}, dtype {array.dtype}"
        raise InputError(
            f"groups must have shape ({arms},), one label per base arm, integers or strings; "
            f"got {seen}"
        )
    labels, group = np.unique(array, return_inverse=True)
    return labels.tolist(), group


def as_thresholds(threshold: float | Mapping[Any, float] | None, labels: list[Any]) -> FloatArray:
    """Return the threshold of each label."""
    if threshold is None:
        raise InputError("groups need a threshold: a number, or a dict with one for each label")
    if not isinstance(threshold, Mapping):
        return np.repeat(as_vector([threshold], "threshold", 1), len(labels))
    missing = [label for label in labels if label not in threshold]
    if missing:
        raise InputError(f"threshold must name every group; group {missing[0]!r} is missing")
    return as_vector([threshold[label] for label in labels], "threshold", len(labels))


def as_pairs(outcomes: ArrayLike, count: int, *, allow_nan: bool) -> FloatArray:
    """Return `outcomes` as a float array of shape (count, 2), NaN in both columns or none."""
    array = as_array(outcomes)
    if array is None or array.shape != (count, 2):
        seen = "ragged lists" if array is None else f"shape {array.shape}"
        raise OutcomeError(
            f"outcomes must have shape ({count}, 2), a reward outcome and a group outcome per "
            f"base arm; got {seen}"
        )
    flat = as_outcomes(array.ravel(), 2 * count, allow_nan=allow_nan)
    pairs: FloatArray = flat.reshape(count, 2)
    half: BoolArray = np.isnan(pairs).sum(axis=1) == 1
    if half.any():
        first = int(np.argmax(half))
        raise OutcomeError(
            "outcomes must be NaN in both columns or in none; "
            f"row {first} is {pairs[first].tolist()}"
        )
    return pairs


def as_array(values: ArrayLike) -> Any:
    """Return `values` as an array, or None where they have no rectangular shape."""
    try:
        return np.asarray(values)
    except ValueError:
        return None
