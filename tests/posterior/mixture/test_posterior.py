"""The mixture against dense sums over members and a grid of scales, by scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import invgamma
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from oclok.errors import InputError
from oclok.oracles import TopK
from oclok.persistence import dumps, loads
from oclok.policies import UCB
from oclok.posterior import ForgettingPosterior, MixturePosterior
from oclok.posterior.mixture.members import RATE, SHAPE
from oclok.testing import check_posterior

KERNELS = [RBF(0.3) + 1.0, RBF(1.0) + 1.0, DotProduct(1.0) ** 2]
RATIOS = (0.01, 0.2)


def data(n=16, dimension=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, dimension))
    return X, 3 + np.sin(4 * X[:, 0]) + 0.2 * rng.standard_normal(n), rng.random((7, dimension))


def dense(X, y, x, kernels=KERNELS, ratios=RATIOS):
    """Weights of all members, and mean and covariance at x, by sums over a grid of scales."""
    y, offset = y - y.mean(), y.mean()
    grid = np.exp(np.linspace(math.log(y.var()) - 9, math.log(y.var()) + 9, 90))
    prior = invgamma(SHAPE, scale=RATE * y.var())
    log_evidence, means, covariances = [], [], []
    for kernel in kernels:
        for ratio in ratios:
            model = GaussianProcessRegressor(kernel, alpha=ratio, optimizer=None).fit(X, y)
            log_p = []
            for scale in grid:
                one = GaussianProcessRegressor(scale * kernel, alpha=scale * ratio, optimizer=None)
                log_p.append(one.fit(X, y).log_marginal_likelihood_value_)
            log_p = np.array(log_p) + prior.logpdf(grid) + np.log(grid)
            p = np.exp(log_p - log_p.max())
            log_evidence.append(log_p.max() + np.log(p.sum()))
            mean, covariance = model.predict(x, return_cov=True)
            means.append(mean)
            covariances.append(covariance * (p @ grid) / p.sum())
    weights = np.exp(np.array(log_evidence) - max(log_evidence))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    spread = sum(
        w * (c + np.outer(m - mean, m - mean))
        for w, m, c in zip(weights, means, covariances, strict=True)
    )
    return weights, mean + offset, spread


def test_weights_mean_std_and_covariance_are_those_of_a_dense_mixture():
    X, y, x = data()
    posterior = MixturePosterior(KERNELS, RATIOS)
    posterior.update(X, y)
    weights, mean, covariance = dense(X, y, x)
    found = np.array([weight for weight, _, _ in posterior.members])
    np.testing.assert_allclose(found, np.sort(weights)[::-1], rtol=1e-4, atol=1e-8)
    assert found[1] > 0.01  # or it would not be a test of a mixture
    prediction = posterior.predict(x)
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-5)
    np.testing.assert_allclose(prediction.std, np.sqrt(np.diag(covariance)), rtol=1e-4)
    np.testing.assert_allclose(posterior.covariance(x), covariance, rtol=1e-3, atol=1e-5)


def test_of_given_kernels_those_stay_that_may_be_right():
    X = np.random.default_rng(0).random((100, 1))
    posterior = MixturePosterior([RBF(0.05), RBF(3.0)], [0.05, 9.0])
    posterior.update(X, np.sin(30 * X[:, 0]))
    (weight, kernel, _), *others = posterior.members
    assert not others
    assert weight == 1.0
    assert kernel.k2.length_scale == 0.05


def test_outcomes_one_by_one_give_what_outcomes_at_once_give():
    """Up to the constant, which is that of the first update: a wide prior makes up for it."""
    X, y, x = data()
    one = MixturePosterior([kernel + 100.0 for kernel in KERNELS], RATIOS)
    for row, outcome in zip(X, y, strict=True):
        one.update(row[None], [outcome])
    whole = MixturePosterior([kernel + 100.0 for kernel in KERNELS], RATIOS)
    whole.update(X, y)
    np.testing.assert_allclose(one.predict(x).mean, whole.predict(x).mean, atol=2e-3)
    np.testing.assert_allclose(one.predict(x).std, whole.predict(x).std, rtol=2e-2)


def test_samples_have_the_mean_and_covariance_of_the_mixture():
    X, y, x = data()
    posterior = MixturePosterior(KERNELS, RATIOS)
    posterior.update(X, y)
    rng = np.random.default_rng(0)
    samples = np.array([posterior.sample(x, rng) for _ in range(500)])
    mean, std = posterior.predict(x)
    assert (np.abs(samples.mean(axis=0) - mean) < 5 * std / math.sqrt(500)).all()
    off = np.cov(samples.T) - posterior.covariance(x)
    assert (np.abs(off) < 0.35 * np.outer(std, std)).all()


def test_innovations_are_standard_normal_numbers_where_the_kernel_is_among_the_members():
    rng = np.random.default_rng(1)
    X = rng.random((200, 2))
    K = 4 * RBF(0.3)(X) + 1e-9 * np.eye(200)
    y = np.linalg.cholesky(K) @ rng.standard_normal(200) + 0.2 * rng.standard_normal(200)
    posterior = MixturePosterior(KERNELS, RATIOS)
    z = [posterior.learn(X[i : i + 10], y[i : i + 10])[0] for i in range(0, 200, 10)]
    assert len(z[0]) == 0
    assert 0.85 < np.concatenate(z).std() < 1.15
    assert posterior.noise_std == pytest.approx(0.2, rel=0.3)


@pytest.mark.parametrize("kernels", [None, KERNELS], ids=["default", "given"])
def test_it_is_a_posterior(kernels):
    check_posterior(lambda: MixturePosterior(kernels), exact=False, one_kernel=False)


def play(change_outcomes=lambda y: y, change_contexts=lambda X: X, rounds=25, seed=0):
    """Super arms of the default policy, after outcomes or contexts were changed."""
    rng = np.random.default_rng(seed)
    policy, chosen = UCB(oracle=TopK(3)), []
    for _ in range(rounds):
        X, noise = rng.random((30, 5)), 0.1 * rng.standard_normal(30)
        X[:, 3], X[:, 4] = 0.5, rng.random()
        y = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 4] + noise
        decision = policy.select(change_contexts(X))
        policy.update(decision, change_outcomes(y[decision.super_arm]))
        chosen.append(decision.super_arm)
    return np.array(chosen)


PLAIN: dict[str, np.ndarray] = {}


@pytest.mark.parametrize(
    "change",
    [
        {"change_outcomes": lambda y: 1024 * y},
        {"change_outcomes": lambda y: y / 1024},
        {"change_contexts": lambda X: 2**20 * X},
        {"change_contexts": lambda X: X / 2**20},
        {"change_contexts": lambda X: X * 2.0 ** np.array([20, -20, 0, 3, 10])},
    ],
    ids=["×1024", "÷1024", "contexts ×2²⁰", "contexts ÷2²⁰", "mixed units"],
)
def test_units_of_outcomes_and_contexts_do_not_matter(change):
    """One column is constant, as well, and one is the same for all arms of a round.

    Units are powers of two, by which nothing is rounded: where splits of a tree are equally good,
    rounding decides.
    """
    if "plain" not in PLAIN:
        PLAIN["plain"] = play()
    same = (play(**change) == PLAIN["plain"]).all(axis=1)
    assert same.all()


def test_before_any_outcome_all_arms_tie():
    contexts = np.random.default_rng(0).random((97, 3))
    assert UCB(oracle=TopK(4)).select(contexts).super_arm.tolist() == [0, 1, 2, 3]


def test_kernels_are_chosen_anew_as_outcomes_double():
    """Smooth where it was first looked at, rough elsewhere."""
    rng = np.random.default_rng(0)
    posterior = MixturePosterior([RBF(1.0) + 1.0, RBF(0.05) + 1.0])

    def learn(low, n):
        X = low + 0.5 * rng.random((n, 1))
        rough = np.where(X[:, 0] > 0.5, np.sin(60 * X[:, 0]), 0.0)
        posterior.update(X, X[:, 0] + rough + 0.01 * rng.standard_normal(n))

    learn(0.0, 100)
    posterior.maintain()
    assert posterior.members[0][1].k2.k1.length_scale == 1.0
    for _ in range(8):
        learn(0.5, 20)
    posterior.maintain()
    assert posterior.members[0][1].k2.k1.length_scale == 0.05


def test_a_relevance_per_column_is_learned():
    rng = np.random.default_rng(0)
    posterior = MixturePosterior()
    for _ in range(10):
        X = rng.random((12, 6))
        posterior.update(X, np.sin(8 * X[:, 0] * X[:, 1]) + 0.05 * rng.standard_normal(12))
    posterior.maintain()
    lengthscales = posterior.prior.length_scale
    assert np.size(lengthscales) == 6
    assert lengthscales[:2].max() < lengthscales[2:].min() / 2


def test_after_maintain_nothing_is_due():
    X, y, x = data(n=100)
    posterior = MixturePosterior()
    posterior.update(X, y)
    posterior.maintain()
    mean = posterior.predict(x).mean
    posterior.maintain()
    np.testing.assert_array_equal(posterior.predict(x).mean, mean)


def test_corrected_outcomes_are_as_if_learned_so():
    X, y, x = data()
    wrong = y.copy()
    wrong[[3, 7]] = [9.0, -9.0]
    posterior, right = MixturePosterior(KERNELS), MixturePosterior(KERNELS)
    posterior.update(X[:1], y[:1])
    posterior.update(X[1:], wrong[1:])
    posterior.correct(X[[3, 7]], [9.0, -9.0], y[[3, 7]])
    right.update(X[:1], y[:1])
    right.update(X[1:], y[1:])
    np.testing.assert_allclose(posterior.predict(x).mean, right.predict(x).mean, rtol=1e-9)
    np.testing.assert_allclose(posterior.predict(x).std, right.predict(x).std, rtol=1e-9)


def test_outcomes_can_be_corrected_at_any_time():
    X, y, x = data(n=60)
    posterior = MixturePosterior()
    for n in range(60):  # kernels are fitted, and the past learned, at different times
        posterior.update(X[[n]], y[[n]] + 9.0)
        posterior.correct(X[[n]], y[[n]] + 9.0, y[[n]])
    assert np.abs(posterior.predict(x).mean - 3 - np.sin(4 * x[:, 0])).max() < 0.5


@pytest.mark.parametrize("how", [{"window": 30}, {"discount": 0.7}], ids=str)
def test_what_was_forgotten_does_not_matter(how):
    X, y, x = data(n=60)
    posterior = ForgettingPosterior(MixturePosterior(), **how)
    for start in range(0, 120, 6):
        rows = np.arange(start, start + 6) % 60
        posterior.update(X[rows], y[rows] + (100 if start < 60 else 0))
    assert np.abs(posterior.predict(x).mean - 3 - np.sin(4 * x[:, 0])).max() < 5.0


def test_weights_are_noise_variances():
    """An outcome of weight 2 at one context counts as its two halves do."""
    X, y, x = data(n=12)
    posterior, twice = (
        MixturePosterior([Matern(0.5)], [0.1]),
        MixturePosterior([Matern(0.5)], [0.1]),
    )
    posterior.update(X, y, np.full(12, 2.0))
    twice.update(np.vstack([X, X]), np.concatenate([y, y]))
    np.testing.assert_allclose(posterior.predict(x).mean, twice.predict(x).mean, rtol=1e-8)


@pytest.mark.parametrize("arguments", [{"kernels": []}, {"kernels": ["RBF"]}, {"noise_ratios": []}])
def test_what_is_no_mixture_is_refused(arguments):
    with pytest.raises(InputError):
        MixturePosterior(**arguments)


def test_many_samples_have_the_moments_of_the_prediction() -> None:
    rng = np.random.default_rng(0)
    X, x = rng.random((60, 2)) * [1.0, 1e4], rng.random((20, 2)) * [1.0, 1e4]
    posterior = MixturePosterior()
    posterior.offer(X)
    posterior.update(X, 1000 + 20 * np.sin(5 * X[:, 0]) + rng.standard_normal(60))
    samples = posterior.sample_paths(x, 4_000, rng)
    mean, std = posterior.predict(x)
    assert samples.shape == (4_000, 20)
    assert (np.abs(samples.mean(axis=0) - mean) < 5 * std / np.sqrt(4_000)).all()
    np.testing.assert_allclose(samples.std(axis=0) / std, 1.0, atol=0.15)


class Tiring(RBF):
    """An RBF of somebody's own that breaks where the first column is above 1."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if np.max(X[:, 0]) > 1:
            raise RuntimeError("too far")
        return super().__call__(X, Y, eval_gradient)


