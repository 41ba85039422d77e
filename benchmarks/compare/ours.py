"""oclok's players: the default, and what it is measured against."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.gaussian_process.kernels import RBF

from benchmarks.compare.peers import Player
from oclok.decision import Decision
from oclok.oracles.base import Oracle
from oclok.policies import UCB, BayesUCB, OClokUCB, Random, ThompsonSampling
from oclok.policies.base import Policy
from oclok.typing import FloatArray, IntArray


class Ours:
    """A policy of oclok as a player."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._decision: Decision | None = None

    def select(self, contexts: FloatArray, oracle: Oracle) -> IntArray:
        """Return the super arm to play."""
        self._decision = self._policy.select(contexts, oracle=oracle)
        return self._decision.super_arm

    def learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        """Learn the outcomes of the arms that were chosen."""
        assert self._decision is not None
        self._policy.update(self._decision, outcomes)


#: player → setting → a new player for the run of a seed.
OURS: dict[str, dict[str, Callable[[int], Player]]] = {
    "random": {"": lambda _: Ours(Random(seed=0))},
    "OClokUCB": {"RBF(1)": lambda _: Ours(OClokUCB(RBF(1.0), 0.1))},
    "BayesUCB": {"RBF(1)": lambda _: Ours(BayesUCB(RBF(1.0), 0.1))},
    "oclok": {"default": lambda _: Ours(UCB())},
    "oclok, Thompson": {"default": lambda _: Ours(ThompsonSampling(seed=0))},
}
