"""Checks at the door: whatever passes here needs no check inside.

Each function returns a clean array or raises an error that names what was wrong, what was
seen and what was expected. None of them repairs anything.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TypeGuard

import numpy as np
from scipy.linalg.blas import ddot

from oclok.errors import ContextError, InputError, OutcomeError
from oclok.typing import ArrayLike, FloatArray, IntArray

#: Squares, and products of squares, of contexts up to this size stay finite.
LARGEST_CONTEXT = 1e100
#: So do those of outcomes.
LARGEST_OUTCOME = 1e100


def as_contexts(contexts: ArrayLike, dimension: int | None = None) -> FloatArray:
    """Return `contexts` as a finite float array of shape (M, D), M and D at least 1.

    It is read-only, and a copy unless it was read-only already, so it is safe to keep.
    """
    array = contexts if _is_safe(contexts) else as_numbers(contexts, "contexts", ContextError)
    if array.ndim != 2:
        raise ContextError(
            f"contexts must have shape (M, D), one row per base arm; got shape {array.shape}"
        )
    if array.shape[0] == 0:
        raise ContextError("no base arms: contexts has no rows; at least one is needed")
    if array.shape[1] == 0:
        raise ContextError(f"contexts must have at least one column; got shape {array.shape}")
    if dimension is not None and array.shape[1] != dimension:
        raise ContextError(f"contexts must have {dimension} columns; got shape {array.shape}")
    result = array
    if not _is_safe(array):
        result = np.array(array, dtype=np.float64, order="C")
        result.flags.writeable = False
    flat = result.reshape(-1)
    if not ddot(flat, flat) <= LARGEST_CONTEXT**2 and not (np.abs(flat) <= LARGEST_CONTEXT).all():
        row, column = np.argwhere(~(np.abs(result) <= LARGEST_CONTEXT))[0]
        raise ContextError(
            f"contexts must be finite and at most {LARGEST_CONTEXT:g} in size; "
            f"row {row}, column {column} is {result[row, column]}"
        )
    return result


def as_outcomes(outcomes: ArrayLike, count: int, *, allow_nan: bool = False) -> FloatArray:
    """Return `outcomes` as a float array of shape (count,), NaN only where that is allowed."""
    array = as_numbers(outcomes, "outcomes", OutcomeError)
    if array.shape != (count,):
        raise OutcomeError(
            f"outcomes must have shape ({count},), one per base arm; got shape {array.shape}"
        )
    result = np.ascontiguousarray(array, dtype=np.float64)
    if count == 0 or ddot(result, result) <= LARGEST_OUTCOME**2:  # NaN is not
        return result
    size = np.abs(result)
    wrong = size > LARGEST_OUTCOME if allow_nan else ~(size <= LARGEST_OUTCOME)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise OutcomeError(
            f"outcomes must be finite and at most {LARGEST_OUTCOME:g} in size"
            f"{', or NaN where not seen' if allow_nan else ''}; position {first} is {result[first]}"
        )
    return result


def as_positions(positions: ArrayLike, name: str, size: int | None = None) -> IntArray:
    """Return `positions` as distinct integers ≥ 0 (and < size) in ascending order."""
    try:
        array = np.asarray(positions)
    except ValueError as reason:
        raise InputError(f"{name} must be a 1-D array of integers; {reason}") from None
    if array.dtype == np.intp and array.ndim == 1 and array.size:  # the rule: nothing to mend
        is_ascending = not np.count_nonzero(array[1:] <= array[:-1])
        if is_ascending and array[0] >= 0 and (size is None or array[-1] < size):
            return array.copy()
    if array.size == 0:
        array = array.astype(np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be a 1-D array of integers; got shape {array.shape}, dtype {array.dtype}"
        )
    result = np.sort(array)
    if result.size and result[0] < 0:
        raise InputError(f"{name} must be positions from 0 on; got {result[0]}")
    largest = np.iinfo(np.intp).max if size is None else size - 1
    if result.size and result[-1] > largest:
        raise InputError(
            f"{name} must be below {largest + 1}, the number of base arms; got {result[-1]}"
        )
    if result.size > 1 and (result[1:] == result[:-1]).any():
        raise InputError(f"{name} must be distinct; got {result.tolist()}")
    return result.astype(np.intp)


def as_vector(values: ArrayLike, name: str, size: int | None = None) -> FloatArray:
    """Return `values` as a finite float array of shape (size,)."""
    if (
        type(values) is np.ndarray
        and values.dtype == np.float64
        and values.ndim == 1
        and len(values)
        and (size is None or len(values) == size)
        and values.flags.c_contiguous
        and math.isfinite(ddot(values, values))
    ):
        return values  # the rule: nothing to mend
    array = as_numbers(values, name, InputError)
    if array.ndim != 1 or (size is not None and array.shape[0] != size):
        wanted = "(M,)" if size is None else f"({size},)"
        raise InputError(f"{name} must have shape {wanted}; got shape {array.shape}")
    result = np.ascontiguousarray(array, dtype=np.float64)
    if not np.isfinite(result).all():
        first = int(np.argmax(~np.isfinite(result)))
        raise InputError(f"{name} must be finite; position {first} is {result[first]}")
    return result


def as_positive(value: object, name: str) -> float:
    """Return `value` as a finite float above 0."""
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number) and number > 0:
            return number
    raise InputError(f"{name} must be a finite number above 0; got {value!r}")


def as_nonnegative(value: object, name: str) -> float:
    """Return `value` as a finite float of at least 0."""
    if isinstance(value, Real) and not isinstance(value, bool) and value == 0:
        return 0.0
    try:
        return as_positive(value, name)
    except InputError:
        raise InputError(f"{name} must be a finite number of at least 0; got {value!r}") from None


def as_probability(value: object, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    number = as_positive(value, name)
    if number >= 1:
        raise InputError(f"{name} must be between 0 and 1; got {value!r}")
    return number


def as_range(outcome_range: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return (lowest, highest) as floats, or None."""
    if outcome_range is None:
        return None
    try:
        low, high = map(float, outcome_range)
    except (TypeError, ValueError, OverflowError):
        low, high = math.nan, math.nan
    if not low < high:
        raise InputError(f"outcome_range must be (lowest, highest); got {outcome_range!r}")
    return low, high


