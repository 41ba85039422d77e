"""Super arms that are the edges of a path through a directed graph.

| symbol     | meaning                                                              |
|------------|----------------------------------------------------------------------|
| tail, head | where each edge, a base arm, starts and ends; shape (M,)             |
| useful     | edges on some walk from source to target, in topological order       |
| rank       | position of each node in topological order; (number of nodes,)       |
| via        | the edge by which the best path enters each node; (number of nodes,) |
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from graphlib import CycleError, TopologicalSorter

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from oclok.errors import InfeasibleError, OracleError
from oclok.oracles.labels import Labels, as_ends, as_node, best_parallels, number_labels
from oclok.oracles.parametric import ExactSumOracle
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray


class Path(ExactSumOracle):
    """Choose the edges of the path from source to target with the largest sum.

    A path visits no node twice. Exact: α = 1. On a graph with cycles between source and target,
    no index may be positive (think of negative travel times) and no edge can be included, since
    both problems are NP-hard: an `OracleError`. No path at all is an `InfeasibleError`; from a
    node to itself there is only the empty path. Of parallel edges with equal indices the lower
    position is chosen; other ties are broken deterministically, but not by position.

    Args:
        tail: node from which each base arm, an edge, leads; any integers or strings, shape
            (M,), or the name of a column.
        head: node to which it leads, likewise.
        source: node at which paths start.
        target: node at which they end.

    Examples:
        >>> oracle = Path(tail=[0, 0, 1, 2], head=[1, 2, 3, 3], source=0, target=3)
        >>> oracle([-1.0, -5.0, -3.0, -0.5])
        array([0, 2])
    """

    per_arm = ("tail", "head")

    def __init__(
        self, tail: ArrayLike | str, head: ArrayLike | str, source: int | str, target: int | str
    ) -> None:
        self.tail, self.head = as_ends(tail=tail, head=head)
        self.source, self.target = as_node(source, "source"), as_node(target, "target")
        self._prepare_if_resolved()

    def _allows(self, chosen: IntArray) -> bool:
        following = dict(zip(self._tail[chosen].tolist(), self._head[chosen].tolist(), strict=True))
        node, visited = self._source, {self._source}
        for _ in range(chosen.size):
            node = following.get(node, self._source)
            if node in visited:
                return False
            visited.add(node)
        return node == self._target

    def is_stable(self, index: FloatArray, super_arm: IntArray, error: FloatArray) -> bool:
        """Return whether `super_arm` is provably chosen for any index within `error` of this.

        On a graph with cycles, none of those may be one that the solver refuses.
        """
        self._check_resolved()
        if self._has_cycles and not (index + error <= 0)[self._useful].all():
            return False
        return super().is_stable(index, super_arm, error)

    def _solve(self, index: FloatArray) -> IntArray:
        if self._source == self._target:
            return np.empty(0, dtype=np.intp)
        if self._useful.size == 0:
            raise InfeasibleError(f"no path leads from node {self.source!r} to {self.target!r}")
        via = self._shortest(index) if self._has_cycles else self._longest(index)
        path, node = [], self._target
        while node != self._source:
            path.append(via[node])
            node = int(self._tail[via[node]])
        return np.sort(np.array(path, dtype=np.intp))

    def _longest(self, index: FloatArray) -> IntArray:
        """Find the best paths in a graph without cycles, in topological order of the nodes."""
        edges = self._useful
        best, via = [-math.inf] * self._count, [-1] * self._count
        best[self._source] = 0.0
        ends = (self._tail[edges].tolist(), self._head[edges].tolist(), index[edges].tolist())
        for edge, tail, head, gain in zip(edges.tolist(), *ends, strict=True):
            total = best[tail] + gain
            if total > best[head] or via[head] < 0:
                best[head], via[head] = total, edge
        return np.array(via)

    def _shortest(self, index: FloatArray) -> IntArray:
        """Find the best paths in any graph by Dijkstra's method: no index may be positive."""
        edges = self._useful
        if (index[edges] > 0).any():
            first = edges[index[edges] > 0].min()
            raise OracleError(
                "indices must be ≤ 0 on a graph with cycles between source and target; "
                f"position {first} has {index[first]}"
            )
        pair = self._tail * self._count + self._head
        edges = best_parallels(edges, pair[edges], index)  # a matrix has no room for the others
        graph = self._matrix(np.abs(index[edges]), edges)
        _, previous = dijkstra(graph, indices=self._source, return_predecessors=True)
        reached = np.flatnonzero(previous >= 0)
        taken = previous[reached] * self._count + reached  # pairs of nodes
        via = np.full(self._count, -1)
        via[reached] = edges[np.searchsorted(pair[edges], taken)]
        return via

    def _prepare(self) -> None:
        """Give numbers to the nodes, find the useful edges and sort them topologically."""
        self.size = len(self.tail)
        labels = [*_as_list(self.tail), *_as_list(self.head), self.source, self.target]
        number, self._count = number_labels(labels)
        self._tail, self._head = number[: self.size], number[self.size : -2]
        self._source, self._target = int(number[-2]), int(number[-1])
        # Cycles through the source or the target are none that a path could take.
        inner = (self._head != self._source) & (self._tail != self._target)
        inner &= self._tail != self._head
        inner[self._exclude] = False
        edges = self._on_some_walk(np.flatnonzero(inner & self._follows_included()))
        rank = _topological_rank(self._tail[edges], self._head[edges], self._count)
        self._has_cycles = rank is None
        if rank is not None:
            edges = edges[np.argsort(rank[self._tail[edges]], kind="stable")]
            if self._include.size:
                edges = self._through_included(edges, rank)
        elif self._include.size:
            raise OracleError(
                "edges cannot be included where the graph has a cycle between source and target"
            )
        self._useful = edges
        missed = np.setdiff1d(self._include, edges)
        if missed.size:
            raise InfeasibleError(
                f"no path from node {self.source!r} to {self.target!r} has edge {missed[0]} and "
                "all others that are included"
            )

    def _on_some_walk(self, edges: IntArray) -> IntArray:
        """Return those of `edges` that lie on a walk from source to target."""
        ahead = self._matrix(np.ones(edges.size), edges)
        useful = _reached(ahead, self._source)[self._tail[edges]]
        useful &= _reached(ahead.T.tocsr(), self._target)[self._head[edges]]
        return edges[useful]

    def _follows_included(self) -> BoolArray:
        """Return which edges share neither tail nor head with an included one, or are one."""
        fits = ~np.isin(self._tail, self._tail[self._include])
        fits &= ~np.isin(self._head, self._head[self._include])
        fits[self._include] = True
        return fits

    def _through_included(self, edges: IntArray, rank: IntArray) -> IntArray:
        """Return the edges of paths that take every included edge, in a graph without cycles.

        A path through an edge from a to b takes all other edges either before it, up to the rank
        of a, or after it, from the rank of b on. Conversely, with such edges only, nothing but
        the edge itself leads from the one part to the other.
        """
        tails, heads = rank[self._tail[edges]], rank[self._head[edges]]
        fits = np.ones(edges.size, dtype=bool)
        for edge in self._include:
            before, after = rank[self._tail[edge]], rank[self._head[edge]]
            fits &= (heads <= before) | (tails >= after) | (edges == edge)
        return self._on_some_walk(edges[fits])

    def _matrix(self, weights: FloatArray, edges: IntArray) -> csr_array:
        ends = (self._tail[edges], self._head[edges])
        return csr_array((weights, ends), shape=(self._count, self._count))


def _as_list(labels: Labels | str) -> list[Hashable]:
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)


def _topological_rank(tail: IntArray, head: IntArray, count: int) -> IntArray | None:
    """Return the rank of each node in topological order, (count,); None if there is a cycle."""
    sorter: TopologicalSorter[int] = TopologicalSorter()
    for start, end in zip(tail.tolist(), head.tolist(), strict=True):
        sorter.add(end, start)
    try:
        order = np.fromiter(sorter.static_order(), dtype=np.intp)
    except CycleError:
        return None
    rank = np.zeros(count, dtype=np.intp)
    rank[order] = np.arange(order.size)
    return rank


def _reached(graph: csr_array, start: int) -> BoolArray:
    reached = np.zeros(graph.shape[0], dtype=bool)
    reached[breadth_first_order(graph, start, return_predecessors=False)] = True
    return reached
