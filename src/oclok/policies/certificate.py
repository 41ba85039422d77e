"""How much a policy can have lost so far: the proof of Theorem 1, evaluated as it goes.

    t          round                          S_t      super arm of round t, |S_t| ≤ K
    Σ_t        joint covariance of f at the chosen contexts, when they were chosen
    σ_t,k      square roots of its diagonal   λ*       largest eigenvalue of any Σ_t
    g_t        ½ log det(I + σ⁻²Σ_t)          σ        standard deviation of the noise
    e_t        allowance for a posterior that is not exact; 0 for one that is
    B_t        Lipschitz constant of the reward of round t, as its oracle says; B the largest

    regret  ≤  2 Σ_t B_t (√β_t Σ_k σ_t,k + e_t)                             (equation 11)
            ≤  √(8B² (λ* + σ²) K Σ_t β_t Σ_t g_t) + 2 Σ_t B_t e_t           (Theorem 1)

With prompt feedback Σ g_t is the information gain of all outcomes, by the chain rule. With late
feedback g_t is larger, as Σ_t was: Lemma 3 holds round by round for the Σ_t that was there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from oclok.persistence import Persistent
from oclok.posterior.linalg import factor
from oclok.theory import regret_bound
from oclok.typing import FloatArray

#: Rounds whose covariances are settled in one batch.
SETTLED_AT_ONCE = 64

#: Whether an assumption is known to hold, passes a test, fails it, or cannot be checked.
Verdict = Literal["holds", "not contradicted", "contradicted", "unchecked"]


@dataclass(frozen=True)
class Assumption:
    """Something that a certificate takes for granted.

    Attributes:
        name: "prior", "kernel", "arrival" or "oracle".
        statement: what is assumed.
        verdict: "contradicted" if the data or the settings speak against it, "not contradicted" if
            they could and do not; "unchecked" where neither can.
        reason: why.
    """

    name: str
    statement: str
    verdict: Verdict
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.statement}: {self.verdict} ({self.reason})"


@dataclass(frozen=True)
class Certificate:
    """Upper bounds on the regret so far; both hold with probability `probability`.

    They are infinite where an oracle states no Lipschitz constant, or a posterior no error bound.

    Attributes:
        rounds: T, rounds so far.
        from_widths: bound by equation 11, the tighter one.
        from_information: bound by Theorem 1, with the information gain that was realised.
        information_gain: Σ g_t, in nats.
        largest_eigenvalue: λ*.
        widths: Σ σ over all chosen base arms.
        probability: 1 - δ.
        assumptions: what they rest on, each with a verdict.
    """

    rounds: int
    from_widths: float
    from_information: float
    information_gain: float
    largest_eigenvalue: float
    widths: float
    probability: float
    assumptions: tuple[Assumption, ...] = ()

    @property
    def is_contradicted(self) -> bool:
        """Whether data or settings speak against an assumption: then the bounds mean nothing."""
        return any(each.verdict == "contradicted" for each in self.assumptions)

    def __str__(self) -> str:
        head = (
            f"regret of {self.rounds} rounds ≤ {self.from_widths:.4g} "
            f"with probability {self.probability:g}"
        )
        if self.is_contradicted:
            head += ", but an assumption is contradicted"
        return "\n  ".join([head, *map(str, self.assumptions)])


class CertificateSums(Persistent):
    """The sums that the proof needs, round by round."""

    def __init__(self, noise_std: float) -> None:
        self.noise_std = noise_std
        self.rounds = self.largest_super_arm = 0
        self.sum_beta = self.sum_std = self.sum_widths = self.sum_allowance = 0.0
        self.information_gain = self.largest_eigenvalue = self.largest_lipschitz = 0.0
        self._waiting: list[FloatArray] = []

    def record(
        self,
        beta: float,
        widths: FloatArray,
        covariance: FloatArray,
        allowance: float,
        lipschitz: float | None,
    ) -> None:
        """Add a round: β_t, √β_t σ_t,k (K,), Σ_t (K, K), e_t and B_t, None if not known."""
        B = math.inf if lipschitz is None else lipschitz
        self.rounds += 1
        self.sum_beta += beta
        self.sum_allowance += B * allowance if allowance else 0.0
        self.largest_lipschitz = max(self.largest_lipschitz, B)
        if len(widths):
            self.largest_super_arm = max(self.largest_super_arm, len(widths))
            self.sum_widths += B * sum(widths.tolist())
            self._waiting.append(covariance)
            if len(self._waiting) >= SETTLED_AT_ONCE:
                self._settle()

    def _settle(self) -> None:
        """Add up the covariances of the rounds that wait."""
        for size in {len(each) for each in self._waiting}:
            covariances = np.array([each for each in self._waiting if len(each) == size])
            variance = np.maximum(np.einsum("tkk->tk", covariances), 0.0)
            self.sum_std += float(np.sqrt(variance).sum())
            # The trace bounds the largest eigenvalue, which is needed only for a new record.
            records = covariances[variance.sum(axis=1) > self.largest_eigenvalue]
            if len(records):
                largest = float(np.linalg.eigvalsh(records)[:, -1].max())
                self.largest_eigenvalue = max(self.largest_eigenvalue, largest)
            scaled = covariances / self.noise_std**2 + np.eye(size)
            signs, logarithms = np.linalg.slogdet(scaled)
            self.information_gain += float(logarithms[signs > 0].sum()) / 2
            for odd in scaled[signs <= 0]:  # rounding error outweighs the noise
                self.information_gain += float(np.log(factor(odd, 1.0).diagonal()).sum())
        self._waiting.clear()

    def certificate(self, delta: float, assumptions: tuple[Assumption, ...] = ()) -> Certificate:
        """Return the bounds on the regret of all rounds so far."""
        self._settle()
        from_information = math.inf if self.largest_super_arm else 0.0
        if self.largest_super_arm and math.isfinite(self.largest_lipschitz):
            from_information = regret_bound(
                rounds=self.rounds,
                k=self.largest_super_arm,
                beta=self.sum_beta / self.rounds,
                information_gain=self.information_gain,
                largest_eigenvalue=self.largest_eigenvalue,
                noise_std=self.noise_std,
                lipschitz=self.largest_lipschitz,
            )
        allowance = 2 * self.sum_allowance
        return Certificate(
            rounds=self.rounds,
            from_widths=2 * self.sum_widths + allowance,
            from_information=from_information + allowance,
            information_gain=self.information_gain,
            largest_eigenvalue=self.largest_eigenvalue,
            widths=self.sum_std,
            probability=1 - delta,
            assumptions=assumptions,
        )
