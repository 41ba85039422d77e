"""Super arms described by linear constraints, and solved as an integer program.

| symbol       | meaning                                                                     |
|--------------|-----------------------------------------------------------------------------|
| x            | 1 where a base arm is chosen, 0 elsewhere; shape (M,)                       |
| A            | one row of coefficients per constraint; (R, M)                              |
| lower, upper | bounds of A x; (R,)                                                         |
| scale        | power of two that brings a row's largest coefficient to between 1/2 and 1   |

HiGHS works with tolerances: it accepts a constraint that is missed by 1e-6, and its presolve and
cuts can lose points that meet one by less than that. So it solves a relaxation, in which every
feasible x keeps a distance of `RELAXATION` from each bound. Each answer that is not feasible is
ruled out by a cover cut, derived in exact arithmetic. An answer that is feasible is the best of
the relaxation, hence the best of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from oclok.errors import InfeasibleError, InputError, OracleError
from oclok.oracles.base import Solution
from oclok.oracles.cover_cuts import CoverCut, cover_cut, exceeds
from oclok.oracles.parametric import Deadline, ExactSumOracle, TimeLimitedOracle
from oclok.oracles.quiet import silenced_printf
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_vector

#: How far constraints are relaxed, with coefficients of at most 1; ten times HiGHS' tolerance.
RELAXATION = 1e-5
#: HiGHS stops at a gap of 1e-6. With indices scaled up to this size that is 1e-10 of the largest.
LARGEST_SCALED_INDEX = 1e4
#: Cuts after which a program counts as too hard; each costs one more solve.
LARGEST_CUT_COUNT = 500


class Program(TimeLimitedOracle, ExactSumOracle):
    """Choose base arms with the largest sum such that lower ≤ A x ≤ upper, x being 0 or 1.

    For problems that no other oracle describes. A super arm must meet all constraints in exact
    arithmetic, with no tolerance: 0.1 + 0.2 exceeds 0.3, so multiply decimals to whole numbers.
    Solved by HiGHS, exactly (α = 1) up to 1e-10 of the largest index; that can take long for
    large or intricate problems. Ties are broken deterministically, but not by position. Where
    nothing is feasible, a call raises `InfeasibleError`; where more than 500 better sets miss a
    constraint by a tiny margin, an `OracleError`.

    Args:
        A: coefficients, dense or a SciPy sparse array, shape (R, M); or a list of rows, of which
            each has shape (M,) or is the name of a column.
        lower: lower bounds, one for all rows or shape (R,); None or `-np.inf` for none.
        upper: upper bounds, likewise; None or `np.inf` for none.
        time_limit: seconds that a call may search; None for as long as it takes.

    Examples:
        Two base arms, but not both of the first two:

        >>> oracle = Program([[1, 1, 1, 1], [1, 1, 0, 0]], lower=[2, 0], upper=[2, 1])
        >>> oracle([0.9, 0.8, 0.1, 0.3])
        array([0, 3])
    """

    def __init__(
        self,
        A: Any,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
        time_limit: float | None = None,
    ) -> None:
        self.time_limit = self._as_limit(time_limit)
        self.A = _as_coefficients(A)
        rows = len(self.A) if isinstance(self.A, list) else self.A.shape[0]
        self.lower = _as_bounds(lower, "lower", -np.inf)
        self.upper = _as_bounds(upper, "upper", np.inf)
        for name, bounds in (("lower", self.lower), ("upper", self.upper)):
            if bounds.shape not in ((), (rows,)):
                raise InputError(
                    f"{name} must be one number, or one for each of the {rows} rows; "
                    f"got shape {bounds.shape}"
                )
        low, high = self._bounds = [np.broadcast_to(b, (rows,)) for b in (self.lower, self.upper)]
        if (low > high).any():
            first = int(np.argmax(low > high))
            raise InputError(
                f"lower must not exceed upper; row {first} has {low[first]} and {high[first]}"
            )
        self._prepare_if_resolved()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that rows of `A` stand for."""
        rows = self.A if isinstance(self.A, list) else ()
        return tuple(dict.fromkeys(row for row in rows if isinstance(row, str)))

    def _with_columns(self, found: dict[str, ArrayLike]) -> dict[str, Any]:
        named = {name: as_vector(column, f"column {name!r}") for name, column in found.items()}
        return {"A": [named[row] if isinstance(row, str) else row for row in self.A]}

    def _prepare(self) -> None:
        rows, self.size = self.A.shape
        row = np.repeat(np.arange(rows), np.diff(self.A.indptr))
        largest = np.zeros(rows)
        np.maximum.at(largest, row, np.abs(self.A.data))
        power = -np.frexp(largest)[1]
        scaled = self.A.copy()
        scaled.data = np.ldexp(scaled.data, power[row])
        with np.errstate(over="ignore"):
            low, high = (np.ldexp(bound, power) for bound in self._bounds)
        self._relaxed = scaled, low - RELAXATION, high + RELAXATION

    def _allows(self, chosen: IntArray) -> bool:
        x: BoolArray = np.zeros(self.A.shape[1], dtype=np.bool_)
        x[chosen] = True
        return self._missed(x) is None

    def _missed(self, x: BoolArray) -> tuple[FloatArray, float] | None:
        """Return a, b of a constraint a x ≤ b that x misses in exact arithmetic; None if none."""
        scaled, relaxed_low, relaxed_high = self._relaxed
        sums = scaled @ x.astype(np.float64)
        near = (sums < relaxed_low + 2 * RELAXATION) | (sums > relaxed_high - 2 * RELAXATION)
        for row in near.nonzero()[0]:
            low, high = (bounds[row] for bounds in self._bounds)
            entries = slice(*self.A.indptr[row : row + 2])
            arms, coefficients = self.A.indices[entries], self.A.data[entries]
            for sign, bound in ((1.0, high), (-1.0, -low)):
                if exceeds(sign * coefficients[x[arms]], bound):
                    a = np.zeros(x.size)
                    a[arms] = sign * coefficients
                    return a, bound
        return None

    def _search(self, index: FloatArray, deadline: Deadline) -> Solution:
        if index.size == 0:
            if not self.is_feasible([]):
                raise InfeasibleError("no base arms, and the empty super arm is not feasible")
            return Solution(np.empty(0, dtype=np.intp), 0.0)
        cuts: list[CoverCut] = []
        while len(cuts) <= LARGEST_CUT_COUNT:
            answer = self._milp(index, cuts, deadline)
            if answer.status == 2:
                raise InfeasibleError("no choice of base arms meets all constraints")
            is_over = answer.status == 1
            if answer.status not in ((0,) if self.time_limit is None else (0, 1)):
                raise OracleError(f"the solver found no optimal super arm: {answer.message}")
            if answer.x is not None:
                x = answer.x > 0.5
                missed = self._missed(x)
                if missed is None:
                    gap = self._gap(index, x, answer) if is_over else 0.0
                    return Solution(np.flatnonzero(x), gap)
                cuts.append(cover_cut(*missed, x))
            if is_over:
                raise OracleError(
                    f"Program found no feasible super arm within {self.time_limit:g} s; raise "
                    "time_limit, or state fewer equalities"
                )
        raise OracleError(
            f"too hard: more than {LARGEST_CUT_COUNT} sets miss a constraint by a tiny margin; "
            "do the coefficients of a row differ too much in size?"
        )

    def _gap(self, index: FloatArray, x: BoolArray, answer: Any) -> float:
        bound = -answer.mip_dual_bound * (np.abs(index).max() or 1.0) / LARGEST_SCALED_INDEX
        return max(0.0, float(bound - index[x].sum()))

    def _milp(self, index: FloatArray, cuts: Sequence[CoverCut], deadline: Deadline) -> Any:
        from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

        least, most = np.zeros(index.size), np.ones(index.size)
        least[self._include], most[self._exclude] = 1.0, 0.0
        constraints = [LinearConstraint(*self._relaxed)]
        if cuts:
            rows = np.array([cut.coefficients for cut in cuts])
            constraints.append(LinearConstraint(rows, -np.inf, [cut.bound for cut in cuts]))
        options: dict[str, Any] = {"mip_rel_gap": 0, "presolve": False}
        if deadline.remaining is not None:
            options["time_limit"] = deadline.remaining
        with silenced_printf():
            return milp(
                -index / (np.abs(index).max() or 1.0) * LARGEST_SCALED_INDEX,
                integrality=1,
                bounds=Bounds(least, most),
                constraints=constraints,
                options=options,
            )

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        if isinstance(self.A, csr_array):
            A = {"data": self.A.data, "indices": self.A.indices, "indptr": self.A.indptr}
            state["A"] = {**A, "shape": self.A.shape}
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        A = state["A"]
        if isinstance(A, dict):
            A = csr_array((A["data"], A["indices"], A["indptr"]), shape=A["shape"])
        super()._restore({**state, "A": A})


def _as_coefficients(A: Any) -> Any:
    """Return a matrix, or a list of rows where some are names of columns."""
    if isinstance(A, list | tuple) and any(isinstance(row, str) for row in A):
        return [row if isinstance(row, str) else as_vector(row, "A's rows").tolist() for row in A]
    try:
        array = A if issparse(A) else np.asarray(A)
    except ValueError as reason:
        raise InputError(f"A must be numbers of shape (R, M); {reason}") from None
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


def _as_bounds(bounds: Any, name: str, no_bound: float) -> FloatArray:
    if bounds is None:
        bounds = no_bound
    elif isinstance(bounds, list | tuple):
        bounds = [no_bound if bound is None else bound for bound in bounds]
    array = np.asarray(bounds)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be numbers, or None where there is none; got {bounds!r}")
    if np.isnan(array).any() or (array == -no_bound).any():
        raise InputError(f"{name} must not be NaN or {-no_bound}")
    return array.astype(np.float64)
