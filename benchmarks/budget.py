"""A bounded cost for every kernel and every dimension: rounds, stalls and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from benchmarks.environment import memory
from benchmarks.report import Result, Row, Target
from benchmarks.resumable import answer, measured
from oclok import BayesUCB
from oclok.oracles import TopK

ARMS, K, NOISE_STD = 100, 5, 0.1
#: Outcomes in the end, rounds before, and those among them that have few outcomes behind them.
MANY, ROUNDS, FEW = 100_000, 2_000, slice(400, 700)
#: Rounds after MANY outcomes; rounds between turns of the reference; outcomes given at once.
LATE_ROUNDS, TURN, AT_ONCE = 200, 10, 2_000
KERNELS: dict[str, Callable[[int], Any]] = {
    "RBF(1)": lambda D: RBF(1.0),
    "RBF(√D)": lambda D: RBF(D**0.5),
    "Matérn 5/2": lambda D: Matern(1.0, nu=2.5),
    "Matérn 3/2": lambda D: Matern(1.0, nu=1.5),
    "linear": lambda D: DotProduct(1.0),
}
DIMENSIONS, CONTEXTS = (3, 8, 20, 64), ("uniform", "Gaussian")


def run(quick: bool) -> Result:
    sizes = (120, 4_000) if quick else (ROUNDS, MANY)
    rows = [
        {"case": f"{name}, D = {D}, {contexts}"}
        | measured(__name__, "cost", D, name, contexts, *sizes)
        for D, name, contexts in product((3, 8) if quick else DIMENSIONS, KERNELS, CONTEXTS)
    ]
    targets = [
        Target(f"worst {column}", limit, max(row[column] for row in rows), at_most=True)
        for column, limit in LIMITS.items()
    ]
    return Result("Budget: every kernel and dimension", rows, targets, NOTES)


LIMITS = {"growth": 1.5, "over RBF(1), D = 3": 10.0, "slowest": 20.0, "peak, MB": 400.0}
NOTES = (
    "CPU time of `select` and `update` of Bayes-UCB, 100 arms, 5 chosen: 2,000 rounds from "
    "nothing, then 90,000 outcomes in bulk, then 200 rounds, in turns with RBF(1) in 3 uniform "
    "dimensions. Growth is from 2,000 outcomes to 100,000; slowest is that of the 2,000 rounds "
    "(and of the 200) over their median; the peak is that of the whole process."
)


def cost(D: int, name: str, contexts: str, rounds: int, many: int) -> Row:
    """Measure rounds with few and with many outcomes behind them."""
    rng = np.random.default_rng(0)
    ours = _Player(KERNELS[name](D), D, contexts == "uniform", rng)
    reference = _Player(RBF(1.0), 3, True, rng)
    warm = _Player(RBF(1.0), 3, True, rng)
    for _ in range(3):  # so that no round has to import anything, or look for BLAS libraries
        warm.play()
    early = _in_turns(ours, reference, rounds)
    few = early[FEW] if rounds == ROUNDS else early[-rounds // 2 :]
    start = time.process_time()
    ours.learn(many - K * rounds)
    bulk = time.process_time() - start
    late = _in_turns(ours, reference, min(LATE_ROUNDS, rounds))
    before, after = (_over_reference(part) for part in (few, late))
    return {
        "rank": ours.policy.posterior.rank,
        "round, ms": 1e3 * float(np.median(late[:, 0])),
        "growth": after / before,
        "over RBF(1), D = 3": max(before, after),
        "slowest": max(_slowest(early), _slowest(late)),
        "bulk, ms per outcome": 1e3 * bulk / (many - K * rounds),
        "peak, MB": memory()[1],
    }


def _in_turns(ours: _Player, reference: _Player, rounds: int) -> np.ndarray:
    """Return CPU times of rounds of both, shape (rounds, 2)."""
    taken = np.empty((rounds, 2))
    for start in range(0, rounds, TURN):
        for column, player in enumerate((ours, reference)):
            for t in range(start, min(start + TURN, rounds)):
                taken[t, column] = player.play()
    return taken


def _over_reference(taken: np.ndarray) -> float:
    median, reference = np.median(taken, axis=0)
    return float(median / reference)


def _slowest(taken: np.ndarray) -> float:
    return float(taken[:, 0].max() / np.median(taken[:, 0]))


class _Player:
    """A policy and the contexts it meets; outcomes are a wave along a random direction."""

    def __init__(self, kernel: Any, D: int, uniform: bool, rng: np.random.Generator) -> None:
        self.policy = BayesUCB(kernel, NOISE_STD, TopK(K))
        draw = rng.random if uniform else rng.standard_normal
        self._draw: Callable[[int], np.ndarray] = lambda n: draw((n, D))
        self._direction = rng.standard_normal(D)
        self._rng = rng

    def learn(self, count: int) -> None:
        """Learn `count` outcomes in bulk."""
        for start in range(0, count, AT_ONCE):
            X = self._draw(min(AT_ONCE, count - start))
            self.policy.observe(X, self._outcomes(X))

    def play(self) -> float:
        """Play a round and return its CPU time."""
        X = self._draw(ARMS)
        start = time.process_time()
        decision = self.policy.select(X)
        chosen = time.process_time() - start
        outcomes = self._outcomes(decision.contexts)
        start = time.process_time()
        self.policy.update(decision, outcomes)
        return chosen + time.process_time() - start

    def _outcomes(self, X: np.ndarray) -> np.ndarray:
        return np.sin(X @ self._direction) + NOISE_STD * self._rng.standard_normal(len(X))


if __name__ == "__main__":
    answer(cost=cost)
