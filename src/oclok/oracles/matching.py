"""Matchings in a bipartite graph: every node is the end of at most one chosen edge.

| symbol       | meaning                                                        |
|--------------|----------------------------------------------------------------|
| left, right  | end nodes of the base arms, numbered 0, 1, …; shape (M,)       |
| weight       | the index, scaled by a power of two to at most 1 in size; (M,) |
| n, m         | number of left and of right nodes                              |
| rows, cols   | left and right ends of the chosen edges                        |
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching

from oclok.errors import InfeasibleError, InputError
from oclok.oracles.labels import as_ends, best_parallels, has_repeats, number_labels
from oclok.oracles.parametric import ExactSumOracle
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_count

#: Side of the matrix with dummy nodes above which the linear program is faster.
LARGEST_DUMMY_MATRIX = 250


class Matching(ExactSumOracle):
    """Choose edges with the largest sum that share no node.

    Exact: α = 1. Of parallel edges the one with the largest index can be chosen, or the lower
    position on ties; other ties are broken deterministically, but not by position.

    Args:
        left: left end node of each base arm, any integers or strings, shape (M,); or the name
            of a column.
        right: right end node of each base arm, likewise; a label here and the same one in `left`
            are two nodes.
        k: the number of edges (the paper's K-element matchings); None for any number, and then
            only edges with a positive index.
        at_most: take `k` as a limit, and leave out edges whose index is not positive.

    Examples:
        >>> oracle = Matching(left=[0, 0, 1, 1], right=[0, 1, 0, 1], k=2)
        >>> oracle([0.9, 0.8, 0.7, 0.1])
        array([1, 2])
    """

    per_arm = ("left", "right")

    def __init__(
        self,
        left: ArrayLike | str,
        right: ArrayLike | str,
        k: int | None = None,
        at_most: bool = False,
    ) -> None:
        self.left, self.right = as_ends(left=left, right=right)
        self.k = None if k is None else as_count(k, "k")
        if not isinstance(at_most, bool):
            raise InputError(f"at_most must be True or False; got {at_most!r}")
        if at_most and k is None:
            raise InputError("at_most needs k, the largest number of edges; got k=None")
        self.at_most = at_most
        self._prepare_if_resolved()

    def _prepare(self) -> None:
        self.size = len(self.left)
        self._left, n = number_labels(self.left)
        self._right, m = number_labels(self.right)
        self._pair = self._left * m + self._right
        self._has_parallels = has_repeats(self._pair, n * m)
        used, free = self._include, self._is_free(self.size)
        if used.size and any(has_repeats(e[used], self.size) for e in (self._left, self._right)):
            raise InfeasibleError("two of the edges that are included share a node")
        if self.k is not None and used.size > self.k:
            raise InfeasibleError(f"{used.size} edges are included; k = {self.k}")
        if used.size:
            free &= ~np.isin(self._left, self._left[used])
            free &= ~np.isin(self._right, self._right[used])
        self._open = free.nonzero()[0]

    def _allows(self, chosen: IntArray) -> bool:
        excess = 0 if self.k is None else chosen.size - self.k
        if excess > 0 or (excess < 0 and not self.at_most):
            return False
        return not any(has_repeats(ends[chosen], ends.size) for ends in (self._left, self._right))

    def conflict(self, position: int, super_arm: IntArray) -> str | None:
        """Name the end of an edge that is taken."""
        for names, ends in ((self.left, self._left), (self.right, self._right)):
            if (ends[super_arm] == ends[position]).any():
                return f"{names[position]} is already matched"
        return None

    def _solve(self, index: FloatArray) -> IntArray:
        return np.sort(np.append(self._include, self._solve_open(index)))

    def _solve_open(self, index: FloatArray) -> IntArray:
        """Return the edges to add to those that are included."""
        room = None if self.k is None else self.k - self._include.size
        if room == 0:
            return self._open[:0]
        edges, weight = self._candidates(index)
        left, right = self._left[edges], self._right[edges]
        if room is None or self.at_most:
            chosen = _heaviest(left, right, weight)
            # The best value with c edges is concave in c. So where the best matching of all has
            # more than k edges, the best one of at most k has exactly k.
            if room is None or chosen.size <= room:
                return edges[chosen]
        try:
            return edges[_heaviest_of(room, left, right, weight)]
        except ValueError:
            largest = _largest(self._left[self._open], self._right[self._open])
            if largest >= room:
                raise
            raise InfeasibleError(
                f"no matching has k = {self.k} edges; the largest one possible has "
                f"{largest + self._include.size}"
            ) from None

    def _candidates(self, index: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the edges that may be chosen, no two of them parallel, and their weights."""
        edges = self._open
        if self._has_parallels:
            edges = best_parallels(edges, self._pair[edges], index)
        if self.k is None or self.at_most:
            edges = edges[index[edges] > 0]
        size = np.abs(index[edges]).max(initial=0.0)
        return edges, np.ldexp(index[edges], -np.frexp(size)[1])


def _heaviest(left: IntArray, right: IntArray, weight: FloatArray) -> IntArray:
    """Return the heaviest matching of any number of edges, all of positive weight."""
    left, n = number_labels(left)
    right, m = number_labels(right)
    if not _is_sparse(n, m, weight.size):
        return _full(left, right, weight, np.zeros((n, m)))
    # A partner of its own with weight 0 lets a left node stay single.
    single = np.arange(n)
    ends = np.append(left, single), np.append(right, m + single)
    chosen = _full_sparse(*ends, np.append(weight, np.zeros(n)), (n, m + n))
    return chosen[chosen < left.size]


def _heaviest_of(k: int, left: IntArray, right: IntArray, weight: FloatArray) -> IntArray:
    """Return the heaviest matching of exactly `k` edges; ValueError if there is none."""
    left, n = number_labels(left)
    right, m = number_labels(right)
    if k < min(n, m):
        edges = _top(k, left, right, weight)
        return edges[_partial(k, left[edges], right[edges], weight[edges])]
    if k > min(n, m):
        raise ValueError(f"{k} edges do not fit on {n} and {m} nodes")
    if _is_sparse(n, m, weight.size):
        return _full_sparse(left, right, weight, (n, m))
    return _full(left, right, weight, np.full((n, m), np.inf))


def _top(k: int, left: IntArray, right: IntArray, weight: FloatArray) -> IntArray:
    """Return the few edges among which a heaviest matching of `k` edges is.

    Order the edges by weight, then position, and let the matching M be best in that order. Its
    other k - 1 edges use k - 1 right nodes, so an edge of M is among the first k of its left
    node: else one of those had a free right end and would be better. The same holds for right
    nodes. In what is left each of the 2(k - 1) nodes of the other edges has at most k edges, so
    an edge of M is among the first 2k(k - 1) + 1: else one of those would be free, and better.
    """
    order = np.argsort(-weight, kind="stable")
    is_top = np.ones(order.size, dtype=bool)
    for ends in (left, right):
        by_node = np.argsort(ends[order], kind="stable")
        degree = np.bincount(ends)
        rank = np.arange(order.size) - np.repeat(np.cumsum(degree) - degree, degree)
        is_top[by_node[rank >= k]] = False
    return order[is_top][: 2 * k * (k - 1) + 1]


def _partial(k: int, left: IntArray, right: IntArray, weight: FloatArray) -> IntArray:
    """Return the heaviest matching of `k` edges where nodes may stay single."""
    left, n = number_labels(left)
    right, m = number_labels(right)
    if k > min(n, m):
        raise ValueError(f"{k} edges do not fit on {n} and {m} nodes")
    if n + m - k > LARGEST_DUMMY_MATRIX:
        return _partial_by_program(k, left, right, weight, n, m)
    # n - k dummy right nodes take the left nodes that stay single, m - k dummy left nodes the
    # right ones; as no dummy takes a dummy, just k edges are left for the others.
    cost = np.zeros((n + m - k, n + m - k))
    cost[:n, :m] = cost[n:, m:] = np.inf
    return _full(left, right, weight, cost)


def _partial_by_program(
    k: int, left: IntArray, right: IntArray, weight: FloatArray, n: int, m: int
) -> IntArray:
    """Solve as a linear program; its vertices are matchings, as the problem is a network flow."""
    from scipy.optimize import linprog

    edges = np.arange(weight.size)
    ends = (np.append(left, n + right), np.append(edges, edges))
    incidence = coo_array((np.ones(2 * weight.size), ends), shape=(n + m, weight.size))
    result = linprog(
        -weight,
        A_ub=incidence.tocsr(),
        b_ub=np.ones(n + m),
        A_eq=np.ones((1, weight.size)),
        b_eq=[k],
        method="highs-ds",
        options={"dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:
        raise ValueError(result.message)
    return np.flatnonzero(result.x > 0.5)


def _full(left: IntArray, right: IntArray, weight: FloatArray, cost: FloatArray) -> IntArray:
    """Match all nodes of the smaller side at least cost; `cost` is that of pairs without edge."""
    from scipy.optimize import linear_sum_assignment  # 0.3 s that `import oclok` need not take

    cost[left, right] = -weight
    return _joining(left, right, *linear_sum_assignment(cost))


def _full_sparse(
    left: IntArray, right: IntArray, weight: FloatArray, shape: tuple[int, int]
) -> IntArray:
    """Match all nodes of the smaller side along edges of a sparse graph."""
    # SciPy takes a weight of 0 for no edge. All full matchings have the same number of edges, so
    # adding 2 to weights of at most 1 in size changes nothing else.
    graph = coo_array((weight + 2.0, (left, right)), shape=shape).tocsr()
    return _joining(left, right, *min_weight_full_bipartite_matching(graph, maximize=True))


def _joining(left: IntArray, right: IntArray, rows: IntArray, cols: IntArray) -> IntArray:
    """Return the edges that join matched nodes; pairs that are no edge drop out."""
    partner = np.full(max(left.max(initial=-1), rows.max(initial=-1)) + 1, -1, dtype=np.intp)
    partner[rows] = cols
    return np.flatnonzero(partner[left] == right)


def _is_sparse(n: int, m: int, edges: int) -> bool:
    """Return whether the sparse solver is faster, as measured with 100 to 2,000 nodes a side."""
    return n * m > 2**16 and n * m > 8 * edges


def _largest(left: IntArray, right: IntArray) -> int:
    """Return the number of edges of the largest matching."""
    if left.size == 0:
        return 0
    graph = csr_array((np.ones(left.size), (left, right)))
    return int(np.count_nonzero(maximum_bipartite_matching(graph) >= 0))
