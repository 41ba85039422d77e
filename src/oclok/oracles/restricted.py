"""An oracle for some of the base arms, as one for all of them."""

from __future__ import annotations

import numpy as np

from oclok.errors import InfeasibleError, InputError
from oclok.oracles.base import Oracle, Solution
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_positions, as_vector


class RestrictedOracle(Oracle):
    """Choose among the base arms at some positions only, as another oracle does if these are all.

    Args:
        oracle: an oracle for the base arms at `positions`, in this order.
        positions: of the base arms to choose from; distinct, made ascending.
        size: M, the number of all base arms.

    Examples:
        >>> from oclok.oracles import TopK
        >>> RestrictedOracle(TopK(2), [0, 2, 3], size=5)([0.1, 0.9, 0.3, 0.2, 0.8])
        array([2, 3])
    """

    def __init__(self, oracle: Oracle, positions: ArrayLike, size: int) -> None:
        self.oracle = oracle
        self.size: int = size
        self.positions = as_positions(positions, "positions", size)
        self.beta, self.lipschitz = oracle.beta, oracle.lipschitz
        self.is_search = oracle.is_search

    @property
    def alpha(self) -> float:
        """The guarantee of the oracle for the base arms at `positions`."""
        return self.oracle.alpha

    def value(self, means: ArrayLike, super_arm: ArrayLike) -> float:
        """Return the expected reward of `super_arm`, which must be among `positions`."""
        known = as_vector(means, "means", self.size)
        chosen = as_positions(super_arm, "super_arm", self.size)
        return self.oracle.value(known[self.positions], self._within(chosen))

    def is_feasible(self, super_arm: ArrayLike) -> bool:
        """Return whether `super_arm` is feasible and has only base arms at `positions`."""
        chosen = self._positions(super_arm)
        if chosen is None or not np.isin(chosen, self.positions).all():
            return False
        return self.oracle.is_feasible(self._within(chosen))

    def is_stable(self, index: FloatArray, super_arm: IntArray, error: FloatArray) -> bool:
        """Return whether `super_arm` is provably chosen for any index within `error` of this."""
        if not np.isin(super_arm, self.positions).all():
            return False
        some = self.positions
        return self.oracle.is_stable(index[some], self._within(super_arm), error[some])

    def given(self, include: ArrayLike = (), exclude: ArrayLike = ()) -> RestrictedOracle:
        """Return the oracle whose super arms contain all of `include` and none of `exclude`."""
        wanted = as_positions(include, "include", self.size)
        unwanted = as_positions(exclude, "exclude", self.size)
        if np.isin(wanted, unwanted).any():
            first = wanted[np.isin(wanted, unwanted)][0]
            raise InputError(f"position {first} is in both include and exclude")
        if not np.isin(wanted, self.positions).all():
            first = wanted[~np.isin(wanted, self.positions)][0]
            raise InfeasibleError(f"position {first} cannot be included: it is not available")
        unwanted = unwanted[np.isin(unwanted, self.positions)]
        inner = self.oracle.given(self._within(wanted), self._within(unwanted))
        return RestrictedOracle(inner, self.positions, self.size)

    def solve(self, index: ArrayLike) -> Solution:
        """Return the super arm for `index` of shape (M,), and its proven gap."""
        found = self.oracle.solve(self._as_index(index)[self.positions])
        return Solution(self.positions[found.super_arm], found.gap)

    def limited(self, seconds: float) -> RestrictedOracle:
        """Return the oracle with a time limit of at most `seconds` per call, if it searches."""
        return RestrictedOracle(self.oracle.limited(seconds), self.positions, self.size)

    def _solve(self, index: FloatArray) -> IntArray:
        return self.positions[self.oracle(index[self.positions])]

    def _within(self, super_arm: IntArray) -> IntArray:
        """Return the positions of the base arms of `super_arm` within `positions`."""
        return np.searchsorted(self.positions, super_arm)
