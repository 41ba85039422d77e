"""Many samples of f at many contexts at once, through the weights of Nyström features.

    U      dictionary, some hundred of the contexts        Φ    features of all contexts, (r, M)
    m, S   mean and root of the covariance of the features' weights
    Z      standard normal numbers, (r, count)

    f  =  Φᵀ(m + SZ) + √ρ ε

What the dictionary leaves out, ρ, is drawn independently for each context: a joint covariance of
thousands of contexts would cost their cube.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.blas import dgemm

from oclok.posterior.nystrom import NystromModel
from oclok.posterior.pivoted import LEAST_PIVOT, pivoted_cholesky
from oclok.posterior.prediction import Prediction
from oclok.posterior.selection import sample as some_of
from oclok.typing import FloatArray

if TYPE_CHECKING:
    from oclok.posterior.base import Posterior

#: Pivots are taken until at most these fractions of the prior variance and of the noise variance
#: are left, or until there are this many, and as many again as outcomes.
LARGEST_RESIDUAL, LARGEST_RESIDUAL_IN_NOISE, MOST_PIVOTS = 1e-5, 1e-5, 256
#: Contexts whose features are computed at once.
SAMPLED_AT_ONCE = 2_048


def model_for(posterior: Posterior, X: FloatArray) -> NystromModel:
    """Return a Nyström model made for contexts X (M, D) that has learned what `posterior` has."""
    known = posterior.observations
    candidates = some_of([known.contexts if len(known) else None, X])
    prior = posterior.prior.largest(candidates)
    tolerance = min(LARGEST_RESIDUAL * prior, LARGEST_RESIDUAL_IN_NOISE * posterior.noise_std**2)
    tolerance = max(tolerance, LEAST_PIVOT * prior)
    rank = MOST_PIVOTS + min(len(known), MOST_PIVOTS)
    pivots, F, _ = pivoted_cholesky(posterior.prior, candidates, rank, tolerance)
    model = NystromModel(posterior.prior, posterior.noise_std, candidates[pivots], F[:, pivots].T)
    if len(known):
        model.learn_all(known.contexts, known.outcomes, known.weights)
    return model


def sample_weights(
    model: NystromModel, X: FloatArray, count: int, rng: np.random.Generator
) -> FloatArray:
    """Return `count` samples of f at X (M, D), shape (count, M)."""
    W = model.m[:, None] + model.S @ rng.standard_normal((model.rank, count))
    result = np.empty((count, len(X)))
    for start in range(0, len(X), SAMPLED_AT_ONCE):
        part = slice(start, start + SAMPLED_AT_ONCE)
        f = model.worked(Prediction.of(X[part]))
        result[:, part] = dgemm(1.0, W, f.phi, trans_a=1)
        if f.largest > LEAST_PIVOT * model.largest_prior:
            result[:, part] += np.sqrt(f.residual) * rng.standard_normal((count, len(X[part])))
    return result
