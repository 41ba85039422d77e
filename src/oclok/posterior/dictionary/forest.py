"""Near neighbours in bounded time, in any dimension: a forest of random k-d trees.

    X    contexts (N, D), kept by the caller        T    number of trees

Every tree sorts all contexts into buckets. A full bucket is split at the median of one
coordinate, drawn at random in proportion to its variance, so that trees differ: the neighbours
that one tree cuts off, another keeps. The contexts that share a bucket with x in some tree are
its candidates; finding them takes O(T log N) comparisons and no distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oclok.arrays import grown
from oclok.persistence import Persistent
from oclok.typing import FloatArray, IntArray

#: Trees, and contexts per bucket.
TREES, BUCKET = 6, 48
NONE = -1
#: Arrays with a row per node.
_BY_NODE = ("_axis", "_threshold", "_children", "_members", "_count")


class Forest(Persistent):
    """Positions of contexts, found again by nearness; `scale` (D,) or () are lengthscales."""

    def __init__(self, scale: FloatArray) -> None:
        self._scale = scale
        self._rng = np.random.default_rng(0)
        self._axis = np.full(TREES, NONE, dtype=np.int32)
        self._threshold = np.zeros(TREES)
        self._children = np.zeros((TREES, 2), dtype=np.int32)
        self._members: Any = np.full((TREES, BUCKET), NONE, dtype=np.int32)
        self._count = np.zeros(TREES, dtype=np.int32)
        self._where = np.full((0, TREES), NONE, dtype=np.int32)
        self._nodes = TREES

    def _state(self) -> dict[str, Any]:
        return self.__dict__ | {name: getattr(self, name)[: self._nodes] for name in _BY_NODE}

    def candidates(self, X: FloatArray, trees: int = TREES) -> IntArray:
        """Return candidates for each of X (M, D), padded with -1; (M, trees · BUCKET)."""
        members: IntArray = self._members[self._buckets(X, trees)]
        return members.reshape(len(X), trees * BUCKET)

    def insert(self, X: FloatArray, positions: IntArray) -> None:
        """Add the contexts X[positions], in place of older ones where there were any."""
        self._where = grown(self._where, int(positions.max(initial=-1)) + 1, NONE)
        for position in positions[(self._where[positions] != NONE).any(axis=1)]:
            self._remove(position)
        nodes = self._buckets(X[positions], TREES).ravel()
        order = nodes.argsort(kind="stable")  # by bucket, in the order in which they came
        nodes, trees = nodes[order], order % TREES
        new = positions[order // TREES]
        first = nodes.searchsorted(nodes)  # of the same bucket
        slots = self._count[nodes] + np.arange(len(nodes)) - first
        is_full = self._count[nodes] + nodes.searchsorted(nodes, side="right") - first > BUCKET
        fits = ~is_full
        self._members[nodes[fits], slots[fits]] = new[fits]
        self._where[new[fits], trees[fits]] = nodes[fits]
        np.add.at(self._count, nodes[fits], 1)
        for start in np.flatnonzero(is_full & (first == np.arange(len(nodes)))).tolist():
            node = int(nodes[start])
            self._overflow(node, int(trees[start]), new[nodes == node], X)

    def _buckets(self, X: FloatArray, trees: int) -> IntArray:
        """Return the bucket of each of X in each tree, shape (M, trees)."""
        node = np.tile(np.arange(trees), len(X))
        row = np.repeat(np.arange(len(X)), trees)
        inner = np.flatnonzero(self._axis[node] != NONE)
        while inner.size:
            at = node[inner]
            is_above = X[row[inner], self._axis[at]] > self._threshold[at]
            node[inner] = self._children[at, is_above.view(np.int8)]
            inner = inner[self._axis[node[inner]] != NONE]
        return node.reshape(len(X), trees)

    def _overflow(self, node: int, tree: int, new: IntArray, X: FloatArray) -> None:
        """Add the positions `new` to a bucket, which is split as often as it takes."""
        full = [(node, np.concatenate([self._members[node, : self._count[node]], new]))]
        while full:
            node, members = full.pop()
            if len(members) > BUCKET:
                full += self._split(node, tree, members, X)
                continue
            self._members[node] = NONE
            self._members[node, : len(members)] = members
            self._count[node] = len(members)
            self._where[members, tree] = node

    def _remove(self, position: int) -> None:
        for node in self._where[position].tolist():
            if node != NONE:
                members, last = self._members[node], self._count[node] - 1
                members[members == position] = members[last]
                members[last] = NONE
                self._count[node] = last

    def _split(
        self, node: int, tree: int, members: IntArray, X: FloatArray
    ) -> list[tuple[int, IntArray]]:
        """Split a node and return its children; itself with the latest members if all are equal."""
        rows = X[members]
        up_to = np.cumsum((rows / self._scale).var(axis=0))
        if up_to[-1] > 0:
            drawn = self._rng.random() * up_to[-1]
            axis = min(int(up_to.searchsorted(drawn, side="right")), len(up_to) - 1)
            values = rows[:, axis]
            median = float(np.sort(values)[len(values) // 2 - 1])
            for threshold in (median, float(values.mean())):
                is_above = values > threshold
                if is_above.any() and not is_above.all():
                    first = self._branch(node, axis, threshold)
                    return [(first, members[~is_above]), (first + 1, members[is_above])]
        kept = members[-BUCKET // 2 :]
        self._where[members, tree] = NONE
        return [(node, kept)]

    def _branch(self, node: int, axis: int, threshold: float) -> int:
        """Give a node two children and return the first; the second comes after it."""
        first = self._nodes
        for name in _BY_NODE:
            setattr(self, name, grown(getattr(self, name), first + 2, NONE))
        self._nodes = first + 2
        self._members[node], self._count[node] = NONE, 0
        self._axis[node], self._threshold[node] = axis, threshold
        self._children[node] = first, first + 1
        return first
