"""Noticing that the world has moved, and forgetting what was learned before.

    z         standardised one-step-ahead residuals of the posterior in use, the incumbent
    S         Σ min(log p_c(y) - log p_i(y), 1) over outcomes y since the alarm, each density before
              y was learned: by the challenger c and by the incumbent i

An alarm is raised when the latest squared residuals are far above 1. It starts a challenger: the
same posterior, in which what was learned so far hardly counts. Both go on learning, and the
challenger takes over once S says that it foresees better. In a world that does not move, what was
learned helps: the challenger loses within a few outcomes, and nothing has changed.
"""

from __future__ import annotations

import math

import numpy as np

from oclok.errors import OclokError
from oclok.persistence import Persistent
from oclok.posterior.base import Posterior
from oclok.posterior.prediction import ContextsLike
from oclok.typing import FloatArray

#: Outcomes learned before anything is watched, and residuals that an alarm goes by.
LEAST, LATEST = 50, 15
#: Squared residuals count at most CAP; an alarm needs a mean above ALARM.
CAP, ALARM = 9.0, 2.5
#: Weight of all outcomes so far in a challenger.
REMEMBERED = 1e-3
#: Nats by which a challenger wins or loses, and after how many outcomes it has lost anyway.
MARGIN, MOST = 4.0, 100
#: The wait for the next alarm doubles with each challenger that lost, up to this share of N.
LONGEST_WAIT = 0.25


class DriftWatch(Persistent):
    """Watches residuals, and replaces a posterior that the world has left behind."""

    def __init__(self) -> None:
        self._challenger: Posterior | None = None
        self._squares: FloatArray = np.empty(0)
        self._lead, self._seen = 0.0, 0
        self._wait = LATEST

    def succeed(
        self, posterior: Posterior, contexts: ContextsLike, outcomes: FloatArray
    ) -> Posterior:
        """Return the posterior that is to learn these outcomes: the challenger if it has won."""
        challenger = self._challenger
        if challenger is None:
            return posterior
        try:
            gain = _log_density(challenger, contexts, outcomes)
            gain -= _log_density(posterior, contexts, outcomes)
            self._lead += float(np.clip(gain, -1.0, 1.0).sum())
            self._seen += len(outcomes)
            if self._lead >= MARGIN:
                self._reset(LATEST)
                return challenger
            if self._lead > -MARGIN and self._seen < MOST:
                challenger.update(contexts, outcomes)
                return posterior
        except OclokError:
            pass  # a challenger that cannot learn has lost
        self._reset(min(2 * self._wait, max(LATEST, int(LONGEST_WAIT * len(posterior)))))
        return posterior

    def watch(self, posterior: Posterior, residuals: FloatArray) -> None:
        """Take note of residuals z (N,) of outcomes that `posterior` has just learned."""
        if self._challenger is not None or len(posterior) < LEAST:
            return
        self._squares = np.append(self._squares, np.minimum(residuals**2, CAP))[-self._wait :]
        if len(self._squares) >= self._wait and self._squares[-LATEST:].mean() > ALARM:
            self._challenger = posterior.copy()
            self._challenger.discount(REMEMBERED)

    def _reset(self, wait: int) -> None:
        self._challenger, self._squares, self._wait = None, np.empty(0), wait
        self._lead, self._seen = 0.0, 0


def _log_density(posterior: Posterior, contexts: ContextsLike, outcomes: FloatArray) -> FloatArray:
    """Return log p(y), less a constant, of each outcome, before it is learned; shape (N,)."""
    mean, std = posterior.current(contexts)
    spread = np.hypot(std, posterior.noise_std) + math.sqrt(np.finfo(np.float64).tiny)
    return np.asarray(-0.5 * ((outcomes - mean) / spread) ** 2 - np.log(spread))
