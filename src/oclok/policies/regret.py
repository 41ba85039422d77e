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

import math
from dataclasses import dataclass

import numpy as np

from oclok.oracles.base import Oracle
from oclok.persistence import Persistent
from oclok.policies.calibration import Calibration
from oclok.posterior.base import Posterior
from oclok.typing import FloatArray, IntArray

#: Most rounds kept, and most entries of their contexts in all. A base arm counts as at least
#: LEAST_DIMENSION entries: oracles and samples take time in any dimension.
MOST_ROUNDS, MOST_ENTRIES, LEAST_DIMENSION = 256, 262_144, 8
#: Samples of f.
SAMPLES = 96


@dataclass(frozen=True)
class Regret:
    """The regret of all rounds so far, as a distribution under the posterior.

    Attributes:
        median, lower, upper: of the regret so far.
        level: probability, under the posterior, that it is between `lower` and `upper`.
        per_round: what a further round is expected to cost, by the latest rounds kept.
        rounds: T, and how many of them, drawn uniformly, were looked at: `sampled`.
        calibration: whether the model deserves belief. Where the data contradict it, `median`,
            `lower`, `upper` and `per_round` are NaN: there is no number to believe.
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
        if self.calibration.is_contradicted:
            return (
                f"regret of {self.rounds} rounds: not known, as the data contradict the model; it "
                f"is {self.calibration}"
            )
        return (
            f"regret of {self.rounds} rounds: {self.median:.4g}, {self.level:.0%} between "
            f"{self.lower:.4g} and {self.upper:.4g}; a further round costs {self.per_round:.3g}. "
            f"A belief under the prior, not a proof; the model is {self.calibration}"
        )


class KeptRounds(Persistent):
    """A uniform sample of all rounds so far, of bounded size.

    When there are too many, a random half stays, and of later rounds the same fraction is kept.
    The next of these is drawn in advance, so most rounds cost nothing.
    """

    def __init__(self, seed: int = 0) -> None:
        self.rounds = 0
        self._next, self._rate, self._entries = 1, 1.0, 0
        self._rng = np.random.default_rng(seed)
        self._kept: list[tuple[int, FloatArray, IntArray, Oracle]] = []

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def numbers(self) -> list[int]:
        """Numbers of the rounds that are kept, from 1, ascending."""
        return [entry[0] for entry in self._kept]

    def add(self, contexts: FloatArray, super_arm: IntArray, oracle: Oracle) -> None:
        """Add a round: contexts (M, D) on offer, the super arm played, and the oracle."""
        self.rounds += 1
        if self.rounds < self._next:
            return
        self._kept.append((self.rounds, contexts, super_arm, oracle))
        self._entries += _entries(contexts)
        if len(self._kept) > MOST_ROUNDS or self._entries > MOST_ENTRIES:
            self._thin_out()
        self._next = self.rounds + 1
        if self._rate < 1.0:  # a geometric number of rounds is passed over
            self._next += int(math.log1p(-self._rng.random()) / math.log1p(-self._rate))

    def _thin_out(self) -> None:
        """Drop rounds at random until half of what may be kept is left, and one at least."""
        drawn = self._rng.permutation(len(self._kept))
        entries = np.cumsum([_entries(self._kept[n][1]) for n in drawn])
        count = min(MOST_ROUNDS // 2, int(np.count_nonzero(entries <= MOST_ENTRIES // 2)))
        count = max(count, 1)
        self._kept = [self._kept[n] for n in np.sort(drawn[:count])]
        self._entries = int(entries[count - 1])
        self._rate = count / self.rounds

    def regrets(self, posterior: Posterior, rng: np.random.Generator) -> FloatArray:
        """Return r_t(f_s), shape (S, n), rounds in the order in which they were played."""
        contexts = np.vstack([entry[1] for entry in self._kept])
        samples = posterior.sample_paths(contexts, SAMPLES, rng)
        result = np.empty((SAMPLES, len(self)))
        stop = 0
        for n, (_, contexts, super_arm, oracle) in enumerate(self._kept):
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
        """Return whether two further rounds were played for each one in it."""
        return rounds - self.rounds >= 2 * max(self.sampled, 1)

    def at(self, rounds: int, level: float, calibration: Calibration) -> Regret:
        """Return the regret of `rounds` rounds, extrapolated at the latest cost per round."""
        if calibration.is_contradicted:
            nan = math.nan
            return Regret(nan, nan, nan, level, nan, rounds, self.sampled, calibration)
        total = self.total + (rounds - self.rounds) * self.latest
        tail = (1 - level) / 2
        # Weibull's positions, n / (S + 1): the chance that a further sample lies below.
        lower, median, upper = np.quantile(total, [tail, 0.5, 1 - tail], method="weibull").tolist()
        each = float(self.latest.mean())
        return Regret(median, lower, upper, level, each, rounds, self.sampled, calibration)


def _entries(contexts: FloatArray) -> int:
    return len(contexts) * max(int(contexts.shape[1]), LEAST_DIMENSION)
