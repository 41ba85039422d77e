"""Parts of a prediction are the prediction of parts, and samples are as it says."""

from __future__ import annotations

import numpy as np

from oclok.posterior import MixturePosterior
from oclok.posterior.mixture.prediction import MixturePrediction


def predicted() -> MixturePrediction:
    rng = np.random.default_rng(0)
    rows = rng.random((40, 3))
    labels = np.sin(5 * rows[:, 0]) + rng.standard_normal(40)
    posterior = MixturePosterior()
    for _ in range(30):
        drawn = rng.choice(30, 5, replace=False)
        posterior.update(rows[drawn], labels[drawn] + 0.1 * rng.standard_normal(5))
    prediction = posterior.predict(rows[[0, 7, 35, 35, 38]])
    assert isinstance(prediction, MixturePrediction)
    return prediction


def test_the_diagonal_of_the_covariance_is_the_variance():
    prediction = predicted()
    np.testing.assert_allclose(np.diag(prediction.covariance()), prediction.std**2, rtol=1e-9)


def test_a_part_of_a_prediction_has_its_part_of_the_covariance():
    prediction, positions = predicted(), np.array([0, 2, 4])
    part = prediction.at(positions)
    assert part.mean.tolist() == prediction.mean[positions].tolist()
    whole = prediction.covariance()[np.ix_(positions, positions)]
    np.testing.assert_allclose(part.covariance(), whole, rtol=1e-9)


def test_samples_have_its_mean_and_covariance():
    prediction = predicted()
    paths = prediction.paths(8_000, np.random.default_rng(1))
    error = 5 * prediction.std / np.sqrt(8_000)
    assert (np.abs(paths.mean(axis=0) - prediction.mean) < error).all()
    assert (paths[:, 2] == paths[:, 3]).all()
    spread = np.outer(prediction.std, prediction.std)
    assert (np.abs(np.cov(paths.T) - prediction.covariance()) < 0.1 * spread).all()
