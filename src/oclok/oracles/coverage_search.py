"""Branch and bound and greedy search behind `Coverage`: k left nodes with the largest u.

    p_ij   probability that left node i, if chosen, activates right node j
    P      p_ij of the left nodes in question, (n, m), an array or a sparse matrix
    S      chosen left nodes; u(S) = Σ_j (1 - Π_{i∈S} (1 - p_ij))
    miss   Π_{i∈S} (1 - p_ij), the probability that S misses j, (m,); where nodes are already
           chosen before the search, what it starts from is theirs
    gain   u(S ∪ {i}) - u(S) = Σ_j p_ij miss_j, that is P @ miss; never grows as S does

Nodes go by rank, with falling u({i}). As gains never grow, a node far behind can be left out as
soon as its u({i}) is no more than others add.
"""
# Tested in tests/oracles/test_coverage.py: it is the solver of that oracle.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from oclok.oracles.time_limit import Deadline
from oclok.threads import blas_threads
from oclok.typing import FloatArray, IntArray

#: A matrix is dense up to this many entries, or this many times the number of its edges.
SMALL_MATRIX_ENTRIES, DENSE_ENTRIES_PER_EDGE = 2**16, 32
#: Values whose relative difference is below this are equal up to rounding.
COVERAGE_ROUNDING = 1e-12
#: Nodes that greedy considers first, and the factor by which it widens that if inconclusive.
GREEDY_FIRST_NODES, GREEDY_GROWTH = 16, 4
#: Entries of the largest dense array that the search makes; 8 bytes each.
LARGEST_DENSE_ENTRIES = 2**22
#: Multiplications between two looks at the clock when there is a time limit.
LARGEST_TIMED_PRODUCT = 2**28
#: Pairs of nodes whose best third node `best_three` searches for before it gives up.
LARGEST_PAIR_COUNT = 64


class Ranked:
    """Left nodes by falling u({i}).

    Attributes:
        order: the node of each rank, (n,).
        top: u({i}) by rank, (n,).
        miss: from which the search starts, for the columns of `rows`; ones unless nodes are
            already chosen.
    """

    def __init__(
        self,
        left: IntArray,
        right: IntArray,
        p: FloatArray,
        n: int,
        m: int,
        miss: FloatArray | None = None,
    ) -> None:
        singles = sums(left, p if miss is None else p * miss[right], n)
        self.miss = self._all_miss = np.ones(m) if miss is None else miss
        self.order: IntArray = (-singles).argsort(kind="stable")
        self.top: FloatArray = singles[self.order]
        start = np.empty(n, dtype=np.intp)  # of each node's row in P by rank, flat
        start[self.order] = np.arange(0, n * m, m)
        self._cells, self._p, self._m = start[left] + right, p, m
        self._known: Any = np.empty((0, m))

    def rows(self, count: int) -> Any:
        """Return the first `count` rows of P by rank, dense unless zeros would make that slow.

        A sparse matrix is without the columns that its rows have nothing in.
        """
        if count > self._known.shape[0]:
            size = count * self._m
            inside = (self._cells < size).nonzero()[0]
            cells, p = self._cells[inside], self._p[inside]
            if size <= max(SMALL_MATRIX_ENTRIES, DENSE_ENTRIES_PER_EDGE * p.size):
                P = np.zeros(size)
                P[cells] = p
                self._known, self.miss = P.reshape(count, self._m), self._all_miss
            else:
                row, column = np.divmod(cells, self._m)
                columns, column = np.unique(column, return_inverse=True)
                self._known = csr_array((p, (row, column)), shape=(count, columns.size))
                self.miss = self._all_miss[columns]
        return self._known[:count]


def sums(left: IntArray, weights: FloatArray, n: int) -> FloatArray:
    """Return the sum of the `weights` of each left node's edges, shape (n,)."""
    return np.asarray(np.bincount(left, weights, minlength=n), dtype=np.float64)


def _dense(rows: Any) -> FloatArray:
    """Return rows of P as an array, whatever P is."""
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray())


def greedy(ranked: Ranked, k: int) -> tuple[IntArray, float]:
    """Return the ranks of k nodes, each of the largest gain given those before it, and u."""
    n, count = ranked.top.size, max(GREEDY_FIRST_NODES, 2 * k)
    found = None
    while found is None:
        rest = float(ranked.top[count]) if count < n else -1.0
        found = _greedy_among(ranked.rows(min(count, n)), ranked, k, rest)
        count *= GREEDY_GROWTH
    return found


def _greedy_among(P: Any, ranked: Ranked, k: int, rest: float) -> tuple[IntArray, float] | None:
    """Return what greedy chooses; None if a node not in P, of gain up to `rest`, may be better."""
    gains, value = ranked.top[: P.shape[0]], 0.0
    miss = ranked.miss.copy()
    nodes: list[int] = []
    while True:
        node = int(gains.argmax())
        best = float(gains[node])
        is_tied = gains >= best * (1.0 - COVERAGE_ROUNDING)
        if best * (1.0 - COVERAGE_ROUNDING) <= rest:
            return None
        if np.count_nonzero(is_tied) > 1:
            tied = is_tied.nonzero()[0]
            node = int(tied[ranked.order[tied].argmin()])
        nodes.append(node)
        value += best
        if len(nodes) == k:
            return np.array(nodes), value
        miss *= 1.0 - _dense(P[node]).ravel()
        gains = P @ miss
        for node in nodes:
            gains[node] = -1.0


