"""O'CLOK-UCB: the posterior's upper confidence bound as index (Algorithm 1 of the paper)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from oclok.decision import Decision
from oclok.errors import InputError
from oclok.oracles.base import Oracle
from oclok.policies.base import Belief
from oclok.policies.certificate import Certificate, Ledger
from oclok.policies.gp import GPPolicy
from oclok.posterior.base import Bounded, Posterior
from oclok.typing import FloatArray, IntArray
from oclok.validation import as_count, as_probability

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel


class OClokUCB(GPPolicy):
    """O'CLOK-UCB, and SO'CLOK-UCB when given a `SparsePosterior`.

    The index of a base arm with context x in round t is μ(x) + √β_t σ(x) (equation 5), with
    β_t = 2 log(M π² t² / 3δ) as in Theorem 1.

    Args:
        kernel: a scikit-learn kernel, with
        noise_std: standard deviation of the outcomes' noise; or, instead of both,
        posterior: the posterior to use.
        oracle: default oracle.
        delta: the regret bound holds with probability at least 1 - delta.
        max_arms: M, the largest number of base arms that will ever be available. Left out, the
            number available in each round is used, which keeps Lemma 1.

    Example:
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
        *,
        posterior: Posterior | None = None,
    ) -> None:
        super().__init__(kernel, noise_std, oracle, posterior=posterior)
        self.delta = as_probability(delta, "delta")
        self.max_arms = None if max_arms is None else as_count(max_arms, "max_arms")
        self._ledger = Ledger(self.posterior.noise_std)

    def beta(self, t: int, arms: int) -> float:
        """Return β_t of Theorem 1 for round `t` with `arms` base arms available."""
        if self.max_arms is not None and arms > self.max_arms:
            raise InputError(f"{arms} base arms are available, above max_arms={self.max_arms}")
        return 2 * math.log((self.max_arms or arms) * math.pi**2 * t**2 / (3 * self.delta))

    def certificate(self, lipschitz: float = 1.0) -> Certificate:
        """Return upper bounds on the regret so far that hold with probability 1 - δ.

        The regret is α·opt less the expected reward, summed over rounds, where f is a sample of
        the prior. With a `SparsePosterior`, for which there is no proof, they are infinite.

        Args:
            lipschitz: B, the Lipschitz constant of the reward: `oracle.lipschitz`.
        """
        return self._ledger.certificate(lipschitz, self.delta)

    def _believe(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        return self._upper_bound(self.posterior.predict_bounded(contexts), t, len(contexts))

    def _upper_bound(self, f: Bounded, t: int, arms: int) -> Belief:
        width = math.sqrt(self.beta(t, arms))
        error = f.mean_error + width * f.std_error
        return Belief(f.mean + width * f.std, f.mean, f.std, error)

    def _decided(self, decision: Decision, contexts: FloatArray, belief: Belief) -> None:
        super()._decided(decision, contexts, belief)
        covariance = np.empty((0, 0))
        if len(decision):
            covariance = self.posterior.covariance(decision.contexts)
        allowance = _allowance(decision, belief.error)
        self._ledger.record(self.beta(decision.round, len(contexts)), covariance, allowance)

    def _choose(
        self, contexts: FloatArray, t: int, belief: Belief, oracle: Oracle
    ) -> tuple[IntArray, Belief, bool]:
        super_arm = oracle(belief.index)
        index, error = belief.index, belief.error
        if not isinstance(error, np.ndarray):
            return super_arm, belief, error == 0
        if oracle.is_stable(index, super_arm, error):
            return super_arm, belief, True
        is_open = index + error >= np.min((index - error)[super_arm], initial=np.inf)
        is_open[super_arm] = True
        finer = self._upper_bound(self.posterior.refine(contexts[is_open]), t, len(contexts))
        belief = belief.replaced(is_open, finer)
        super_arm = oracle(belief.index)
        is_exact = oracle.is_stable(belief.index, super_arm, np.asarray(belief.error))
        return super_arm, belief, is_exact


def _allowance(decision: Decision, error: FloatArray | float | None) -> float:
    """Return e_t of the certificate, from how far indices can be from the exact ones.

    Half of the regret bound is √β σ of the chosen arms, off by at most their errors. The other
    half rests on the oracle's being given the exact indices; where it was not, and another super
    arm could have been chosen, that one's indices may be off by as much as any.
    """
    if not isinstance(error, np.ndarray):
        return 0.0 if error == 0 else math.inf
    allowance = float(error[decision.super_arm].sum())
    if not decision.is_exact:
        allowance += len(decision) * float(error.max())
    return allowance
