from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from oclok.bench.problems.channels import Channels, mean_outcome
from oclok.errors import InputError


@pytest.fixture(scope="module")
def rounds():
    return list(Channels(rounds=200, seed=2))


def test_there_are_about_twenty_users_and_always_five_channels(rounds):
    users = [len(np.unique(current.oracle.left)) for current in rounds]
    assert np.mean(users) == pytest.approx(20, abs=1)
    assert all(len(np.unique(current.oracle.right)) == 5 for current in rounds)


def test_users_lack_one_channel_in_five(rounds):
    edges = sum(len(current.means) for current in rounds)
    users = sum(current.oracle.left.max() + 1 for current in rounds)
    assert edges / (5 * users) == pytest.approx(0.8, abs=0.02)


def test_all_channels_can_be_given_away_even_with_few_users():
    for current in Channels(rounds=200, mean_users=5):
        super_arm = current.oracle(current.means)
        assert super_arm.size == 5
        assert len(set(current.oracle.left[super_arm])) == 5


def test_the_oracle_finds_the_best_matching(rounds):
    for current in rounds[:20]:
        weights = np.full((current.oracle.left.max() + 1, 5), -1e6)
        weights[current.oracle.left, current.oracle.right] = current.means
        best = weights[linear_sum_assignment(weights, maximize=True)].sum()
        value = current.oracle.value(current.means, current.oracle(current.means))
        assert value == pytest.approx(best)


def test_distance_belongs_to_the_user_and_frequency_to_the_channel(rounds):
    current = rounds[0]
    for user in np.unique(current.oracle.left):
        assert np.ptp(current.contexts[current.oracle.left == user, 0]) == 0
    expected = np.linspace(0, 1, 5)[current.oracle.right]
    assert np.array_equal(current.contexts[:, 1], expected)


def test_rates_fall_with_distance_frequency_and_interference(rounds):
    grid = np.linspace(0, 1, 21)
    for column in range(3):
        contexts = np.full((21, 3), 0.5)
        contexts[:, column] = grid
        assert (np.diff(mean_outcome(contexts)) < 0).all()
    assert mean_outcome(np.zeros((1, 3)))[0] == 1.0
    assert mean_outcome(np.ones((1, 3)))[0] > 0.0


def test_no_channels_are_refused():
    with pytest.raises(InputError, match="k must be"):
        Channels(k=0)
