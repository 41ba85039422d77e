from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kstest, norm

from oclok.bench.datasets import foursquare
from oclok.bench.problems.crowdsourcing import Crowdsourcing, mean_outcome
from oclok.errors import DataError

VENUES = Path(__file__).resolve().parents[4] / "shared/data/foursquare/TKY_venues.csv.xz"


@pytest.fixture(scope="module")
def rounds():
    return list(Crowdsourcing(rounds=400, seed=1))


def test_there_are_about_a_hundred_workers_a_round(rounds):
    counts = np.array([len(current.means) for current in rounds])
    assert counts.mean() == pytest.approx(100, abs=2)
    assert counts.var() == pytest.approx(100, rel=0.25)


def test_the_number_of_workers_always_exceeds_k():
    counts = [len(current.means) for current in Crowdsourcing(rounds=300, mean_arms=7)]
    assert min(counts) == 6


def test_difficulty_belongs_to_the_task_and_battery_to_the_worker(rounds):
    assert all(np.ptp(current.contexts[:, 1]) == 0 for current in rounds)
    assert kstest([current.contexts[0, 1] for current in rounds], "uniform").pvalue > 1e-3
    batteries = np.concatenate([current.contexts[:20, 2] for current in rounds])
    assert kstest(batteries, "uniform").pvalue > 1e-3


def test_distances_are_those_of_locations_within_reach(rounds):
    seen = np.concatenate([current.contexts[:5, 0] for current in rounds]) * np.sqrt(0.5)
    rng = np.random.default_rng(0)
    expected = []
    for _ in range(2000):
        task = rng.random(2)
        while True:
            distance = np.linalg.norm(foursquare.tokyo().sample(1, rng)[0] - task)
            if distance < np.sqrt(0.5):
                break
        expected.append(distance)
    assert seen.max() < np.sqrt(0.5)
    assert seen.mean() == pytest.approx(np.mean(expected), abs=0.02)
    assert np.std(seen) == pytest.approx(np.std(expected), abs=0.02)


def test_mean_outcomes_are_the_paper_s_formula(rounds):
    x = rounds[0].contexts
    A = np.sqrt(2 * np.pi * 0.4**2)
    expected = A * norm.pdf(x[:, 0], scale=0.4) * np.sqrt(x[:, 1] * x[:, 2])
    np.testing.assert_allclose(rounds[0].means, expected, rtol=1e-12)


def test_the_best_worker_is_close_charged_and_on_an_easy_task():
    corners = np.array([[0.0, 1.0, 1.0], [0.4, 1.0, 1.0], [0.0, 0.25, 1.0], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(mean_outcome(corners), [1.0, np.exp(-0.5), 0.5, 0.0])


def test_the_reward_is_the_log_of_one_plus_the_sum(rounds):
    assert rounds[0].reward([0, 2], [0.5, 0.75]) == pytest.approx(np.log(2.25))


@pytest.mark.parametrize("total", [-1.0, -1.5])
def test_a_sum_at_which_the_log_ends_counts_as_nothing_done(rounds, total):
    assert rounds[0].reward([0, 2], [total, 0.0]) == 0.0


def test_the_oracle_takes_the_five_best_workers(rounds):
    best = np.sort(np.argsort(-rounds[0].means)[:5])
    assert np.array_equal(rounds[0].oracle(rounds[0].means), best)
    expected = np.log1p(rounds[0].means[best].sum())
    assert rounds[0].oracle.value(rounds[0].means, best) == pytest.approx(expected)


def test_a_missing_file_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        Crowdsourcing(data=tmp_path / "none.txt")


@pytest.mark.skipif(not VENUES.exists(), reason="the Foursquare venues are not here")
def test_the_mixture_stands_for_the_real_check_ins(rounds):
    problem = Crowdsourcing(rounds=400, seed=1, data=VENUES)
    assert problem.data_name == "Foursquare TKY_venues"
    real = np.concatenate([current.contexts[:, 0] for current in problem])
    made = np.concatenate([current.contexts[:, 0] for current in rounds])
    assert made.mean() == pytest.approx(real.mean(), abs=0.02)
    assert made.std() == pytest.approx(real.std(), abs=0.02)
