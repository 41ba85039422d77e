"""Super arms whose costs fit into a budget.

| symbol  | meaning                                                                |
|---------|------------------------------------------------------------------------|
| profit  | the index of the candidates (positive, affordable alone), scaled; (N,) |
| weight  | their costs in units, whole numbers; (N,)                              |
| room    | units that are left for them: CAPACITY less what is included           |
| greedy  | candidates by profit per weight, as long as they fit                   |
| price   | λ, profit per weight of the first candidate that no longer fits        |
| loss    | distance of profit from λ weight: what a flip costs at that price; (N,) |
| load    | weight of each partial choice that is still of interest; (L,)          |
| worth   | their profit; (L,)                                                     |

Candidates are decided in the order of their loss, smallest first: each partial choice is kept
and, as its twin, flipped (a greedy candidate out, another one in). Let V be the value of a
choice and λ ≥ 0. The Lagrangian bound says that a partial choice and all that follows from it
have V ≤ worth + λ (room - load), and that each further flip lowers this by its loss. So a
partial choice is dropped if another one is as light and as good (Nemhauser and Ullmann 1969),
or if its bound, less the smallest loss to come, does not beat the best choice that fits.
"""

from __future__ import annotations

import numpy as np

from oclok.errors import InfeasibleError, InputError, OracleError
from oclok.oracles.base import Solution, best_of
from oclok.oracles.parametric import Deadline, ExactSumOracle, TimeLimitedOracle
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_vector

#: Number of units in a budget. Sums of units up to a budget are exact in any order, and a
#: budget's worth of costs, each a few times 2⁻⁵³ off, is off by less than a unit.
CAPACITY = float(2**48)
#: Most partial choices that are kept at a time: about a second of work.
LARGEST_LIST = 2**20
#: Most partial choices that are remembered over all steps; 8 bytes each.
LARGEST_TRAIL = 2**27
#: A gain below this fraction of the best value is a rounding error, …
VALUE_ROUNDING = 1e-12
#: … and so is one below the worth of a unit per candidate, up to this fraction of the room.
LARGEST_UNIT_ROUNDING = 1e-11


class Knapsack(TimeLimitedOracle, ExactSumOracle):
    """Choose base arms with the largest sum whose costs are within a budget.

    Exact: α = 1 for any real costs, up to rounding (1.1e-11 of the value). Only base arms with a
    positive index are chosen, possibly none. Between base arms of the same index and cost the
    lower position is chosen; other ties are broken deterministically, but not by position.

    Costs are counted in units of 2⁻⁴⁸ of the budget, rounded down, so that 0.1 + 0.2 fits into
    0.3. A super arm exceeds the budget by less than |S| units (4e-15 each). Problems in which
    index and cost are nearly proportional can be too hard: an `OracleError` says so.

    Args:
        costs: cost of each base arm, at least 0, shape (M,); or the name of a column.
        budget: the largest sum of costs, at least 0.
        time_limit: seconds that a call may search; None for as long as it takes.

    Examples:
        >>> oracle = Knapsack(costs=[0.5, 0.4, 0.3, 0.3], budget=0.6)
        >>> oracle([0.9, 0.8, 0.5, 0.6])
        array([2, 3])
    """

    is_sequential = True
    steps_keep_alpha = False
    per_arm = ("costs",)

    def __init__(
        self, costs: ArrayLike | str, budget: float, time_limit: float | None = None
    ) -> None:
        self.time_limit = self._as_limit(time_limit)
        self.costs = costs if isinstance(costs, str) else as_vector(costs, "costs").copy()
        self.budget = float(as_vector([budget], "budget")[0])
        if self.budget < 0:
            raise InputError(f"budget must be at least 0; got {budget!r}")
        self._prepare_if_resolved()

    def _prepare(self) -> None:
        costs = as_vector(self.costs, "costs")
        if (costs < 0).any():
            first = int(np.argmax(costs < 0))
            raise InputError(f"costs must be at least 0; position {first} is {costs[first]}")
        self.size = costs.size
        self._units = _in_units(costs, self.budget)
        self._room = CAPACITY - self._units[self._include].sum()
        self._fits = self._is_free(self.size) & (self._units <= self._room)
        if self._room < 0:
            raise InfeasibleError(
                f"the base arms that are included cost {costs[self._include].sum()}; "
                f"the budget is {self.budget}"
            )

    def _allows(self, chosen: IntArray) -> bool:
        return bool(self._units[chosen].sum() <= CAPACITY)

    def conflict(self, position: int, super_arm: IntArray) -> str | None:
        """Say by how much a base arm exceeds the budget."""
        if self._units[position] <= CAPACITY - self._units[super_arm].sum():
            return None
        costs = np.asarray(self.costs, dtype=float)
        left = self.budget - float(costs[super_arm].sum())
        return f"costs {costs[position]:g}; {left:g} of the budget {self.budget:g} is left"

    def _choose_next(self, index: FloatArray, chosen: IntArray) -> IntArray:
        """Return the base arm of largest index per cost that still fits."""
        fits = self._units <= CAPACITY - self._units[chosen].sum()
        allowed = (index > 0) & self._fits & fits
        allowed[chosen] = False
        return best_of(index / np.maximum(self._units, 0.5), allowed)

    def _search(self, index: FloatArray, deadline: Deadline) -> Solution:
        candidates = np.flatnonzero((index > 0) & self._fits)
        if candidates.size == 0:
            return Solution(self._include.copy(), 0.0)
        profit, weight = index[candidates], self._units[candidates]
        power = np.frexp(profit.max())[1]
        profit = np.ldexp(profit, -power)  # so that no sum overflows
        chosen, gap = _best_choice(profit, weight, self._room, deadline)
        lowest = candidates[_lowest_twins(chosen, profit, weight)]
        with np.errstate(over="ignore"):
            gap = float(np.ldexp(gap, power))
        return Solution(np.sort(np.append(self._include, lowest)), gap)


