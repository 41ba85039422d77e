"""Oracles that search: limited in time, only so many at once, and without a lock."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import numpy as np

from oclok.decision import Decision
from oclok.oracles.base import Oracle
from oclok.policies import Proposal
from oclok.service.problems import BusyError

#: Searches of an agent that may wait for their turn; more are refused.
MOST_WAITING = 6


class Searches:
    """The searches of one agent in this process.

    Args:
        at_once: how many may run at the same time.
    """

    def __init__(self, at_once: int) -> None:
        self._free = threading.Semaphore(at_once)
        self._most = at_once + MOST_WAITING
        self._inside = 0
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn; `BusyError` if too many wait already."""
        with self._guard:
            if self._inside >= self._most:
                raise BusyError("this agent's oracle is searching for other requests; try again")
            self._inside += 1
        try:
            with self._free:
                yield
        finally:
            with self._guard:
                self._inside -= 1


def searched(scored: Proposal, oracle: Oracle) -> Proposal:
    """Return a proposal of all base arms with what an oracle chooses by their indices."""
    belief = scored.belief
    super_arm = oracle(belief.index)
    mean, std = (None if v is None else v[super_arm] for v in (belief.mean, belief.std))
    decision = Decision.trusted(
        round=scored.decision.round,
        super_arm=super_arm,
        contexts=scored.contexts[super_arm],
        index=np.asarray(belief.index[super_arm]),
        mean=mean,
        std=std,
        is_exact=False,
    )
    return Proposal(scored.contexts, oracle, super_arm, decision, belief, scored.rng)
