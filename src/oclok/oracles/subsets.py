"""Super arms that are limited only by how many base arms they have, in all or of each group."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, cast

import numpy as np

from oclok.decision import Propensities
from oclok.errors import InfeasibleError, InputError, OracleError
from oclok.oracles.arguments import json_key
from oclok.oracles.base import best_of
from oclok.oracles.labels import number_labels
from oclok.oracles.parametric import ExactSumOracle, ParametricOracle
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_count, as_positions, as_vector


class TopK(ParametricOracle):
    """Choose the k base arms with the largest indices, even negative ones.

    If there are fewer than k, all of them are chosen, with a warning. Exact: α = 1. Between equal
    indices the lower position is chosen.

    The expected reward is `reward(Σ means)`. Its constant B (`lipschitz`) is 1 for the sum and
    for `np.log1p`, whose slope is at most 1 where the sum of the means is not negative; it is
    None for any other `reward`.

    Args:
        k: how many base arms to choose.
        reward: nondecreasing function of the sum of the outcomes, such as `np.log1p`, or the
            name of one of NumPy's; the sum itself if left out. Only NumPy's can be saved.

    Examples:
        >>> oracle = TopK(2)
        >>> oracle([0.3, 0.9, 0.1, 0.9])
        array([1, 3])
        >>> TopK(2, reward=np.log1p).value([0.25, 1.0, 0.5, 0.75], [1, 3])
        1.0116009116784799
    """

    alpha = 1.0
    is_sequential = True

    def __init__(self, k: int, reward: Callable[[Any], Any] | str | None = None) -> None:
        self.k = as_count(k, "k")
        self.reward = _as_reward(reward)
        self.lipschitz = 1.0 if self.reward is None or self.reward is np.log1p else None
        self._prepare_if_resolved()

    def _prepare(self) -> None:
        self._room = self.k - self._include.size
        if self._room < 0:
            raise InfeasibleError(f"{self._include.size} base arms are included; k = {self.k}")

    def value(self, means: ArrayLike, super_arm: ArrayLike) -> float:
        """Return the reward of the sum of `means` (M,) over `super_arm`."""
        known = as_vector(means, "means")
        total = known[as_positions(super_arm, "super_arm", known.size)].sum(keepdims=True)
        [reward] = self._rewards(total).tolist()
        if self.reward is not None and not math.isfinite(reward):
            raise OracleError(f"the reward of the sum {total[0]} must be finite; it is {reward}")
        return float(reward)

    def values(self, means: FloatArray, super_arm: IntArray) -> FloatArray:
        """Return the rewards of the sums of `means` (S, M) over `super_arm`, shape (S,)."""
        return self._rewards(means[:, super_arm].sum(axis=1))

    def best_values(self, means: FloatArray) -> FloatArray:
        """Return the rewards of the k largest of each row of `means` (S, M), shape (S,)."""
        cut = means.shape[1] - self.k
        if cut <= 0 or self._include.size or self._exclude.size:
            return super().best_values(means)
        return self._rewards(np.partition(means, cut, axis=1)[:, cut:].sum(axis=1))

    def _rewards(self, totals: FloatArray) -> FloatArray:
        if self.reward is None:
            return totals
        with np.errstate(all="ignore"):
            return np.array([float(self.reward(total)) for total in totals])

    def _allows(self, chosen: IntArray) -> bool:
        if chosen.size == 0 or chosen.size >= self.k:
            return chosen.size == self.k
        both = np.append(chosen, self._exclude)  # all base arms, where there are fewer than k
        return bool(both.max() + 1 == both.size)

    def uniform_propensities(self, arms: int) -> Propensities | None:
        """Return how likely base arms, and super arms, are if all super arms are equally likely."""
        free = arms - self._include.size - self._exclude.size
        room = min(self._room, free)
        p = np.full(arms, room / free if free else 0.0)
        p[self._include], p[self._exclude] = 1.0, 0.0
        return Propensities(p, 1 / math.comb(free, room))

    def is_stable(self, index: FloatArray, super_arm: IntArray, error: FloatArray) -> bool:
        """Return whether `super_arm` at its worst still beats every other base arm at its best.

        Both are rounded outwards, so that no rounding error can decide.
        """
        if super_arm.size != min(self.k, index.size - self._exclude.size):
            return False
        least, most = index[super_arm] - error[super_arm], index + error
        most[super_arm] = most[self._exclude] = -np.inf
        if self._include.size:
            least = least[~np.isin(super_arm, self._include)]  # the rest are no choice
        worst = min(least.tolist(), default=math.inf)
        rival = float(np.maximum.reduce(most, initial=-math.inf))
        if worst == math.inf or rival == -math.inf:
            return True
        return math.nextafter(worst, -math.inf) > math.nextafter(rival, math.inf)

    def _choose_next(self, index: FloatArray, chosen: IntArray) -> IntArray:
        """Return the base arm with the largest index that is not `chosen` yet, k times over."""
        allowed = self._is_free(index.size) & (chosen.size < self.k)
        allowed[chosen] = False
        return best_of(index, allowed)

    def _solve(self, index: FloatArray) -> IntArray:
        if index.size == 0:
            raise InfeasibleError("no base arms: TopK needs at least one to choose from")
        if index.size < self.k:
            # Shown once per place by Python's default filter.
            warnings.warn(f"{self!r} got fewer than k base arms: it takes all", stacklevel=2)
        if self._include.size == self._exclude.size == 0:
            return _top(index, self.k)
        free = self._is_free(index.size).nonzero()[0]
        if free.size == self._include.size == 0:
            raise InfeasibleError("all base arms are excluded")
        return np.sort(np.append(self._include, free[_top(index[free], self._room)]))


class Partition(ExactSumOracle):
    """Choose base arms with the largest sum, up to a limit for each group.

    Exact: α = 1. Only base arms with a positive index are chosen, possibly none. Between equal
    indices of a group the lower position is chosen.

    Args:
        groups: label of each base arm's group, M hashable values; or the name of a column.
        limits: the largest number of base arms of any group, or a dict with one for each label,
            where a number may also be written as a string, as in JSON.

    Examples:
        >>> oracle = Partition(["red", "red", "blue", "blue"], limits={"red": 1, "blue": 2})
        >>> oracle([0.5, 0.7, 0.2, -0.1])
        array([1, 2])
    """

    is_sequential = True
    per_arm = ("groups",)

    def __init__(
        self, groups: Iterable[Hashable] | ArrayLike | str, limits: int | Mapping[Any, int]
    ) -> None:
        self.groups = groups if isinstance(groups, str) else _as_labels(groups)
        self.limits = _as_limits(limits)
        self._prepare_if_resolved()

    def _prepare(self) -> None:
        self.size = len(self.groups)
        self._group, count = number_labels(self.groups)
        labels = list(dict.fromkeys(self.groups))
        self._limit = np.array([_limit_of(label, self.limits) for label in labels], dtype=np.intp)
        self._free = self._is_free(self.size)
        self._room = self._limit - np.bincount(self._group[self._include], minlength=count)
        if (self._room < 0).any():
            first = int(np.argmax(self._room < 0))
            raise InfeasibleError(
                f"{self._limit[first] - self._room[first]} base arms of group {labels[first]!r} "
                f"are included; its limit is {self._limit[first]}"
            )

    def _allows(self, chosen: IntArray) -> bool:
        counts = np.bincount(self._group[chosen], minlength=self._limit.size)
        return bool((counts <= self._limit).all())

    def conflict(self, position: int, super_arm: IntArray) -> str | None:
        """Name the group of a base arm if it is full."""
        group = self._group[position]
        count, limit = np.count_nonzero(self._group[super_arm] == group), self._limit[group]
        return f"{self.groups[position]} already has {count} of {limit}" if count >= limit else None

    def _choose_next(self, index: FloatArray, chosen: IntArray) -> IntArray:
        """Return the base arm with the largest positive index whose group has room left."""
        room = self._limit - np.bincount(self._group[chosen], minlength=self._limit.size)
        allowed = (index > 0) & (room[self._group] > 0) & self._free
        allowed[chosen] = False
        return best_of(index, allowed)

    def _solve(self, index: FloatArray) -> IntArray:
        order = np.flatnonzero((index > 0) & self._free)
        order = order[np.lexsort((-index[order], self._group[order]))]
        group = self._group[order]
        rank = np.arange(order.size) - np.searchsorted(group, group)
        return np.sort(np.append(self._include, order[rank < self._room[group]]))


def _as_reward(reward: Any) -> Callable[[Any], Any] | None:
    if isinstance(reward, str):
        function = getattr(np, reward, None)
        if not (isinstance(function, np.ufunc) and function.nin == function.nout == 1):
            raise InputError(f"reward must name a NumPy function such as 'log1p'; got {reward!r}")
        return function
    if reward is None or callable(reward):
        return cast(Callable[[Any], Any] | None, reward)
    raise InputError(f"reward must be a function of the sum of outcomes; got {reward!r}")


def _top(index: FloatArray, k: int) -> IntArray:
    """Return the positions of the `k` largest indices, the lower positions between equals."""
    if index.size <= k:
        return np.arange(index.size)
    if k == 0:
        return np.empty(0, dtype=np.intp)
    cut = index.size - k
    least = np.partition(index, cut)[cut]
    chosen: IntArray = (index >= least).nonzero()[0]
    if chosen.size > k:
        tied = np.flatnonzero(index[chosen] == least)
        chosen = np.delete(chosen, tied[k - chosen.size :])
    return chosen


def _as_labels(groups: Any) -> list[Any]:
    try:
        labels = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
        set(labels)
    except TypeError:
        raise InputError(
            f"groups must be one hashable label per base arm; got {str(groups)[:80]}"
        ) from None
    missing = [position for position, label in enumerate(labels) if label != label]
    if missing:
        raise InputError(f"groups must have no missing label; position {missing[0]} is NaN")
    return labels


def _as_limits(limits: int | Mapping[Any, int]) -> int | dict[Any, int]:
    if not isinstance(limits, Mapping):
        return as_count(limits, "limits", least=0)
    return {label: as_count(n, f"limits[{label!r}]", least=0) for label, n in limits.items()}


def _limit_of(label: Any, limits: int | dict[Any, int]) -> int:
    if isinstance(limits, int):
        return limits
    for key in (label, json_key(label) or label):
        if key in limits:
            return limits[key]
    raise InputError(f"limits must name every group; group {label!r} is missing")
