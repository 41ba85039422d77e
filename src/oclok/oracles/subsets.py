"""Super arms that are limited only by how many base arms they have, in all or of each group."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from oclok.errors import InfeasibleError, InputError, OracleError
from oclok.oracles.base import Oracle, SumOracle, best_of
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_count, as_positions, as_vector


class TopK(Oracle):
    """Choose the k base arms with the largest indices, whatever base arms there are.

    Always exactly k of them, also where indices are negative; all of them where fewer are there.
    Exact: α = 1. Between equal indices the lower position is chosen.

    The expected reward is `reward(Σ means)`. Its constant B (`lipschitz`) is 1 for the sum and
    for `np.log1p`, whose slope is at most 1 where the sum of the means is not negative; it is
    None for any other `reward`.

    Args:
        k: how many base arms to choose.
        reward: nondecreasing function of the sum of the outcomes, such as `np.log1p`; the sum
            itself if left out. Only NumPy's universal functions can be saved to a file.

    >>> oracle = TopK(2)
    >>> oracle([0.3, 0.9, 0.1, 0.9])
    array([1, 3])
    >>> TopK(2, reward=np.log1p).value([0.25, 1.0, 0.5, 0.75], [1, 3])
    1.0116009116784799
    """

    is_sequential = True

    def __init__(self, k: int, reward: Callable[[Any], Any] | None = None) -> None:
        self.k = as_count(k, "k")
        if reward is not None and not callable(reward):
            raise InputError(f"reward must be a function of the sum of outcomes; got {reward!r}")
        self.reward = reward
        self.lipschitz = 1.0 if reward is None or reward is np.log1p else None

    def value(self, means: ArrayLike, super_arm: ArrayLike) -> float:
        """Return the reward of the sum of `means` (M,) over `super_arm`."""
        all_means = as_vector(means, "means")
        chosen = as_positions(super_arm, "super_arm", all_means.size)
        total = float(np.sum(all_means[chosen]))
        if self.reward is None:
            return total
        with np.errstate(all="ignore"):
            reward = float(self.reward(total))
        if not math.isfinite(reward):
            raise OracleError(f"the reward of the sum {total} must be finite; it is {reward}")
        return reward

    def is_feasible(self, super_arm: ArrayLike) -> bool:
        """Return whether `super_arm` has k base arms, or is all of fewer: 0, 1, …, n-1."""
        chosen = self._positions(super_arm)
        if chosen is None or chosen.size == 0:
            return False
        return chosen.size == self.k or bool(chosen[-1] + 1 == chosen.size < self.k)

    def is_stable(self, index: FloatArray, super_arm: IntArray, error: FloatArray) -> bool:
        """Return whether `super_arm` at its worst still beats every other base arm at its best."""
        least = (index[super_arm] - error[super_arm]).min()
        others = index + error
        others[super_arm] = -np.inf
        return bool(least > others.max())

    def choose_next(self, index: FloatArray, chosen: IntArray) -> IntArray:
        """Return the base arm with the largest index that is not `chosen` yet, k times over."""
        allowed = np.full(index.size, chosen.size < self.k)
        allowed[chosen] = False
        return best_of(index, allowed)

    def _solve(self, index: FloatArray) -> IntArray:
        if index.size == 0:
            raise InfeasibleError("no base arms: TopK needs at least one to choose from")
        if index.size <= self.k:
            return np.arange(index.size)
        cut = index.size - self.k
        least = np.partition(index, cut)[cut]
        chosen: IntArray = (index >= least).nonzero()[0]
        if chosen.size > self.k:
            tied = np.flatnonzero(index[chosen] == least)
            chosen = np.delete(chosen, tied[self.k - chosen.size :])
        return chosen


class Partition(SumOracle):
    """Choose base arms with the largest sum, at most so many of each group.

    Exact: α = 1. Only base arms with a positive index are chosen; the empty super arm is
    feasible. Between equal indices of a group the lower position is chosen.

    Args:
        groups: label of the group of each base arm, any hashable values; M of them.
        limits: the largest number of base arms of any group, or a dict with one for each label.

    >>> oracle = Partition(["red", "red", "blue", "blue"], limits={"red": 1, "blue": 2})
    >>> oracle([0.5, 0.7, 0.2, -0.1])
    array([1, 2])
    """

    is_sequential = True

    def __init__(
        self, groups: Iterable[Hashable] | ArrayLike, limits: int | Mapping[Any, int]
    ) -> None:
        labels = _as_labels(groups)
        number = {label: position for position, label in enumerate(dict.fromkeys(labels))}
        self.size = len(labels)
        self._group = np.array([number[label] for label in labels], dtype=np.intp)
        self._limit = _as_limits(limits, list(number))

    def is_feasible(self, super_arm: ArrayLike) -> bool:
        """Return whether `super_arm` has no more base arms of any group than its limit."""
        chosen = self._positions(super_arm)
        if chosen is None:
            return False
        counts = np.bincount(self._group[chosen], minlength=self._limit.size)
        return bool((counts <= self._limit).all())

    def choose_next(self, index: FloatArray, chosen: IntArray) -> IntArray:
        """Return the base arm with the largest positive index whose group has room left."""
        room = self._limit - np.bincount(self._group[chosen], minlength=self._limit.size)
        allowed = (index > 0) & (room[self._group] > 0)
        allowed[chosen] = False
        return best_of(index, allowed)

    def _solve(self, index: FloatArray) -> IntArray:
        order = np.flatnonzero(index > 0)
        order = order[np.lexsort((-index[order], self._group[order]))]
        group = self._group[order]
        rank = np.arange(order.size) - np.searchsorted(group, group)
        return np.sort(order[rank < self._limit[group]])


def _as_labels(groups: Any) -> list[Any]:
    try:
        labels = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
        set(labels)
    except TypeError:
        raise InputError(
            f"groups must be one hashable label per base arm; got {str(groups)[:80]}"
        ) from None
    return labels


def _as_limits(limits: int | Mapping[Any, int], labels: list[Any]) -> IntArray:
    if not isinstance(limits, Mapping):
        return np.full(len(labels), as_count(limits, "limits", least=0))
    missing = [label for label in labels if label not in limits]
    if missing:
        raise InputError(f"limits must name every group; group {missing[0]!r} is missing")
    counts = [as_count(limits[label], f"limits[{label!r}]", least=0) for label in labels]
    return np.array(counts, dtype=np.intp)
