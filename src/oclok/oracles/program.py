"""Super arms described by linear constraints, and solved as an integer program.

| symbol       | meaning                                                                |
|--------------|------------------------------------------------------------------------|
| x            | 1 where a base arm is chosen, 0 elsewhere; shape (M,)                  |
| A            | one row per constraint, divided by its largest coefficient; (R, M)     |
| lower, upper | bounds of A x, divided likewise; (R,)                                  |
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from oclok.errors import InfeasibleError, InputError, OracleError
from oclok.oracles.base import SumOracle
from oclok.typing import ArrayLike, FloatArray, IntArray

#: How far a constraint may be missed, in terms of its largest coefficient; as in HiGHS.
TOLERANCE = 1e-6
#: HiGHS stops at a gap of 1e-6. With indices scaled up to this size that is 1e-10 of the largest.
LARGEST_INDEX = 1e4


class Program(SumOracle):
    """Choose base arms with the largest sum such that lower ≤ A x ≤ upper, x being 0 or 1.

    For whatever no other oracle describes. Solved by HiGHS, exactly (α = 1) up to 1e-10 of the
    largest index; that can take long for large or intricate problems. A constraint counts as
    met if it is missed by no more than 1e-6 of its row's largest coefficient. Between super
    arms of equal value the answer is the same each time, but not by position. Where nothing is
    feasible, a call raises `InfeasibleError`.

    Args:
        A: coefficients, dense or a SciPy sparse array; shape (R, M).
        lower: lower bounds, one for all rows or shape (R,); `-np.inf` for none.
        upper: upper bounds, likewise; `np.inf` for none.

    Two base arms, but not both of the first two:

    >>> oracle = Program([[1, 1, 1, 1], [1, 1, 0, 0]], lower=[2, 0], upper=[2, 1])
    >>> oracle([0.9, 0.8, 0.1, 0.3])
    array([0, 3])
    """

    def __init__(self, A: Any, lower: ArrayLike, upper: ArrayLike) -> None:
        matrix = _as_matrix(A)
        rows, self.size = matrix.shape
        row = np.repeat(np.arange(rows), np.diff(matrix.indptr))
        largest = np.zeros(rows)
        np.maximum.at(largest, row, np.abs(matrix.data))
        largest[largest == 0] = 1.0
        matrix.data /= largest[row]
        low, high = _as_bounds(lower, "lower", rows), _as_bounds(upper, "upper", rows)
        if (low > high).any():
            first = int(np.argmax(low > high))
            raise InputError(
                f"lower must not exceed upper; row {first} has {low[first]} and {high[first]}"
            )
        with np.errstate(over="ignore"):
            self._A, self._lower, self._upper = matrix, low / largest, high / largest

    def is_feasible(self, super_arm: ArrayLike) -> bool:
        """Return whether `super_arm` meets all constraints, give or take the tolerance."""
        chosen = self._positions(super_arm)
        if chosen is None:
            return False
        x = np.zeros(self._A.shape[1])
        x[chosen] = 1.0
        sums = self._A @ x
        above, below = sums >= self._lower - TOLERANCE, sums <= self._upper + TOLERANCE
        return bool(above.all() and below.all())

    def _solve(self, index: FloatArray) -> IntArray:
        if index.size == 0:
            if not self.is_feasible([]):
                raise InfeasibleError("no base arms, and the empty super arm is not feasible")
            return np.empty(0, dtype=np.intp)
        answer = self._milp(index)
        if answer.status not in (0, 2):  # presolve has been seen to fail on small equalities
            answer = self._milp(index, presolve=False)
        if answer.status == 2:
            raise InfeasibleError("no choice of base arms meets all constraints")
        if answer.status != 0:
            raise OracleError(f"the solver found no optimal super arm: {answer.message}")
        chosen = np.flatnonzero(answer.x > 0.5)
        if not self.is_feasible(chosen):
            raise OracleError(
                f"the solver's answer misses a constraint by more than {TOLERANCE} of its "
                "largest coefficient; do the coefficients of a row differ too much in size?"
            )
        return chosen

    def _milp(self, index: FloatArray, *, presolve: bool = True) -> Any:
        from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

        return milp(
            -index / (np.abs(index).max() or 1.0) * LARGEST_INDEX,
            integrality=1,
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(self._A, self._lower, self._upper),
            options={"mip_rel_gap": 0, "presolve": presolve},
        )

    def _state(self) -> dict[str, Any]:
        A = {"data": self._A.data, "indices": self._A.indices, "indptr": self._A.indptr}
        return {**self.__dict__, "_A": {**A, "shape": self._A.shape}}

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        A = state["_A"]
        self._A = csr_array((A["data"], A["indices"], A["indptr"]), shape=A["shape"])


def _as_matrix(A: Any) -> csr_array:
    array = A if issparse(A) else np.asarray(A)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            "A must be numbers of shape (R, M), one column per base arm; "
            f"got shape {array.shape}, dtype {array.dtype}"
        )
    matrix = csr_array(array, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise InputError("A must be finite; it has NaN or infinite coefficients")
    return matrix


def _as_bounds(bounds: ArrayLike, name: str, rows: int) -> FloatArray:
    array = np.asarray(bounds)
    if array.dtype.kind not in "biuf" or array.shape not in ((), (rows,)):
        raise InputError(
            f"{name} must be one number, or one for each of the {rows} rows; "
            f"got shape {array.shape}, dtype {array.dtype}"
        )
    impossible = np.inf if name == "lower" else -np.inf
    if np.isnan(array).any() or (array == impossible).any():
        raise InputError(f"{name} must not be NaN or {impossible}")
    return np.broadcast_to(array, (rows,)).astype(np.float64)
