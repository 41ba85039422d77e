"""O'CLOK-UCB: the posterior's upper confidence bound as index (Algorithm 1 of the paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from oclok.decision import Decision
from oclok.errors import InputError
from oclok.oracles.base import Oracle
from oclok.policies.base import Belief
from oclok.policies.certificate import Certificate, Ledger
from oclok.policies.gp import Discount, GPPolicy, Window
from oclok.posterior.base import Bounded, Posterior
from oclok.posterior.conditioning import Conditioned
from oclok.posterior.forgetting import ForgettingPosterior
from oclok.typing import FloatArray, IntArray
from oclok.validation import as_count, as_probability

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: exp of this is wide enough for any choice, and still finite after a few multiplications.
LARGEST_INFORMATION = 200.0


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
        condition_on_chosen: let the variances of arms shrink by arms whose outcomes will come:
            those of pending decisions and, with oracles that choose step by step (`TopK`,
            `Partition`, `Knapsack`, greedy `Coverage`), those taken earlier in the same super
            arm. Super arms become more diverse. √β σ is then too narrow a band for f, by up to
            a factor of exp(I), where I is the information (nats) in the outcomes counted on but
            not seen (GP-BUCB, Desautels et al. 2014). "guaranteed" widens it by that factor, and
            Theorem 1 holds; True does not, often earns more, and has no certificate.
        refit_every, forget: as for every policy with a posterior, see `GPPolicy`; the
            certificate holds for neither.

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
        condition_on_chosen: bool | Literal["guaranteed"] = False,
        refit_every: int | None = None,
        forget: Window | Discount | None = None,
    ) -> None:
        super().__init__(
            kernel, noise_std, oracle, posterior=posterior, refit_every=refit_every, forget=forget
        )
        if not isinstance(condition_on_chosen, bool) and str(condition_on_chosen) != "guaranteed":
            raise InputError(
                'condition_on_chosen must be True, False or "guaranteed"; '
                f"got {condition_on_chosen!r}"
            )
        self.condition_on_chosen = condition_on_chosen
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
        belief = self._upper_bound(self.posterior._predict_bounded(contexts), t, len(contexts))
        if not self.condition_on_chosen:
            return belief
        return self._given(self._conditioned(contexts), belief, t)

    def _choose(
        self, contexts: FloatArray, t: int, belief: Belief, oracle: Oracle
    ) -> tuple[IntArray, Belief, bool]:
        if isinstance(belief, _Given) and oracle.is_sequential:
            return self._choose_stepwise(t, belief, oracle)
        super_arm = oracle(belief.index)
        if self.condition_on_chosen or not isinstance(belief.error, np.ndarray):
            return super_arm, belief, _has_no_error(belief)
        if oracle.is_stable(belief.index, super_arm, belief.error):
            return super_arm, belief, True
        index, error = belief.index, belief.error
        is_open = index + error >= np.min((index - error)[super_arm], initial=np.inf)
        is_open[super_arm] = True
        finer = self.posterior._refine(contexts[is_open])
        if finer is None:
            return super_arm, belief, False
        belief = belief.replaced(is_open, self._upper_bound(finer, t, len(contexts)))
        super_arm = oracle(belief.index)
        is_exact = oracle.is_stable(belief.index, super_arm, np.asarray(belief.error))
        return super_arm, belief, is_exact

    def _choose_stepwise(
        self, t: int, belief: _Given, oracle: Oracle
    ) -> tuple[IntArray, Belief, bool]:
        """Choose one step at a time; the belief has each chosen arm's index when it was taken."""
        oracle(belief.index)  # refuses what the oracle refuses
        chosen = np.empty(0, dtype=np.intp)
        index, index_when_taken = belief.index, belief.index.copy()
        while (new := oracle.choose_next(index, chosen)).size:
            index_when_taken[new] = index[new]
            chosen = np.append(chosen, new)
            belief.conditioned.condition(new)
            index = self._given(belief.conditioned, belief, t).index
            index[chosen] = index_when_taken[chosen]
        error = belief.error if oracle.steps_keep_alpha else math.inf
        taken = Belief(index_when_taken, belief.mean, belief.std, error)
        return np.sort(chosen), taken, _has_no_error(taken)

    def _decided(self, decision: Decision, contexts: FloatArray, belief: Belief) -> None:
        super()._decided(decision, contexts, belief)
        beta = self.beta(decision.round, len(contexts))
        if len(decision) and decision.mean is not None and decision.std is not None:
            widths = decision.index - decision.mean
            if self.condition_on_chosen:
                beta = float(np.max((widths / np.maximum(decision.std, 1e-300)) ** 2))
            self._ledger.record_chosen(widths, self.posterior._covariance(decision.contexts))
        self._ledger.record(beta, self._allowance(decision, belief.error))

    def _upper_bound(self, f: Bounded, t: int, arms: int) -> Belief:
        width = math.sqrt(self.beta(t, arms))
        error = f.mean_error + width * f.std_error
        return Belief(f.mean + width * f.std, f.mean, f.std, error)

    def _conditioned(self, contexts: FloatArray) -> Conditioned:
        """Return the covariance of the arms given those of decisions that wait for outcomes."""
        pending = [decision.contexts[missing] for decision, missing in self._pending.values()]
        return Conditioned(self.posterior, contexts, np.vstack(pending) if pending else None)

    def _given(self, conditioned: Conditioned, belief: Belief, t: int) -> _Given:
        """Return `belief` with the index that `conditioned` variances give.

        Its error stays that of the index without conditions, which is what the certificate needs:
        in the model at hand, the guaranteed index is never below that one. It does not bound the
        distance from the exact posterior's conditioned index, so nothing is proven exact by it.
        """
        width = math.sqrt(self.beta(t, len(belief.index)))
        if self.condition_on_chosen == "guaranteed":
            width *= math.exp(min(conditioned.information, LARGEST_INFORMATION))
        mean = np.asarray(belief.mean)
        index = mean + width * conditioned.std
        return _Given(index, mean, belief.std, belief.error, conditioned=conditioned)

    def _allowance(self, decision: Decision, error: FloatArray | float | None) -> float:
        """Return e_t of the certificate: infinite where there is no proof."""
        unproven = self.condition_on_chosen is True or isinstance(
            self.posterior, ForgettingPosterior
        )
        if unproven or any(fit.improved for fit in self.refits):
            return math.inf
        return _allowance(decision, error)


@dataclass(frozen=True, kw_only=True)
class _Given(Belief):
    """A belief whose variances are `conditioned` on arms that were chosen."""

    conditioned: Conditioned


def _has_no_error(belief: Belief) -> bool:
    """Return whether the belief is the exact posterior's own."""
    return isinstance(belief.error, float) and belief.error == 0.0


def _allowance(decision: Decision, error: FloatArray | float | None) -> float:
    """Return e_t of the certificate, from how far indices can be from the exact ones.

    Half of the regret bound is √β σ of the chosen arms, off by at most their errors. The other
    half rests on the oracle's being given the exact indices; where it was not, and another super
    arm could have been chosen, the best one's indices may be off by all errors together.
    """
    if not isinstance(error, np.ndarray):
        return 0.0 if error == 0 else math.inf
    chosen = float(error[decision.super_arm].sum())
    return chosen if decision.is_exact else chosen + float(error.sum())
