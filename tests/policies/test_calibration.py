"""Residuals that are standard normal where the model is right, and a verdict where it is not."""

from __future__ import annotations

import math
import os
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest, norm
from sklearn.gaussian_process.kernels import RBF, Matern

from oclok import persistence
from oclok.oracles import TopK
from oclok.policies import UCB, OClokUCB, gp
from oclok.policies.calibration import Calibration, calibrate
from oclok.posterior import DictionaryPosterior, ExactPosterior

LENGTHSCALE, NOISE_STD, ARMS, K = 0.5, 0.1, 30, 5


@cache
def world() -> tuple[np.ndarray, np.ndarray]:
    """Return contexts (1000, 2) and a root of their covariance, to draw f with."""
    X = np.random.default_rng(7).random((1_000, 2))
    eigenvalues, Q = np.linalg.eigh(RBF(LENGTHSCALE)(X))
    return X, Q * np.sqrt(np.maximum(eigenvalues, 0))


def play(
    seed: int, lengthscale: float = 1.0, noise: float = 1.0, rounds: int = 100, late: bool = False
) -> OClokUCB:
    """Return a policy after `rounds`, with multiples of the true lengthscale and noise."""
    rng = np.random.default_rng(seed)
    X, root = world()
    f = root @ rng.standard_normal(len(X))
    policy = OClokUCB(RBF(lengthscale * LENGTHSCALE), noise * NOISE_STD, TopK(K))
    waiting = []
    for t in range(rounds):
        arms = rng.choice(len(X), ARMS, replace=False)
        decision = policy.select(X[arms])
        outcomes = f[arms[decision.super_arm]] + NOISE_STD * rng.standard_normal(K)
        waiting.append((decision, outcomes))
        if not late or t % 7 == 6:
            for index in rng.permutation(len(waiting)):
                policy.update(*waiting[index])
            waiting = []
    return policy


SEEDS = range(100, 120)


@pytest.mark.parametrize(
    ("lengthscale", "noise", "verdict"),
    [
        (5.0, 1.0, "overconfident"),
        (1.0, 0.2, "overconfident"),
        (1.0, 5.0, "underconfident"),
    ],
)
def test_a_factor_of_5_is_noticed_within_100_rounds(
    lengthscale: float, noise: float, verdict: str
) -> None:
    verdicts = [play(seed, lengthscale, noise).calibration().verdict for seed in SEEDS]
    assert np.mean([seen == verdict for seen in verdicts]) >= 0.9
    assert set(verdicts) <= {verdict, "neither"}


def test_a_lengthscale_that_is_too_short_is_never_called_overconfident() -> None:
    verdicts = {play(seed, lengthscale=0.2).calibration().verdict for seed in SEEDS}
    assert verdicts == {"underconfident", "neither"}


@pytest.mark.parametrize("late", [False, True], ids=["prompt", "late"])
def test_the_right_model_raises_few_alarms_and_has_standard_normal_residuals(late: bool) -> None:
    policies = [play(seed, late=late) for seed in SEEDS]
    calibrations = [policy.calibration() for policy in policies]
    assert np.mean([c.verdict != "neither" for c in calibrations]) <= 0.1
    residuals = np.concatenate([policy.residuals for policy in policies])
    assert kstest(residuals, "norm").pvalue > 1e-3
    assert np.corrcoef(residuals[1:], residuals[:-1])[0, 1] == pytest.approx(0, abs=0.04)
    for level in (0.5, 0.8, 0.95):
        assert np.mean([c.coverage[level] for c in calibrations]) == pytest.approx(level, abs=0.02)


