from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from oclok.bench.datasets.ratings import synthetic
from oclok.bench.problems.movies import Movies, mean_outcome
from oclok.errors import InputError
from oclok.oracles import Coverage, TIMPlus

SMALL = Path(__file__).resolve().parents[4] / "shared/data/ml-latest-small"
needs_small = pytest.mark.skipif(not SMALL.exists(), reason="MovieLens is not here")


@pytest.fixture(scope="module")
def rounds():
    return list(Movies(rounds=60, seed=4, oracle="exact"))


def test_rounds_have_about_75_movies_200_users_and_1500_edges(rounds):
    movies = [len(np.unique(current.oracle.left)) for current in rounds]
    users = [len(np.unique(current.oracle.right)) for current in rounds]
    assert np.mean(movies) == pytest.approx(73, abs=4)
    assert np.mean(users) == pytest.approx(200, abs=8)
    assert np.mean([len(current.means) for current in rounds]) == pytest.approx(1500, rel=0.15)


def test_a_round_has_no_edge_twice(rounds):
    for current in rounds:
        pairs = np.column_stack([current.oracle.left, current.oracle.right])
        assert len(np.unique(pairs, axis=0)) == len(pairs)


def test_contexts_are_those_of_ratings_that_exist(rounds):
    # An independent transcription: every x_ij there is, from dense matrices.
    ratings = synthetic()
    weights = np.zeros((ratings.users.max() + 1, len(ratings.genres)))
    weights[ratings.users, ratings.movies] = (ratings.stars.astype(float) - 0.5) / 4.5
    profiles = weights @ ratings.genres / np.bincount(ratings.users)[:, None]
    possible = (profiles @ ratings.genres.T / 10)[ratings.users, ratings.movies]
    possible = np.sort(possible)
    seen = rounds[0].contexts[:, 0]
    above = np.clip(np.searchsorted(possible, seen), 1, possible.size - 1)
    gaps = np.minimum(np.abs(possible[above] - seen), np.abs(possible[above - 1] - seen))
    assert gaps.max() < 1e-12


def test_mean_outcomes_are_the_paper_s_formula(rounds):
    x = rounds[0].contexts[:, 0]
    np.testing.assert_allclose(rounds[0].means, 2 / (1 + np.exp(-4 * x)) - 1, rtol=1e-12)
    np.testing.assert_allclose(mean_outcome(np.array([0.0, 0.25])), [0.0, 2 / (1 + np.e**-1) - 1])


def test_the_reward_is_the_number_of_users_who_watched_a_movie(rounds):
    current = rounds[0]
    super_arm = current.oracle(current.means)
    outcomes = current.play(super_arm, np.random.default_rng(0))
    watched = {u for u, r in zip(current.oracle.right[super_arm], outcomes, strict=True) if r}
    assert 0 < len(watched) < outcomes.sum() + 1
    assert current.reward(super_arm, outcomes) == pytest.approx(len(watched))


def test_rewards_average_to_the_expected_reward(rounds):
    current = rounds[0]
    super_arm = current.oracle(current.means)
    rng = np.random.default_rng(0)
    rewards = [current.reward(super_arm, current.play(super_arm, rng)) for _ in range(2000)]
    expected = current.oracle.value(current.means, super_arm)
    assert np.mean(rewards) == pytest.approx(expected, abs=5 * np.std(rewards) / np.sqrt(2000))


def test_the_oracle_can_be_chosen_and_changes_nothing_else():
    exact, greedy, tim = (
        next(iter(Movies(oracle=name, seed=9))) for name in ("exact", "greedy", "tim+")
    )
    assert np.array_equal(exact.contexts, greedy.contexts)
    assert np.array_equal(exact.contexts, tim.contexts)
    assert isinstance(greedy.oracle, Coverage)
    assert isinstance(tim.oracle, TIMPlus)
    assert exact.oracle.alpha == 1.0
    assert greedy.oracle.alpha == pytest.approx(1 - 1 / np.e)


def test_every_round_knows_its_best_super_arm_whichever_oracle_it_has():
    for name in ("exact", "greedy"):
        for current in Movies(rounds=3, oracle=name):
            best = current.oracle.value(current.means, current.exact(current.means))
            assert current.oracle.value(current.means, current.oracle(current.means)) <= best + 1e-9


def test_an_unknown_oracle_is_refused():
    with pytest.raises(InputError, match="oracle must be"):
        Movies(oracle="magic")


@pytest.mark.parametrize("mean_users", [2000, 995])
def test_a_shortage_of_users_is_said_once_and_noted(mean_users):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        problem = Movies(rounds=5, oracle="greedy", mean_users=mean_users)
        rounds = list(problem)
    assert [warning.category for warning in caught] == [UserWarning]
    assert "fewer users" in str(caught[0].message)
    assert "fewer users" in problem.notes
    assert all(len(np.unique(current.oracle.right)) <= 1000 for current in rounds)


def test_enough_users_are_no_cause_for_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = Movies(rounds=20, oracle="greedy")
        list(problem)
    assert problem.notes == ""


@needs_small
def test_a_small_data_set_gives_the_users_it_has():
    with pytest.warns(UserWarning, match="39, for one"):
        problem = Movies(rounds=20, oracle="greedy", data=SMALL)
    assert problem.data_name == "MovieLens ml-latest-small"
    assert all(len(np.unique(current.oracle.right)) <= 39 for current in problem)
