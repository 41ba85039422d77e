"""Never much worse than the baseline: explore only what the savings so far allow.

    S, B     the policy's set and the baseline's, of one decision      u   reward of a set
    ε, δ     share of the baseline's reward that may be lost, and probability of losing more
    d        u(S) - (1 - ε) u(B) where S is played, ε u(B) where B is

The promise is Σ d ≥ 0 at all times, with probability 1 - δ. Before S is played, a lower bound of
Σ d with this d included must not be negative; otherwise B is played, which only adds savings (Wu,
Shariff, Lattimore and Szepesvári 2016; Kazerouni, Ghavamzadeh, Abbasi and Van Roy 2017; for sets,
arXiv 1911.11337). The bound is the posterior's own: mean less w_n standard deviations of the sum,

    w_n = Φ⁻¹(1 - 6δ / π²n²)

for the n-th time that the policy's set is played, n from START, so that all of them hold at once by
a union bound. A baseline may know more of f than the posterior does: every arm is taken to be
INFORMED standard deviations off, its own better, the policy's worse, and it makes the first
decisions alone.

Rewards that are sums of outcomes are bounded jointly: contexts of the latest decisions are kept and
looked at again with what was learned since; older ones are settled. Other rewards are bounded by
samples of f when the decision is made. Late outcomes leave the posterior wide, and the guard
careful. Decisions made at the same moment by several processes spend the same savings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri

from oclok.oracles.base import Oracle
from oclok.persistence import Persistent
from oclok.policies.certificate import Assumption
from oclok.typing import FloatArray, IntArray
from oclok.validation import as_probability

if TYPE_CHECKING:
    from oclok.policies.calibration import Calibration
    from oclok.posterior.base import Posterior

#: Contexts that are looked at again, at most; half of them are settled when they are more.
MOST_ROWS = 256
#: n starts here, and the first FIRST decisions are the baseline's.
START, FIRST = 3, 2
#: Standard deviations by which every arm is taken to be off, in favour of the baseline.
INFORMED = 0.15
#: Samples of f that bound a reward which is no sum.
SAMPLES = 128


class Step(NamedTuple):
    """What the guard says of one decision; plain values, so that a log can keep it.

    Attributes:
        stepped_in: whether the baseline's set is played in place of the policy's.
        is_own: whether the policy's set is played, and differs from the baseline's.
        is_sum: whether the reward is the sum of the outcomes.
        fallback: positions of the baseline's set.
        gain: lower bound of d.
        reserve: lower bound of Σ d afterwards, if no other decision comes in between.
        at: number of decisions before this one.
        settled: lower bound of Σ d over the oldest `dropped` decisions that are kept.
        dropped: how many of them are settled by this step.
    """

    stepped_in: bool
    is_own: bool
    is_sum: bool
    fallback: list[int]
    gain: float
    reserve: float
    at: int
    settled: float = 0.0
    dropped: int = 0


@dataclass(frozen=True)
class GuardReport:
    """What the guard did, and what its promise rests on.

    Attributes:
        share: ε.
        probability: 1 - δ.
        decisions: that the guard was asked about.
        stepped_in: how many of them it left to the baseline.
        reserve: lower bound of what was earned beyond 1 - ε of the baseline's reward.
        assumptions: each with a verdict.
    """

    share: float
    probability: float
    decisions: int
    stepped_in: int
    reserve: float
    assumptions: tuple[Assumption, ...]

    def __str__(self) -> str:
        head = (
            f"at least {1 - self.share:.0%} of the baseline's reward at any time, with probability "
            f"{self.probability:g}; stepped in at {self.stepped_in:,} of {self.decisions:,} "
            f"decisions; {self.reserve:.3g} saved"
        )
        return "\n  ".join([head, *map(str, self.assumptions)])


class Guard(Persistent):
    """Decides whether a policy's set may be played in place of the baseline's.

    `share` is ε, `delta` is δ.
    """

    def __init__(self, share: float, delta: float = 0.05) -> None:
        self.share = as_probability(share, "guard")
        self.delta = as_probability(delta, "delta")
        self.decisions = self.stepped_in = self.own = 0
        self.reserve = self._settled = 0.0
        self._rows: list[FloatArray] = []
        self._weights: list[FloatArray] = []

    def consider(
        self,
        posterior: Posterior,
        contexts: FloatArray,
        oracle: Oracle,
        chosen: IntArray,
        fallback: IntArray,
        calibration: Calibration | None = None,
    ) -> Step:
        """Return whether `chosen`, S, may be played, or `fallback`, B, must be. Changes nothing.

        Both are positions into `contexts` (M, D) of all arms. Bounds are as much wider as
        `calibration` shows outcomes further off than predicted.
        """
        width = self._width(calibration)
        adds_up = is_sum(oracle, contexts, np.union1d(chosen, fallback))
        differs = not np.array_equal(chosen, fallback)

        def gained(played: IntArray) -> float:
            if adds_up:
                rows, w = self._weighted(played, fallback)
                return _lower_of_sum(posterior, contexts[rows], w, width)
            f = _samples(posterior, contexts, np.random.default_rng(self.decisions))
            with np.errstate(all="ignore"):  # a reward need not exist for every f
                d = oracle.values(f, played) - (1 - self.share) * oracle.values(f, fallback)
            if not np.isfinite(d).all():  # the reward does not exist for some f
                return -math.inf
            return float(d.mean() - (width + INFORMED) * d.std(ddof=1))

        is_own, gain = False, 0.0
        if differs and self.decisions >= FIRST:
            gain = gained(chosen)
            reserve = self.reserve + gain
            if reserve < 0 and adds_up and self._rows:
                rows, w = self._weighted(chosen, fallback)
                X, weights = [*self._rows, contexts[rows]], [*self._weights, w]
                again = _lower_of_sum(posterior, np.vstack(X), np.concatenate(weights), width)
                reserve = max(reserve, self._settled + again)
            is_own = reserve >= 0
        if not is_own:
            gain = max(gained(fallback), 0.0)
            reserve = self.reserve + gain
        settled, dropped = 0.0, 0
        if sum(map(len, self._rows)) > MOST_ROWS:
            dropped = len(self._rows) // 2
            X, weights = self._rows[:dropped], self._weights[:dropped]
            settled = _lower_of_sum(posterior, np.vstack(X), np.concatenate(weights), width)
        return Step(
            differs and not is_own,
            is_own,
            adds_up,
            fallback.tolist(),
            gain,
            reserve,
            self.decisions,
            settled,
            dropped,
        )

    def record(self, step: Step, contexts: FloatArray, played: IntArray) -> None:
        """Take note of a decision among arms with `contexts`, in which `played` is played."""
        is_next = step.at == self.decisions
        self.decisions += 1
        self.own += step.is_own
        self.stepped_in += step.stepped_in
        self.reserve = step.reserve if is_next else self.reserve + step.gain
        if is_next and step.dropped:
            self._settled += step.settled
            del self._rows[: step.dropped], self._weights[: step.dropped]
        if step.is_sum:
            fallback = np.array(step.fallback, dtype=np.intp)
            rows, weights = self._weighted(fallback if not step.is_own else played, fallback)
            self._rows.append(contexts[rows])
            self._weights.append(weights)
        else:
            self._settled += step.gain

    def report(self, calibration: Calibration | None = None) -> GuardReport:
        """Return what the guard did so far, and what its promise rests on."""
        is_off = calibration is not None and calibration.is_contradicted
        assumptions = (
            Assumption(
                "posterior",
                "rewards are distributed as the posterior says",
                "contradicted" if is_off else "not contradicted",
                "no outcomes to judge by" if calibration is None else str(calibration),
            ),
            Assumption(
                "baseline",
                "the baseline's expected reward is never negative, and does not depend on which "
                "decisions are left to it",
                "unchecked",
                "it is what the rule says",
            ),
        )
        return GuardReport(
            self.share, 1 - self.delta, self.decisions, self.stepped_in, self.reserve, assumptions
        )

    def _width(self, calibration: Calibration | None) -> float:
        """Return w_n, widened by how far outcomes were off."""
        n = self.own + START
        width = -float(ndtri(6 * self.delta / (math.pi * n) ** 2))
        if calibration is not None and calibration.is_contradicted:
            width *= calibration.spread
        return width

    def _weighted(self, chosen: IntArray, fallback: IntArray) -> tuple[IntArray, FloatArray]:
        """Return positions, and the weight of each in d, where `chosen` is played."""
        both = np.union1d(chosen, fallback)
        return both, np.isin(both, chosen) - (1 - self.share) * np.isin(both, fallback)


def is_sum(oracle: Oracle, contexts: FloatArray, super_arm: IntArray) -> bool:
    """Return whether the reward of a set is the sum of its outcomes, by trying."""
    for means in (np.linspace(0.1, 0.9, len(contexts)), np.linspace(0.4, 0.2, len(contexts))):
        if not math.isclose(oracle.value(means, super_arm), means[super_arm].sum(), rel_tol=1e-9):
            return False
    return True


def _lower_of_sum(
    posterior: Posterior, rows: FloatArray, weights: FloatArray, width: float
) -> float:
    """Return the lower bound of a weighted sum of f; weights below 0 are of the baseline's arms."""
    prediction = posterior.predict(rows)
    variance = float(weights @ prediction.covariance() @ weights)
    informed = INFORMED * float(np.abs(weights) @ prediction.std)
    return float(weights @ prediction.mean) - informed - width * math.sqrt(max(variance, 0.0))


def _samples(posterior: Posterior, contexts: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return SAMPLES joint samples of f, shape (SAMPLES, M)."""
    prediction = posterior.predict(contexts)
    values, vectors = np.linalg.eigh(prediction.covariance())
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = rng.standard_normal((SAMPLES, len(contexts)))
    result: FloatArray = prediction.mean + draws @ root.T
    return result