@pytest.mark.parametrize("kernel", [RBF(0.5), Matern(0.5, nu=1.5)], ids=str)
def test_innovations_are_the_whitened_residuals_of_all_outcomes(kernel: Any) -> None:
    """Batch by batch they are L⁻¹y, where LLᵀ is the covariance of all outcomes."""
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 2)), rng.standard_normal(60)
    posterior, parts = ExactPosterior(kernel, 0.2), []
    for part in np.split(np.arange(60), [1, 7, 20, 40]):
        posterior.predict(np.vstack([rng.random((5, 2)), X[part]]))
        parts.append(posterior.innovations(X[part], y[part])[0])
        posterior.update(X[part], y[part])
    L = np.linalg.cholesky(kernel(X) + 0.04 * np.eye(60))
    np.testing.assert_allclose(np.concatenate(parts), np.linalg.solve(L, y), atol=1e-9)


def test_innovations_through_a_dictionary_are_the_exact_ones() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 2)), rng.standard_normal(400)
    ours, exact = DictionaryPosterior(RBF(1.0), 0.1), ExactPosterior(RBF(1.0), 0.1)
    for posterior in (ours, exact):
        posterior.update(X, y)
    assert ours.rank < 100
    x, r = rng.uniform(-0.2, 1.2, (9, 2)), rng.standard_normal(9)
    for mine, theirs in zip(ours.innovations(x, r), exact.innovations(x, r), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4)


def test_asking_for_innovations_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    posterior = DictionaryPosterior(RBF(1.0), 0.1)
    posterior.update(rng.random((300, 2)), rng.standard_normal(300))
    before = persistence.dumps(posterior)
    posterior.innovations(rng.random((4, 2)), rng.standard_normal(4))
    assert persistence.dumps(posterior) == before


