from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oclok.errors import InputError
from oclok.oracles import influence
from oclok.oracles.coverage import Coverage
from oclok.oracles.influence import TIMPlus
from oclok.oracles.parametric import Deadline
from oclok.persistence import dumps, loads

probabilities = st.one_of(
    st.floats(0, 1, allow_subnormal=False), st.sampled_from([-0.3, 0.0, 0.5, 1.0, 1.7])
)
edges = st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 4), probabilities), max_size=12)


def split(graph):
    left, right, index = zip(*graph, strict=True) if graph else ((), (), ())
    return left, right, np.array(index, dtype=float)


def random_graph(rng, n, m, size):
    key = np.sort(rng.choice(n * m, size=size, replace=False))
    return key // m, key % m


def best_value(oracle, left, index, k):
    nodes = np.unique(left)
    choices = itertools.combinations(nodes, min(k, nodes.size))
    return max(oracle.value(index, np.flatnonzero(np.isin(left, c))) for c in choices)


@settings(max_examples=500, deadline=None)
@given(graph=edges, k=st.integers(1, 4))
@example(graph=[], k=1)
@example(graph=[(0, 0, 0.5)], k=1)
@example(graph=[(0, 0, 0.0), (1, 0, 0.0), (2, 0, 0.0)], k=2)
@example(graph=[(0, 0, 1e-300), (1, 0, 0.0)], k=1)
@example(graph=[(0, 0, 0.5), (0, 0, 0.5), (1, 0, 0.6)], k=1)
def test_the_influence_reaches_its_share_of_the_best(graph, k):
    left, right, index = split(graph)
    oracle = TIMPlus(left, right, k, epsilon=0.3)
    super_arm = oracle(index)
    assert oracle.is_feasible(super_arm)
    seeds = min(k, len(set(left)))
    assert len({left[m] for m in super_arm}) == seeds
    best = best_value(oracle, np.array(left), index, k) + seeds
    assert oracle.value(index, super_arm) + seeds >= oracle.alpha * best - 1e-9


def test_the_coverage_reaches_its_share_of_the_best_in_the_promised_share_of_runs():
    rng = np.random.default_rng(0)
    runs, reached = 120, 0
    for seed in range(runs):
        left, right = random_graph(rng, 8, 12, 40)
        index = rng.random(40) * 0.5
        oracle = TIMPlus(left, right, 3, epsilon=0.2, seed=seed)
        best = best_value(oracle, left, index, 3)
        reached += oracle.value(index, oracle(index)) >= oracle.alpha * best
    assert reached >= oracle.beta * runs


def test_it_is_never_better_than_exact_and_rarely_far_from_it():
    rng = np.random.default_rng(1)
    for _ in range(5):
        left, right = random_graph(rng, 30, 50, 300)
        index = rng.random(300) * 0.5
        exact, oracle = Coverage(left, right, 3), TIMPlus(left, right, 3)
        best = exact.value(index, exact(index))
        value = oracle.value(index, oracle(index))
        assert 0.9 * best <= value <= best + 1e-12


def test_the_guarantee_is_that_of_tang_xiao_and_shi():
    oracle = TIMPlus([0, 1, 2], [0, 1, 0], k=1, epsilon=0.2, ell=2)
    assert oracle.alpha == pytest.approx(1 - 1 / math.e - 0.2)
    assert oracle.beta == pytest.approx(1 - 3 * 5**-2.0)
    assert TIMPlus([0], [0], k=1).beta == 0.0


def test_reverse_reachable_sets_have_the_right_distribution():
    rng = np.random.default_rng(0)
    left, right, p = np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([0.7, 0.2, 1.0])
    graph = influence._Graph(left, right, p, n=3, m=2, deadline=Deadline(None))
    rr = graph.sample(50_000, rng)
    # Each right node is the root of a fifth of all sets.
    assert rr.total / 50_000 == pytest.approx(2 / 5, abs=0.01)
    shares = np.diff(rr.starts) / 50_000
    np.testing.assert_allclose(shares, [0.7 / 5, (0.2 + 1.0) / 5, 0.0], atol=0.01)
    assert all(np.unique(rr.of(node)).size == rr.of(node).size for node in range(3))
    both = np.intersect1d(rr.of(0), rr.of(1)).size / 50_000
    assert both == pytest.approx(0.2 * 0.7 / 5, abs=0.005)


@pytest.mark.parametrize("chunk", [1, 1000])
def test_reverse_reachable_sets_do_not_depend_on_how_many_are_drawn_at_once(monkeypatch, chunk):
    left, right = random_graph(np.random.default_rng(0), 6, 9, 30)
    p = np.random.default_rng(1).random(30)
    graph = influence._Graph(left, right, p, n=6, m=9, deadline=Deadline(None))
    whole = graph.sample(2000, np.random.default_rng(2))
    monkeypatch.setattr(influence, "RANDOM_NUMBERS_PER_CHUNK", chunk)
    pieces = graph.sample(2000, np.random.default_rng(2))
    assert pieces.total == whole.total
    np.testing.assert_array_equal(pieces.sets, whole.sets)
    np.testing.assert_array_equal(pieces.starts, whole.starts)


def test_without_a_seed_every_call_is_the_same_and_with_one_they_go_on():
    # Forty equal nodes: the choice is a matter of the random numbers alone.
    left = right = np.arange(40)
    index = np.full(40, 0.5)
    plain, seeded = TIMPlus(left, right, 2, 0.5), TIMPlus(left, right, 2, 0.5, seed=1)
    assert len({tuple(plain(index)) for _ in range(4)}) == 1
    first = [tuple(seeded(index)) for _ in range(4)]
    assert len(set(first)) > 1
    again = TIMPlus(left, right, 2, 0.5, seed=1)
    assert [tuple(again(index)) for _ in range(4)] == first


def test_a_saved_oracle_goes_on_with_the_same_random_numbers():
    left = right = np.arange(40)
    index = np.full(40, 0.5)
    for seed in (None, 3):
        oracle = TIMPlus(left, right, 2, epsilon=0.5, seed=seed)
        oracle(index)
        loaded = loads(dumps(oracle))
        assert (loaded.alpha, loaded.beta) == (oracle.alpha, oracle.beta)
        for _ in range(4):
            assert loaded(index).tolist() == oracle(index).tolist()


def test_small_probabilities_are_told_apart():
    left, right = np.arange(6), np.zeros(6, dtype=int)
    index = np.array([0.01, 0.01, 0.08, 0.01, 0.01, 0.01])
    assert TIMPlus(left, right, 1)(index).tolist() == [2]


def test_odd_graphs():
    assert TIMPlus([], [], 2)([]).size == 0
    assert TIMPlus([4], [4], 1)([0.3]).tolist() == [0]
    assert TIMPlus([4, 5], [0, 0], 3)([0.3, 0.0]).tolist() == [0, 1]
    assert TIMPlus([4, 5, 4, 6], [0, 0, 1, 1], 2)(np.zeros(4)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0"),
        ({"epsilon": 0.7}, "epsilon must be below 1 - 1/e"),
        ({"ell": -1}, "ell must be a finite number above 0"),
        ({"k": 1.5}, "k must be an integer of at least 1; got 1.5"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(InputError, match=message):
        TIMPlus([0], [0], **{"k": 1, **options})
