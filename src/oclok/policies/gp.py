"""The base of policies with a Gaussian process: a posterior, and what it says of itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from oclok.arrays import GrowableArray
from oclok.errors import InputError
from oclok.oracles.base import Oracle
from oclok.policies.base import Played, Policy, Proposal
from oclok.policies.calibration import Calibration, calibrate
from oclok.policies.drift import DriftWatch
from oclok.policies.regret import Estimate, KeptRounds, Regret
from oclok.posterior.base import Posterior
from oclok.posterior.dictionary import DictionaryPosterior
from oclok.posterior.fitting import KernelFit, fit_kernel
from oclok.posterior.forgetting import ForgettingPosterior
from oclok.posterior.mixture import MixturePosterior
from oclok.posterior.prediction import ContextsLike, Prediction
from oclok.typing import ArrayLike, FloatArray, Kernel, Seed
from oclok.validation import as_contexts, as_count, as_probability

#: Larger batches are not judged for calibration: the cost grows with their cube.
JUDGED_AT_ONCE = 1_000
#: The latest outcomes that `calibration` judges by.
JUDGED = 1_000
#: Fewest outcomes to refit a kernel to, and the largest sample of them.
LEAST_TO_REFIT, MOST_TO_REFIT = 20, 500


@dataclass(frozen=True)
class Window:
    """Forget all but the latest `outcomes`."""

    outcomes: int


@dataclass(frozen=True)
class Discount:
    """Multiply the precision of all outcomes so far by `rate` at every update."""

    rate: float


class GPSettings(TypedDict, total=False):
    """Keyword arguments of `GPPolicy`, for classes that pass them on."""

    posterior: Posterior | None
    refit_every: int | None
    forget: Window | Discount | None


class GPPolicy(Policy):
    """A policy that believes in a posterior.

    Args:
        kernel: a scikit-learn kernel; learned, with the noise, if left out.
        noise_std: standard deviation of the outcomes' noise.
        posterior: what to use instead of these two. By default a `DictionaryPosterior` of the
            kernel; a `MixturePosterior`, which learns kernel and noise, where neither is given.
        oracle: default oracle.
        seed: seed of the policy's own randomness.
        refit_every: number of rounds after which `fit_kernel` fits kernel and noise anew.
            `refits` has the results; if a fit does not improve the likelihood, the kernel stays.
        forget: `Window(outcomes)` or `Discount(rate)`, for a world that moves; not with
            `posterior`. A mixture needs neither: it is left behind when the world has moved.

    Attributes:
        changes: rounds in which the world was found to have moved (`drift.py`).
    """

    _transient = ("_latest", "_estimate")

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_std: float | None = None,
        oracle: Oracle | None = None,
        *,
        posterior: Posterior | None = None,
        seed: Seed = None,
        refit_every: int | None = None,
        forget: Window | Discount | None = None,
    ) -> None:
        super().__init__(oracle, seed)
        self.posterior = as_posterior(kernel, noise_std, posterior, forget)
        self.refit_every = None if refit_every is None else as_count(refit_every, "refit_every")
        if refit_every is not None and isinstance(self.posterior, MixturePosterior):
            raise InputError("refit_every= needs a kernel to fit; a mixture learns its kernels")
        self.refits: list[KernelFit] = []
        self.changes: list[int] = []
        self._watch = DriftWatch() if isinstance(self.posterior, MixturePosterior) else None
        self._dimension = self.posterior.dimension
        self._innovations = GrowableArray()
        self._refitted_at = 0
        self._kept = KeptRounds()
        self._estimate: Estimate | None = None
        self._latest: Prediction | None = None

    @property
    def noise_std(self) -> float:  # type: ignore[override]
        """Standard deviation of outcomes around f, as believed now."""
        return self.posterior.noise_std

    def calibration(self, levels: tuple[float, ...] = (0.5, 0.8, 0.95)) -> Calibration:
        """Return how well the posterior foresaw the latest 1,000 outcomes, without ground truth.

        Outcomes are judged as they arrive, each against the posterior just before it, in
        `update` and in calls of `observe` with at most 1,000 of them; since the last refit.
        """
        z, signal_fraction = self._innovations.array.reshape(-1, 2)[-JUDGED:].T
        return calibrate(z, signal_fraction, levels)

    def regret(self, level: float = 0.95) -> Regret:
        """Return how much was left on the table so far, as the posterior sees it.

        A belief under the prior, with an interval of probability `level`, and not a proof: for that
        see `certificate`. It is computed from up to 256 rounds, again after twice that number of
        further rounds, and extrapolated in between. Called every round, that costs half a
        millisecond per call with oracles that solve for all samples at once (`TopK`), otherwise 48
        solves, and ten times that with a mixture.
        """
        level = as_probability(level, "level")
        if self._estimate is None or self._estimate.is_stale(self._kept.rounds):
            self._estimate = Estimate.of(self._kept, self.posterior)
        return self._estimate.at(self._kept.rounds, level, self.calibration())

    @property
    def residuals(self) -> FloatArray:
        """Standardised one-step-ahead residuals of the outcomes so far, in order, shape (N,)."""
        return self._innovations.array.reshape(-1, 2)[:, 0].copy()

    def correct(self, contexts: ArrayLike, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,).

        Calibration keeps judging the outcomes as they first came.
        """
        self.posterior.correct(self._as_contexts(contexts), before, after)

    def maintain(self) -> None:
        """Do pending work now, so that later calls need not."""
        self.posterior.maintain()

    def __repr__(self) -> str:
        return f"{super().__repr__()}; {self.posterior!r}"

    def _as_contexts(self, contexts: ArrayLike) -> FloatArray:
        return as_contexts(contexts, self._dimension or self.posterior.dimension)

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        predicted = self._predicted(contexts)
        if len(outcomes) > JUDGED_AT_ONCE:
            self.posterior.update(predicted, outcomes)
        else:
            if self._watch is not None:
                successor = self._watch.succeed(self.posterior, predicted, outcomes)
                if successor is not self.posterior:  # the world has moved
                    self.posterior = successor
                    self.changes.append(self.round)
            innovations = self.posterior.learn(predicted, outcomes)
            self._innovations.extend(np.array(innovations).T)
            if self._watch is not None:
                self._watch.watch(self.posterior, innovations[0])
        if self.refit_every and self.round - self._refitted_at >= self.refit_every:
            self._refit()

    def _record(self, played: Played) -> None:
        prediction = played.belief.prediction if isinstance(played, Proposal) else None
        self.posterior.offer(played.contexts if prediction is None else prediction)
        if played.oracle is not None:
            self._kept.add(played.contexts, played.super_arm, played.oracle)
        self._latest = None if prediction is None else prediction.at(played.super_arm)

    def _predicted(self, contexts: FloatArray) -> ContextsLike:
        """Return the latest prediction where it covers `contexts`, to reuse its work."""
        latest = self._latest
        if latest is None or len(contexts) > len(latest.contexts):
            return contexts
        if contexts.tobytes() == latest.contexts.tobytes():  # quicker than to compare numbers
            return latest
        is_same = (contexts[:, None] == latest.contexts).all(axis=2)
        if not is_same.any(axis=1).all():
            return contexts
        return latest.at(is_same.argmax(axis=1))

    def _refit(self) -> None:
        old = self.posterior
        if len(old) < LEAST_TO_REFIT:
            return
        self._refitted_at = self.round
        X, y = old.contexts, old.outcomes
        try:
            fit = fit_kernel(
                old.kernel, X, y, old.noise_std, restarts=1, most=MOST_TO_REFIT, seed=self.round
            )
            if fit.improved:
                self.posterior = old.with_kernel(fit.kernel, fit.noise_std)
                self._innovations = GrowableArray()
        except Exception as reason:  # the rounds go on with the old kernel
            nan = math.nan
            fit = KernelFit(old.kernel, old.noise_std, nan, nan, False, len(old), str(reason))
        self.refits.append(fit)


