"""oclok's players: the default, and what it is measured against."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from benchmarks.compare.peers import Player
from benchmarks.compare.tables import TableRound
from oclok import Agent
from oclok.bench.problems.base import Round
from oclok.decision import Decision
from oclok.policies import UCB, BayesUCB, OClokUCB, Random
from oclok.policies.base import Policy
from oclok.typing import FloatArray, IntArray


class Ours:
    """A policy of oclok as a player; on a table, an `Agent` with that policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._agent: Agent | None = None
        self._decision: Decision | None = None
        self._id = ""

    def select(self, current: Round) -> IntArray:
        if not isinstance(current, TableRound):
            self._decision = self._policy.select(current.contexts, oracle=current.oracle)
            return self._decision.super_arm
        self._agent = self._agent or Agent(current.oracle, policy=self._policy)
        decision = self._agent.decide(current.frame)
        self._id, self._chosen = decision.id, decision.chosen
        return np.sort(current.frame.index.get_indexer(decision.chosen))

    def learn(self, current: Round, super_arm: IntArray, outcomes: FloatArray) -> None:
        if self._agent is None:
            assert self._decision is not None
            self._policy.update(self._decision, outcomes)
        else:
            assert isinstance(current, TableRound)
            ids = current.frame.index[super_arm].tolist()
            self._agent.learn(self._id, dict(zip(ids, outcomes.tolist(), strict=True)))

    def coverage(self) -> float | None:
        """Return the share of the later half of outcomes that were within their 95% band."""
        residuals = getattr(self._policy, "residuals", np.empty(0))
        if not len(residuals):
            return None
        return float(np.mean(np.abs(residuals[len(residuals) // 2 :]) <= 1.96))


#: player → setting → a new player for the run of a seed.
OURS: dict[str, dict[str, Callable[[int], Player]]] = {
    "random": {"": lambda _: Ours(Random(seed=0))},
    "OClokUCB": {"RBF(1)": lambda _: Ours(OClokUCB(RBF(1.0), 0.1))},
    "BayesUCB": {"RBF(1)": lambda _: Ours(BayesUCB(RBF(1.0), 0.1))},
    "oclok": {"default": lambda _: Ours(UCB())},
}
