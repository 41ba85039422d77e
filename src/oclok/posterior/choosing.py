"""Which contexts a dictionary is made of.

A dictionary covers a context if what it leaves of its prior variance, ρ, is at most the
tolerance. The first one is pivoted out of all contexts seen so far; when it has to grow, it is
pivoted anew, together with those that it does not cover. All models returned here have learned
nothing yet.
"""

from __future__ import annotations

import numpy as np

from oclok.posterior.features import FeatureModel
from oclok.posterior.kernels import Covariance
from oclok.posterior.pivoted import pivoted_cholesky
from oclok.typing import FloatArray

#: Pivots are taken until this share of the tolerance, so that few contexts exceed it later, and
#: until that share when a dictionary grows, so that it loses little of what it has.
MARGIN, MARGIN_OF_GROWTH = 0.1, 0.01
#: A dictionary is worth its while up to this share of N (a round costs 2r²M against N²M).
WORTHWHILE = 0.8
#: Conditional variances below this share of the prior's are rounding error.
ROUNDING = 1e-13
#: Contexts that are remembered as candidates for a dictionary.
REMEMBERED = 2_048


def first_model(
    prior: Covariance,
    noise_std: float,
    observed: list[FloatArray | None],
    remembered: FloatArray | None,
    tolerance: float,
) -> FeatureModel | None:
    """Return a model whose dictionary covers all contexts `observed`; None if it is too large.

    Contexts that are only `remembered` are candidates for it as well.
    """
    largest = most_worthwhile(sum(0 if rows is None else len(rows) for rows in observed))
    candidates = sample([*observed, remembered])
    if MARGIN * tolerance < ROUNDING * prior.largest(candidates):
        return None
    pivots, F, left = pivoted_cholesky(prior, candidates, largest, MARGIN * tolerance, give_up=True)
    if left > MARGIN * tolerance or not 0 < len(pivots) < WORTHWHILE * len(candidates):
        return None
    model = FeatureModel(prior, noise_std, candidates[pivots], F[:, pivots].T)
    return covering_model(model, observed, tolerance, largest)


def covering_model(
    model: FeatureModel, parts: list[FloatArray | None], tolerance: float, largest: int
) -> FeatureModel | None:
    """Return a model whose dictionary is that of `model`, grown until it covers `parts`.

    None if that takes more than `largest` contexts.
    """
    model = FeatureModel(model.covariance, model.noise_std, model.U, model.R)
    for rows in parts:
        for start in range(0, 0 if rows is None else len(rows), REMEMBERED):
            part = np.asarray(rows)[start : start + REMEMBERED]
            missed = part[model.features(part)[1] > tolerance]
            if len(missed):
                model = _grown(model, missed, MARGIN_OF_GROWTH * tolerance)
                if model.rank > largest:
                    return None
    return model


def finer_model(
    model: FeatureModel, parts: list[FloatArray | None], tolerance: float
) -> FeatureModel:
    """Return a model whose dictionary is that of `model`, grown by half of `parts` as needed."""
    return _grown(model, sample(parts)[::2], MARGIN * tolerance)


def _grown(model: FeatureModel, candidates: FloatArray, tolerance: float) -> FeatureModel:
    largest = max(model.prior, model.covariance.largest(candidates))
    return model.grown(candidates, max(tolerance, ROUNDING * largest))


def most_worthwhile(count: int) -> int:
    """Return the size of the largest dictionary that is worth its while with N = `count`."""
    return int(WORTHWHILE * count)


def latest(rows: FloatArray | None, new: FloatArray) -> FloatArray:
    """Return `rows` and `new`, the last REMEMBERED of them."""
    return (new if rows is None else np.vstack([rows, new]))[-REMEMBERED:].copy()


def sample(parts: list[FloatArray | None]) -> FloatArray:
    """Return REMEMBERED rows, evenly taken, of all `parts`."""
    rows = np.vstack([part for part in parts if part is not None and len(part)])
    return rows[:: -(-len(rows) // REMEMBERED)]
