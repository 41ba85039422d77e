from __future__ import annotations

import itertools
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from oclok.bench import Movies
from oclok.bench.datasets.ratings import synthetic
from oclok.bench.experiments.published.movies import (
    PublishedMovies,
    SharedNumbers,
    greedy,
    influences,
)
from oclok.bench.problems.movies import mean_outcome
from oclok.errors import OracleError

ROUNDS = 4
SMALL = Path(__file__).resolve().parents[5] / "shared/data/ml-latest-small"


@pytest.fixture(scope="module")
def ours():
    return list(Movies(ROUNDS, seed=5, oracle="exact"))


def played(**quirks):
    return list(PublishedMovies(ROUNDS, seed=5, **quirks))


def test_without_quirks_rounds_are_ours(ours):
    for mine, theirs in zip(ours, played(), strict=True):
        assert np.array_equal(mine.contexts, theirs.contexts)
        assert np.array_equal(mine.means, theirs.means)
        assert np.array_equal(mine.oracle(mine.means), theirs.oracle(theirs.means))


def test_zero_arms_are_half_of_all_and_copies_of_one_edge_that_nobody_wrote(ours):
    for mine, theirs in zip(ours, played(zero_arms=True), strict=True):
        assert len(theirs.means) == len(mine.means)
        written = len(mine.means) // 2
        assert not theirs.contexts[written:].any()
        assert not theirs.means[written:].any()
        assert not theirs.oracle.left[written:].any()
        assert not theirs.oracle.right[written:].any()
        assert np.isin(theirs.contexts[:written], mine.contexts).all()
        assert theirs.contexts[:written].all()
        # Half of the edges of the first movie are gone, not its first half.
        assert 0.3 < theirs.contexts[:written].sum() / mine.contexts.sum() < 0.7


def test_zero_arms_are_played_with_movie_0_and_never_pay():
    current = played(zero_arms=True)[0]
    edges = np.flatnonzero(current.oracle.left == 0)
    outcomes = current.play(edges, np.random.default_rng(0))
    is_written = current.contexts[edges, 0] > 0
    assert (~is_written).sum() > 400
    assert not outcomes[~is_written].any()


def test_shared_numbers_change_who_is_taken_for_whom_and_nothing_else(ours):
    for mine, theirs in zip(ours, played(shared_numbers=True), strict=True):
        assert np.array_equal(mine.contexts, theirs.contexts)
        assert isinstance(theirs.oracle, SharedNumbers)
        for nodes, others in [
            (theirs.oracle.left, mine.oracle.left),
            (theirs.oracle.right, mine.oracle.right),
        ]:
            count = len(np.unique(others))
            assert set(nodes) == set(range(count))
            pairs = np.unique(np.column_stack([nodes, others]), axis=0)
            assert len(pairs) == count  # one number each


def test_a_profile_is_that_of_the_first_round_in_which_a_user_appears():
    # An independent transcription, by dictionaries.
    ratings, ours = synthetic(), list(Movies(ROUNDS, seed=5, oracle="exact"))
    stars = {
        (movie, user): star
        for movie, user, star in zip(ratings.movies, ratings.users, ratings.stars, strict=True)
    }
    profiles, again = {}, 0
    for mine, theirs in zip(ours, played(first_profiles=True), strict=True):
        edges = list(zip(mine.oracle.left, mine.oracle.right, strict=True))
        rated = defaultdict(list)
        for movie, user in edges:
            rated[user].append((stars[movie, user] - 0.5) / 4.5 * ratings.genres[movie])
        again += len(profiles.keys() & rated.keys())
        profiles = {user: np.mean(rows, axis=0) for user, rows in rated.items()} | profiles
        expected = [profiles[user] @ ratings.genres[movie] / 10 for movie, user in edges]
        np.testing.assert_allclose(theirs.contexts[:, 0], expected)
        np.testing.assert_allclose(theirs.means, mean_outcome(np.array(expected)))
    assert again > 50


def test_a_problem_with_first_profiles_can_be_played_again():
    problem = PublishedMovies(3, seed=5, first_profiles=True)
    for first, second in zip(problem, problem, strict=True):
        assert np.array_equal(first.contexts, second.contexts)


def test_most_genres_scale_contexts_by_the_data_instead_of_by_10(ours):
    most = np.max(np.count_nonzero(synthetic().genres, axis=1))
    assert most == 7
    for mine, theirs in zip(ours, played(most_genres=True), strict=True):
        np.testing.assert_allclose(theirs.contexts, mine.contexts * 10 / 7)
        np.testing.assert_allclose(theirs.means, mean_outcome(theirs.contexts[:, 0]))


