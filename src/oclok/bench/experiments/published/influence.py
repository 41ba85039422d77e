"""The oracle of the published scripts: influence in a graph that mixes up movies and users.

| symbol | meaning                                                                 | shape         |
|--------|-------------------------------------------------------------------------|---------------|
| n, s   | number of nodes; those below s are left ends of edges                   |               |
| R      | how many times all edges are drawn at random, live or not               |               |
| live   | bit r of edge e: whether e is live in draw r                            | (E, R/64)     |
| reach  | bit r of (v, u): whether live edges lead from node u to node v in draw r | (n, s, R/64) |
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oclok.oracles import Coverage
from oclok.oracles.base import Oracle
from oclok.typing import ArrayLike, FloatArray, IntArray

#: R. TIM+ with ε = 0.1 draws about 100,000 RR sets in a round with 200 nodes: 500 for each.
DRAWS = 512

Bits = NDArray[np.uint64]


class SharedNumbers(Oracle):
    """Choose k nodes of large influence, where left node i and right node i are the same node.

    Influence spreads from a chosen node over any number of edges, each live with the
    probability that is its index. The k nodes are chosen greedily by their mean influence over
    the same random draws in each call, as TIM+ chooses them by its own; ties go to the lower
    number. The reward counts right ends of the chosen nodes' own edges, as it should: what is
    maximised is not what is rewarded, so there is no guarantee.

    Args:
        left: left end of each base arm, numbered from 0 on; shape (M,).
        right: right end of each base arm, numbered from 0 on as well; shape (M,).
        k: number of nodes to choose. Those without edges of their own add no base arm.
        seed: of the random draws.
    """

    alpha = 0.0
    lipschitz = None

    def __init__(
        self, left: ArrayLike, right: ArrayLike, k: int, seed: int | np.random.SeedSequence = 0
    ) -> None:
        self.left = np.asarray(left, dtype=np.intp)
        self.right = np.asarray(right, dtype=np.intp)
        self.k = k
        self.size = self.left.size
        self._coverage = Coverage(self.left, self.right, k, solver="greedy")
        self._entropy = tuple(np.random.default_rng(seed).integers(2**32, size=4).tolist())

    def value(self, means: ArrayLike, super_arm: ArrayLike) -> float:
        """Return the expected number of right nodes that the edges of `super_arm` activate."""
        return self._coverage.value(means, super_arm)

    def is_feasible(self, super_arm: ArrayLike) -> bool:
        """Return whether `super_arm` is all edges of at most k left nodes."""
        return self._coverage.is_feasible(super_arm)

    def _solve(self, index: FloatArray) -> IntArray:
        nodes = greedy(influences(self.left, self.right, index, self._entropy), self.k)
        return np.flatnonzero(np.isin(self.left, nodes))


def influences(
    left: IntArray, right: IntArray, p: FloatArray, entropy: tuple[int, ...], draws: int = DRAWS
) -> Bits:
    """Return `reach` of the graph with edges from `left` to `right`, live with probability p."""
    s, n = int(left.max()) + 1, int(max(left.max(), right.max())) + 1
    leads = left != right
    left, right, p = left[leads], right[leads], p[leads]
    rng = np.random.default_rng(entropy)
    is_live = rng.random((left.size, draws), dtype=np.float32) < p[:, None]
    live = np.packbits(is_live, axis=1).view(np.uint64)
    into = [np.flatnonzero(right == v) for v in range(n)]
    reach = np.zeros((n, s, live.shape[1]), dtype=np.uint64)
    reach[np.arange(s), np.arange(s)] = ~np.uint64(0)
    inner = [v for v in range(s) if into[v].size]
    while True:  # each sweep adds at least one more edge to every path that is not found yet
        before = reach[:s].copy()
        for v in inner:
            reach[v] |= _arriving(reach, left[into[v]], live[into[v]])
        if np.array_equal(before, reach[:s]):
            break
    for v in range(s, n):
        reach[v] = _arriving(reach, left[into[v]], live[into[v]])
    return reach


def greedy(reach: Bits, k: int) -> list[int]:
    """Return k nodes, each the one that reaches most nodes not reached before, over all draws."""
    n, s, words = reach.shape
    missing = np.full((n, words), ~np.uint64(0))
    nodes: list[int] = []
    for _ in range(k):
        gains = _ones(missing, axis=1)  # a node reaches itself
        gains[:s] = _ones(reach & missing[:, None], axis=(0, 2))
        gains[nodes] = -1
        node = int(gains.argmax())
        nodes.append(node)
        missing[node] = 0
        if node < s:
            missing &= ~reach[:, node]
    return nodes


def _arriving(reach: Bits, tails: IntArray, live: Bits) -> Bits:
    """Return in which draws each source reaches the head of these edges by one of them."""
    arriving: Bits = np.bitwise_or.reduce(reach[tails] & live[:, None], axis=0)
    return arriving


def _ones(bits: Bits, axis: int | tuple[int, int]) -> IntArray:
    """Return how many bits are set along `axis`, the last one included."""
    counts: IntArray = _count(bits).sum(axis=axis, dtype=np.intp)
    return counts


def _table_count(bits: Bits) -> NDArray[np.uint8]:
    """Return how many bits are set in each quarter of each number."""
    counts: NDArray[np.uint8] = _ONES[bits.view(np.uint16)]
    return counts


#: How many bits are set in each number of 16 bits; NumPy 1 has no bitwise_count.
_ONES = np.unpackbits(np.arange(2**16, dtype=np.uint16).view(np.uint8)).reshape(-1, 16)
_ONES = _ONES.sum(axis=1, dtype=np.uint8)
_count = getattr(np, "bitwise_count", _table_count)
