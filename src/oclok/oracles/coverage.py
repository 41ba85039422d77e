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
from oclok.oracles.coverage_search import as_matrix, exact, greedy
from oclok.oracles.labels import as_ends, has_repeats, number_labels
from oclok.oracles.parametric import Deadline, TimeLimitedOracle
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_count, as_positions, as_vector


class CoverageOracle(TimeLimitedOracle):
    """An oracle that chooses k left nodes; its expected reward is the right nodes activated.

    Every base arm is an edge. A chosen left node activates the right end of each of its edges
    with the probability that is the edge's mean, all independently. The super arm is all edges
    of the chosen nodes; so an edge that is included or excluded includes or excludes its left
    node. Indices and means are probabilities here and are clipped to [0, 1].

    B = 1, as ∂u/∂p_ij = Π_{i'≠i} (1 - p_i'j) is between 0 and 1.
    """

    lipschitz: float | None = 1.0
    per_arm = ("left", "right")

    def __init__(
        self, left: ArrayLike | str, right: ArrayLike | str, k: int, time_limit: float | None
    ) -> None:
        self.left, self.right = as_ends(left=left, right=right)
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
        self._is_included, is_excluded = self._ends(self._include), self._ends(self._exclude)
        both = (self._is_included & is_excluded)[self._left]
        if both.any():
            raise InfeasibleError(
                f"edges of left node {self.left[both.argmax()]!r} are included and others "
                "excluded; a super arm has all edges of a node or none"
            )
        self._open = (~self._is_included & ~is_excluded).nonzero()[0]
        self._room = self.k - int(np.count_nonzero(self._is_included))
        if self._room < 0:
            raise InfeasibleError(f"{self.k - self._room} left nodes are included; k = {self.k}")
        # Whole nodes from here on, for `choose_next`.
        self._include = self._is_included[self._left].nonzero()[0]

    def _ends(self, edges: IntArray) -> BoolArray:
        """Return which left nodes are ends of `edges`, (n,)."""
        is_end = np.zeros(self._n, dtype=bool)
        is_end[self._left[edges]] = True
        return is_end

    def value(self, means: ArrayLike, super_arm: ArrayLike) -> float:
        """Return the expected number of right nodes that the edges of `super_arm` activate."""
        self._check_resolved()
        edges = as_positions(super_arm, "super_arm", self.size)
        p = np.clip(as_vector(means, "means", self.size)[edges], 0.0, 1.0)
        return float(np.sum(1.0 - self._missed(self._right[edges], p)))

    def _allows(self, chosen: IntArray) -> bool:
        is_chosen = self._ends(chosen)
        is_whole = np.count_nonzero(is_chosen[self._left]) == chosen.size
        return bool(is_whole and np.count_nonzero(is_chosen) <= self.k)

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

    def _missed(self, right: IntArray, p: FloatArray) -> FloatArray:
        """Return the probability that edges of ends `right` activate no right node j, (m,)."""
        miss = np.ones(self._m)
        np.multiply.at(miss, right, 1.0 - p)
        return miss


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
        is_chosen = self._ends(chosen)
        is_open = ~is_chosen & ~self._ends(self._exclude)
        if np.count_nonzero(is_chosen) >= self.k or not is_open.any():
            return np.empty(0, dtype=np.intp)
        p = np.clip(index, 0.0, 1.0)
        left, right, merged = self._edges(p)
        miss = self._missed(self._right[chosen], p[chosen])
        gains = np.bincount(left, merged * miss[right], minlength=self._n).astype(np.float64)
        return np.flatnonzero(self._left == best_of(gains, is_open))

    def _choose(
        self, left: IntArray, right: IntArray, p: FloatArray, deadline: Deadline
    ) -> tuple[IntArray, float]:
        P = as_matrix(left, right, p, self._n, self._m)
        if self._open.size < self._n:
            P = P[self._open]
        given = self._is_included[left]
        miss = self._missed(right[given], p[given])
        nodes, value = greedy(P, miss, self._room)
        gap = value * (1 / self.alpha - 1) if self._room > 1 else 0.0
        if self._room > 1 and self.solver == "exact":
            nodes, gap = exact(P, miss, self._room, nodes, value, deadline)
        return self._open[nodes], gap