def as_count(value: object, name: str, least: int = 1) -> int:
    """Return `value` as an integer of at least `least`."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least:
        return int(value)
    raise InputError(f"{name} must be an integer of at least {least}; got {value!r}")


def as_noise_std(value: object) -> float:
    """Return `value` as a float above 0 whose square is one, too."""
    number = as_positive(value, "noise_std")
    if not 0 < number * number < math.inf:
        raise InputError(f"noise_std must have a finite square above 0; got {value!r}")
    return number


def check_kernel(kernel: object) -> None:
    """Raise an `InputError` unless `kernel` is a kernel, and not just its class."""
    if isinstance(kernel, type) or not (callable(kernel) and hasattr(kernel, "diag")):
        raise InputError(
            "kernel must be an instance of a kernel from sklearn.gaussian_process.kernels, "
            f"such as RBF(1.0); got {kernel!r}"
        )


def _is_safe(contexts: object) -> TypeGuard[FloatArray]:
    """Return whether `contexts` are read-only floats: no copy is needed."""
    if type(contexts) is not np.ndarray or contexts.dtype != np.float64:
        return False
    return contexts.flags.c_contiguous and not contexts.flags.writeable and contexts.base is None


def as_numbers(values: ArrayLike, name: str, error: type[InputError]) -> FloatArray:
    """Return `values` as an array of numbers, of any shape."""
    try:
        array = np.asarray(values)
    except ValueError as reason:
        raise error(f"{name} must be a rectangular array of numbers; {reason}") from None
    if type(values) is not np.ndarray and np.ma.is_masked(values):
        raise error(f"{name} must not be masked; drop or fill what is missing")
    if array.dtype.kind not in "biuf":
        seen = f"dtype {array.dtype}"
        if array.dtype.kind in "OUS" and array.size:
            odd = [repr(v)[:40] for v in array.ravel().tolist() if not isinstance(v, Real)]
            seen += f", such as {odd[0]}" if odd else "; convert them with .astype(float)"
        raise error(f"{name} must be numbers; got {seen}")
    return array
