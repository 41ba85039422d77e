"""How much was left on the table so far, as the posterior sees it.

    f_s       a sample of f from the posterior, s = 1, …, S
    r_t(f)    regret of round t if f is the truth: what the round's oracle would have reached,
              given f, less the expected reward of the super arm that was played
    n, T      rounds that were kept, a uniform sample of all T

    regret of sample s  =  Σ r_t(f_s) over the rounds kept  +  (T - n) Σ g_t r_t(f_s)

g are Dirichlet weights (the Bayesian bootstrap): they carry the sampling error of the rounds
that were not kept into the interval. It is a belief under the prior, not a proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oclok.oracles.base import Oracle
from oclok.persistence import Persistent
from oclok.policies.calibration import Calibration
from oclok.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from oclok.posterior.base import Posterior

#: Rounds that are kept at most, and entries of their contexts in all: 2 MB. A base arm counts as
#: 8 entries at least: oracles and samples take their time whatever the dimension is, 6 s for 128
#: rounds of 1,500 arms.
MOST_ROUNDS, MOST_ENTRIES, LEAST_DIMENSION = 128, 262_144, 8
#: Samples of f.
SAMPLES = 128
#: The regret is computed anew when there are this many times the rounds, which keeps the cost per
#: call, with a call per round, to about a millisecond; in between it is extrapolated.
GROWTH = 1.5


@dataclass(frozen=True)
class Regret:
    """The regret of all rounds so far, as a distribution under the posterior.

    Attributes:
        median, lower, upper: of the regret so far.
        level: probability, under the posterior, that it is between `lower` and `upper`.
        per_round: what a further round is expected to cost, by the latest rounds kept.
        rounds: T, and how many of them, drawn uniformly, were looked at: `sampled`.
        calibration: whether the model deserves belief.
    """

    median: float
    lower: float
    upper: float
    level: float
    per_round: float
    rounds: int
    sampled: int
    calibration: Calibration

    def __str__(self) -> str:
        return (
            f"regret of {self.rounds} rounds: {self.median:.4g}, {self.level:.0%} between "
            f"{self.lower:.4g} and {self.upper:.4g}; a further round costs {self.per_round:.3g}. "
            f"A belief under the prior, not a proof; the model is {self.calibration}"
        )


class KeptRounds(Persistent):
    """A uniform sample of all rounds so far (reservoir sampling), of bounded size."""

    def __init__(self, seed: int = 0) -> None:
        self.rounds = 0
        self._capacity, self._entries = MOST_ROUNDS, 0
        self._rng = np.random.default_rng(seed)
        self._kept: list[tuple[int, FloatArray, IntArray, Oracle]] = []

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def numbers(self) -> list[int]:
        """Numbers of the rounds that are kept, from 1, in no order."""
        return [entry[0] for entry in self._kept]

    def add(self, contexts: FloatArray, super_arm: IntArray, oracle: Oracle) -> None:
        """Take note of a round: contexts (M, D) on offer, what was played, and the oracle."""
        self.rounds += 1
        entry = (self.rounds, contexts, super_arm, oracle)
        if len(self._kept) < self._capacity:
            self._kept.append(entry)
            self._entries += _entries(contexts)
        else:
            position = int(self._rng.integers(self.rounds))
            if position < self._capacity:
                self._entries += _entries(contexts) - _entries(self._kept[position][1])
                self._kept[position] = entry
        while len(self._kept) > 1 and self._entries > MOST_ENTRIES:
            self._capacity = max(1, len(self._kept) // 2)
            keep = self._rng.permutation(len(self._kept))[: self._capacity]
            self._kept = [self._kept[n] for n in sorted(keep)]
            self._entries = sum(_entries(contexts) for _, contexts, _, _ in self._kept)

    def regrets(self, posterior: Posterior, rng: np.random.Generator) -> FloatArray:
        """Return r_t(f_s), shape (S, n), rounds in the order in which they were played."""
        kept = sorted(self._kept, key=lambda entry: entry[0])
        samples = posterior.sample_paths(np.vstack([entry[1] for entry in kept]), SAMPLES, rng)
        result = np.empty((SAMPLES, len(kept)))
        stop = 0
        for n, (_, contexts, super_arm, oracle) in enumerate(kept):
            start, stop = stop, stop + len(contexts)
            f = samples[:, start:stop]
            result[:, n] = oracle.best_values(f) - oracle.values(f, super_arm)
        return np.maximum(np.nan_to_num(result), 0.0)  # a reward need not exist for every f


@dataclass(frozen=True)
class Estimate:
    """Samples (S,) of the regret of the first `rounds` rounds, and of what the latest cost each."""

    rounds: int
    sampled: int
    total: FloatArray
    latest: FloatArray

    @classmethod
    def of(cls, kept: KeptRounds, posterior: Posterior) -> Estimate:
        """Return the estimate for all rounds so far."""
        T, n = kept.rounds, len(kept)
        if n == 0:
            return cls(T, 0, np.zeros(1), np.zeros(1))
        rng = np.random.default_rng([T, len(posterior)])
        r = kept.regrets(posterior, rng)
        total = r.sum(axis=1)
        if n < T:
            weights = rng.dirichlet(np.ones(n), size=len(r))
            total += (T - n) * np.einsum("sn,sn->s", weights, r)
        return cls(T, n, total, r[:, -max(1, n // 4) :].mean(axis=1))

    def is_stale(self, rounds: int) -> bool:
        """Return whether too many rounds were played since to go by what the latest cost."""
        return rounds >= GROWTH * self.rounds

    def at(self, rounds: int, level: float, calibration: Calibration) -> Regret:
        """Return the regret of `rounds` rounds, those since then at the price of the latest."""
        total = self.total + (rounds - self.rounds) * self.latest
        tail = (1 - level) / 2
        # Weibull's positions, n / (S + 1): the chance that a further sample lies below.
        quantiles = np.quantile(total, [tail, 0.5, 1 - tail], method="weibull")
        lower, median, upper = quantiles.tolist()
        each = float(self.latest.mean())
        return Regret(median, lower, upper, level, each, rounds, self.sampled, calibration)


def _entries(contexts: FloatArray) -> int:
    """Return as how many entries `contexts` (M, D) count."""
    return len(contexts) * max(contexts.shape[1], LEAST_DIMENSION)
