"""Oracles that solve sums exactly, and can therefore prove that a choice is stable."""

from __future__ import annotations

import numpy as np

from oclok.errors import OracleError
from oclok.oracles.base import SumOracle
from oclok.oracles.parametric import ParametricOracle
from oclok.typing import ArrayLike, FloatArray, IntArray

#: Solvers are exact up to this, in terms of the largest index per base arm that two super arms
#: differ by (tolerances of HiGHS: 1e-10), …
ERROR_OF_LARGEST_INDEX = 1e-9
#: … plus this, in terms of the sum of all |indices| (the knapsack's pruning: 1.1e-11; the
#: rounding of sums of up to 900,000 indices: 2⁻⁵³ each).
ERROR_OF_INDEX_SUM = 1e-10


class ExactSumOracle(ParametricOracle, SumOracle):
    """An oracle for the largest sum of indices whose solver is exact up to the errors above."""

    alpha = 1.0

    def value(self, means: ArrayLike, super_arm: ArrayLike) -> float:
        """Return the sum of `means` over `super_arm`."""
        self._check_resolved()
        return super().value(means, super_arm)

    def is_stable(self, index: FloatArray, super_arm: IntArray, error: FloatArray) -> bool:
        """Return whether `super_arm` is provably chosen for any index within `error` of this.

        Let the chosen arms have the least index possible and the others the greatest. If the
        solver still chooses S, then S is best for every index f in between: for any rival T,
        f(S) - f(T) = f(S∖T) - f(T∖S) is smallest at that corner. The margin added to `error` on
        each arm of S∖T and T∖S exceeds the solver's own error, so that S is strictly best.
        """
        self._check_resolved()
        error = np.where(self._is_free(index.size), error, 0.0)  # the others are not a choice
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.abs(index) + error
            margin = ERROR_OF_LARGEST_INDEX * size.max(initial=0.0)
            margin += ERROR_OF_INDEX_SUM * size.sum()
            corner = index + (error + margin)
            corner[super_arm] = (index - (error + margin))[super_arm]
        if not (margin > 0 and np.isfinite(corner).all()):
            return False
        try:
            found = self.solve(corner)
            return found.gap == 0 and np.array_equal(found.super_arm, super_arm)
        except OracleError:
            return False
