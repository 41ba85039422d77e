"""O'CLOK-UCB: the posterior's upper confidence bound as index (Algorithm 1 of the paper)."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from oclok.decision import Decision
from oclok.errors import InputError
from oclok.oracles.base import Oracle
from oclok.policies.base import Played, Proposal
from oclok.policies.certificate import Assumption, Certificate, CertificateSums, Verdict
from oclok.policies.ucb import UCBPolicy, UCBSettings
from oclok.posterior.mixture import MixturePosterior
from oclok.typing import FloatArray, Kernel
from oclok.validation import as_count, as_probability

#: What a certificate rests on.
ASSUMED = {
    "prior": "f is a sample of the prior, and noise is normal with standard deviation noise_std",
    "kernel": "kernel and noise were fixed before the first outcome",
    "arrival": "whether and when an outcome arrives does not depend on its value",
    "oracle": "the reward of every round is Lipschitz with the constant its oracle states",
}


class OClokUCB(UCBPolicy):
    """O'CLOK-UCB, and SO'CLOK-UCB when given a `SparsePosterior`.

    The index of a base arm with context x in round t is μ(x) + √β_t σ(x) (equation 5), with
    β_t = 2 log(M π² t² / 3δ) as in Theorem 1.

    Args:
        delta: the regret bound holds with probability at least 1 - delta.
        max_arms: M, the largest number of base arms that will ever be available. Left out, the
            number available in each round is used, which keeps Lemma 1.

    The other arguments are those of `UCBPolicy`. Theorem 1 holds with
    `condition_on_chosen="guaranteed"`; there is no certificate with True, a refit or `forget`.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from oclok.oracles import TopK
        >>> policy = OClokUCB(kernel=RBF(1.0), noise_std=0.1, oracle=TopK(2))
        >>> decision = policy.select([[0.1, 0.9], [0.5, 0.5], [0.8, 0.3]])
        >>> policy.update(decision, [0.4, 0.6])
        >>> decision.super_arm
        array([0, 1])
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_std: float | None = None,
        oracle: Oracle | None = None,
        delta: float = 0.05,
        max_arms: int | None = None,
        **settings: Unpack[UCBSettings],
    ) -> None:
        super().__init__(kernel, noise_std, oracle, **settings)
        self.delta = as_probability(delta, "delta")
        self.max_arms = None if max_arms is None else as_count(max_arms, "max_arms")
        self._sums = CertificateSums(self.posterior.noise_std)

    def beta(self, t: int, arms: int) -> float:
        """Return β_t of Theorem 1 for round `t` with `arms` base arms available."""
        if self.max_arms is not None and arms > self.max_arms:
            raise InputError(f"{arms} base arms are available, above max_arms={self.max_arms}")
        return 2 * math.log((self.max_arms or arms) * math.pi**2 * t**2 / (3 * self.delta))

    def certificate(self) -> Certificate:
        """Return upper bounds on the regret so far that hold with probability 1 - δ.

        The regret is α·opt less the expected reward, summed over rounds, where f is a sample of
        the prior. Each bound comes with the assumptions it rests on and what the data say of
        them. With a `SparsePosterior`, for which there is no proof, the bounds are infinite.
        """
        return self._sums.certificate(self.delta, self._assumptions())

    def _assumptions(self) -> tuple[Assumption, ...]:
        calibration = self.calibration()
        verdicts: dict[str, tuple[Verdict, str]] = {
            "prior": ("unchecked", "no outcome yet"),
            "kernel": ("holds", "never refitted"),
            "arrival": ("holds", "all outcomes of all decisions have arrived"),
            "oracle": ("holds", "all oracles state one"),
        }
        if calibration.count:
            verdicts["prior"] = "not contradicted", str(calibration)
        if calibration.is_contradicted:
            verdicts["prior"] = "contradicted", str(calibration)
        if refits := sum(fit.improved for fit in self.refits):
            verdicts["kernel"] = "contradicted", f"refitted {refits} times"
        if isinstance(self.posterior, MixturePosterior):
            verdicts["kernel"] = "contradicted", "kernel and noise are learned from the outcomes"
        if self.awaited or self._discarded:
            missing = f"{self.awaited} outcomes are missing, {self._discarded} were given up"
            verdicts["arrival"] = "unchecked", missing
        if not math.isfinite(self._sums.largest_lipschitz):
            verdicts["oracle"] = "contradicted", "an oracle states none"
        return tuple(Assumption(name, ASSUMED[name], *verdicts[name]) for name in ASSUMED)

    def width(self, t: int, arms: int) -> float:
        """Return √β_t."""
        return math.sqrt(self.beta(t, arms))

    def _record(self, played: Played) -> None:
        super()._record(played)
        if not isinstance(played, Proposal):
            return
        decision, error, oracle = played.decision, played.belief.error, played.oracle
        is_own = decision.super_arm is played.super_arm  # which is quicker than to compare
        if not is_own and not np.array_equal(decision.super_arm, played.super_arm):
            return  # another system decided: that is not this policy's regret
        assert self._latest is not None
        beta, std = self.beta(decision.round, len(error)), np.asarray(decision.std)
        widths = decision.index - np.asarray(decision.mean)
        if self.condition_on_chosen and len(decision):
            beta = float(np.max((widths / np.maximum(std, 1e-300)) ** 2))
        covariance = self._latest.covariance() if len(decision) else np.empty((0, 0))
        allowance = self._allowance(decision, error)
        self._sums.record(beta, widths, covariance, allowance, oracle.lipschitz)

    def _allowance(self, decision: Decision, error: FloatArray) -> float:
        """Return e_t of the certificate: infinite where there is no proof.

        Half of the regret bound is √β σ of the chosen arms, off by at most their errors. The other
        half needs the oracle to have had the exact indices; where it had not, and could have chosen
        another super arm, the best one's indices may be off by all errors together.
        """
        if self.condition_on_chosen is True or any(fit.improved for fit in self.refits):
            return math.inf
        chosen: float = sum(error[decision.super_arm].tolist())
        return chosen if decision.is_exact else chosen + float(error.sum())
