"""What every oracle is: this round's feasible super arms, their expected reward and a solver.

An oracle is a description, not a service: it is made for the base arms of one round (or, like
`TopK`, for any) and holds no state that a call changes, save the random generator of an oracle
that was given a seed. To add one, derive from `Oracle`, write `_solve`, `value` and
`is_feasible`, and run `oclok.testing.check_oracle` on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from oclok.errors import InputError, OracleError
from oclok.persistence import Persistent
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_positions, as_vector


class Oracle(Persistent, ABC):
    """Feasible super arms, expected reward u and a solver with a guarantee.

    Attributes:
        alpha: the solver reaches at least `alpha` times the best value …
        beta: … with at least this probability; 1 for deterministic solvers.
        size: number of base arms that the oracle describes; None if it takes any number.
        lipschitz: B with |u(f) - u(f')| ≤ B Σ|f_i - f'_i|; None where it is not known.
        is_sequential: a super arm can be built step by step, by `choose_next`; if so,
        steps_keep_alpha: whether what the steps end at is as good as `alpha` says.
    """

    alpha: float = 1.0
    beta: float = 1.0
    size: int | None = None
    lipschitz: float | None = 1.0
    is_sequential: bool = False
    steps_keep_alpha: bool = True

    def __call__(self, index: ArrayLike) -> IntArray:
        """Return the positions, ascending, of the super arm chosen for `index` of shape (M,)."""
        return self._solve(self._as_index(index))

    @abstractmethod
    def _solve(self, index: FloatArray) -> IntArray:
        """Solve for a finite `index` of the right size; ties go to the lower position."""

    @abstractmethod
    def value(self, means: ArrayLike, super_arm: ArrayLike) -> float:
        """Return u, the expected reward of `super_arm` when the base arms have `means` (M,)."""

    def values(self, means: FloatArray, super_arm: IntArray) -> FloatArray:
        """Return u of `super_arm` for each row of `means` (S, M), shape (S,)."""
        return np.array([self.value(row, super_arm) for row in means])

    def best_values(self, means: FloatArray) -> FloatArray:
        """Return u of what is chosen for each row of `means` (S, M), shape (S,)."""
        return np.array([self.value(row, self(row)) for row in means])

    @abstractmethod
    def is_feasible(self, super_arm: ArrayLike) -> bool:
        """Return whether `super_arm` may be played."""

    def is_stable(self, index: FloatArray, super_arm: IntArray, error: FloatArray) -> bool:
        """Return whether `super_arm` is provably chosen for any index within `error` of this."""
        return False

    def choose_next(self, index: FloatArray, chosen: IntArray) -> IntArray:
        """Return the base arms to add to those `chosen` so far; none when that is a super arm.

        The index may change between steps, as it does when the arms taken so far tell something
        of the others.
        """
        raise NotImplementedError(f"{type(self).__name__} does not choose step by step")

    def _as_index(self, index: ArrayLike) -> FloatArray:
        try:
            result = as_vector(index, "index")
        except InputError as reason:
            raise OracleError(str(reason)) from None
        if self.size is not None and result.size != self.size:
            raise OracleError(
                f"{type(self).__name__} describes {self.size} base arms; "
                f"got an index for {result.size}"
            )
        return result

    def _positions(self, super_arm: ArrayLike) -> IntArray | None:
        """Return `super_arm` as ascending positions, or None if it is no set of base arms."""
        try:
            return as_positions(super_arm, "super_arm", self.size)
        except InputError:
            return None


class SumOracle(Oracle):
    """An oracle whose expected reward is the sum of the chosen means (B = 1, as |Σa| ≤ Σ|a|)."""

    def value(self, means: ArrayLike, super_arm: ArrayLike) -> float:
        """Return the sum of `means` over `super_arm`."""
        known = as_vector(means, "means", self.size)
        return float(known[as_positions(super_arm, "super_arm", known.size)].sum())

    def values(self, means: FloatArray, super_arm: IntArray) -> FloatArray:
        """Return the sums of `means` (S, M) over `super_arm`, shape (S,)."""
        result: FloatArray = means[:, super_arm].sum(axis=1)
        return result

    def is_stable(self, index: FloatArray, super_arm: IntArray, error: FloatArray) -> bool:
        """Return whether `super_arm` is provably chosen for any index within `error` of this.

        With the chosen arms at their worst and the others at their best, an exact solver still
        chooses `super_arm`. Then it is the best of all for every index in between, as the sum
        of any other set, less what both have in common, grows by at most what is granted here.
        Solvers are exact to about 1e-10 of the largest index, which is granted as well.
        """
        granted = error + 1e-9 * np.abs(index).max(initial=0.0)
        worst = index + granted
        worst[super_arm] = (index - granted)[super_arm]
        try:
            return self.alpha == 1 and np.array_equal(self._solve(worst), super_arm)
        except OracleError:
            return False


def best_of(value: FloatArray, allowed: BoolArray) -> IntArray:
    """Return the first position of the largest `value` that is `allowed`; none if nothing is."""
    if not allowed.any():
        return np.empty(0, dtype=np.intp)
    return np.array([np.argmax(np.where(allowed, value, -np.inf))])