def as_posterior(
    kernel: Kernel | None,
    noise_std: float | None,
    posterior: Posterior | None,
    forget: Window | Discount | None = None,
    prefix: str = "",
) -> Posterior:
    """Return the posterior that a policy's arguments ask for; their names begin with `prefix`."""
    if isinstance(kernel, Oracle):
        raise InputError(f"the oracle goes to oracle=, such as UCB(oracle={kernel!r})")
    settings = f"{prefix}kernel= and {prefix}noise_std="
    if posterior is not None:
        if kernel is not None or noise_std is not None or forget is not None:
            raise InputError(f"give {settings} (and forget=), or {prefix}posterior=, not both")
        if not isinstance(posterior, Posterior):
            name = f"{prefix}posterior"
            raise InputError(f"{name} must be an oclok.posterior.Posterior; got {posterior!r}")
        return posterior
    if kernel is not None and noise_std is not None:
        posterior = DictionaryPosterior(kernel, noise_std)
    elif kernel is None and noise_std is None:
        posterior = MixturePosterior()
    else:
        raise InputError(f"give both {settings}, or neither, or {prefix}posterior=")
    if forget is None:
        return posterior
    if isinstance(forget, Window):
        return ForgettingPosterior(posterior, window=forget.outcomes)
    if isinstance(forget, Discount):
        return ForgettingPosterior(posterior, discount=forget.rate)
    raise InputError(f"forget must be Window(outcomes) or Discount(rate); got {forget!r}")
