"""Probabilistic maximum coverage: choose left nodes that reach as many right nodes as they can.

| symbol | meaning                                                                             |
|--------|-------------------------------------------------------------------------------------|
| p_ij   | probability that left node i, if chosen, activates right node j                     |
| S      | chosen left nodes; u(S) = Σ_j (1 - Π_{i∈S} (1 - p_ij)), the expected reward         |
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from oclok.errors import InputError
from oclok.oracles.base import Oracle, best_of
from oclok.oracles.covering import Ranked, best_three, exact, greedy, sums
from oclok.oracles.graph import as_edges, has_repeats, number_nodes
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_count, as_positions, as_vector


class CoverageOracle(Oracle):
    """An oracle that chooses k left nodes; its expected reward is the right nodes activated.

    Every base arm is an edge. A chosen left node activates the right end of each of its edges
    with the probability that is the edge's mean, all independently. The super arm is all edges
    of the chosen nodes. Indices and means are probabilities here and are clipped to [0, 1].

    B = 1, as ∂u/∂p_ij = Π_{i'≠i} (1 - p_i'j) is between 0 and 1.
    """

    lipschitz = 1.0

    def __init__(self, left: ArrayLike, right: ArrayLike, k: int) -> None:
        self.left, self.right = as_edges(left, right)
        self.size: int = self.left.size
        self.k = as_count(k, "k")
        self._left, self._n = number_nodes(self.left)
        self._right, self._m = number_nodes(self.right)
        self._parallels: tuple[IntArray, IntArray] | None = None
        pair = self._left * self._m + self._right
        if has_repeats(pair, self._n * self._m):
            order = np.argsort(pair, kind="stable")
            self._parallels = order, np.flatnonzero(np.diff(pair[order], prepend=-1))

    def value(self, means: ArrayLike, super_arm: ArrayLike) -> float:
        """Return the expected number of right nodes that the edges of `super_arm` activate."""
        edges = as_positions(super_arm, "super_arm", self.size)
        p = np.clip(as_vector(means, "means", self.size)[edges], 0.0, 1.0)
        miss = np.ones(self._m)
        np.multiply.at(miss, self._right[edges], 1.0 - p)
        return float(np.sum(1.0 - miss))

    def is_feasible(self, super_arm: ArrayLike) -> bool:
        """Return whether `super_arm` is all edges of at most k left nodes."""
        edges = self._positions(super_arm)
        if edges is None:
            return False
        is_chosen = np.zeros(self._n, dtype=bool)
        is_chosen[self._left[edges]] = True
        return bool(
            np.count_nonzero(is_chosen) <= self.k
            and np.count_nonzero(is_chosen[self._left]) == edges.size
        )

    def _solve(self, index: FloatArray) -> IntArray:
        if self._n <= self.k:
            return np.arange(index.size)
        is_chosen = np.zeros(self._n, dtype=bool)
        p = np.minimum(np.maximum(index, 0.0), 1.0)  # np.clip takes twice as long
        is_chosen[self._choose(*self._edges(p))] = True
        return is_chosen[self._left].nonzero()[0]

    @abstractmethod
    def _choose(self, left: IntArray, right: IntArray, p: FloatArray) -> IntArray:
        """Return k of the left nodes 0, …, n - 1, given edges of which no two are parallel."""

    def _edges(self, p: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return left ends, right ends and probabilities, with parallel edges made one."""
        if self._parallels is None:
            return self._left, self._right, p
        order, starts = self._parallels
        first = order[starts]
        merged = 1.0 - np.multiply.reduceat(1.0 - p[order], starts)
        return self._left[first], self._right[first], merged


class Coverage(CoverageOracle):
    """Choose k left nodes that activate the most right nodes in expectation.

    Both solvers are deterministic. Greedy breaks ties by the position of a node's first edge;
    exact keeps the choice of greedy unless another one is better.

    Args:
        left: left end node of each base arm, any integers; shape (M,).
        right: right end node of each base arm, numbered apart from the left ones; shape (M,).
        k: number of left nodes to choose; all of them if there are fewer.
        solver: "exact", a branch and bound with α = 1, good where k is small or the gains are
            uneven (the problem is NP-hard); or "greedy", the node of largest gain k times over,
            with α = 1 - 1/e (Nemhauser et al. 1978).

    >>> oracle = Coverage(left=[0, 0, 1, 1, 2], right=[0, 1, 1, 2, 3], k=2)
    >>> oracle([0.9, 0.9, 0.9, 0.8, 0.95])
    array([0, 1, 4])
    >>> round(oracle.value([0.9, 0.9, 0.9, 0.8, 0.95], [0, 1, 4]), 6)
    2.75
    """

    def __init__(self, left: ArrayLike, right: ArrayLike, k: int, solver: str = "exact") -> None:
        super().__init__(left, right, k)
        if solver not in ("exact", "greedy"):
            raise InputError(f'solver must be "exact" or "greedy"; got {solver!r}')
        self.solver = solver
        self.alpha = 1.0 if solver == "exact" else 1.0 - 1.0 / math.e
        self.is_sequential = solver == "greedy"

    def choose_next(self, index: FloatArray, chosen: IntArray) -> IntArray:
        """Return all edges of the left node that adds most to those `chosen`, k times over."""
        is_chosen = np.zeros(self._n, dtype=bool)
        is_chosen[self._left[chosen]] = True
        if np.count_nonzero(is_chosen) >= min(self.k, self._n):
            return np.empty(0, dtype=np.intp)
        p = np.clip(index, 0.0, 1.0)
        miss = np.ones(self._m)
        np.multiply.at(miss, self._right[chosen], 1.0 - p[chosen])
        left, right, merged = self._edges(p)
        gains = sums(left, merged * miss[right], self._n)
        return np.flatnonzero(self._left == best_of(gains, ~is_chosen))

    def _choose(self, left: IntArray, right: IntArray, p: FloatArray) -> IntArray:
        ranked = Ranked(left, right, p, self._n, self._m)
        nodes, value = greedy(ranked, self.k)
        if self.solver == "exact" and self.k > 1:
            three = best_three(ranked, nodes, value) if self.k == 3 else None
            nodes = exact(ranked, self.k, nodes, value) if three is None else three
        return ranked.order[nodes]
