from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm
from sklearn.gaussian_process.kernels import RBF, Matern

from oclok.oracles import TopK
from oclok.persistence import dumps
from oclok.policies import ThompsonSampling
from oclok.posterior import (
    DictionaryPosterior,
    ExactPosterior,
    ForgettingPosterior,
    Posterior,
    SparsePosterior,
)
from oclok.testing import check_policy

POSTERIORS: dict[str, Callable[[Any], Posterior]] = {
    "exact": lambda kernel: ExactPosterior(kernel, 0.1),
    "sparse": lambda kernel: SparsePosterior(kernel, 0.1, inducing=12, seed=0),
    "dictionary": lambda kernel: DictionaryPosterior(kernel, 0.1),
    "forgetting": lambda kernel: ForgettingPosterior(DictionaryPosterior(kernel, 0.1), window=300),
}


@pytest.fixture(params=POSTERIORS)
def posterior(request: pytest.FixtureRequest) -> Posterior:
    """A posterior that knows a good deal; with a dictionary where it may have one."""
    rng = np.random.default_rng(0)
    made = POSTERIORS[request.param](RBF(0.5))
    X = 0.5 * rng.random((260, 2))
    made.update(X, np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(260))
    return made


def samples(posterior: Posterior, X: np.ndarray, count: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([posterior.sample(X, rng) for _ in range(count)])


def assert_distributed(drawn: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> None:
    """Assert that rows of `drawn` come from N(mean, covariance), within 5 standard errors."""
    count = len(drawn)
    variance = np.maximum(np.diag(covariance), 0.0)
    allowed = 5 * np.sqrt(variance / count) + 1e-7
    assert (np.abs(drawn.mean(axis=0) - mean) <= allowed).all()
    seen = (drawn - mean).T @ (drawn - mean) / count
    allowed = 5 * np.sqrt((np.outer(variance, variance) + covariance**2) / count) + 1e-7
    assert (np.abs(seen - covariance) <= allowed).all()


def test_samples_near_the_data_have_the_posteriors_mean_and_covariance(
    posterior: Posterior,
) -> None:
    X = 0.5 * np.random.default_rng(2).random((15, 2))
    drawn = samples(posterior, X, 600)
    assert_distributed(drawn, posterior.predict(X).mean, posterior.covariance(X))


def test_samples_at_arms_unlike_any_before_do_so_too(posterior: Posterior) -> None:
    X = np.random.default_rng(3).uniform(0.0, 4.0, (15, 2))
    assert posterior.predict(X).std.max() > 0.9
    drawn = samples(posterior, X, 600)
    assert_distributed(drawn, posterior.predict(X).mean, posterior.covariance(X))


@pytest.mark.parametrize("spread", [1e-4, 1.0])
def test_samples_at_a_thousand_nearly_equal_arms_do_so_too(
    posterior: Posterior, spread: float
) -> None:
    X = 0.2 + spread * 0.3 * np.random.default_rng(4).random((1000, 2))
    some = np.arange(0, 1000, 50)
    drawn = samples(posterior, X, 25)
    assert np.isfinite(drawn).all()
    covariance = posterior.covariance(X[some])
    assert_distributed(drawn[:, some], posterior.predict(X[some]).mean, covariance)


@pytest.mark.parametrize("name", POSTERIORS)
def test_samples_of_the_prior_are_jointly_normal(name: str) -> None:
    posterior = POSTERIORS[name](2.0 * Matern(0.4, nu=1.5))
    X = np.random.default_rng(5).random((25, 2))
    drawn = samples(posterior, X, 300)
    whitened = np.linalg.solve(np.linalg.cholesky(posterior.covariance(X)), drawn.T)
    assert kstest(whitened.ravel(), "norm").pvalue > 1e-3
    assert kstest((whitened**2).sum(axis=0), chi2(25).cdf).pvalue > 1e-3


def test_equal_arms_have_equal_samples() -> None:
    posterior = ExactPosterior(RBF(0.5), 0.1)
    X = np.repeat(np.random.default_rng(6).random((4, 2)), 3, axis=0)
    posterior.update(X[:6], np.ones(6))
    sample = posterior.sample(X, np.random.default_rng(0)).reshape(4, 3)
    np.testing.assert_allclose(sample, sample[:, :1] + np.zeros(3), atol=1e-6)


def test_a_sample_depends_on_the_generator_alone(posterior: Posterior) -> None:
    X = np.random.default_rng(7).random((10, 2))
    first, second = (posterior.sample(X, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, posterior.sample(X, np.random.default_rng(4)))


def play(policy: ThompsonSampling, rounds: int, ask: bool = False) -> list[list[int]]:
    rng = np.random.default_rng(8)
    super_arms = []
    for _ in range(rounds):
        contexts = rng.random((15, 2))
        if ask:
            policy.index(contexts)
        decision = policy.select(contexts)
        policy.update(decision, np.sin(5 * decision.contexts[:, 0]))
        super_arms.append(decision.super_arm.tolist())
    return super_arms


def test_the_same_seed_gives_the_same_decisions_and_another_gives_others() -> None:
    first, second, other = (
        play(ThompsonSampling(RBF(0.5), 0.1, TopK(3), seed=seed), 60) for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other


def test_asking_for_the_index_changes_nothing() -> None:
    asked, silent = (ThompsonSampling(RBF(0.5), 0.1, TopK(3), seed=1) for _ in range(2))
    assert play(asked, 60, ask=True) == play(silent, 60)
    assert dumps(asked) == dumps(silent)


def test_the_index_is_a_sample_and_a_new_one_each_round() -> None:
    policy = ThompsonSampling(RBF(0.5), 0.1, TopK(1), seed=1)
    contexts = np.random.default_rng(9).random((30, 2))
    drawn = []
    for _ in range(200):
        drawn.append(policy.index(contexts))
        policy.discard(policy.select(contexts))
    assert_distributed(np.array(drawn), np.zeros(30), RBF(0.5)(contexts))


def test_it_plays_an_arm_as_often_as_it_is_likely_to_be_best() -> None:
    policy = ThompsonSampling(RBF(0.1), 0.5, TopK(1), seed=1)
    policy.observe([[0.0], [9.0]], [0.5, 0.0])
    played = []
    for _ in range(600):
        decision = policy.select([[0.0], [9.0]])
        played.append(decision.super_arm[0])
        policy.discard(decision)
    mean, std = policy.posterior.predict([[0.0], [9.0]])
    likely = norm.cdf((mean[0] - mean[1]) / np.hypot(*std))
    error = np.sqrt(likely * (1 - likely) / 600)
    assert np.mean(np.array(played) == 0) == pytest.approx(likely, abs=4 * error)


@pytest.mark.parametrize("name", POSTERIORS)
def test_it_conforms(name: str) -> None:
    check_policy(
        lambda: ThompsonSampling(posterior=POSTERIORS[name](RBF(0.5)), oracle=TopK(3), seed=1)
    )
