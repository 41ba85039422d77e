"""Simulation III as the published scripts play it, with their oracle.

It maximises influence in a graph that takes movie i and user i for one node.

| symbol | meaning                                                                 | shape         |
|--------|-------------------------------------------------------------------------|---------------|
| n, s   | number of nodes; those below s are left ends of edges                   |               |
| R      | how many times all edges are drawn at random, live or not               |               |
| live   | bit r of edge e: whether e is live in draw r                            | (E, R/64)     |
| reach  | bit r of (v, u): whether live edges lead from node u to node v in draw r | (n, s, R/64) |
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oclok.bench.problems.base import Round, bernoulli
from oclok.bench.problems.movies import Movies, mean_outcome
from oclok.oracles import Coverage, Solution
from oclok.oracles.parametric import Deadline
from oclok.typing import ArrayLike, FloatArray, IntArray

#: R. TIM+ with ε = 0.1 draws about 100,000 RR sets in a round with 200 nodes: 500 for each.
DRAWS = 512

Bits = NDArray[np.uint64]


class PublishedMovies(Movies):
    """`Movies` with the quirks of the published scripts, each of which can be left out.

    With none of them, rounds have the base arms that `Movies` has for the same seed. The switches
    are the quirks of the same names in `quirks.QUIRKS`.
    """

    def __init__(
        self,
        rounds: int = 400,
        seed: int | np.random.SeedSequence = 0,
        *,
        data: str | os.PathLike[str] | None = None,
        shared_numbers: bool = False,
        zero_arms: bool = False,
        first_profiles: bool = False,
        most_genres: bool = False,
    ) -> None:
        super().__init__(rounds, seed, data=data, oracle="exact")
        self.shared_numbers, self.zero_arms = shared_numbers, zero_arms
        self.first_profiles, self.most_genres = first_profiles, most_genres

    def __iter__(self) -> Iterator[Round]:
        profiles = self._profiles
        if self.first_profiles:  # filled in as users appear, so that rounds depend on earlier ones
            profiles = np.full_like(profiles, np.nan)
        _, rounds = self._seeds()
        for seed in rounds.spawn(self.rounds):
            yield self._published_round(seed, profiles)

    def _published_round(self, seed: np.random.SeedSequence, profiles: FloatArray) -> Round:
        edges, solving = seed.spawn(2)
        rng = np.random.default_rng(edges)
        rated = self._draw(rng)
        if self.first_profiles:
            is_new = np.isnan(profiles[:, 0])
            profiles[is_new] = self._ratings.profiles(rated)[is_new]
        kept = rng.choice(rated, rated.size // 2, replace=False) if self.zero_arms else rated
        unwritten = (0, rated.size - kept.size)
        movies, users = self._ends(kept)
        numbers = (np.unique(ids, return_inverse=True)[1] for ids in (movies, users))
        left, right = (np.pad(number, unwritten) for number in numbers)
        contexts = np.pad(self._contexts(movies, profiles[users]), unwritten)
        if self.most_genres:
            contexts *= 10 / self._ratings.genres.sum(axis=1).max()
        oracle = (
            SharedNumbers(left, right, self._k, solving)
            if self.shared_numbers
            else Coverage(left, right, self._k)
        )
        return Round(contexts[:, None], mean_outcome(contexts), oracle, bernoulli)


class SharedNumbers(Coverage):
    """Choose k nodes of large influence, where left node i and right node i are the same node.

    Influence spreads from a chosen node over any number of edges, each live with the
    probability that is its index. The k nodes are chosen greedily by their mean influence over
    the same random draws in each call, as TIM+ chooses them by its own; ties go to the lower
    number. The reward counts right ends of the chosen nodes' own edges, which is not the
    objective that is maximised, so there is no guarantee. `left` and `right` are numbered from 0
    on; nodes without edges of their own add no base arm.
    """

    alpha = 0.0
    lipschitz = None

    def __init__(
        self, left: ArrayLike, right: ArrayLike, k: int, seed: int | np.random.SeedSequence = 0
    ) -> None:
        super().__init__(left, right, k, solver="greedy")
        self._entropy = tuple(np.random.default_rng(seed).integers(2**32, size=4).tolist())

    def _search(self, index: FloatArray, deadline: Deadline) -> Solution:
        left, right = np.asarray(self.left, np.intp), np.asarray(self.right, np.intp)
        nodes = greedy(influences(left, right, index, self._entropy), self.k)
        return Solution(np.flatnonzero(np.isin(left, nodes)), math.inf)


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
    counts: IntArray = np.unpackbits(bits.view(np.uint8), axis=-1).sum(axis=axis, dtype=np.intp)
    return counts  # NumPy 1 has no bitwise_count
