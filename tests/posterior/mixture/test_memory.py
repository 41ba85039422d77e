"""What stays with contexts that return, judged by dense Gaussian processes with such an effect."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from oclok.posterior import MixturePosterior
from oclok.posterior.mixture.memory import SHARES, Memory, Recalled, keys


def test_equal_contexts_have_equal_keys():
    first, second, third = keys(np.array([[0.0, 1.0], [-0.0, 1.0], [1e-300, 1.0]]))
    assert first == second != third


def test_weight_and_mean_of_what_was_seen_are_recalled():
    memory, X = Memory(), np.array([[1.0], [2.0], [1.0]])
    before = memory.add(X, np.array([3.0, 9.0, 6.0]), np.array([1.0, 1.0, 2.0]))
    assert before.tolist() == [0.0, 0.0, 1.0]
    weight, mean = memory.recall(np.array([[1.0], [5.0]]))
    assert weight.tolist() == [3.0, 0.0]
    assert mean.tolist() == [5.0, 0.0]
    memory.correct(X[:1], np.array([3.0]), np.array([1.0]))
    memory.discount(0.5)
    weight, mean = memory.recall(X[:1])
    assert (weight[0], mean[0]) == (1.5, 6.0)


@pytest.mark.parametrize("share", [0.2, 0.95])
def test_mean_and_variance_are_those_of_a_gaussian_process_with_an_effect_of_each_context(share):
    """k(x, x') = RBF + A 1{x = x'}, with noise ρ: f at a context that was seen n times."""
    rng = np.random.default_rng(0)
    distinct = rng.random((8, 1))
    seen = np.repeat(np.arange(8), [1, 2, 3, 1, 2, 1, 1, 4])
    X, y, total = distinct[seen], rng.standard_normal(len(seen)), 0.5
    A, noise = share * total, (1 - share) * total
    kernel = ConstantKernel(2.0) * RBF(0.3)
    is_same = seen[:, None] == seen
    K, at = kernel(X) + A * is_same + noise * np.eye(len(y)), kernel(distinct, X)
    at_f = at + A * (np.arange(8)[:, None] == seen)
    mean = at_f @ np.linalg.solve(K, y)
    variance = 2.0 + A - np.einsum("ij,ji->i", at_f, np.linalg.solve(K, at_f.T))
    g = at @ np.linalg.solve(K, y)
    g_variance = 2.0 - np.einsum("ij,ji->i", at, np.linalg.solve(K, at.T))
    memory = Memory()
    memory.evidence = np.where(share == SHARES, 0.0, -1.0)
    memory.add(X, y, np.ones(len(y)))
    recalled = memory.recall(distinct)
    s, own = memory.kept(recalled, np.zeros(8), total)
    np.testing.assert_allclose((1 - s) * g + s * recalled.mean, mean, atol=1e-10)
    np.testing.assert_allclose((1 - s) ** 2 * g_variance + own, variance, atol=1e-10)
    alpha = A + noise / recalled.weight  # n outcomes are one of this variance
    judge = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None)
    np.testing.assert_allclose(judge.fit(distinct, recalled.mean).predict(distinct), g, atol=1e-10)
    worth = memory.weights(np.array([0.0, 1.0, 2.0, 3.0]))
    np.testing.assert_allclose(
        np.cumsum(worth), [1 / (share + (1 - share) / n) for n in range(1, 5)]
    )


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_the_share_that_stays_is_learned_from_contexts_that_return(share):
    rng = np.random.default_rng(1)
    memory = Memory()
    effect = np.sqrt(share) * rng.standard_normal(300)
    nothing = np.zeros(300)
    total, count = nothing.copy(), 0
    for _ in range(4):
        y = effect + np.sqrt(1 - share) * rng.standard_normal(300)
        recalled = Recalled(np.full(300, float(count)), total / max(count, 1))
        memory.judge(y, nothing, nothing, nothing, np.ones(300), recalled)
        total, count = total + y, count + 1
    assert memory.share == share


@pytest.mark.parametrize("stays", [False, True])
def test_rare_ones_among_zeros_stay_only_if_they_return(stays):
    rng = np.random.default_rng(2)
    memory, kept, total = Memory(), rng.random(400) < 0.05, np.zeros(400)
    m = np.full(400, 0.05)
    for count in range(5):
        y = (kept if stays else rng.random(400) < 0.05).astype(float)
        recalled = Recalled(np.full(400, float(count)), total / max(count, 1))
        memory.judge(y, m, np.zeros(400), np.zeros(400), m * (1 - m), recalled, (0.0, 1.0))
        total += y
    assert (memory.share > 0.9) if stays else (memory.share < 0.1)


def test_nothing_stays_before_a_context_returns():
    memory = Memory()
    memory.judge(np.ones(9), *(np.zeros(9),) * 3, np.ones(9), Recalled(np.zeros(9), np.zeros(9)))
    assert memory.share == 0.0


def test_rows_that_return_with_the_same_outcome_are_known_and_others_are_not():
    rng = np.random.default_rng(0)
    rows, labels = rng.random((60, 4)), rng.standard_normal(60)
    posterior = MixturePosterior()
    shown: list[int] = []
    for _ in range(40):
        drawn = rng.choice(50, 5, replace=False)
        posterior.update(rows[drawn], labels[drawn])
        shown += drawn.tolist()
    mean, std = posterior.predict(rows)
    seen = np.isin(np.arange(60), shown)
    assert np.abs(mean - labels)[seen].max() < 0.2
    assert std[seen].max() < 0.3 < std[50:].min()
    C = posterior.covariance(rows[[50, 50, 51]])
    assert C[0, 1] == pytest.approx(C[0, 0]) != pytest.approx(C[0, 2])


def test_arms_that_return_say_nothing_of_how_far_unknown_arms_are_from_the_mean():
    """Ten of 400 arms with an effect of variance 1 are played a hundred times each."""
    rng = np.random.default_rng(0)
    X, f = rng.random((400, 4)), rng.standard_normal(400)
    posterior = MixturePosterior()
    posterior.update(X[:100], f[:100] + 0.1 * rng.standard_normal(100))
    for _ in range(100):
        posterior.update(X[:10], f[:10] + 0.1 * rng.standard_normal(10))
    mean, std = posterior.predict(X[100:])
    assert np.sqrt(np.mean((f[100:] - mean) ** 2 / std**2)) == pytest.approx(1.0, abs=0.25)
    assert posterior.noise_std == pytest.approx(0.1, rel=0.5)
