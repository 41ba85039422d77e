"""What every oracle is: this round's feasible super arms, their expected reward and a solver.

An oracle is a description, not a service: it is made for the base arms of one round (or, like
`TopK`, for any) and holds no state that a call changes, except the random generator of an oracle
that was given a seed. To add one, derive from `Oracle` (or `SumOracle`), set `alpha`, write
`_solve`, `value` and `is_feasible`, and run `oclok.testing.check_oracle` on it.

Guarantees have no defaults: a class that does not state `alpha` cannot be defined, and neither
`lipschitz` nor `is_stable` claims anything unless a class does.
"""
# Tested in tests/testing/test_oracles.py: the conformance suite holds every oracle to it.

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from oclok.decision import Propensities
from oclok.errors import InputError, OracleError
from oclok.oracles.arguments import arguments_of, call_text
from oclok.persistence import Persistent
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_positions, as_vector


class Solution(NamedTuple):
    """A super arm, and what is proven about it.

    Attributes:
        super_arm: positions of the chosen base arms, ascending.
        gap: no super arm is worth more than this one's value plus `gap`. 0 if it is the best, up
            to rounding; infinite where nothing is proven.
    """

    super_arm: IntArray
    gap: float


class Oracle(Persistent, ABC):
    """Feasible super arms, expected reward u and a solver with a guarantee.

    Attributes:
        beta: probability with which `alpha` holds; 1 for deterministic solvers.
        is_search: a call may take long, unless `limited`.
        size: number of base arms that the oracle describes; None if it takes any number.
        lipschitz: B with |u(f) - u(f')| ≤ B Σ|f_i - f'_i|; None where it is not known.
        is_sequential: a super arm can be built step by step, by `choose_next`; if so,
        steps_keep_alpha: whether the result of the steps is as good as `alpha` says.
    """

    beta: float = 1.0
    is_search: bool = False
    size: int | None = None
    lipschitz: float | None = None
    is_sequential: bool = False
    steps_keep_alpha: bool = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        members = {name: getattr(cls, name, None) for name in dir(cls)}
        missing = {n for n, m in members.items() if getattr(m, "__isabstractmethod__", False)}
        if missing == {"alpha"}:
            raise OracleError(
                f"{cls.__name__} has a solver but states no guarantee: set alpha in the class body "
                "(alpha = 1.0 if the solver is exact), or make it a property"
            )

    @property
    @abstractmethod
    def alpha(self) -> float:
        """The solver's value is at least `alpha` times the best one, with probability `beta`."""

    def __call__(self, index: ArrayLike) -> IntArray:
        """Return the positions, ascending, of the super arm chosen for `index` of shape (M,)."""
        return self._solve(self._as_index(index))

    def solve(self, index: ArrayLike) -> Solution:
        """Return the super arm for `index` of shape (M,), and its proven gap."""
        values = self._as_index(index)
        super_arm = self._solve(values)
        if self.alpha == self.beta == 1:
            return Solution(super_arm, 0.0)
        if self.beta < 1:
            return Solution(super_arm, math.inf)
        return Solution(super_arm, self.value(values, super_arm) * (1 / self.alpha - 1))

    def limited(self, seconds: float) -> Oracle:
        """Return the oracle with a time limit of at most `seconds` per call, if it searches."""
        return self

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

    def conflict(self, position: int, super_arm: IntArray) -> str | None:
        """Return, in words, the constraint by which a base arm cannot join `super_arm`, if any."""
        return None

    def is_stable(self, index: FloatArray, super_arm: IntArray, error: FloatArray) -> bool:
        """Return whether `super_arm` is provably chosen for any index within `error` of this.

        `error` (M,) is 0 where the index (M,) is exact, infinite where no bound is known.
        """
        return False

    def choose_next(self, index: FloatArray, chosen: IntArray) -> IntArray:
        """Return the base arms to add to those `chosen` so far; none when that is a super arm.

        The index may change between steps, as it does when a policy conditions on the arms
        chosen so far.
        """
        raise NotImplementedError(f"{type(self).__name__} does not choose step by step")

    def given(self, include: ArrayLike = (), exclude: ArrayLike = ()) -> Oracle:
        """Return the oracle whose super arms contain all of `include` and none of `exclude`.

        `InfeasibleError`, here or when it is called, if there is no such super arm.
        """
        raise OracleError(f"{type(self).__name__} cannot include or exclude base arms")

    def uniform_propensities(self, arms: int) -> Propensities | None:
        """Return how likely M = `arms` base arms, and a super arm, are for i.i.d. random indices.

        None unless all super arms are equally likely then, and can be counted.
        """
        return None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the base arms that `resolve` needs; none for most oracles."""
        return ()

    def resolve(self, column: Callable[[str], ArrayLike]) -> Oracle:
        """Return the oracle with its `columns` replaced by what `column(name)` returns, (M,)."""
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the oracle as plain values for `json.dumps`; `oracle_from_json` reads them."""
        raise OracleError(f"{type(self).__name__} has no JSON form")

    def __repr__(self) -> str:
        return call_text(type(self).__name__, arguments_of(self))

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

    lipschitz = 1.0

    def value(self, means: ArrayLike, super_arm: ArrayLike) -> float:
        """Return the sum of `means` over `super_arm`."""
        known = as_vector(means, "means", self.size)
        return float(known[as_positions(super_arm, "super_arm", known.size)].sum())

    def values(self, means: FloatArray, super_arm: IntArray) -> FloatArray:
        """Return the sums of `means` (S, M) over `super_arm`, shape (S,)."""
        result: FloatArray = means[:, super_arm].sum(axis=1)
        return result


def as_oracle(*given: Oracle | None) -> Oracle:
    """Return the first oracle that is not None: that of a round, then the one for all rounds."""
    oracle = next((each for each in given if each is not None), None)
    if oracle is None:
        raise OracleError("no oracle: give one to the agent or policy, or as oracle=… each time")
    if not isinstance(oracle, Oracle):
        raise OracleError(f"oracle must be an oclok.oracles.Oracle; got {oracle!r}")
    return oracle


def best_of(value: FloatArray, allowed: BoolArray) -> IntArray:
    """Return the first position of the largest `value` that is `allowed`; none if nothing is."""
    if not allowed.any():
        return np.empty(0, dtype=np.intp)
    return np.array([np.argmax(np.where(allowed, value, -np.inf))])
