"""Super arms that are the edges of a path through a directed graph.

| symbol     | meaning                                                              |
|------------|----------------------------------------------------------------------|
| tail, head | where each edge, a base arm, starts and ends; shape (M,)             |
| useful     | edges that lie on some way from source to target, earliest first     |
| via        | the edge by which the best path enters each node; (number of nodes,) |
"""

from __future__ import annotations

import math
from graphlib import CycleError, TopologicalSorter
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, dijkstra

from oclok.errors import InfeasibleError, InputError, OracleError
from oclok.oracles.base import SumOracle
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray


class Path(SumOracle):
    """Choose the edges of the path from source to target with the largest sum.

    A path visits no node twice. Exact (α = 1) for any index if the graph has no cycle between
    source and target, and otherwise where no index is positive, as for negative travel times;
    a positive index on a graph with cycles is an `OracleError`, since that problem is NP-hard.
    No path at all is an `InfeasibleError`. From a node to itself there is the empty path only.
    Of parallel edges with equal indices the lower position is chosen; between other paths of
    equal value the answer is the same each time, but not by position.

    Args:
        tail: node from which each base arm, an edge, leads; any integers, shape (M,).
        head: node to which it leads; shape (M,).
        source: node at which paths start.
        target: node at which they end.

    >>> oracle = Path(tail=[0, 0, 1, 2], head=[1, 2, 3, 3], source=0, target=3)
    >>> oracle([-1.0, -5.0, -3.0, -0.5])
    array([0, 2])
    """

    def __init__(self, tail: ArrayLike, head: ArrayLike, source: int, target: int) -> None:
        self.tail, self.head = _as_nodes(tail, "tail"), _as_nodes(head, "head")
        if self.tail.size != self.head.size:
            raise InputError(
                "tail and head must have one node per base arm each; "
                f"got {self.tail.size} and {self.head.size}"
            )
        self.source, self.target = _as_node(source, "source"), _as_node(target, "target")
        self.size = self.tail.size
        self._prepare()

    def is_feasible(self, super_arm: ArrayLike) -> bool:
        """Return whether `super_arm` is a path from source to target that visits no node twice."""
        edges = self._positions(super_arm)
        if edges is None:
            return False
        following = dict(zip(self.tail[edges].tolist(), self.head[edges].tolist(), strict=True))
        node, visited = self.source, {self.source}
        for _ in range(edges.size):
            node = following.get(node, self.source)
            if node in visited:
                return False
            visited.add(node)
        return node == self.target

    def _solve(self, index: FloatArray) -> IntArray:
        if self.source == self.target:
            return np.empty(0, dtype=np.intp)
        if self._useful.size == 0:
            raise InfeasibleError(f"no path leads from node {self.source} to {self.target}")
        via = self._shortest(index) if self._has_cycles else self._longest(index)
        path, node = [], self._target
        while node != self._source:
            path.append(via[node])
            node = int(self._tail[via[node]])
        return np.sort(np.array(path, dtype=np.intp))

    def _longest(self, index: FloatArray) -> IntArray:
        """Find the best paths in a graph without cycles, in topological order of the nodes."""
        edges = self._useful
        best = [-math.inf] * self._count
        best[self._source] = 0.0
        via = [-1] * self._count
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
        pair = self._tail[edges] * self._count + self._head[edges]
        order = np.lexsort((edges, -index[edges], pair))
        edges, pair = edges[order], pair[order]
        is_best = np.append(True, np.diff(pair) != 0)  # a matrix has no room for parallel edges
        edges, pair = edges[is_best], pair[is_best]
        graph = self._matrix(np.abs(index[edges]), edges)
        _, previous = dijkstra(graph, indices=self._source, return_predecessors=True)
        reached = np.flatnonzero(previous >= 0)
        via = np.full(self._count, -1)
        via[reached] = edges[np.searchsorted(pair, previous[reached] * self._count + reached)]
        return via

    def _prepare(self) -> None:
        """Give numbers to the nodes, find the useful edges and sort them topologically."""
        labels = np.concatenate([self.tail, self.head, [self.source, self.target]])
        nodes, number = np.unique(labels, return_inverse=True)
        self._count = nodes.size
        self._tail, self._head = number[: self.tail.size], number[self.tail.size : -2]
        self._source, self._target = int(number[-2]), int(number[-1])
        # Cycles through the source or the target are none that a path could take.
        inner = (self._head != self._source) & (self._tail != self._target)
        edges = np.flatnonzero(inner & (self._tail != self._head))
        ahead = self._matrix(np.ones(edges.size), edges)
        useful = _reached(ahead, self._source)[self._tail[edges]]
        useful &= _reached(ahead.T.tocsr(), self._target)[self._head[edges]]
        edges = edges[useful]

        sorter: TopologicalSorter[int] = TopologicalSorter()
        for tail, head in zip(self._tail[edges].tolist(), self._head[edges].tolist(), strict=True):
            sorter.add(head, tail)
        try:
            order = np.fromiter(sorter.static_order(), dtype=np.intp)
        except CycleError:
            self._has_cycles, self._useful = True, edges
        else:
            rank = np.zeros(self._count, dtype=np.intp)
            rank[order] = np.arange(order.size)
            by_rank = np.argsort(rank[self._tail[edges]], kind="stable")
            self._has_cycles, self._useful = False, edges[by_rank]

    def _matrix(self, weights: FloatArray, edges: IntArray) -> csr_array:
        ends = (self._tail[edges], self._head[edges])
        return csr_array((weights, ends), shape=(self._count, self._count))

    def _state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("tail", "head", "source", "target")}

    def _restore(self, state: dict[str, Any]) -> None:
        Path.__init__(self, **state)


def _as_nodes(nodes: ArrayLike, name: str) -> IntArray:
    array = np.asarray(nodes)
    if array.size == 0:
        array = array.astype(np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be integers, one node per base arm; "
            f"got shape {array.shape}, dtype {array.dtype}"
        )
    if array.size and array.max() > np.iinfo(np.intp).max:
        raise InputError(f"{name} must be below 2⁶³; got {array.max()}")
    return array.astype(np.intp)


def _as_node(node: object, name: str) -> int:
    if isinstance(node, Integral) and not isinstance(node, bool):
        return int(_as_nodes([int(node)], name)[0])
    raise InputError(f"{name} must be an integer, the label of a node; got {node!r}")


def _reached(graph: csr_array, start: int) -> BoolArray:
    reached = np.zeros(graph.shape[0], dtype=bool)
    reached[breadth_first_order(graph, start, return_predecessors=False)] = True
    return reached
