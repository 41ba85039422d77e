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

from oclok.errors import InfeasibleError, InputError
from oclok.oracles.base import Solution, best_of
from oclok.oracles.coverage_search import Ranked, best_three, exact, greedy, sums
from oclok.oracles.labels import as_nodes, check_same_length, has_repeats, number_labels
from oclok.oracles.time_limit import Deadline, TimeLimitedOracle
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_count, as_positions, as_vector


class CoverageOracle(TimeLimitedOracle):
    """An oracle that chooses k left nodes; its expected reward is the right nodes activated.

    Every base arm is an edge. A chosen left node activates the right end of each of its edges
    with the probability that is the edge's mean, all independently. The super arm is all edges
    of the chosen nodes; so an edge that is included or excluded includes or excludes its left
    node. Indices and means are probabilities here and are clipped to [0, 1].

    B = 1, as ∂u/∂p_ij = Π_{i'≠i} (1 - p_i'j) is between 0 and 1.
    """

    lipschitz = 1.0

    per_arm = ("left", "right")

    def __init__(
        self, left: ArrayLike | str, right: ArrayLike | str, k: int, time_limit: float | None
    ) -> None:
        self.left, self.right = as_nodes(left, "left"), as_nodes(right, "right")
        check_same_length(left=self.left, right=self.right)
        self.k = as_count(k, "k")
        self.time_limit = self._as_limit(time_limit)

    def _prepare(self) -> None:
        self.size = len(self.left)
        self._left, self._n = number_labels(self.left)
        self._right, self._m = number_labels(self.right)
        self._parallels: tuple[IntArray, IntArray] | None = None
        pair = self._left * self._m + self._right
        if has_repeats(pair, self._n * self._m):
            order = np.argsort(pair, kind="stable")
            self._parallels = order, np.flatnonzero(np.diff(pair[order], prepend=-1))
        self._prepare_nodes()

    def _prepare_nodes(self) -> None:
        """Find which nodes are included, and which are open to choice."""
        self._is_included = np.zeros(self._n, dtype=bool)
        self._is_included[self._left[self._include]] = True
        is_open = ~self._is_included
        is_open[self._left[self._exclude]] = False
        both = self._left[self._exclude][self._is_included[self._left[self._exclude]]]
        if both.size:
            node = self._left.tolist().index(both[0])
            raise InfeasibleError(
                f"edges of left node {self.left[node]!r} are included and others excluded; "
                "a super arm has all edges of a node or none"
            )
        self._open = is_open.nonzero()[0]
        self._room = self.k - int(np.count_nonzero(self._is_included))
        if self._room < 0:
            raise InfeasibleError(f"{self.k - self._room} left nodes are included; k = {self.k}")
        # Whole nodes from here on, for `choose_next`.
        self._include = self._is_included[self._left].nonzero()[0]

    def value(self, means: ArrayLike, super_arm: ArrayLike) -> float:
        """Return the expected number of right nodes that the edges of `super_arm` activate."""
        self._check_resolved()
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

    def _search(self, index: FloatArray, deadline: Deadline) -> Solution:
        is_chosen, gap = self._is_included.copy(), 0.0
        if self._open.size <= self._room:
            is_chosen[self._open] = True
        elif self._room:
            p = np.minimum(np.maximum(index, 0.0), 1.0)  # np.clip takes twice as long
            nodes, gap = self._choose(*self._edges(p), deadline)
            is_chosen[nodes] = True
        return Solution(is_chosen[self._left].nonzero()[0], gap)

    @abstractmethod
    def _choose(
        self, left: IntArray, right: IntArray, p: FloatArray, deadline: Deadline
    ) -> tuple[IntArray, float]:
        """Return as many open nodes as there is room, and the proven gap.

        No two of the edges given are parallel.
        """

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
        left: left end node of each base arm, any integers or strings, shape (M,); or the name
            of a column.
        right: right end node of each base arm, likewise; a label here and the same one in `left`
            are two nodes.
        k: number of left nodes to choose; all of them if there are fewer.
        solver: "exact", a branch and bound with α = 1, good where k is small or the gains are
            uneven (the problem is NP-hard); or "greedy", the node of largest gain k times over,
            with α = 1 - 1/e (Nemhauser et al. 1978). Given included nodes I, greedy reaches
            u(I) + (1 - 1/e) (opt - u(I)), where opt is the best u of all sets that contain I;
            that is at least (1 - 1/e) opt.
        time_limit: seconds that the exact solver may search; None for as long as it takes.

    Examples:
        >>> oracle = Coverage(left=[0, 0, 1, 1, 2], right=[0, 1, 1, 2, 3], k=2)
        >>> oracle([0.9, 0.9, 0.9, 0.8, 0.95])
        array([0, 1, 4])
        >>> round(oracle.value([0.9, 0.9, 0.9, 0.8, 0.95], [0, 1, 4]), 6)
        2.75
    """

    def __init__(
        self,
        left: ArrayLike | str,
        right: ArrayLike | str,
        k: int,
        solver: str = "exact",
        time_limit: float | None = None,
    ) -> None:
        super().__init__(left, right, k, time_limit)
        if solver not in ("exact", "greedy"):
            raise InputError(f'solver must be "exact" or "greedy"; got {solver!r}')
        self.solver = solver
        self.is_sequential = solver == "greedy"
        self._prepare_if_resolved()

    @property
    def alpha(self) -> float:
        """1 for the exact solver, 1 - 1/e for the greedy one."""
        return 1.0 if self.solver == "exact" else 1.0 - 1.0 / math.e

    def _choose_next(self, index: FloatArray, chosen: IntArray) -> IntArray:
        """Return all edges of the left node that adds most to those `chosen`, k times over."""
        is_chosen = np.zeros(self._n, dtype=bool)
        is_chosen[self._left[chosen]] = True
        is_open = np.zeros(self._n, dtype=bool)
        is_open[self._open] = True
        if np.count_nonzero(is_chosen) >= self.k or not (is_open & ~is_chosen).any():
            return np.empty(0, dtype=np.intp)
        p = np.clip(index, 0.0, 1.0)
        left, right, merged = self._edges(p)
        gains = sums(left, merged * self._missed(p, chosen)[right], self._n)
        return np.flatnonzero(self._left == best_of(gains, is_open & ~is_chosen))

    def _choose(
        self, left: IntArray, right: IntArray, p: FloatArray, deadline: Deadline
    ) -> tuple[IntArray, float]:
        if self._open.size == self._n:
            return self._best(Ranked(left, right, p, self._n, self._m), deadline)
        number = np.full(self._n, -1)  # of the nodes that are open
        number[self._open] = np.arange(self._open.size)
        miss = np.ones(self._m)
        included = self._is_included[left]
        np.multiply.at(miss, right[included], 1.0 - p[included])
        kept = number[left] >= 0
        edges = number[left[kept]], right[kept], p[kept]
        nodes, gap = self._best(Ranked(*edges, self._open.size, self._m, miss), deadline)
        return self._open[nodes], gap

    def _best(self, ranked: Ranked, deadline: Deadline) -> tuple[IntArray, float]:
        """Return as many nodes as there is room, fewer than `ranked` has, and the proven gap."""
        k, gap = self._room, 0.0
        nodes, value = greedy(ranked, k)
        if k > 1 and self.solver == "exact":
            three = best_three(ranked, nodes, value) if k == 3 else None
            if three is None:
                nodes, gap = exact(ranked, k, nodes, value, deadline)
            else:
                nodes = three
        elif k > 1:
            gap = value * (1 / self.alpha - 1)
        return ranked.order[nodes], gap

    def _missed(self, p: FloatArray, edges: IntArray) -> FloatArray:
        """Return the probability that `edges` activate no edge into each right node, (m,)."""
        miss = np.ones(self._m)
        np.multiply.at(miss, self._right[edges], 1.0 - p[edges])
        return miss
