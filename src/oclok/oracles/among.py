"""An oracle for some of the base arms, as one for all of them."""

from __future__ import annotations

import numpy as np

from oclok.oracles.base import Oracle
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_positions, as_vector


class Among(Oracle):
    """Choose among base arms at some positions only, as another oracle would if these were all.

    Args:
        oracle: an oracle for the base arms at `positions`, in this order.
        positions: of the base arms to choose from; distinct, made ascending.
        size: M, how many base arms there are in all.

    >>> from oclok.oracles import TopK
    >>> Among(TopK(2), [0, 2, 3], size=5)([0.1, 0.9, 0.3, 0.2, 0.8])
    array([2, 3])
    """

    def __init__(self, oracle: Oracle, positions: ArrayLike, size: int) -> None:
        self.oracle = oracle
        self.size: int = size
        self.positions = as_positions(positions, "positions", size)
        self.alpha, self.beta, self.lipschitz = oracle.alpha, oracle.beta, oracle.lipschitz

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
        some = self.positions
        return self.oracle.is_stable(index[some], self._within(super_arm), error[some])

    def _solve(self, index: FloatArray) -> IntArray:
        return self.positions[self.oracle(index[self.positions])]

    def _within(self, super_arm: IntArray) -> IntArray:
        """Return where the base arms of `super_arm` stand in `positions`."""
        return np.searchsorted(self.positions, super_arm)
