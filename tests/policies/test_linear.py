from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import DotProduct
from sklearn.linear_model import Ridge

from oclok.errors import InputError, NumericalError
from oclok.oracles import TopK
from oclok.persistence import dumps
from oclok.policies import C2UCB, LinearThompson
from oclok.policies.linear import LinearRegression, with_constant
from oclok.posterior import ExactPosterior


def data(seed: int = 0, n: int = 60, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("penalty", [1e-4, 1.0, 30.0])
def test_the_mean_is_ridge_regression_however_the_data_are_split(penalty):
    X, y = data()
    regression = LinearRegression(4, penalty)
    for part in np.split(np.arange(60), [1, 2, 20, 45]):
        regression.update(X[part], y[part])
    judge = Ridge(alpha=penalty, fit_intercept=False).fit(X, y)
    new, _ = data(1)
    np.testing.assert_allclose(regression.mean(new), judge.predict(new), rtol=1e-9, atol=1e-12)


def test_widths_and_samples_are_those_of_the_dense_formula():
    X, y = data()
    regression = LinearRegression(4, 0.7)
    regression.update(X, y)
    inverse = np.linalg.inv(0.7 * np.eye(4) + X.T @ X)
    new, _ = data(2, n=6)
    covariance = new @ inverse @ new.T
    np.testing.assert_allclose(regression.width(new), np.sqrt(np.diag(covariance)), rtol=1e-10)
    rng = np.random.default_rng(0)
    samples = np.array([regression.sample(new, 0.5, rng) for _ in range(20_000)])
    np.testing.assert_allclose(np.cov(samples.T), 0.25 * covariance, atol=4e-4)
    np.testing.assert_allclose(samples.mean(axis=0), regression.mean(new), atol=2e-3)


def test_a_failed_update_changes_nothing():
    X, y = data()
    regression = LinearRegression(4, 1.0)
    regression.update(X, y)
    before = dumps(regression)
    with np.errstate(all="ignore"), pytest.raises(NumericalError):
        regression.update(np.full((1, 4), 1e200), np.array([1.0]))
    assert dumps(regression) == before


def test_a_constant_is_appended():
    np.testing.assert_array_equal(with_constant(np.array([[2.0], [3.0]])), [[2, 1], [3, 1]])


def test_every_index_of_c2ucb_is_that_of_the_paper_from_closed_form_ridge_regression():
    rng = np.random.default_rng(0)
    width, penalty = 0.8, 2.0
    policy = C2UCB(TopK(3), width=width, penalty=penalty)
    X, y = np.empty((0, 3)), np.empty(0)
    for _ in range(60):
        contexts = rng.normal(size=(9, 2))
        features = np.column_stack([contexts, np.ones(9)])
        inverse = np.linalg.inv(penalty * np.eye(3) + X.T @ X)
        bonus = width * np.sqrt(np.diag(features @ inverse @ features.T))
        mean = np.zeros(9)
        if len(y):
            mean = Ridge(alpha=penalty, fit_intercept=False).fit(X, y).predict(features)
        np.testing.assert_allclose(policy.index(contexts), mean + bonus, rtol=1e-9, atol=1e-12)
        decision = policy.select(contexts)
        assert decision.super_arm.tolist() == sorted(np.argsort(-(mean + bonus))[:3])
        outcomes = decision.contexts @ [1.0, -2.0] + 0.5 + 0.1 * rng.normal(size=3)
        policy.update(decision, outcomes)
        X, y = np.vstack([X, features[decision.super_arm]]), np.append(y, outcomes)


def test_c2ucb_finds_the_best_arms_of_a_linear_world():
    rng = np.random.default_rng(1)
    policy, regret, by_chance = C2UCB(TopK(5)), [], []
    for _ in range(150):
        contexts = rng.random((40, 3))
        means = contexts @ [1.0, -1.0, 0.5]
        decision = policy.select(contexts)
        policy.update(decision, means[decision.super_arm] + 0.1 * rng.normal(size=5))
        best = np.sort(means)[-5:].sum()
        regret.append(best - means[decision.super_arm].sum())
        by_chance.append(best - 5 * means.mean())
    assert np.sum(regret[-30:]) < 0.05 * np.sum(by_chance[-30:])


@pytest.mark.parametrize("wrong", [{"width": 0.0}, {"penalty": -1.0}, {"width": "wide"}])
def test_wrong_arguments_of_c2ucb_are_named(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        C2UCB(**wrong)


def test_the_belief_of_thompson_sampling_is_that_of_a_gaussian_process_with_a_linear_kernel():
    rng = np.random.default_rng(0)
    policy = LinearThompson(0.2, TopK(3), seed=0)
    judge = ExactPosterior(DotProduct(sigma_0=1.0), 0.2)
    for _ in range(40):
        contexts = rng.normal(size=(8, 3))
        decision = policy.select(contexts)
        mean, std = judge.predict(decision.contexts)
        np.testing.assert_allclose(decision.mean, mean, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(decision.std, std, rtol=1e-6)
        outcomes = rng.normal(size=3)
        policy.update(decision, outcomes)
        judge.update(decision.contexts, outcomes)


def test_indices_are_joint_samples_of_the_posterior():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(10, 2)), rng.normal(size=10)
    contexts = rng.normal(size=(5, 2))
    policy = LinearThompson(0.5, TopK(5), prior_std=2.0, seed=0)
    policy.observe(X, y)
    drawn = np.array([policy.select(contexts).index for _ in range(4_000)])
    judge = ExactPosterior(4.0 * DotProduct(sigma_0=1.0), 0.5)
    judge.update(X, y)
    mean, _ = judge.predict(contexts)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(drawn.T), judge.covariance(contexts), atol=0.03)


def test_samples_of_one_round_share_their_weights():
    policy = LinearThompson(0.5, TopK(1), seed=3)
    index = policy.index([[0.0], [1.0], [2.0], [3.0]])
    np.testing.assert_allclose(np.diff(index, 2), 0, atol=1e-12)


@pytest.mark.parametrize("wrong", [{"noise_std": 0.0}, {"noise_std": 0.1, "prior_std": -1}])
def test_wrong_arguments_of_thompson_sampling_are_named(wrong):
    with pytest.raises(InputError, match=list(wrong)[-1]):
        LinearThompson(**wrong)
