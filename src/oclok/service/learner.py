"""A policy that learns beside requests: steps of learning wait in a queue, in their order.

The steps are a function of the log, and so the same in every process. What a policy thinks is a
function of the number of steps that it has taken: the `model_version` of a decision. So a process
may take the steps itself, or adopt the policy of another process that has taken more.

Two locks, always taken in this order, and never while the log or a solver is waited for:

    _learning   held by the one thread that takes steps, or writes the policy down
    _turn       held while the policy changes or is asked
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from oclok import persistence
from oclok.decision import Propensities
from oclok.oracles import TopK
from oclok.oracles.base import Oracle
from oclok.policies.base import Belief, Played, Policy, Proposal
from oclok.policies.calibration import Calibration
from oclok.policies.gp import GPPolicy
from oclok.policies.regret import Regret
from oclok.posterior.base import Posterior
from oclok.service.searches import searched
from oclok.typing import ArrayLike, FloatArray, IntArray

LOGGER = logging.getLogger("oclok.service")
#: Outcomes that are learned in one step at most: the policy can be asked between steps.
AT_ONCE = 500
#: Seconds of lag that decisions tolerate, of one's own learning and of a leader's; beyond, the
#: requesting thread takes steps, too.
BEHIND, BEHIND_LEADER = 0.3, 5.0
#: Seconds between two steps in which those who ask get their turn.
PAUSE = 2e-4
#: Steps that may wait; beyond, the thread that adds one takes them.
MOST_WAITING = 5_000
#: How often the policy is written down beside those who ask, before they have to wait.
DUMPS = 3
#: The regret is computed anew when there are this many times the rounds.
GROWTH = 1.5
#: Errors that other processes need not have: the step is tried again. Any other error is a function
#: of policy and step, the same everywhere, and a policy that raises it has not changed.
TRANSIENT = (MemoryError, OSError)


class Learner(Policy):
    """Let a policy be asked at any time, and learn when `work` is called.

    Attributes:
        policy: proposes and learns.
        steps: how many steps the policy has taken.
        given: how many there are, taken or waiting.
        is_following: another process learns, and its policy is adopted from time to time.
    """

    #: May be asked while it learns.
    is_concurrent = True

    def __init__(self, policy: GPPolicy) -> None:
        super().__init__(policy.oracle)
        self.policy = policy
        self.steps = self.given = 0
        self._set_up()

    def _set_up(self) -> None:
        """Make what is not saved."""
        #: The number of each step, when it was given, and what to do.
        self._queue: deque[tuple[int, float, str, tuple[Any, ...]]] = deque()
        self._turn, self._learning = threading.RLock(), threading.RLock()
        self.is_following = False
        self._asked = threading.local()
        self._regret: Regret | None = None
        self._judging = threading.Lock()

    @property
    def model_version(self) -> int:
        """How many steps the policy had taken when this thread last let it propose."""
        return int(self._asked.model_version)

    @property
    def noise_std(self) -> float:  # type: ignore[override]
        """Noise believed in when this thread last let the policy propose; NaN before that."""
        return float(getattr(self._asked, "noise_std", np.nan))

    @property
    def waiting(self) -> int:
        """How many steps are due."""
        return len(self._queue)

    @property
    def posterior(self) -> Posterior:
        """The posterior, up to date."""
        self.catch_up()
        return self.policy.posterior

    @contextlib.contextmanager
    def paused(self) -> Iterator[GPPolicy]:
        """Yield the policy as it is by now; it takes no step meanwhile."""
        with self._turn:
            yield self.policy

    @property
    def residuals(self) -> FloatArray:
        """Standardised one-step-ahead residuals of the outcomes learned so far."""
        with self._turn:
            return self.policy.residuals

    def calibration(self) -> Calibration:
        """Return how well the posterior foresaw the outcomes learned so far."""
        with self._turn:
            return self.policy.calibration()

    @property
    def regret_rounds(self) -> int:
        """Rounds that the latest regret is of; 0 before there is one."""
        return 0 if self._regret is None else self._regret.rounds

    def latest_regret(self) -> Regret | None:
        """Return the latest regret without waiting; a thread computes it if it is due."""
        if self._is_regret_due() and not self._judging.locked():
            threading.Thread(target=self.regret, daemon=True).start()
        return self._regret

    def regret(self) -> Regret:
        """Return the regret so far, under the posterior, computed anew every `GROWTH` rounds.

        A copy of the policy computes it, as it can take seconds.
        """
        with self._judging:
            if self._regret is None or self._is_regret_due():
                twin = persistence.loads(self.dumped()[1])
                assert isinstance(twin, GPPolicy)
                self._regret = twin.regret()
            return self._regret

    def _is_regret_due(self) -> bool:
        return self._regret is None or self.policy.round >= GROWTH * self._regret.rounds

    @property
    def uses_pending(self) -> bool:  # type: ignore[override]
        """Whether `propose` takes `pending` into account."""
        return self.policy.uses_pending

    def propose(
        self, contexts: ArrayLike, oracle: Oracle | None = None, pending: ArrayLike = ()
    ) -> Proposal:
        """Return what the policy would choose after the steps taken so far."""
        with self._turn:
            self._asked.model_version, self._asked.noise_std = self.steps, self.policy.noise_std
            if oracle is None or not oracle.is_search:
                return self.policy.propose(contexts, oracle, pending)
            scored = self.policy.propose(contexts, TopK(max(1, len(contexts))), pending)  # type: ignore[arg-type]
        return searched(scored, oracle)  # nothing waits for it

    def propensities(self, proposal: Proposal) -> Propensities | None:
        """Return how likely arms were to be chosen; None where nothing is random."""
        with self._turn:
            return self.policy.propensities(proposal)

    def redraws(self, proposal: Proposal) -> list[IntArray]:
        """Return super arms that the policy might have chosen instead, and the one it did."""
        with self._turn:
            return self.policy.redraws(proposal)

    def commit(self, played: Played) -> None:
        """Count a round, and let the policy see later what was offered and chosen."""
        self.round += 1
        self._later("commit", played)

    def learn(self, contexts: ArrayLike, outcomes: ArrayLike) -> None:
        """Learn outcomes (N,) of base arms that were played, with contexts (N, D), later."""
        self._in_parts("learn", contexts, outcomes)

    def observe(self, contexts: ArrayLike, outcomes: ArrayLike) -> None:
        """Learn outcomes (N,) at contexts (N, D) that were not chosen here, later."""
        self._in_parts("observe", contexts, outcomes)

    def correct(self, contexts: ArrayLike, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,) later."""
        self._later("correct", contexts, before, after)

    def _in_parts(self, name: str, contexts: ArrayLike, outcomes: ArrayLike) -> None:
        X, y = np.asarray(contexts), np.asarray(outcomes)
        for start in range(0, len(y), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            self._later(name, X[rows], y[rows])

    def _later(self, name: str, *arguments: Any) -> None:
        self.given += 1
        if self.given > self.steps:  # a policy that was adopted may know it
            self._queue.append((self.given, time.monotonic(), name, arguments))
        if len(self._queue) > MOST_WAITING:
            self.catch_up()

    def work(self) -> bool:
        """Take the next step; return whether there was one."""
        if not self._queue:
            return False
        with self._learning, self._turn:
            self._forget_taken()
            if not self._queue:
                return False
            _, _, name, arguments = self._queue[0]
            try:
                getattr(self.policy, name)(*arguments)
            except TRANSIENT:
                raise
            except Exception:
                LOGGER.exception("a step of learning (%s) failed and had no effect", name)
            self._queue.popleft()
            self.steps += 1
        return True

    def catch_up(self, until: int | None = None) -> None:
        """Take all steps that are due, or as many as make `until` in all."""
        while (until is None or self.steps < until) and self.work():
            pass

    def keep_up(self) -> None:
        """Take steps until the lag is tolerable."""
        while self.is_behind() and self.work():
            pass

    def is_behind(self) -> bool:
        """Return whether the lag is more than decisions tolerate."""
        try:
            since = self._queue[0][1]
        except IndexError:
            return False
        return time.monotonic() - since > (BEHIND_LEADER if self.is_following else BEHIND)

    def dumped(self, least: int = 0) -> tuple[int, bytes]:
        """Return the number of steps taken, at least `least`, and the policy after them.

        The policy can be asked meanwhile.
        """
        with self._learning:
            self.catch_up(least)
            for _ in range(DUMPS):
                with contextlib.suppress(RuntimeError):  # asking filled a cache at this moment
                    return self.steps, persistence.dumps(self.policy)
            with self._turn:
                return self.steps, persistence.dumps(self.policy)

    def adopt(self, steps: int, policy: GPPolicy) -> None:
        """Replace the policy by that of another process, unless it has taken no more steps."""
        with self._learning, self._turn:
            if steps > self.steps:
                self.policy, self.steps = policy, steps
                self._forget_taken()

    def _forget_taken(self) -> None:
        """Drop steps that the policy took before it was adopted."""
        while self._queue and self._queue[0][0] <= self.steps:
            self._queue.popleft()

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        raise NotImplementedError  # the policy believes

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        raise NotImplementedError  # the policy learns

    def _state(self) -> dict[str, Any]:
        """Return everything but the policy, which is written down apart by `dumped`."""
        return {"oracle": self.oracle, "round": self.round, "given": self.given}

    def _restore(self, state: dict[str, Any]) -> None:
        """Wait for `adopt` to bring the policy."""
        Policy.__init__(self, state["oracle"])
        self.round, self.given, self.steps = state["round"], state["given"], -1
        self._set_up()
