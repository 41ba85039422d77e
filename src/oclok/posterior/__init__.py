"""Posteriors: what the outcomes so far say about f."""

from __future__ import annotations

from oclok.posterior.base import Posterior
from oclok.posterior.dictionary import DictionaryPosterior
from oclok.posterior.exact import ExactPosterior
from oclok.posterior.forgetting import ForgettingPosterior
from oclok.posterior.mixture import MixturePosterior
from oclok.posterior.prediction import Prediction
from oclok.posterior.sparse import SparsePosterior

__all__ = [
    "DictionaryPosterior",
    "ExactPosterior",
    "ForgettingPosterior",
    "MixturePosterior",
    "Posterior",
    "Prediction",
    "SparsePosterior",
]
