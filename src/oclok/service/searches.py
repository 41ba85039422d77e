"""Oracles that search: limited in time, few at once, without a lock, and at a low priority."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from oclok.decision import Decision
from oclok.oracles.base import Oracle
from oclok.policies import Proposal
from oclok.service.problems import BusyError

#: Searches of an agent that may wait for their turn, and those of all agents that run or wait;
#: more are refused. Other requests have the other half of the threads.
MOST_WAITING, MOST_INSIDE = 6, 20
#: By how much threads that search are nicer than those that answer.
NICENESS = 10


class Searches:
    """The searches of a process, of which at most `at_once` of an agent run at the same time."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._free: dict[int, threading.Semaphore] = {}
        self._inside: Counter[int] = Counter()
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def turn(self, agent: int) -> Iterator[None]:
        """Wait for a turn; `BusyError` if too many wait already."""
        with self._guard:
            most = self._at_once + MOST_WAITING
            if self._inside[agent] >= most or self._inside.total() >= MOST_INSIDE:
                raise BusyError("this agent's oracle is searching for other requests; try again")
            self._inside[agent] += 1
            free = self._free.setdefault(agent, threading.Semaphore(self._at_once))
        try:
            with free:
                yield
        finally:
            with self._guard:
                self._inside[agent] -= 1


def searched(scored: Proposal, oracle: Oracle) -> Proposal:
    """Return a proposal of all base arms with what an oracle chooses by their indices."""
    belief = scored.belief
    super_arm = _THREADS.submit(oracle, belief.index).result()
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


def _be_nice() -> None:
    """Let this thread, and those that a solver starts from it, yield to others (Linux only)."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        niceness = os.getpriority(os.PRIO_PROCESS, thread) + NICENESS
        os.setpriority(os.PRIO_PROCESS, thread, niceness)


_THREADS = ThreadPoolExecutor(MOST_INSIDE, "oclok-search", initializer=_be_nice)