def _in_units(costs: FloatArray, budget: float) -> FloatArray:
    if budget == 0:
        return np.where(costs > 0, CAPACITY + 1, 0.0)
    with np.errstate(over="ignore"):
        return np.minimum(np.floor(costs / budget * CAPACITY), CAPACITY + 1)


def _best_choice(
    profit: FloatArray, weight: FloatArray, room: float, deadline: Deadline
) -> tuple[BoolArray, float]:
    """Return which candidates to choose, as a mask of shape (N,), and the proven gap."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        density = np.where(weight == 0, np.inf, profit / weight)  # a scaled profit may be 0
    by_density = np.argsort(-density, kind="stable")
    filled = np.cumsum(weight[by_density])
    split = int(np.searchsorted(filled, room, side="right"))
    chosen = np.zeros(profit.size, dtype=bool)
    chosen[by_density[:split]] = True
    if split == profit.size:
        return chosen, 0.0

    price = density[by_density[split]]
    loss = np.abs(profit - price * weight)
    by_loss = np.argsort(loss, kind="stable")
    sign = np.where(chosen, -1.0, 1.0)[by_loss]
    gain, growth = sign * profit[by_loss], sign * weight[by_loss]
    next_loss = np.append(loss[by_loss[1:]], np.inf)
    unit_each = price * min(profit.size, LARGEST_UNIT_ROUNDING * room)

    load, worth = np.array([weight[chosen].sum()]), np.array([profit[chosen].sum()])
    best, best_at, gap, kept = worth[0], (-1, 0), 0.0, 0
    trail: list[IntArray] = []  # of each step: where its partial choices came from
    for step in range(profit.size):
        load = np.concatenate([load, load + growth[step]])
        worth = np.concatenate([worth, worth + gain[step]])
        origin = np.argsort(load, kind="stable")
        load, worth = load[origin], worth[origin]
        fitting = int(np.searchsorted(load, room, side="right"))
        if fitting and worth[:fitting].max() > best:
            top = int(np.argmax(worth[:fitting]))
            best, best_at = worth[top], (step, int(origin[top]))
        bound = worth + price * (room - load) - next_loss[step]
        keep = bound > best * (1 + VALUE_ROUNDING) + unit_each
        keep[1:] &= worth[1:] > np.maximum.accumulate(worth)[:-1]
        load, worth = load[keep], worth[keep]
        trail.append(origin[keep])
        kept += load.size
        if load.size == 0:
            break
        is_too_hard = load.size > LARGEST_LIST or kept > LARGEST_TRAIL
        if deadline.has_passed or (is_too_hard and deadline.seconds is not None):
            gap = max(0.0, float(bound[keep].max() - best))
            break
        if is_too_hard:
            raise OracleError(
                f"too hard: more than {LARGEST_LIST} partial choices of the {profit.size} base "
                "arms may still be best, as index and cost are nearly proportional; round the "
                "costs to few digits"
            )
    flipped = by_loss[_flips(trail, *best_at)]
    chosen[flipped] = ~chosen[flipped]
    return chosen, gap


def _flips(trail: list[IntArray], step: int, origin: int) -> list[int]:
    """Return the steps at which a partial choice, made at `step` from `origin`, was flipped."""
    flips = []
    while step >= 0:
        before = trail[step - 1].size if step else 1
        if origin >= before:
            flips.append(step)
        step -= 1
        if step >= 0:
            origin = int(trail[step][origin % before])
    return flips


def _lowest_twins(chosen: BoolArray, profit: FloatArray, weight: FloatArray) -> IntArray:
    """Return as many candidates of each profit and weight as are chosen, the first ones."""
    order = np.lexsort((profit, weight))
    is_first = np.append(True, (np.diff(profit[order]) != 0) | (np.diff(weight[order]) != 0))
    kind = np.cumsum(is_first) - 1
    wanted = np.bincount(kind, weights=chosen[order])
    rank = np.arange(order.size) - np.flatnonzero(is_first)[kind]
    lowest: IntArray = order[rank < wanted[kind]]
    return lowest
