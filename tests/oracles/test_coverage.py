from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oclok.errors import InputError, OracleError
from oclok.oracles import coverage_search
from oclok.oracles.coverage import Coverage
from oclok.persistence import dumps, loads

probabilities = st.one_of(
    st.floats(0, 1, allow_subnormal=False), st.sampled_from([-0.3, 0.0, 0.3, 0.5, 1.0, 1.7])
)
edges = st.lists(st.tuples(st.integers(-3, 3), st.integers(-1, 4), probabilities), max_size=20)


def split(graph):
    left, right, index = zip(*graph, strict=True) if graph else ((), (), ())
    return left, right, np.array(index, dtype=float)


def expected_coverage(left, right, p, nodes):
    """Return u in plain Python, straight from its definition."""
    miss = dict.fromkeys(right, 1.0)
    for i, j, probability in zip(left, right, p, strict=True):
        if i in nodes:
            miss[j] *= 1 - min(max(probability, 0.0), 1.0)
    return sum(1 - q for q in miss.values())


def best_coverage(left, right, p, k):
    nodes = sorted(set(left))
    choices = itertools.combinations(nodes, min(k, len(nodes)))
    return max(expected_coverage(left, right, p, choice) for choice in choices)


@settings(max_examples=600, deadline=None)
@given(graph=edges, k=st.integers(1, 6), wide=st.booleans())
@example(graph=[], k=1, wide=False)
@example(graph=[(0, 0, 0.0), (1, 0, 0.0), (2, 1, 0.0)], k=2, wide=True)
def test_exact_is_as_good_as_trying_all_sets(graph, k, wide):
    left, right, index = split(graph)
    oracle = Coverage(left, right, k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage_search, "LARGEST_DENSE_ENTRIES", 2**22 if wide else 1)
        super_arm = oracle(index)
    assert oracle.is_feasible(super_arm)
    best = best_coverage(left, right, index, k)
    assert oracle.value(index, super_arm) == pytest.approx(best, rel=1e-10, abs=1e-12)


@settings(max_examples=600, deadline=None)
@given(graph=edges, k=st.integers(1, 6))
def test_greedy_reaches_its_share_of_the_best(graph, k):
    left, right, index = split(graph)
    oracle = Coverage(left, right, k, solver="greedy")
    super_arm = oracle(index)
    assert oracle.is_feasible(super_arm)
    assert oracle.alpha == 1 - 1 / math.e
    best = best_coverage(left, right, index, k)
    assert oracle.value(index, super_arm) >= oracle.alpha * best - 1e-12


@settings(max_examples=200, deadline=None)
@given(graph=edges, data=st.data())
def test_the_value_is_the_expected_number_of_activated_nodes(graph, data):
    left, right, means = split(graph)
    nodes = data.draw(st.sets(st.sampled_from(sorted(set(left)) or [0])))
    super_arm = [m for m, node in enumerate(left) if node in nodes]
    expected = expected_coverage(left, right, means, nodes)
    assert Coverage(left, right, 2).value(means, super_arm) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(graph=edges, k=st.integers(1, 3), subset=st.sets(st.integers(0, 20)))
def test_feasible_are_all_edges_of_at_most_k_left_nodes(graph, k, subset):
    left, right, _ = split(graph)
    oracle = Coverage(left, right, k)
    nodes = {left[m] for m in subset if m < len(left)}
    stars = {m for m, node in enumerate(left) if node in nodes}
    assert oracle.is_feasible(sorted(stars)) == (len(nodes) <= k)
    assert oracle.is_feasible(sorted(subset)) == (subset == stars and len(nodes) <= k)


@settings(max_examples=100, deadline=None)
@given(graph=edges, k=st.integers(1, 4), change=st.lists(probabilities, min_size=20, max_size=20))
def test_the_value_is_lipschitz(graph, k, change):
    left, right, means = split(graph)
    oracle = Coverage(left, right, k)
    other = np.array(change[: means.size])
    super_arm = oracle(means)
    difference = abs(oracle.value(means, super_arm) - oracle.value(other, super_arm))
    assert difference <= oracle.lipschitz * np.abs(means - other)[super_arm].sum() + 1e-12


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("largest", [0, 2**22])
def test_a_sparse_matrix_gives_what_a_dense_one_gives(monkeypatch, k, largest):
    rng = np.random.default_rng(k)
    key = rng.choice(40 * 60, size=300, replace=False)
    left, right, index = key // 60, key % 60, rng.random(300)
    dense, sparse = {}, {}
    for solver in ("greedy", "exact"):
        dense[solver] = Coverage(left, right, k, solver)(index).tolist()
    monkeypatch.setattr(coverage_search, "SMALL_MATRIX_ENTRIES", 0)
    monkeypatch.setattr(coverage_search, "DENSE_ENTRIES_PER_EDGE", 0)
    monkeypatch.setattr(coverage_search, "LARGEST_DENSE_ENTRIES", largest)
    for solver in ("greedy", "exact"):
        sparse[solver] = Coverage(left, right, k, solver)(index).tolist()
    assert sparse == dense


def test_greedy_sees_a_tie_with_a_node_far_behind():
    edges = [(0, 100), (0, 101), *((1, j) for j in range(10))]
    for i in range(2, 17):  # all ahead of node 0, but half of each is what node 1 has, too
        edges += [(i, 0), (i, 1), (i, 200 + 2 * i), (i, 201 + 2 * i)]
    left, right = np.array(edges).T
    chosen = Coverage(left, right, 2, "greedy")(np.ones(len(edges)))
    assert set(left[chosen]) == {0, 1}