def test_an_error_of_a_kernel_leaves_the_outcomes_as_they_were():
    X, y, x = data()
    posterior = MixturePosterior([Tiring(0.5) + 1.0])
    posterior.update(X, y)
    before = posterior.predict(x)
    with pytest.raises(RuntimeError, match="too far"):
        posterior.update([[2.0, 0.5]], [1.0])
    assert len(posterior) == len(y)
    posterior.update(x[:3], [3.0, 3.1, 2.9])
    assert len(posterior) == len(y) + 3
    assert not np.array_equal(posterior.predict(x).mean, before.mean)


def outcomes_of(kind, X, rng):
    if kind == "clicks":
        return (rng.random(len(X)) < 0.03 + 0.1 * (X[:, 0] > 0.7)).astype(float)
    if kind == "counts":
        return rng.poisson(3 * X[:, 0]).astype(float)
    if kind == "heavy tails":
        return np.sin(6 * X[:, 0]) + 0.3 * rng.standard_t(2.5, len(X))
    return np.exp(X[:, 0] + rng.standard_normal(len(X)))


@pytest.mark.parametrize("kind", ["clicks", "counts", "heavy tails", "skewed"])
def test_95_of_100_outcomes_are_where_they_were_expected(kind):
    """Ties are broken at random. Features have long tails."""
    rng = np.random.default_rng(0)
    posterior, inside = MixturePosterior(), []
    for t in range(120):
        X = rng.random((6, 3)) ** np.array([1.0, 4.0, 9.0])
        y = outcomes_of(kind, X, rng)
        if t >= 40:
            found = posterior.predictive(X)
            low, high = found.around(y)
            u = low + rng.random(6) * (high - low)
            inside += ((u > 0.025) & (u < 0.975)).tolist()
        posterior.update(X, y)
    assert 0.92 < np.mean(inside) < 0.98


