from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oclok.errors import InfeasibleError, InputError, OracleError
from oclok.oracles import matching
from oclok.oracles.matching import Matching
from oclok.persistence import dumps, loads

weights = st.one_of(
    st.floats(-2, 2, allow_subnormal=False), st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0])
)
edges = st.lists(st.tuples(st.integers(-2, 2), st.integers(5, 8), weights), max_size=8)
counts = st.one_of(st.none(), st.integers(1, 5))


def split(graph):
    left, right, index = zip(*graph, strict=True) if graph else ((), (), ())
    return left, right, np.array(index, dtype=float)


def is_matching(left, right, chosen):
    return all(len({ends[e] for e in chosen}) == len(chosen) for ends in (left, right))


def all_matchings(left, right, k, at_most):
    sizes = range(len(left) + 1) if k is None else range(k + 1) if at_most else [k]
    for size in sizes:
        for chosen in itertools.combinations(range(len(left)), size):
            if is_matching(left, right, chosen):
                yield chosen


@settings(max_examples=600, deadline=None)
@given(graph=edges, k=counts, at_most=st.booleans())
@example(graph=[], k=None, at_most=False)
@example(graph=[], k=2, at_most=True)
@example(graph=[(0, 5, -1.0), (1, 6, -2.0)], k=2, at_most=False)
def test_no_matching_is_heavier(graph, k, at_most):
    left, right, index = split(graph)
    at_most = at_most and k is not None
    oracle = Matching(left, right, k, at_most)
    every = list(all_matchings(left, right, k, at_most))
    if not every:
        with pytest.raises(InfeasibleError, match=f"k = {k} edges"):
            oracle(index)
        return
    super_arm = oracle(index)
    assert oracle.is_feasible(super_arm)
    assert super_arm.tolist() == sorted(super_arm.tolist())
    best = max(sum(index[list(chosen)]) for chosen in every)
    assert oracle.value(index, super_arm) == pytest.approx(best, rel=1e-12, abs=1e-12)
    if k is None or at_most:
        assert (index[super_arm] > 0).all()


@settings(max_examples=300, deadline=None)
@given(graph=edges, k=counts, at_most=st.booleans(), subset=st.sets(st.integers(0, 9)))
def test_feasible_are_the_matchings_of_allowed_size(graph, k, at_most, subset):
    left, right, _ = split(graph)
    at_most = at_most and k is not None
    oracle = Matching(left, right, k, at_most)
    expected = tuple(sorted(subset)) in set(all_matchings(left, right, k, at_most))
    assert oracle.is_feasible(sorted(subset)) == expected


@pytest.mark.parametrize(
    ("k", "at_most"), [(None, False), (60, True), (60, False), (8, False), (8, True)]
)
def test_all_solvers_agree(monkeypatch, k, at_most):
    rng = np.random.default_rng(3)
    key = np.sort(rng.choice(60 * 90, size=900, replace=False))
    index = rng.normal(size=900)
    oracle = Matching(key // 90, key % 90, k, at_most)
    values = []
    for sparse, largest in [(False, 10**6), (True, 10**6), (False, 1), (True, 1)]:
        monkeypatch.setattr(matching, "_is_sparse", lambda *_, sparse=sparse: sparse)
        monkeypatch.setattr(matching, "LARGEST_DUMMY_MATRIX", largest)
        super_arm = oracle(index)
        assert oracle.is_feasible(super_arm)
        values.append(oracle.value(index, super_arm))
    np.testing.assert_allclose(values, values[0], rtol=1e-9)


@pytest.mark.parametrize("largest", [1, 10**6])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_solver_says_when_there_are_too_few_edges(monkeypatch, sparse, largest):
    monkeypatch.setattr(matching, "_is_sparse", lambda *_: sparse)
    monkeypatch.setattr(matching, "LARGEST_DUMMY_MATRIX", largest)
    left, right = [0, 1, 2, 3, 3, 3], [0, 0, 0, 0, 1, 2]
    for k in (3, 4):
        with pytest.raises(InfeasibleError, match=f"k = {k} edges.*largest one possible has 2"):
            Matching(left, right, k)(np.ones(6))


def test_of_parallel_edges_the_best_is_taken_and_the_first_on_ties():
    oracle = Matching([1, 1, 1, 2], [7, 7, 7, 8])
    assert oracle([0.2, 0.9, 0.9, 0.1]).tolist() == [1, 3]
    assert Matching([1, 1], [7, 7], k=1)([-0.5, -0.5]).tolist() == [0]
    assert Matching([1, 1], [7, 7], k=1)([-0.5, np.nextafter(-0.5, 0)]).tolist() == [1]


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_indices_of_any_size_give_the_same_matching(scale):
    rng = np.random.default_rng(0)
    left, right = np.divmod(np.arange(49), 7)
    index = rng.normal(size=49)
    for k in (None, 3, 7):
        oracle = Matching(left, right, k)
        assert oracle(index * scale).tolist() == oracle(index).tolist()


def test_the_papers_matchings_use_every_channel():
    users, channels = np.divmod(np.arange(150), 5)
    index = np.random.default_rng(1).normal(size=150)
    super_arm = Matching(users, channels, k=5)(index)
    assert sorted(channels[super_arm]) == [0, 1, 2, 3, 4]


def test_without_a_positive_index_nothing_is_chosen_unless_it_must_be():
    assert Matching([0, 1], [0, 1])([0.0, -1.0]).size == 0
    assert Matching([0, 1], [0, 1], 2, at_most=True)([0.0, -1.0]).size == 0
    assert Matching([0, 1], [0, 1], 2)([0.0, -1.0]).tolist() == [0, 1]


def test_an_empty_graph_has_only_the_empty_matching():
    assert Matching([], [])([]).size == 0
    assert Matching([], []).is_feasible([])
    with pytest.raises(InfeasibleError, match="largest one possible has 0"):
        Matching([], [], k=1)([])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0]), "one node per base arm each; got 2 and 1"),
        (([0.5], [0]), "left must be integers or strings"),
        (([0], [[0]]), r"right must be integers or strings.*shape \(1, 1\)"),
        (([0], [0], 0), "k must be an integer of at least 1; got 0"),
        (([0], [0], None, True), "at_most needs k"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        Matching(*arguments)


def test_an_index_of_another_size_is_refused():
    with pytest.raises(OracleError, match="describes 2 base arms; got an index for 3"):
        Matching([0, 1], [0, 1])([1.0, 2.0, 3.0])


def test_a_saved_matching_chooses_the_same():
    rng = np.random.default_rng(0)
    oracle = Matching(rng.integers(-9, 9, 80), rng.integers(0, 12, 80), k=4)
    loaded = loads(dumps(oracle))
    for _ in range(5):
        index = rng.normal(size=80)
        assert loaded(index).tolist() == oracle(index).tolist()
