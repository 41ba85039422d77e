"""How much a policy can have lost so far: the proof of Theorem 1, evaluated as it goes.

    t          round                          S_t      super arm of round t, |S_t| ≤ K
    Σ_t        joint covariance of f at the chosen contexts, when they were chosen
    σ_t,k      square roots of its diagonal   λ*       largest eigenvalue of any Σ_t
    g_t        ½ log det(I + σ⁻²Σ_t)          σ        standard deviation of the noise
    e_t        allowance for a posterior that is not exact; 0 for one that is

    regret  ≤  2B Σ_t (√β_t Σ_k σ_t,k + e_t)                                (equation 11)
            ≤  √(8B² (λ* + σ²) K Σ_t β_t Σ_t g_t) + 2B Σ_t e_t              (Theorem 1)

With prompt feedback Σ g_t is the information gain of all outcomes, by the chain rule. With late
feedback g_t is larger, as Σ_t was: Lemma 3 holds round by round for the Σ_t that was there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oclok.persistence import Persistent
from oclok.posterior.linalg import factor
from oclok.theory import regret_bound
from oclok.typing import FloatArray
from oclok.validation import as_positive

#: Covariances that wait to be worked on together.
AT_ONCE = 64


@dataclass(frozen=True)
class Certificate:
    """Upper bounds on the regret so far; both hold with probability `probability`.

    Attributes:
        rounds: T, rounds so far.
        from_widths: bound by equation 11, the tighter one.
        from_information: bound by Theorem 1, with the information gain that was realised.
        information_gain: Σ g_t, in nats.
        largest_eigenvalue: λ*.
        widths: Σ σ over all chosen base arms.
        probability: 1 - δ.
    """

    rounds: int
    from_widths: float
    from_information: float
    information_gain: float
    largest_eigenvalue: float
    widths: float
    probability: float


class Ledger(Persistent):
    """Keeps the sums that the proof needs, round by round."""

    def __init__(self, noise_std: float) -> None:
        self.noise_std = noise_std
        self.rounds = 0
        self.largest_super_arm = 0
        self.sum_beta = 0.0
        self.sum_std = 0.0
        self.sum_widths = 0.0
        self.sum_allowance = 0.0
        self.information_gain = 0.0
        self.largest_eigenvalue = 0.0
        self._waiting: list[tuple[FloatArray, FloatArray]] = []

    def record(self, beta: float, allowance: float) -> None:
        """Take note of a round: β_t and e_t."""
        self.rounds += 1
        self.sum_beta += beta
        self.sum_allowance += allowance

    def record_chosen(self, widths: FloatArray, covariance: FloatArray) -> None:
        """Take note of what a round chose: √β_t σ_t,k, shape (K,), and Σ_t, shape (K, K)."""
        self.largest_super_arm = max(self.largest_super_arm, len(widths))
        self._waiting.append((widths, covariance))
        if len(self._waiting) >= AT_ONCE:
            self._settle()

    def _settle(self) -> None:
        """Add up what the rounds that wait have to say: 64 at once cost as much as five."""
        for size in {len(widths) for widths, _ in self._waiting}:
            alike = [each for each in self._waiting if len(each[0]) == size]
            self.sum_widths += float(np.array([widths for widths, _ in alike]).sum())
            covariances = np.array([covariance for _, covariance in alike])
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

    def certificate(self, lipschitz: float, delta: float) -> Certificate:
        """Return the bounds for a reward with Lipschitz constant B = `lipschitz`."""
        B = as_positive(lipschitz, "lipschitz")
        self._settle()
        allowance = 2 * B * self.sum_allowance
        from_information = 0.0
        if self.largest_super_arm:
            from_information = regret_bound(
                rounds=self.rounds,
                k=self.largest_super_arm,
                beta=self.sum_beta / self.rounds,
                information_gain=self.information_gain,
                largest_eigenvalue=self.largest_eigenvalue,
                noise_std=self.noise_std,
                lipschitz=B,
            )
        return Certificate(
            rounds=self.rounds,
            from_widths=2 * B * self.sum_widths + allowance,
            from_information=from_information + allowance,
            information_gain=self.information_gain,
            largest_eigenvalue=self.largest_eigenvalue,
            widths=self.sum_std,
            probability=1 - delta,
        )