@pytest.mark.parametrize("k", [1, 3, 9])
@pytest.mark.parametrize("levels", [[1.0], [0.5, 1.0], None])
def test_greedy_takes_the_largest_gain_and_the_first_of_equals_among_many(k, levels):
    rng = np.random.default_rng(k)
    for _ in range(10):
        left, right = np.divmod(rng.choice(80 * 30, 400, replace=False), 30)
        order = rng.permutation(400)
        left, right = left[order], right[order]
        p = rng.random(400) if levels is None else rng.choice(levels, 400)
        miss, chosen = np.ones(30), []
        for _ in range(k):
            gains = {i: (p * miss[right])[left == i].sum() for i in dict.fromkeys(left.tolist())}
            for i in chosen:
                del gains[i]
            best = max(gains.values())
            chosen.append(next(i for i, gain in gains.items() if gain >= best - 1e-9))
            mine = left == chosen[-1]
            miss[right[mine]] *= 1 - p[mine]
        greedy = Coverage(left, right, k, solver="greedy")
        assert greedy(p).tolist() == np.flatnonzero(np.isin(left, chosen)).tolist()


def test_a_graph_too_large_for_a_dense_matrix_is_solved():
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 10**6, (2, 20_000))
    index = rng.random(20_000) ** 2
    exact, greedy = (Coverage(left, right, 3, solver) for solver in ("exact", "greedy"))
    assert exact.is_feasible(exact(index))
    assert exact.value(index, exact(index)) >= greedy.value(index, greedy(index)) - 1e-12


def test_exact_beats_greedy_where_greedy_errs():
    left = [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    right = [0, 1, 3, 4, 0, 1, 2, 3, 4, 5]
    index = np.ones(10)
    greedy, exact = (Coverage(left, right, 2, solver) for solver in ("greedy", "exact"))
    assert greedy.value(index, greedy(index)) == 5
    assert exact(index).tolist() == [4, 5, 6, 7, 8, 9]
    assert exact.value(index, exact(index)) == 6


@pytest.mark.parametrize("solver", ["exact", "greedy"])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.3, 1.0])
def test_ties_go_to_the_node_that_appears_first(solver, p):
    left = np.repeat([9, 4, 7, 1], 7)
    oracle = Coverage(left, np.arange(28) * 37 % 28, k=2, solver=solver)
    assert oracle(np.full(28, p)).tolist() == list(range(14))


def test_with_fewer_left_nodes_than_k_all_are_chosen():
    oracle = Coverage([3, 5, 3], [0, 0, 1], k=4)
    assert oracle([0.1, 0.0, -2.0]).tolist() == [0, 1, 2]
    assert oracle.is_feasible([0, 1, 2])


def test_an_empty_graph_has_an_empty_super_arm():
    oracle = Coverage([], [], k=3)
    assert oracle([]).size == 0
    assert oracle.value([], []) == 0.0
    assert oracle.is_feasible([])


def test_parallel_edges_each_try():
    oracle = Coverage([0, 0, 1], [0, 0, 0], k=1)
    assert oracle.value([0.5, 0.5, 0.7], [0, 1]) == 0.75
    assert oracle([0.5, 0.5, 0.7]).tolist() == [0, 1]


def test_wrong_arguments_are_named():
    with pytest.raises(InputError, match='solver must be "exact" or "greedy"; got \'lazy\''):
        Coverage([0], [0], 1, solver="lazy")
    with pytest.raises(InputError, match="k must be an integer of at least 1; got 0"):
        Coverage([0], [0], 0)
    with pytest.raises(OracleError, match="describes 1 base arms; got an index for 2"):
        Coverage([0], [0], 1)([0.1, 0.2])


@pytest.mark.parametrize("solver", ["exact", "greedy"])
def test_a_saved_oracle_chooses_the_same(solver):
    rng = np.random.default_rng(0)
    oracle = Coverage(rng.integers(0, 9, 60), rng.integers(0, 9, 60), 3, solver)
    loaded = loads(dumps(oracle))
    assert loaded.alpha == oracle.alpha
    for _ in range(5):
        index = rng.random(60)
        assert loaded(index).tolist() == oracle(index).tolist()


@pytest.mark.parametrize("edges", [300, 1_400, 6_000])
@pytest.mark.parametrize("seed", range(8))
def test_exact_is_the_best_of_all_triples_at_the_papers_size(seed, edges):
    rng = np.random.default_rng(seed)
    left, right = np.divmod(rng.choice(60 * 200, edges, replace=False), 200)
    p = rng.beta(2, 5, edges)
    P = np.zeros((60, 200))
    P[left, right] = p
    pairs = [(i, j) for i in range(60) for j in range(i)]
    miss = np.array([(1 - P[i]) * (1 - P[j]) for i, j in pairs])
    value = (1 - miss).sum(axis=1) + P @ miss.T  # of each node with each pair
    for column, pair in enumerate(pairs):
        value[list(pair), column] = -np.inf
    oracle = Coverage(left, right, 3)
    assert oracle.value(p, oracle(p)) == pytest.approx(value.max(), rel=1e-12)
