"""Simulation I as a workload: the rounds, their outcomes, and playing them against the clock.

Outcomes depend on the seed, the round and the base arm alone, so that all who choose the same
base arms see the same outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from oclok import OClokUCB
from oclok.bench import Crowdsourcing
from oclok.oracles import TopK
from oclok.posterior import DictionaryPosterior, ExactPosterior, Posterior, SparsePosterior

NOISE_STD = 0.1
ORACLE = TopK(5)


@dataclass(frozen=True)
class Task:
    """A round: contexts (M, 3) of its base arms, and the outcome (M,) each would have."""

    contexts: np.ndarray
    outcomes: np.ndarray


@dataclass(frozen=True)
class Played:
    """Super arms, one a round, and the seconds that `select` and `update` took in it."""

    super_arms: list[np.ndarray]
    seconds: np.ndarray
    exact: np.ndarray

    def equal(self, other: Played) -> int:
        """Return in how many rounds both chose the same super arm."""
        pairs = zip(self.super_arms, other.super_arms, strict=False)
        return sum(np.array_equal(a, b) for a, b in pairs)


def tasks(rounds: int, seed: int = 0) -> list[Task]:
    """Return the first `rounds` rounds of Simulation I."""
    noise = np.random.SeedSequence(seed).spawn(rounds)
    return [
        Task(now.contexts, now.play(np.arange(len(now.means)), np.random.default_rng(noise[t])))
        for t, now in enumerate(Crowdsourcing(rounds=rounds, seed=seed))
    ]


def play(policy: Any, rounds: Iterable[Task]) -> Played:
    """Let `policy`, anything with `select` and `update`, play `rounds`."""
    super_arms, seconds, exact = [], [], []
    for task in rounds:
        start = perf_counter()
        decision = policy.select(task.contexts)
        chosen = perf_counter() - start
        outcomes = task.outcomes[decision.super_arm]
        start = perf_counter()
        policy.update(decision, outcomes)
        seconds.append(chosen + perf_counter() - start)
        super_arms.append(decision.super_arm)
        exact.append(decision.is_exact)
    return Played(super_arms, np.array(seconds), np.array(exact))


def exact(kernel: Any = None) -> OClokUCB:
    """Return O'CLOK-UCB with the exact posterior."""
    return policy(ExactPosterior(kernel or RBF(1.0), NOISE_STD))


def dictionary(kernel: Any = None, **budget: int) -> OClokUCB:
    """Return O'CLOK-UCB as it comes, with the dictionary."""
    return policy(DictionaryPosterior(kernel or RBF(1.0), NOISE_STD, **budget))


def sparse() -> OClokUCB:
    """Return SO'CLOK-UCB with 50 random inducing points."""
    return policy(SparsePosterior(RBF(1.0), NOISE_STD, inducing=50, seed=0))


def policy(posterior: Posterior) -> OClokUCB:
    """Return O'CLOK-UCB with `posterior` and the workload's oracle."""
    return OClokUCB(posterior=posterior, oracle=ORACLE)
