"""A grid over contexts: the unit cube in cells of equal size.

Notation:

    D      dimension of a context             `dimension`
    n, μ̂   outcomes seen in a cell, their mean `_count`, `_sum / _count`, shape (cells^D,)

A context x lies in the cell ⌊x · cells⌋; the last cell of a side includes its end at 1.
"""
# Tested in tests/policies/test_cucb.py: CUCB is the plain policy on a grid.

from __future__ import annotations

import numpy as np

from oclok.errors import ContextError, InputError
from oclok.oracles.base import Oracle
from oclok.policies.base import Policy
from oclok.typing import BoolArray, FloatArray, IntArray
from oclok.validation import as_count

#: Most cells of a grid: two arrays of this size take 160 MB.
LARGEST_GRID = 10_000_000


class GridPolicy(Policy):
    """A policy that keeps a count and a sum of outcomes for each cell of a grid.

    Args:
        dimension: D; contexts lie in the unit cube [0, 1]^D.
        cells: number of cells a side.
        oracle: default oracle.
        seed: seed of the policy's own randomness.
    """

    def __init__(
        self,
        dimension: int,
        cells: int,
        oracle: Oracle | None = None,
        seed: int | np.random.SeedSequence | None = None,
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

    def _locate(self, contexts: FloatArray) -> IntArray:
        """Return the number, shape (M,), of the cell that each context (M, D) lies in."""
        check_unit_cube(contexts)
        steps = np.minimum((contexts * self.cells).astype(np.intp), self.cells - 1)
        return steps @ self.cells ** np.arange(self.dimension)

    def _statistics(self, cell: IntArray) -> tuple[IntArray, FloatArray]:
        """Return count and mean outcome of each `cell`; the mean of none is 0."""
        count = self._count[cell]
        return count, self._sum[cell] / np.maximum(count, 1)


def check_unit_cube(contexts: FloatArray) -> None:
    """Raise a `ContextError` unless all `contexts`, shape (M, D), lie in [0, 1]^D."""
    outside = (contexts < 0) | (contexts > 1)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ContextError(
            f"contexts must lie in the unit cube [0, 1]^{contexts.shape[1]}; "
            f"row {row}, column {column} is {contexts[row, column]}"
        )


def put_first(index: FloatArray, first: BoolArray, order: FloatArray | float = 0.0) -> FloatArray:
    """Return `index` (M,) with the arms that are `first` above the others, by `order` in [0, 1)."""
    top = index[~first].max(initial=0.0)
    result = index.copy()
    result[first] = top + max(1.0, top) * (1 + order)
    return result
