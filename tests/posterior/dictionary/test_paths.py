"""Samples at many contexts have the mean and the covariance of the posterior."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from oclok.posterior import DictionaryPosterior, ExactPosterior, ForgettingPosterior, Posterior
from oclok.posterior.dictionary.paths import model_for

POSTERIORS = {
    "exact": ExactPosterior(RBF(0.4), 0.2),
    "rough": ExactPosterior(Matern(0.4, nu=1.5), 0.2),
    "dictionary": DictionaryPosterior(RBF(0.4), 0.2),
    "forgetting": ForgettingPosterior(ExactPosterior(RBF(0.4), 0.2), window=1_000),
}


@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("outcomes", [0, 12])
def test_samples_have_the_moments_of_the_posterior(name: str, outcomes: int) -> None:
    rng = np.random.default_rng(0)
    posterior: Posterior = POSTERIORS[name].empty()
    if outcomes:
        X = rng.random((outcomes, 1))
        posterior.update(X, np.sin(6 * X[:, 0]))
    x, count = rng.random((9, 1)), 20_000
    samples = posterior.sample_paths(x, count, rng)
    assert samples.shape == (count, len(x))
    mean, std = posterior.predict(x)
    assert (np.abs(samples.mean(axis=0) - mean) < 5 * std / count**0.5 + 1e-3).all()
    np.testing.assert_allclose(np.cov(samples.T), posterior.covariance(x), atol=0.06)


def test_equal_seeds_give_equal_samples() -> None:
    x = np.linspace(0, 1, 5)[:, None]
    samples = [POSTERIORS["exact"].sample_paths(x, 3, np.random.default_rng(1)) for _ in range(2)]
    np.testing.assert_array_equal(*samples)


def test_its_model_has_learned_what_the_posterior_has() -> None:
    posterior = POSTERIORS["exact"].empty()
    rng = np.random.default_rng(0)
    X, x = rng.random((12, 1)), rng.random((9, 1))
    posterior.update(X, np.sin(6 * X[:, 0]))
    model = model_for(posterior, x)
    assert len(model) == 12
    np.testing.assert_allclose(model.predict(x).mean, posterior.predict(x).mean, atol=1e-3)
