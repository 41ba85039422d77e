"""CUCB on a fixed grid: the cells are its arms."""

from __future__ import annotations

import math

import numpy as np

from oclok.policies.base import Belief
from oclok.policies.grid import GridPolicy, put_first
from oclok.typing import FloatArray


class CUCB(GridPolicy):
    """CUCB (Chen, Wang and Yuan 2013) with the cells of a fixed grid as its arms.

    The index of a base arm in round t is μ̂ + √(3 log t / 2n) of its cell (their Algorithm 1).
    Base arms in cells without outcomes have the same index, above every other of the round.

    Args:
        dimension: D; contexts lie in the unit cube [0, 1]^D.
        cells: number of cells a side.
        oracle: default oracle.
        seed: taken as by every policy; CUCB itself draws nothing.

    Examples:
        >>> from oclok.oracles import TopK
        >>> policy = CUCB(dimension=1, cells=2, oracle=TopK(1))
        >>> decision = policy.select([[0.2], [0.9]])
        >>> policy.update(decision, [0.7])
        >>> policy.select([[0.2], [0.9]]).super_arm
        array([1])
    """

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        count, mean = self._statistics(self._locate(contexts))
        index = mean + np.sqrt(3 * math.log(t) / (2 * np.maximum(count, 1)))
        return Belief(put_first(index, count == 0))
