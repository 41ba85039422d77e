"""Probabilistic maximum coverage: choose left nodes that reach as many right nodes as they can.

| symbol | meaning                                                                             |
|--------|-------------------------------------------------------------------------------------|
| p_ij   | probability that left node i, if chosen, activates right node j                     |
| P      | all p_ij, 0 where there is no edge; shape (n, m), an array or a sparse matrix       |
| S      | chosen left nodes; u(S) = Σ_j (1 - Π_{i∈S} (1 - p_ij)), the expected reward         |
| miss   | Π_{i∈S} (1 - p_ij), the probability that S misses j; shape (m,), or (B, m) for B sets |
| gain   | u(S ∪ {i}) - u(S) = Σ_j p_ij miss_j, that is P @ miss; never grows as S does        |
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from oclok.errors import InputError
from oclok.oracles.base import Oracle, best_of
from oclok.oracles.graph import as_edges, has_repeats, number_nodes
from oclok.threads import blas_threads
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
        is_chosen[self._choose(*self._edges(np.clip(index, 0.0, 1.0)))] = True
        return np.flatnonzero(is_chosen[self._left])

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
        gains: FloatArray = np.bincount(left, merged * miss[right], minlength=self._n).astype(
            np.float64
        )
        return np.flatnonzero(self._left == best_of(gains, ~is_chosen))

    def _choose(self, left: IntArray, right: IntArray, p: FloatArray) -> IntArray:
        P = _matrix(left, right, p, self._n, self._m)
        singles = _row_sums(P)
        nodes, value = _greedy(P, singles, self.k)
        if self.solver == "greedy":
            return nodes
        if self.k == 3 and isinstance(P, np.ndarray):
            three = _best_three(P, singles, nodes, value)
            if three is not None:
                return three
        with blas_threads(2.0 * self.k * self._n * self._m):
            return _exact(P, singles, self.k, nodes, value)


def _matrix(left: IntArray, right: IntArray, p: FloatArray, n: int, m: int) -> Any:
    """Return P, dense unless its zeros would make that slow."""
    if n * m > max(2**16, 32 * p.size):
        return csr_array((p, (left, right)), shape=(n, m))
    P = np.zeros(n * m)
    P[left * m + right] = p
    return P.reshape(n, m)


def _row_sums(P: Any) -> FloatArray:
    return np.asarray(P @ np.ones(P.shape[1]))


def _dense(rows: Any) -> FloatArray:
    """Return rows of P as an array, whatever P is."""
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray())


#: Two values that differ by less than this share of them are equal, whatever rounding did.
ROUNDING = 1e-12


def _greedy(P: Any, singles: FloatArray, k: int) -> tuple[IntArray, float]:
    """Return k nodes, each of the largest gain given those before it, and their value."""
    gains, value = singles.copy(), 0.0
    miss = np.ones(P.shape[1])
    nodes = np.empty(k, dtype=np.intp)
    for step in range(k):
        if step:
            miss *= 1.0 - _dense(P[nodes[step - 1]]).ravel()
            gains = P @ miss
            gains[nodes[:step]] = -1.0
        best = gains.max()
        nodes[step] = (gains >= best * (1.0 - ROUNDING)).argmax()
        value += float(best)
    return nodes, value


def _exact(P: Any, singles: FloatArray, k: int, nodes: IntArray, value: float) -> IntArray:
    """Return the best k nodes, given good ones to start from and their value.

    Branch and bound over partial sets S, the most promising first. As gains never grow, those
    given S bound all later ones: no set that adds r nodes to S is better than u(S) plus the r
    largest gains given S. Nodes are added in order of their gains, and after a node only those
    behind it, so that no set is met twice. The last two nodes come from a matrix product.
    """
    best = value * (1.0 + ROUNDING)
    order = np.argsort(-singles, kind="stable")
    top = singles[order]
    bound = top + top[: k - 1].sum()
    bound[:k] = top[:k].sum()
    candidates = order[bound > best]
    if k == 1 or candidates.size == 0:
        return nodes
    P = _candidate_rows(P, candidates)
    stack = [_Partial([], 0.0, np.inf, np.ones(P.shape[1]), np.arange(candidates.size))]
    while stack:
        S = stack.pop()
        if S.bound <= best:
            continue
        r = k - len(S.nodes)
        miss = S.miss * (1.0 - _dense(P[S.nodes[-1]]).ravel()) if S.nodes else S.miss
        gains = P[S.behind] @ miss
        order = np.argsort(-gains, kind="stable")
        behind, gains = S.behind[order], gains[order]
        bounds = S.value + np.convolve(gains, np.ones(r), "valid")
        count = np.count_nonzero(bounds > best)
        if r > 2:
            for j in reversed(range(count)):
                added = [*S.nodes, int(behind[j])]
                value = S.value + float(gains[j])
                stack.append(_Partial(added, value, bounds[j], miss, behind[j + 1 :]))
        elif count:
            first, second, gain = _best_pair(P[behind], miss, gains[:count])
            if S.value + gain > best:
                best = (S.value + gain) * (1.0 + ROUNDING)
                nodes = candidates[[*S.nodes, behind[first], behind[second]]]
    return nodes


class _Partial(NamedTuple):
    """A set S of fewer than k nodes."""

    nodes: list[int]
    value: float  # u(S)
    bound: float  # no completion is better
    miss: FloatArray  # (m,), of S without its last node, so that sets never visited cost nothing
    behind: IntArray  # the nodes that S may add


def _candidate_rows(P: Any, candidates: IntArray) -> Any:
    """Return the rows of P that matter, dense if they are few."""
    P = P[candidates]
    if isinstance(P, np.ndarray):
        return P
    P = P[:, np.unique(P.indices)]
    return P.toarray() if P.shape[0] * P.shape[1] <= LARGEST_DENSE else P


#: Entries of the largest dense array that the search makes; 8 bytes each.
LARGEST_DENSE = 2**22


def _best_pair(P: Any, miss: FloatArray, gains: FloatArray) -> tuple[int, int, float]:
    """Return the best two nodes to add and their joint gain; the first is one with `gains`."""
    best = (0, 0, -np.inf)
    rows = max(1, LARGEST_DENSE // max(P.shape))
    for start in range(0, gains.size, rows):
        first = np.arange(start, min(start + rows, gains.size))
        both = gains[first] + P @ (miss * (1.0 - _dense(P[first]))).T
        both[first, first - start] = -np.inf
        second, column = divmod(int(both.argmax()), first.size)
        if both[second, column] > best[2]:
            best = (start + column, second, float(both[second, column]))
    return best


#: Pairs that are tried with every third node at once.
MOST_PAIRS = 256


def _best_three(
    P: FloatArray, singles: FloatArray, nodes: IntArray, value: float
) -> IntArray | None:
    """Return the best three nodes, given good ones; None if too many are in question.

    The paper's case, and at its size 3 times as fast as `_exact`: by falling singletons, few pairs
    i, j can be part of a better set, as what follows adds no more than the next singleton.
    """
    best = value * (1.0 + ROUNDING)
    order = (-singles).argsort(kind="stable")
    top = singles[order]
    follow = top[1:].copy()  # what j and the best node behind it can add
    follow[:-1] += top[2:]
    firsts = np.count_nonzero(top[:-1] + follow > best)
    if firsts == 0:
        return nodes
    i, j = (top[:firsts, None] + follow > best).nonzero()
    i, j = i[i <= j], j[i <= j] + 1
    if i.size > MOST_PAIRS:
        return None
    rows = order[: np.count_nonzero(top > best - top[0] - top[1])]
    P = P[rows]
    miss = 1.0 - P
    both = miss[i] * miss[j]
    total = (both.shape[1] - both.sum(axis=1))[:, None] + both @ P.T
    total[np.arange(rows.size) <= j[:, None]] = -np.inf  # met as another pair, or not a set
    pair, k = divmod(int(total.argmax()), rows.size)
    return rows[[i[pair], j[pair], k]] if total[pair, k] > best else nodes
