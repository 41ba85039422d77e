from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from oclok.posterior import DictionaryPosterior, ExactPosterior, ForgettingPosterior, Posterior
from oclok.posterior.dictionary.nystrom import NystromModel
from oclok.posterior.dictionary.selection import (
    REMEMBERED,
    covering_model,
    first_model,
    sample,
    sampling_model,
)
from oclok.posterior.kernels import Covariance

PRIOR = Covariance(RBF(1.0))
X = np.random.default_rng(0).random((300, 2))
NOTHING = np.empty((0, 2))


def left_out(model: NystromModel, contexts: np.ndarray) -> float:
    """Return the largest prior variance that the dictionary leaves, by the dense formula."""
    k = PRIOR.between(model.inducing, contexts)
    explained = np.linalg.lstsq(PRIOR.of(model.inducing), k, rcond=None)[0]
    return float((1.0 - (k * explained).sum(axis=0)).max())


def test_the_first_dictionary_covers_all_contexts() -> None:
    model = first_model(PRIOR, 0.1, [X], NOTHING, 1e-8, 240)
    assert model is not None
    assert model.rank < 60
    assert left_out(model, X) < 1.1e-8


def test_there_is_none_where_it_would_be_too_large() -> None:
    rough = Covariance(RBF(0.001))
    assert first_model(rough, 0.1, [X], NOTHING, 1e-8, 240) is None


def test_a_grown_dictionary_covers_new_contexts() -> None:
    model = first_model(PRIOR, 0.1, [X], NOTHING, 1e-8, 240)
    assert model is not None
    new = X + np.array([1.0, 0.0])
    assert left_out(model, new) > 1e-6
    grown = covering_model(model, [NOTHING, new], 300)
    assert grown is not None
    assert left_out(grown, np.vstack([X, new])) < 1.1e-8
    assert covering_model(model, [new], model.rank) is None


def test_samples_are_spread() -> None:
    rows = np.arange(3.0 * REMEMBERED)[:, None]
    spread = sample([rows[: REMEMBERED + 1], NOTHING, rows[REMEMBERED + 1 :]])
    assert len(spread) <= REMEMBERED
    assert len(set(np.diff(spread[:, 0]).tolist())) == 1


# Samples at many contexts have the mean and the covariance of the posterior --------------------

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
    model = sampling_model(posterior, x)
    assert len(model) == 12
    np.testing.assert_allclose(model.predict(x).mean, posterior.predict(x).mean, atol=1e-3)
