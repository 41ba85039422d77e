"""Greedy search and branch and bound behind `Coverage`: k left nodes with the largest u.

P      p_ij, probability that left node i, if chosen, activates right node j; (n, m), an array
       or a sparse matrix
S      chosen left nodes; u(S) = Σ_j (1 - Π_{i∈S} (1 - p_ij))
miss   Π_{i∈S} (1 - p_ij), the probability that S misses j, (m,); a search may start with
       nodes already chosen, and then from their miss
gain   u(S ∪ {i}) - u(S) = Σ_j p_ij miss_j, that is P @ miss; never grows as S does
"""
# Tested in tests/oracles/test_coverage.py: it is the solver of that oracle.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from oclok.oracles.parametric import Deadline
from oclok.threads import blas_threads
from oclok.typing import FloatArray, IntArray

#: A matrix is dense up to this many entries, or this many times the number of its edges.
SMALL_MATRIX_ENTRIES, DENSE_ENTRIES_PER_EDGE = 2**16, 32
#: Values whose relative difference is below this are equal up to rounding.
COVERAGE_ROUNDING = 1e-12
#: Entries of the largest dense array that the search makes; 8 bytes each.
LARGEST_DENSE_ENTRIES = 2**22
#: Multiplications between two looks at the clock when there is a time limit.
LARGEST_TIMED_PRODUCT = 2**28


def as_matrix(left: IntArray, right: IntArray, p: FloatArray, n: int, m: int) -> Any:
    """Return P of shape (n, m), dense unless zeros would make that slow."""
    if n * m > max(SMALL_MATRIX_ENTRIES, DENSE_ENTRIES_PER_EDGE * p.size):
        return csr_array((p, (left, right)), shape=(n, m))
    P = np.zeros((n, m))
    P[left, right] = p
    return P


def _dense(rows: Any) -> FloatArray:
    return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray())


def greedy(P: Any, miss: FloatArray, k: int) -> tuple[IntArray, float]:
    """Return k nodes, each of the largest gain given those before it, and their joint gain.

    Ties go to the lower node.
    """
    value, nodes = 0.0, np.empty(k, dtype=np.intp)
    for step in range(k):
        gains = P @ miss
        gains[nodes[:step]] = -1.0
        best = gains.max()
        nodes[step] = node = (gains >= best * (1.0 - COVERAGE_ROUNDING)).argmax()
        value += float(best)
        miss = miss * (1.0 - _dense(P[node]).ravel())
    return nodes, value


def exact(
    P: Any, miss: FloatArray, k: int, nodes: IntArray, value: float, deadline: Deadline
) -> tuple[IntArray, float]:
    """Return the best k nodes, given good ones of joint gain `value`, and the proven gap.

    Branch and bound over partial sets S, the most promising first. As gains never grow, those
    given S bound all later ones: no set that adds r nodes to S is better than u(S) plus the r
    largest gains given S. Nodes are added in order of their gains, and after a node only those
    behind it, so that no set is met twice. The last two nodes come from a matrix product.
    """
    best = value * (1.0 + COVERAGE_ROUNDING)
    gains = P @ miss
    order = np.argsort(-gains, kind="stable")
    top = gains[order]
    bound = top + top[: k - 1].sum()
    bound[:k] = top[:k].sum()
    order = order[: np.count_nonzero(bound > best)]
    if order.size == 0:
        return nodes, 0.0
    P = P[order]
    if not isinstance(P, np.ndarray):
        columns = np.unique(P.indices)
        P, miss = P[:, columns], miss[columns]
        if P.shape[0] * P.shape[1] <= LARGEST_DENSE_ENTRIES:
            P = P.toarray()
    with blas_threads(2.0 * k * P.shape[0] * P.shape[1]):
        found, gap = _search(P, miss, k, best, float(bound[0]), deadline)
    return nodes if found is None else order[found], gap


class _Partial(NamedTuple):
    """A set S of fewer than k nodes."""

    nodes: list[int]
    value: float  # u(S)
    bound: float  # no completion is better
    miss: FloatArray  # (m,), of S without its last node, so that sets never visited cost nothing
    behind: IntArray  # the nodes that S may add


def _search(
    P: Any, miss: FloatArray, k: int, best: float, bound: float, deadline: Deadline
) -> tuple[IntArray | None, float]:
    """Return the k rows of P with the largest value above `best`, if any, and the proven gap."""
    nodes = None
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
