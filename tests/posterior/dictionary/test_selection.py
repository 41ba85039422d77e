from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from oclok.posterior.dictionary.nystrom import NystromModel
from oclok.posterior.dictionary.selection import (
    REMEMBERED,
    covering_model,
    first_model,
    sample,
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