@pytest.mark.skipif(not SMALL.exists(), reason="MovieLens is not here")
@pytest.mark.filterwarnings("ignore:.*fewer users")
def test_all_quirks_work_on_movielens_where_10_genres_are_the_most():
    quirks = {"zero_arms": True, "shared_numbers": True, "first_profiles": True}
    mine, theirs = (
        list(PublishedMovies(3, seed=5, data=SMALL, most_genres=on, **quirks))
        for on in (False, True)
    )
    for without, with_ in zip(mine, theirs, strict=True):
        assert np.array_equal(without.contexts, with_.contexts)
        super_arm = with_.oracle(with_.means)
        assert with_.oracle.is_feasible(super_arm)


#: Movies 0, 1, 2 and users 0, …, 4, of whom 0, 1 and 2 are taken for the movies.
LEFT = np.array([0, 0, 1, 1, 2, 2, 0])
RIGHT = np.array([1, 3, 2, 4, 0, 4, 0])
P = np.array([0.9, 0.3, 0.8, 0.5, 0.2, 0.6, 0.7])


def reached(edges, nodes):
    """Return all nodes to which `edges` lead from `nodes`, by search."""
    found, fresh = set(nodes), list(nodes)
    while fresh:
        tail = fresh.pop()
        for a, b in edges:
            if a == tail and b not in found:
                found.add(b)
                fresh.append(b)
    return found


def influence(nodes):
    """Return the expected number of nodes reached from `nodes`: all 2^7 states of the edges."""
    total = 0.0
    for states in itertools.product([0, 1], repeat=len(P)):
        chance = np.prod(np.where(states, P, 1 - P))
        edges = [(int(a), int(b)) for a, b, live in zip(LEFT, RIGHT, states, strict=True) if live]
        total += chance * len(reached(edges, nodes))
    return total


def test_influence_runs_over_several_hops_as_counted_by_hand():
    draws = 2**15
    reach = influences(LEFT, RIGHT, P, (1,), draws)
    shares = np.unpackbits(reach.view(np.uint8), axis=2).mean(axis=2)
    for source in range(3):
        expected = influence([source])
        assert shares[:, source].sum() == pytest.approx(expected, abs=5 * 2 / np.sqrt(draws))


def test_nodes_are_chosen_greedily_by_influence():
    best = max(range(5), key=lambda node: influence([node]))
    second = max(set(range(5)) - {best}, key=lambda node: influence([best, node]))
    assert greedy(influences(LEFT, RIGHT, P, (1,)), 2) == [best, second]


def test_a_path_is_worth_more_than_direct_users_though_the_reward_counts_these_only():
    # Movie 0 leads to user 1, taken for movie 1, which leads to everyone; movie 2 to two users.
    left = np.array([0, 1, 1, 1, 2, 2])
    right = np.array([1, 3, 4, 5, 6, 7])
    oracle = SharedNumbers(left, right, k=1)
    means = np.full(6, 0.9)
    assert oracle(means).tolist() == [0]
    assert oracle.value(means, [0]) == pytest.approx(0.9)
    assert oracle.value(means, [4, 5]) == pytest.approx(1.8)


def test_an_edge_from_a_node_to_itself_changes_nothing():
    left, right = np.array([0, 0, 1, 1]), np.array([0, 2, 3, 4])
    assert SharedNumbers(left, right, k=1)([1.0, 0.9, 0.8, 0.8]).tolist() == [2, 3]


def test_the_super_arm_is_all_edges_of_the_chosen_nodes_and_the_same_each_time():
    rng = np.random.default_rng(0)
    left, right = rng.integers(8, size=60), rng.integers(20, size=60)
    left[:8], right[:20] = np.arange(8), np.arange(20)
    oracle, index = SharedNumbers(left, right, k=3, seed=4), rng.random(60)
    super_arm = oracle(index)
    assert oracle.is_feasible(super_arm)
    assert np.array_equal(super_arm, oracle(index))
    assert np.array_equal(super_arm, SharedNumbers(left, right, k=3, seed=4)(index))


def test_it_promises_nothing():
    oracle = SharedNumbers(LEFT, RIGHT, k=1)
    assert oracle.alpha == 0.0
    assert oracle.lipschitz is None
    with pytest.raises(OracleError):
        oracle([0.5])
