"""Which contexts make a dictionary: pivoted Cholesky over what was seen so far.

A dictionary covers a context if what it leaves of its prior variance, ρ, is at most the
tolerance. The first one is pivoted out of all contexts seen so far; when it has to grow, it is
pivoted anew, together with those that it does not cover. New models have learned nothing yet.
"""

from __future__ import annotations

import numpy as np

from oclok.arrays import chunks
from oclok.posterior.base import Posterior
from oclok.posterior.dictionary.nystrom import NystromModel
from oclok.posterior.kernels import Covariance
from oclok.posterior.pivoted import LEAST_PIVOT, pivoted_cholesky, pivots_among
from oclok.typing import FloatArray

#: Pivots are taken until this fraction of the tolerance, so that few contexts exceed it later,
#: and until that fraction when a dictionary grows, so that it loses little of what it has.
MARGIN, MARGIN_OF_GROWTH = 0.1, 0.01
#: Above this fraction of N, exact is cheaper: a round costs 2r²M against N²M.
LARGEST_FRACTION = 0.8
#: Contexts that are remembered as candidates for a dictionary.
REMEMBERED = 2_048
#: Most entries of the candidates for a first dictionary, and fewest candidates: every pivot goes
#: through all of them.
ENTRIES, FEWEST = 32_768, 512
#: Candidates for a dictionary that will not cover them all.
PIVOTED = 1_024
#: The variance that such a dictionary may leave, relative to the largest one's, and a negligible
#: variance, relative to the noise's.
LEFT_OVER, NEGLIGIBLE = 1.05, 0.01
#: A dictionary to draw samples with leaves at most this fraction of the prior variance and of the
#: noise variance, or has this many pivots, and as many again as there are outcomes.
LEFT_IN_SAMPLES, MOST_FOR_SAMPLES = 1e-5, 256


def first_model(
    prior: Covariance,
    noise_std: float,
    observed: list[FloatArray],
    remembered: FloatArray,
    tolerance: float,
    largest: int,
) -> NystromModel | None:
    """Return a model whose dictionary covers all contexts `observed`.

    Contexts that are only `remembered` are candidates for it as well. None if it takes more
    than `largest` of them.
    """
    most = min(max(ENTRIES // observed[-1].shape[1], FEWEST), REMEMBERED)
    candidates = sample([*observed, remembered], most)
    if MARGIN * tolerance < LEAST_PIVOT * prior.largest(candidates):
        return None
    give_up = prior.is_stationary  # others may have a finite rank, where all variance ends at once
    pivots, F, left = pivoted_cholesky(
        prior, candidates, largest, MARGIN * tolerance, give_up=give_up
    )
    if left > MARGIN * tolerance or not 0 < len(pivots) < LARGEST_FRACTION * len(candidates):
        return None
    model = NystromModel(prior, noise_std, candidates[pivots], F[:, pivots].T, tolerance)
    if len(candidates) == sum(map(len, [*observed, remembered])):
        return model  # which covers all of them
    return covering_model(model, observed, largest)


def covering_model(
    model: NystromModel, parts: list[FloatArray], largest: int
) -> NystromModel | None:
    """Return `model`, grown until it covers `parts`; None if that takes more than `largest`."""
    for rows in parts:
        for part in chunks(len(rows), REMEMBERED):
            uncovered = model.uncovered(rows[part])
            if len(uncovered):
                model = _grown(model, uncovered, MARGIN_OF_GROWTH * model.tolerance)
                if model.rank > largest:
                    return None
    return model


def covers(model: NystromModel, parts: list[FloatArray], tolerance: float | None = None) -> bool:
    """Return whether no ρ of `parts` is above `tolerance`; the model's own if left out."""
    limit = model.tolerance if tolerance is None else tolerance
    return all(
        model.largest_residual(rows[part]) <= limit
        for rows in parts
        for part in chunks(len(rows), REMEMBERED)
    )


def partial_model(
    prior: Covariance, noise_std: float, parts: list[FloatArray], largest: int, tolerance: float
) -> NystromModel:
    """Return a model whose dictionary, at most `largest`, covers contexts like `parts` in part.

    It has the fewest pivots that leave hardly more variance, on average, than `largest` do: none
    to speak of where contexts are so far from each other that they tell nothing of one another.
    """
    candidates = sample(parts, PIVOTED)
    least = LEAST_PIVOT * prior.largest(candidates)
    pivots, F, _ = pivoted_cholesky(prior, candidates, max(largest, 1), least)
    if len(pivots) == 0:  # the prior variance is 0, and so is k(U, x) for every x
        return NystromModel(prior, noise_std, candidates[:1], np.ones((1, 1)), tolerance)
    others = np.setdiff1d(np.arange(len(candidates)), pivots)  # pivots explain themselves anyway
    left = prior.diagonal(candidates[others]) - np.cumsum(F[:, others] ** 2, axis=0)
    left = left.mean(axis=1) if len(others) else np.zeros(len(pivots))
    enough = LEFT_OVER * left[-1] + NEGLIGIBLE * noise_std**2
    pivots = pivots[: int(np.argmax(left <= enough)) + 1]
    F = F[: len(pivots)]
    return NystromModel(prior, noise_std, candidates[pivots], F[:, pivots].T, tolerance)


def sampling_model(posterior: Posterior, X: FloatArray) -> NystromModel:
    """Return a model made for contexts X (M, D) that has learned what `posterior` has."""
    known, prior = posterior.observations, posterior.prior
    candidates = sample([known.contexts, X])
    largest = prior.largest(candidates)
    least = max(LEFT_IN_SAMPLES * min(largest, posterior.noise_std**2), LEAST_PIVOT * largest)
    rank = MOST_FOR_SAMPLES + min(len(known), MOST_FOR_SAMPLES)
    pivots, F, _ = pivoted_cholesky(prior, candidates, rank, least)
    model = NystromModel(prior, posterior.noise_std, candidates[pivots], F[:, pivots].T, least)
    if len(known):
        model.update(*known.at(slice(None)))
    return model


def _grown(model: NystromModel, candidates: FloatArray, tolerance: float) -> NystromModel:
    """Return a model whose dictionary leaves no ρ of U and `candidates` above `tolerance`.

    Adding pivots behind those there are would be quicker, but these end with the ones of least
    variance: features of far contexts amplify their rounding errors.
    """
    prior = model.prior
    largest = max(model.largest_prior, prior.largest(candidates))
    rows = np.vstack([model.U, candidates])
    U, R = pivots_among(prior, rows, max(tolerance, LEAST_PIVOT * largest))
    return NystromModel(prior, model.noise_std, U, R, model.tolerance)


def sample(parts: list[FloatArray], most: int = REMEMBERED) -> FloatArray:
    """Return at most `most` rows, evenly spaced, of all `parts`."""
    rows = np.vstack([part for part in parts if len(part)])
    return rows[:: -(-len(rows) // most)]
