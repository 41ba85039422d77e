"""A Nyström model to draw many samples of f from, at many contexts at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oclok.posterior.dictionary.nystrom import NystromModel
from oclok.posterior.dictionary.selection import sample as some_of
from oclok.posterior.pivoted import LEAST_PIVOT, pivoted_cholesky
from oclok.typing import FloatArray

if TYPE_CHECKING:
    from oclok.posterior.base import Posterior

#: Pivots are taken until at most these fractions of the prior variance and of the noise variance
#: are left, or until there are this many, and as many again as outcomes.
LARGEST_RESIDUAL, LARGEST_RESIDUAL_IN_NOISE, MOST_PIVOTS = 1e-5, 1e-5, 256


def model_for(posterior: Posterior, X: FloatArray) -> NystromModel:
    """Return a Nyström model made for contexts X (M, D) that has learned what `posterior` has."""
    known = posterior.observations
    candidates = some_of([known.contexts, X])
    prior = posterior.prior.largest(candidates)
    tolerance = min(LARGEST_RESIDUAL * prior, LARGEST_RESIDUAL_IN_NOISE * posterior.noise_std**2)
    tolerance = max(tolerance, LEAST_PIVOT * prior)
    rank = MOST_PIVOTS + min(len(known), MOST_PIVOTS)
    pivots, F, _ = pivoted_cholesky(posterior.prior, candidates, rank, tolerance)
    U, R = candidates[pivots], F[:, pivots].T
    model = NystromModel(posterior.prior, posterior.noise_std, U, R, tolerance)
    if len(known):
        model.update(known.contexts, known.outcomes, known.weights)
    return model
