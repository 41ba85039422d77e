"""What policies with a Gaussian process share: a posterior, however it was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oclok.decision import Decision
from oclok.errors import InputError
from oclok.fitting import KernelFit, fit_kernel
from oclok.oracles.base import Oracle
from oclok.policies.base import Belief, Policy
from oclok.policies.calibration import Calibration, judge
from oclok.posterior.base import Posterior
from oclok.posterior.dictionary import DictionaryPosterior
from oclok.posterior.forgetting import ForgettingPosterior
from oclok.posterior.observations import Rows
from oclok.typing import ArrayLike, FloatArray
from oclok.validation import as_contexts, as_count

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: More outcomes than this at once are not judged one by one: the cost grows with their cube.
JUDGED_AT_ONCE = 1_000
#: A kernel is refitted to no fewer outcomes than this, and to a sample of no more than that.
LEAST_TO_REFIT, MOST_TO_REFIT = 20, 500


@dataclass(frozen=True)
class Window:
    """Forget all but the latest `outcomes`."""

    outcomes: int


@dataclass(frozen=True)
class Discount:
    """Let the precision of what is known of old outcomes fall to `rate` of itself an update."""

    rate: float


class GPPolicy(Policy):
    """A policy that believes in a posterior.

    Args:
        kernel: a scikit-learn kernel, with
        noise_std: standard deviation of the outcomes' noise; or, instead of both,
        posterior: the posterior to use. By default a `DictionaryPosterior`.
        oracle: default oracle.
        seed: seed of the policy's own randomness.
        refit_every: fit kernel and noise to the outcomes by `fit_kernel` every so many rounds.
            `refits` has what came of it; a fit that brings nothing changes nothing.
        forget: `Window(outcomes)` or `Discount(rate)`, for a world that moves; with `kernel`
            and `noise_std` only.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_std: float | None = None,
        oracle: Oracle | None = None,
        *,
        posterior: Posterior | None = None,
        seed: int | np.random.SeedSequence | None = None,
        refit_every: int | None = None,
        forget: Window | Discount | None = None,
    ) -> None:
        super().__init__(oracle, seed)
        self.posterior = _posterior(kernel, noise_std, posterior, forget)
        self.refit_every = None if refit_every is None else as_count(refit_every, "refit_every")
        self.refits: list[KernelFit] = []
        self._dimension = self.posterior.dimension
        self._residuals = Rows()
        self._refitted_at = 0

    def calibration(self, levels: tuple[float, ...] = (0.5, 0.8, 0.95)) -> Calibration:
        """Return how well the posterior foresaw the outcomes so far, without any ground truth.

        Outcomes are judged as they arrive, each against the posterior just before it, in
        `update` and in calls of `observe` with at most 1,000 of them; since the last refit.
        """
        z, foreseen_std = self._residuals.array.reshape(-1, 2).T
        return judge(z, self.posterior._share_of_f(foreseen_std), levels)

    def _as_contexts(self, contexts: ArrayLike) -> FloatArray:
        return as_contexts(contexts, self.posterior.dimension or self._dimension)

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        if len(outcomes) <= JUDGED_AT_ONCE:
            judged = self.posterior._update_judged(contexts, outcomes)
            self._residuals.extend(np.array(judged).T)
        else:
            self.posterior._update(contexts, outcomes)
        if self.refit_every and self.round - self._refitted_at >= self.refit_every:
            self._refit()

    def _decided(self, decision: Decision, contexts: FloatArray, belief: Belief) -> None:
        self.posterior._expect(contexts, decision.super_arm, decision.contexts)

    def _refit(self) -> None:
        if len(self.posterior) < LEAST_TO_REFIT:
            return
        self._refitted_at = self.round
        try:
            fit = self._fit()
            if fit.improved:
                self.posterior = self.posterior.with_kernel(fit.kernel, fit.noise_std)
                self._residuals = Rows()
        except Exception as reason:  # whatever went wrong, rounds go on with what there was
            kernel, noise_std = self.posterior.kernel, self.posterior.noise_std
            nan = float("nan")
            fit = KernelFit(kernel, noise_std, nan, nan, False, len(self.posterior), str(reason))
        self.refits.append(fit)

    def _fit(self) -> KernelFit:
        return fit_kernel(
            self.posterior.kernel,
            self.posterior.contexts,
            self.posterior.outcomes,
            self.posterior.noise_std,
            restarts=1,
            most=MOST_TO_REFIT,
            seed=self.round,
        )


def _posterior(
    kernel: Kernel | None,
    noise_std: float | None,
    posterior: Posterior | None,
    forget: Window | Discount | None,
) -> Posterior:
    if posterior is not None:
        if kernel is not None or noise_std is not None or forget is not None:
            raise InputError("give kernel= and noise_std= (and forget=), or posterior=, not both")
        if not isinstance(posterior, Posterior):
            raise InputError(f"posterior must be an oclok.posterior.Posterior; got {posterior!r}")
        return posterior
    if kernel is None or noise_std is None:
        raise InputError("give kernel= and noise_std=, or posterior=")
    if forget is None:
        return DictionaryPosterior(kernel, noise_std)
    if isinstance(forget, Window):
        return ForgettingPosterior(kernel, noise_std, window=forget.outcomes)
    if isinstance(forget, Discount):
        return ForgettingPosterior(kernel, noise_std, discount=forget.rate)
    raise InputError(f"forget must be Window(outcomes) or Discount(rate); got {forget!r}")
