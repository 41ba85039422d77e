from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from oclok.bench.datasets import synthetic
from oclok.bench.experiments.published.influence import SharedNumbers
from oclok.bench.experiments.published.movies import PublishedMovies
from oclok.bench.problems import Movies
from oclok.bench.problems.movies import mean_outcome

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
    ratings, ours = synthetic.ratings(), list(Movies(ROUNDS, seed=5, oracle="exact"))
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
    most = np.max(np.count_nonzero(synthetic.ratings().genres, axis=1))
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