def test_f_is_within_its_band_though_features_have_long_tails():
    rng = np.random.default_rng(0)
    posterior, inside = MixturePosterior(), []
    for t in range(60):
        normal = rng.standard_normal((20, 4))
        X, f = np.exp(2 * normal), np.sin(2 * normal[:, 0]) + normal[:, 1]
        prediction = posterior.predict(X)
        if t >= 20:
            inside += (np.abs(f - prediction.mean) < 1.96 * prediction.std).tolist()
        posterior.offer(X)
        posterior.update(prediction.at(np.arange(5)), f[:5] + 0.1 * rng.standard_normal(5))
    assert np.mean(inside) > 0.88


def test_a_loaded_mixture_goes_on_with_the_same_numbers():
    rng = np.random.default_rng(0)

    def learn(posterior, seed, rounds):
        rng = np.random.default_rng(seed)
        for _ in range(rounds):
            X = rng.random((20, 3))
            posterior.offer(X)
            posterior.update(X[:5], np.sin(5 * X[:5, 0]) + 0.1 * rng.standard_normal(5))

    posterior, x = MixturePosterior(), rng.random((9, 3))
    learn(posterior, 1, 9)  # in the middle of a fit
    loaded = loads(dumps(posterior))
    for each in (posterior, loaded):
        learn(each, 2, 12)
    np.testing.assert_allclose(loaded.predict(x).mean, posterior.predict(x).mean, rtol=1e-9)
    np.testing.assert_allclose(loaded.predict(x).std, posterior.predict(x).std, rtol=1e-9)