def test_a_policy_judges_outcomes_by_the_innovations_of_its_posterior(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    policy, posterior = OClokUCB(RBF(0.5), 0.1), ExactPosterior(RBF(0.5), 0.1)
    z, shares = [], []
    for _ in range(20):
        X, y = rng.random((4, 2)), rng.standard_normal(4)
        for kept, seen in zip((z, shares), posterior.innovations(X, y), strict=True):
            kept.append(seen)
        policy.observe(X, y)
        posterior.update(X, y)
    judged: list[Any] = []
    monkeypatch.setattr(gp, "calibrate", lambda *given: judged.append(given))
    policy.calibration()
    np.testing.assert_allclose(judged[0][0], np.concatenate(z), atol=1e-9)
    np.testing.assert_allclose(judged[0][1], np.concatenate(shares), atol=1e-9)


def test_a_policy_judges_every_outcome_once() -> None:
    policy = OClokUCB(RBF(0.5), 0.1, TopK(3))
    rng = np.random.default_rng(0)
    assert policy.calibration().count == 0
    decision = policy.select(rng.random((8, 2)))
    policy.update(decision, [0.1, np.nan, np.nan])
    policy.update(decision, [np.nan, 0.2, 0.1])
    policy.observe(rng.random((10, 2)), rng.standard_normal(10))
    assert policy.calibration().count == 13
    again = persistence.loads(persistence.dumps(policy))
    assert isinstance(again, OClokUCB)
    assert again.calibration() == policy.calibration()


def test_too_many_outcomes_at_once_are_learned_but_not_judged() -> None:
    policy = OClokUCB(RBF(0.5), 0.1, TopK(3))
    policy.observe(np.random.default_rng(0).random((1_001, 2)), np.zeros(1_001))
    assert policy.calibration().count == 0
    assert len(policy.posterior) == 1_001


def test_without_residuals_there_is_no_verdict() -> None:
    calibration = calibrate(np.empty(0), np.empty(0))
    assert (calibration.count, calibration.verdict, calibration.p_value) == (0, "too early", 1.0)
    assert math.isnan(calibration.spread)
    assert calibration.spread_interval == (0.0, math.inf)


@pytest.mark.parametrize("n", [1, 10, 500])
def test_the_numbers_are_those_of_their_definitions(n: int) -> None:
    z = 1.2 * np.random.default_rng(n).standard_normal(n) + 0.1
    calibration = calibrate(z, np.zeros(n), levels=(0.3, 0.9))
    assert calibration.count == n
    assert calibration.mean == pytest.approx(z.mean())
    assert calibration.spread == pytest.approx(np.sqrt((z**2).mean()))
    for level in (0.3, 0.9):
        inside = np.abs(z) <= norm.ppf((1 + level) / 2)
        assert calibration.coverage[level] == pytest.approx(inside.mean())
    low, high = calibration.spread_interval
    assert low < calibration.spread < high
    assert 0 < calibration.p_value <= 1
    assert (calibration.verdict == "too early") == (n < 50)


@pytest.mark.parametrize(
    ("scale", "verdict"), [(0.5, "underconfident"), (1.0, "neither"), (2.0, "overconfident")]
)
def test_the_verdict_agrees_with_the_interval_of_the_spread(scale: float, verdict: str) -> None:
    z = norm.ppf((np.arange(200) + 0.5) / 200)
    calibration: Calibration = calibrate(scale * z / np.sqrt((z**2).mean()), np.zeros(200))
    low, high = calibration.spread_interval
    assert calibration.verdict == verdict
    assert (low <= 1 <= high) == (verdict == "neither")
    assert str(calibration).startswith(verdict)


def test_a_calibrated_model_is_hardly_ever_called_otherwise_however_often_one_looks() -> None:
    rng = np.random.default_rng(0)
    outside = 0
    for _ in range(200):
        z = rng.standard_normal(500)
        looks = (calibrate(z[:n], np.zeros(n)).spread_interval for n in range(10, 501, 10))
        outside += not all(low <= 1 <= high for low, high in looks)
    assert outside <= 0.02 * 200


def test_noise_twice_as_large_is_found_in_19_of_20() -> None:
    verdicts = [play(seed, noise=0.5).calibration().verdict for seed in SEEDS]
    assert verdicts.count("overconfident") >= 19


def test_where_the_data_contradict_the_model_there_is_no_regret_to_believe() -> None:
    regret = play(0, noise=0.2).regret()
    assert math.isnan(regret.median)
    assert math.isnan(regret.upper)
    assert "not known, as the data contradict the model" in str(regret)
    assert play(0, rounds=30).regret().median > 0


@pytest.mark.parametrize("kind", ["normal", "clicks", "counts"])
def test_the_default_model_raises_no_alarm_whatever_outcomes_are(kind: str) -> None:
    alarms = 0
    runs = int(os.environ.get("OCLOK_RUNS", "6"))  # 100 for figures to quote
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        policy = UCB(width=1.0, oracle=TopK(5))
        for _ in range(30):
            decision = policy.select(rng.random((20, 2)))
            f = np.sin(4 * decision.contexts[:, 0]) + decision.contexts[:, 1]
            draws = {
                "normal": f + rng.normal(0, 0.3, 5),
                "clicks": (rng.random(5) < 1 / (1 + np.exp(1 - 2 * f))).astype(float),
                "counts": rng.poisson(np.exp(f)).astype(float),
            }
            policy.update(decision, draws[kind])
        alarms += policy.calibration().verdict != "neither"
    print(f"{kind}: {alarms} alarms in {runs} runs")
    assert alarms <= 0.02 * runs


def test_residuals_in_which_f_has_a_share_weigh_more_in_the_second_test() -> None:
    z = norm.ppf((np.arange(400) + 0.5) / 400)
    odd = np.abs(np.arange(400) - 200) < 20  # the smallest of all: not odd unless they weigh more
    assert calibrate(z, np.where(odd, 0.9, 1e-4)).verdict == "underconfident"
    assert calibrate(z, np.zeros(400)).verdict == "neither"


def test_it_says_in_words_what_was_found():
    z = np.random.default_rng(0).normal(size=400)
    assert str(calibrate(z, np.ones(400))).startswith("neither over- nor underconfident (p = ")
    assert str(calibrate(3 * z, np.ones(400))).startswith("overconfident (p = ")
    assert str(calibrate(z[:12], z[:12])) == "too early: 12 of 50 outcomes"
