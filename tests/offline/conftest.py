"""A small world whose truth is known by brute force: three kinds of rounds, four base arms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from oclok.offline import Log, LoggedRound
from oclok.oracles import TopK
from oclok.policies import Belief, Policy

K = 2
KINDS = np.random.default_rng(42).random((3, 4, 2))
#: Super arms of the logging policy have a propensity that falls with their rank by x².
SETS = list(itertools.combinations(range(4), K))
PROPENSITIES = np.array([0.25, 0.2, 0.2, 0.15, 0.1, 0.1])


def f(contexts: np.ndarray) -> np.ndarray:
    return np.sin(3 * contexts[:, 0]) + contexts[:, 1] ** 2


class Fixed(Policy):
    """Prefers a small first feature, whatever comes of it."""

    def _score(self, contexts, t, rng):
        return Belief(-contexts[:, 0])

    def _learn(self, contexts, outcomes):
        pass


class World:
    """Logs of this world, and what is true of it."""

    Fixed = Fixed
    kinds = KINDS
    f = staticmethod(f)

    def log(self, rounds: int, seed: int, *, uniform: bool = False, oracle=None) -> Log:
        rng = np.random.default_rng(seed)
        known = [self.propensities(contexts, uniform) for contexts in KINDS]
        kinds = rng.choice(3, rounds, p=[0.5, 0.3, 0.2])
        oracle = oracle or TopK(K)
        return Log(self._round(KINDS[kind], *known[kind], rng, oracle) for kind in kinds)

    @staticmethod
    def _round(contexts, P, p, rng, oracle) -> LoggedRound:
        chosen = rng.choice(len(SETS), p=P)
        super_arm = np.array(SETS[chosen])
        outcomes = f(contexts)[super_arm] + 0.4 * rng.standard_normal(K)
        return LoggedRound(contexts, super_arm, outcomes, oracle, p, P[chosen])

    @staticmethod
    def propensities(contexts, uniform):
        """Return P(S) of all super arms and, by summing them up, p_m of all base arms."""
        P = np.full(len(SETS), 1 / math.comb(4, K))
        if not uniform:
            order = np.argsort([-contexts[list(S), 1].sum() for S in SETS])
            P[order] = PROPENSITIES
        p = np.array([sum(q for S, q in zip(SETS, P, strict=True) if m in S) for m in range(4)])
        return P, p

    @staticmethod
    def best(contexts: np.ndarray) -> list[int]:
        """Return what `Fixed` chooses."""
        return sorted(np.argsort(contexts[:, 0])[:K].tolist())

    def true_value(self) -> float:
        """Return the expected reward of `Fixed`."""
        rewards = [f(contexts)[self.best(contexts)].sum() for contexts in KINDS]
        return float(np.dot([0.5, 0.3, 0.2], rewards))


@pytest.fixture(scope="session")
def world() -> World:
    return World()


@pytest.fixture(scope="session")
def many_logs(world) -> dict[bool, list[Log]]:
    """Fifty logs whose super arms were chosen uniformly (True), and fifty where not (False)."""
    return {
        uniform: [world.log(120, seed, uniform=uniform) for seed in range(50)]
        for uniform in (True, False)
    }
