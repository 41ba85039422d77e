"""CC-MAB: explore the cells of a fixed grid as long as they need it, then trust their means.

Notation (Chen, Xu and Lu 2018, with Hölder exponent α = 1):

    T      horizon                                     `horizon`
    D      dimension of a context                      `dimension`
    h_T    ⌈T^(1/(3+D))⌉, cells a side                 `cells`
    K(t)   t^(2/(3+D)) log t, outcomes a cell needs    `_needed`
"""

from __future__ import annotations

import math

import numpy as np

from oclok.oracles.base import Oracle
from oclok.policies.base import Belief
from oclok.policies.grid import GridPolicy, put_first
from oclok.typing import FloatArray
from oclok.validation import as_count


class CCMAB(GridPolicy):
    """CC-MAB (Chen, Xu and Lu 2018), with h_T and K(t) of their Theorem 1.

    A cell is under-explored in round t while it has at most K(t) outcomes; one without any always
    is. Base arms in under-explored cells come first, in random order; the index of every other
    one is the mean outcome of its cell.

    Args:
        horizon: T, the number of rounds that will be played. It sets the grid; to go on beyond
            it is allowed.
        dimension: D; contexts lie in the unit cube [0, 1]^D.
        oracle: default oracle.
        seed: seed of the random order.

    Attributes:
        cells: h_T, the number of cells a side.

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
        self,
        horizon: int,
        dimension: int,
        oracle: Oracle | None = None,
        seed: int | np.random.SeedSequence | None = None,
    ) -> None:
        self.horizon = as_count(horizon, "horizon")
        super().__init__(
            dimension,
            _root_rounded_up(self.horizon, 3 + as_count(dimension, "dimension")),
            oracle,
            seed,
        )

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        count, mean = self._statistics(self._locate(contexts))
        under_explored = count <= self._needed(t)
        order = rng.random(np.count_nonzero(under_explored))
        return Belief(put_first(mean, under_explored, order))

    def _needed(self, t: int) -> float:
        return float(t ** (2 / (3 + self.dimension)) * math.log(t))


def _root_rounded_up(number: int, degree: int) -> int:
    """Return ⌈number^(1/degree)⌉; in floats alone, 729^(1/6) might round up to 4."""
    root = int(number ** (1 / degree))
    while root**degree < number:
        root += 1
    return root
