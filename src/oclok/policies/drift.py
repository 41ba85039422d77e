"""Noticing that the world has moved, and forgetting what was learned before.

    z         standardised one-step-ahead residuals of the posterior in use, the incumbent
    S         Σ log p_c(y) - log p_i(y), each term within ±1, over outcomes y since the alarm, each
              before it was learned: by the challenger's means and the incumbent's, with the spread
              of the incumbent. A better mean shows that the world moved; another spread does not

An alarm is raised when the latest squared residuals are far above 1. It starts a challenger: the
same posterior, in which what was learned so far hardly counts. Both go on learning, though only the
incumbent fits kernels and grows trees. The challenger takes over once S says that it foresees
better. In a world that does not move, what was learned helps: the challenger loses within a few
outcomes, and nothing has changed.

A world that moves slowly raises no alarm. So there are challengers without one, in which the past
counts less, but does count: as soon as one has won, and ever more rarely while they lose.
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
#: Weight of all outcomes so far in a challenger after an alarm, and in one without.
FORGOTTEN, FADED = 1e-3, 0.3
#: Nats by which they win or lose; and after how many outcomes they have lost anyway.
WON, LOST, MOST = 4.0, -4.0, 100
#: Outcomes before the first challenger without an alarm, and the factor by which the number of
#: outcomes has to grow for the next one when one has lost.
FIRST, GROWTH = 200, 1.5
#: The wait for the next alarm doubles with each challenger that lost, up to this share of N.
LONGEST_WAIT = 0.25


class DriftWatch(Persistent):
    """Watches residuals, and replaces a posterior that the world has left behind."""

    def __init__(self) -> None:
        self._challenger: Posterior | None = None
        self._squares: FloatArray = np.empty(0)
        self._lead, self._seen = 0.0, 0
        self._wait = LATEST
        self._is_alarmed = False
        self._age, self._due = 0, FIRST

    def succeed(
        self, posterior: Posterior, contexts: ContextsLike, outcomes: FloatArray
    ) -> Posterior:
        """Return the posterior that is to learn these outcomes: the challenger if it has won."""
        challenger = self._challenger
        self._age += len(outcomes)
        if challenger is None:
            return posterior
        try:
            foreseen = challenger.current(contexts)
            gains = _gains(foreseen.mean, posterior, contexts, outcomes)
            self._lead += float(np.clip(gains, -1.0, 1.0).sum())
            self._seen += len(outcomes)
            if self._lead >= WON:
                self._reset(LATEST)
                self._age = self._due = 0
                challenger.is_resting = False
                return challenger
            if self._lead > LOST and self._seen < MOST:
                challenger.update(foreseen, outcomes)
                return posterior
        except OclokError:
            pass  # a challenger that cannot learn has lost
        longest = max(LATEST, int(LONGEST_WAIT * len(posterior)))
        self._reset(min(2 * self._wait, longest) if self._is_alarmed else self._wait)
        return posterior

    def watch(self, posterior: Posterior, residuals: FloatArray) -> None:
        """Take note of residuals z (N,) of outcomes that `posterior` has just learned."""
        if self._is_alarmed or len(posterior) < LEAST:
            return
        self._squares = np.append(self._squares, np.minimum(residuals**2, CAP))[-self._wait :]
        is_alarm = len(self._squares) >= self._wait and self._squares[-LATEST:].mean() > ALARM
        if is_alarm or (self._challenger is None and self._age >= self._due):
            self._is_alarmed, self._lead, self._seen = is_alarm, 0.0, 0
            self._due = max(self._due, int(GROWTH * self._age))
            self._challenger = posterior.copy()
            self._challenger.is_resting = True
            self._challenger.discount(FORGOTTEN if is_alarm else FADED)

    def _reset(self, wait: int) -> None:
        self._challenger, self._squares, self._wait = None, np.empty(0), wait
        self._lead, self._seen, self._is_alarmed = 0.0, 0, False


def _gains(
    foreseen: FloatArray, incumbent: Posterior, contexts: ContextsLike, outcomes: FloatArray
) -> FloatArray:
    """Return log p_c(y) - log p_i(y) of each outcome, before it is learned; shape (N,).

    `foreseen` (N,) are the challenger's means.
    """
    mean, std = incumbent.current(contexts)
    spread = np.hypot(std, incumbent.noise_std) + math.sqrt(np.finfo(np.float64).tiny)
    theirs = (outcomes - foreseen) / spread
    return np.asarray(0.5 * (((outcomes - mean) / spread) ** 2 - theirs**2))
