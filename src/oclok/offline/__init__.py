"""Offline evaluation: what a policy would have earned, from a log of what another one chose."""

from oclok.offline.estimate import Estimate, OverlapWarning
from oclok.offline.estimators import doubly_robust, replay
from oclok.offline.evaluate import evaluate
from oclok.offline.log import Log, LoggedRound
from oclok.offline.opinion import model_opinion
from oclok.offline.read import read_log

__all__ = [
    "Estimate",
    "Log",
    "LoggedRound",
    "OverlapWarning",
    "doubly_robust",
    "evaluate",
    "model_opinion",
    "read_log",
    "replay",
]
