"""Policies on a fixed grid, whose cells are their arms: CUCB and CC-MAB.

Notation:

    D      dimension of a context                      `dimension`
    n, μ̂   outcomes seen in a cell, their mean         `_count`, `_sum / _count`, shape (cells^D,)
    T      horizon of CC-MAB                           `horizon`
    h_T    ⌈T^(1/(3+D))⌉, its cells a side             `cells`
    K(t)   t^(2/(3+D)) log t, outcomes a cell needs

A context x lies in the cell ⌊x · cells⌋; the last cell of a side includes its end at 1.
"""

from __future__ import annotations

import math

import numpy as np

from oclok.errors import ContextError, InputError
from oclok.oracles.base import Oracle
from oclok.policies.base import Belief, Policy
from oclok.typing import BoolArray, FloatArray, IntArray, Seed
from oclok.validation import as_count

#: Most cells of a grid: two arrays of this size take 160 MB.
LARGEST_GRID = 10_000_000


class GridPolicy(Policy):
    """A policy that keeps a count and a sum of outcomes for each cell of a grid.

    Args:
        dimension: D; contexts lie in the unit cube [0, 1]^D.
        cells: number of cells a side.
    """

    def __init__(
        self, dimension: int, cells: int, oracle: Oracle | None = None, seed: Seed = None
    ) -> None:
        super().__init__(oracle, seed)
        self.dimension = self._dimension = as_count(dimension, "dimension")
        self.cells = as_count(cells, "cells")
        if self.cells**self.dimension > LARGEST_GRID:
            raise InputError(
                f"a grid of {self.cells} cells a side in dimension {self.dimension} has more than "
                f"{LARGEST_GRID:,} cells; use fewer, or a policy that needs no grid"
            )
        self._count = np.zeros(self.cells**self.dimension, dtype=np.intp)
        self._sum = np.zeros(self.cells**self.dimension)

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        cell = self._locate(contexts)
        np.add.at(self._count, cell, 1)
        np.add.at(self._sum, cell, outcomes)

    def _statistics(self, contexts: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return count and mean outcome of the cell of each context; the mean of none is 0."""
        cell = self._locate(contexts)
        count = self._count[cell]
        return count, self._sum[cell] / np.maximum(count, 1)

    def _locate(self, contexts: FloatArray) -> IntArray:
        check_unit_cube(contexts)
        steps = np.minimum((contexts * self.cells).astype(np.intp), self.cells - 1)
        return steps @ self.cells ** np.arange(self.dimension)


class CUCB(GridPolicy):
    """CUCB (Chen, Wang and Yuan 2013) with the cells of a fixed grid as its arms.

    The index of a base arm in round t is μ̂ + √(3 log t / 2n) of its cell (their Algorithm 1).
    Base arms in cells without outcomes have the same index, above every other of the round.

    The arguments are those of `GridPolicy`.

    Examples:
        >>> from oclok.oracles import TopK
        >>> policy = CUCB(dimension=1, cells=2, oracle=TopK(1))
        >>> decision = policy.select([[0.2], [0.9]])
        >>> policy.update(decision, [0.7])
        >>> policy.select([[0.2], [0.9]]).super_arm
        array([1])
    """

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        count, mean = self._statistics(contexts)
        index = mean + np.sqrt(3 * math.log(t) / (2 * np.maximum(count, 1)))
        return Belief(_put_first(index, count == 0))


class CCMAB(GridPolicy):
    """CC-MAB (Chen, Xu and Lu 2018, Hölder exponent 1), with h_T and K(t) of their Theorem 1.

    A cell is under-explored in round t while it has at most K(t) outcomes; one without any always
    is. Base arms in under-explored cells come first, in random order; the index of every other
    one is the mean outcome of its cell.

    Args:
        horizon: T, the number of rounds that will be played, which sets the grid; more may follow.
        dimension: D; contexts lie in the unit cube [0, 1]^D.

    Examples:
        >>> from oclok.oracles import TopK
        >>> policy = CCMAB(horizon=250, dimension=3, oracle=TopK(2), seed=0)
        >>> policy.cells
        3
        >>> decision = policy.select([[0.1, 0.9, 0.2], [0.5, 0.5, 0.5], [0.8, 0.3, 1.0]])
        >>> policy.update(decision, [0.4, 0.6])
    """

    _is_random = True

    def __init__(
        self, horizon: int, dimension: int, oracle: Oracle | None = None, seed: Seed = None
    ) -> None:
        self.horizon = as_count(horizon, "horizon")
        degree = 3 + as_count(dimension, "dimension")
        cells = int(self.horizon ** (1 / degree))
        while cells**degree < self.horizon:  # in floats alone, 729^(1/6) might round up to 4
            cells += 1
        super().__init__(dimension, cells, oracle, seed)

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        count, mean = self._statistics(contexts)
        under_explored = count <= t ** (2 / (3 + self.dimension)) * math.log(t)
        order = rng.random(np.count_nonzero(under_explored))
        return Belief(_put_first(mean, under_explored, order))


def check_unit_cube(contexts: FloatArray) -> None:
    """Raise a `ContextError` unless all `contexts`, shape (M, D), lie in [0, 1]^D."""
    outside = (contexts < 0) | (contexts > 1)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ContextError(
            f"contexts must lie in the unit cube [0, 1]^{contexts.shape[1]}; "
            f"row {row}, column {column} is {contexts[row, column]}"
        )


def _put_first(index: FloatArray, first: BoolArray, order: FloatArray | float = 0.0) -> FloatArray:
    """Return `index` (M,) with the arms that are `first` above the others, by `order` in [0, 1)."""
    top = index[~first].max(initial=0.0)
    result = index.copy()
    result[first] = top + max(1.0, top) * (1 + order)
    return result