def exact(
    ranked: Ranked, k: int, nodes: IntArray, value: float, deadline: Deadline
) -> tuple[IntArray, float]:
    """Return the ranks of the best k nodes, given good ones to start from, and the proven gap.

    Branch and bound over partial sets S, the most promising first. As gains never grow, those
    given S bound all later ones: no set that adds r nodes to S is better than u(S) plus the r
    largest gains given S. Nodes are added in order of their gains, and after a node only those
    behind it, so that no set is met twice. The last two nodes come from a matrix product.
    """
    best = value * (1.0 + COVERAGE_ROUNDING)
    bound = ranked.top + ranked.top[: k - 1].sum()
    bound[:k] = ranked.top[:k].sum()
    candidates = int(np.count_nonzero(bound > best))
    if candidates == 0:
        return nodes, 0.0
    P = ranked.rows(candidates)
    if not isinstance(P, np.ndarray) and P.shape[0] * P.shape[1] <= LARGEST_DENSE_ENTRIES:
        P = P.toarray()
    with blas_threads(2.0 * k * P.shape[0] * P.shape[1]):
        return _search(P, ranked.miss, k, nodes, best, float(bound[0]), deadline)


def _search(
    P: Any,
    miss: FloatArray,
    k: int,
    nodes: IntArray,
    best: float,
    bound: float,
    deadline: Deadline,
) -> tuple[IntArray, float]:
    """Return the k rows of P with the largest value above `best`; `nodes` if there are none."""
    stack = [_Partial([], 0.0, bound, miss, np.arange(P.shape[0]))]
    while stack:
        if deadline.has_passed:
            return nodes, max(0.0, max(S.bound for S in stack) - best)
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
            first, second, gain = _best_pair(P[behind], miss, gains[:count], deadline)
            if S.value + gain > best:
                best = (S.value + gain) * (1.0 + COVERAGE_ROUNDING)
                nodes = np.array([*S.nodes, behind[first], behind[second]])
            if deadline.has_passed:
                stack.append(S)  # not every pair may have been compared
    return nodes, 0.0


class _Partial(NamedTuple):
    """A set S of fewer than k nodes."""

    nodes: list[int]
    value: float  # u(S)
    bound: float  # no completion is better
    miss: FloatArray  # (m,), of S without its last node, so that sets never visited cost nothing
    behind: IntArray  # the nodes that S may add


def _best_pair(
    P: Any, miss: FloatArray, gains: FloatArray, deadline: Deadline
) -> tuple[int, int, float]:
    """Return the best two nodes to add and their joint gain; the first is one with `gains`."""
    best = (0, 0, -np.inf)
    rows = max(1, LARGEST_DENSE_ENTRIES // max(P.shape))
    if deadline.seconds is not None:
        rows = max(1, min(rows, LARGEST_TIMED_PRODUCT // (P.shape[0] * P.shape[1])))
    for start in range(0, gains.size, rows):
        first = np.arange(start, min(start + rows, gains.size))
        both = gains[first] + P @ (miss * (1.0 - _dense(P[first]))).T
        both[first, first - start] = -np.inf
        second, column = divmod(int(both.argmax()), first.size)
        if both[second, column] > best[2]:
            best = (start + column, second, float(both[second, column]))
        if deadline.has_passed:
            break
    return best


def best_three(ranked: Ranked, nodes: IntArray, value: float) -> IntArray | None:
    """Return the ranks of the best three nodes, or None if there are too many candidates.

    `nodes` and `value` are good ones to start from and their u.

    The paper's case, and at its size 3 times as fast as `exact`: by falling singletons, few pairs
    i, j can be part of a better set, as what follows adds no more than the next singleton.
    """
    best = value * (1.0 + COVERAGE_ROUNDING)
    P = ranked.rows(int(np.count_nonzero(ranked.top > best - ranked.top[0] - ranked.top[1])))
    if not isinstance(P, np.ndarray):
        return None
    top = ranked.top[: len(P)].tolist()
    pairs = 0
    for i in range(len(P) - 2):
        if top[i] + top[i + 1] + top[i + 2] <= best:
            break
        miss = ranked.miss * (1.0 - P[i])
        both = (top[i] + P @ miss).tolist()
        for j in range(i + 1, len(P) - 1):
            if top[i] + top[j] + top[j + 1] <= best:
                break
            if both[j] + top[j + 1] > best:
                pairs += 1
                gains = P[j + 1 :] @ (miss * (1.0 - P[j]))
                k = int(gains.argmax())
                if both[j] + gains[k] > best:
                    best = (both[j] + float(gains[k])) * (1.0 + COVERAGE_ROUNDING)
                    nodes = np.array([i, j, j + 1 + k])
        if pairs > LARGEST_PAIR_COUNT:
            return None
    return nodes
