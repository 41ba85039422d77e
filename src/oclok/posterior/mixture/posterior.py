"""A mixture of kernels, noise levels and scales: nothing to choose.

    y        outcomes less their mean in the first update, (N,)
    x        contexts scaled to [0, 1] by the arms offered so far, (M, D)

Each member, a kernel and a noise level, learns as outcomes come (`members.py`); `ensemble.py` says
which members there are, and `averaging.py` how they are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oclok.errors import InputError
from oclok.posterior.base import Posterior
from oclok.posterior.dictionary import DictionaryPosterior
from oclok.posterior.kernels import Covariance
from oclok.posterior.mixture.averaging import Average, Mixed
from oclok.posterior.mixture.ensemble import Ensemble, prior_members
from oclok.posterior.mixture.members import NOISE_RATIOS
from oclok.posterior.mixture.scaling import ContextScale, Known
from oclok.posterior.observations import Observations
from oclok.posterior.prediction import Asked, Prediction
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import Contexts, as_outcomes, as_positive, check_kernel

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel


class MixturePosterior(Posterior):
    """A posterior that learns which kernel, noise and scale are right.

    Args:
        kernels: kernels of f up to its scale, for contexts as they are. Left out, a set that
            serves any D, for contexts scaled by the arms offered, and one more kernel with a
            lengthscale per feature that is fitted as outcomes come.
        noise_ratios: variances of the noise to consider, where f has the kernel's variance.
        seed: draws the outcomes that fits and trials look at.

    Examples:
        >>> posterior = MixturePosterior()
        >>> contexts = np.random.default_rng(0).random((50, 3))
        >>> posterior.update(contexts, 1000 + 20 * np.sin(6 * contexts[:, 0]))
        >>> mean, std = posterior.predict([[0.25, 0.5, 0.5], [0.75, 0.5, 0.5]])
        >>> mean.round(-1)
        array([1020.,  980.])
    """

    def __init__(
        self,
        kernels: Sequence[Kernel] | None = None,
        noise_ratios: Sequence[float] = NOISE_RATIOS,
        seed: int = 0,
    ) -> None:
        if kernels is not None and not kernels:
            raise InputError("kernels must not be empty; leave them out for the default set")
        for kernel in kernels or ():
            check_kernel(kernel)
        if not noise_ratios:
            raise InputError("noise_ratios must not be empty")
        self._kernels = None if kernels is None else list(kernels)
        self._ratios = [as_positive(ratio, "noise ratio") for ratio in noise_ratios]
        self._seed = seed
        self.observations = Observations()
        self._scale = ContextScale(is_fixed=kernels is not None)
        self._offset = 0.0
        self._ensemble: Ensemble | None = None
        self._version: object = object()
        self._mix: Mixed | None = None

    @property
    def members(self) -> list[tuple[float, Kernel, float]]:
        """Weight, kernel and noise variance of each member, heaviest first.

        Kernel and noise are those of the outcomes; the contexts of the default set are scaled.
        """
        return self._mixed().rows()

    @property
    def kernel(self) -> Kernel:
        """The heaviest member's kernel, in units of the outcomes."""
        return self.members[0][1]

    @property
    def prior(self) -> Covariance:  # type: ignore[override]
        """The heaviest member's kernel, compiled."""
        return Covariance(self.kernel)

    @property
    def noise_std(self) -> float:  # type: ignore[override]
        """Standard deviation of the noise: the root of the mean variance over members."""
        return math.sqrt(self._mixed().noise_variance)

    @property
    def dimension(self) -> int | None:
        """D, or None as long as nothing tells."""
        if self._scale.dimension is not None or self._kernels is None:
            return self._scale.dimension
        return next((d for k in self._kernels if (d := Covariance(k).dimension)), None)

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats: the mean over members."""
        return self._mixed().information_gain

    @property
    def inducing(self) -> FloatArray:
        """Contexts of the heaviest member's basis functions, shape (rank, D)."""
        if self._ensemble is None:
            return np.empty((0, 0))
        return self._scale.undo(self._mixed().heaviest.posterior.inducing)

    def predict(self, contexts: Asked) -> Prediction:
        """Return mean and standard deviation of f, without noise, at `contexts` (M, D)."""
        return self._averaged(self.checked(contexts), self._asked(contexts))

    def screen(self, contexts: Asked) -> Prediction:
        """Return what is quick to say of many contexts; `sharpen` says the rest of few."""
        return self._averaged(self.checked(contexts), self._asked(contexts, quick=True))

    def sharpen(self, prediction: Prediction, positions: IntArray) -> Prediction:
        """Return `prediction` with what `predict` says at `positions`."""
        average = self._asked(prediction, quick=True)
        sharp = average.sharpened(positions)
        if all(new is old for new, old in zip(sharp.parts, average.parts, strict=True)):
            return prediction
        return self._averaged(prediction.contexts, sharp)

    def covariance(self, contexts: Asked) -> FloatArray:
        """Return the joint covariance, shape (M, M), of f at `contexts` (M, D)."""
        return self._asked(contexts).covariance()

    def sample(self, contexts: Asked, rng: np.random.Generator) -> FloatArray:
        """Return one joint sample, shape (M,), of f at `contexts` (M, D).

        Draws a member by its weight, its scale, and f given both: a sample of the posterior of
        the hierarchical prior, in which kernel, noise and scale are unknown.
        """
        return self._offset + self._asked(contexts).sample(rng)

    def sample_paths(self, contexts: Asked, count: int, rng: np.random.Generator) -> FloatArray:
        """Return `count` samples of f at `contexts` (M, D), as `sample` draws; (count, M)."""
        x = Contexts(self._scale.apply(self.checked(contexts)))
        return self._offset + self._mixed(x.array.shape[1]).sample_paths(x, count, rng)

    def offer(self, contexts: Asked) -> None:
        """Tell which contexts (M, D) were available: their range is what scales contexts."""
        X = self.checked(contexts)
        self._scale.see(X)
        if self._ensemble is None:
            return
        parts: Sequence[Asked] = [Contexts(self._scale.apply(X))] * len(self._ensemble.members)
        if isinstance(contexts, Prediction) and contexts.state is self._version:
            parts = self._asked(contexts, quick=True).parts
        for member, part in zip(self._ensemble.members, parts, strict=True):
            member.posterior.offer(part)

    def update(
        self, contexts: Asked, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        X = self.checked(contexts)
        y, w = self.checked_outcomes(outcomes, weights, len(X))
        before, count = dict(self.__dict__), len(self)
        try:
            if self._ensemble is None:
                self.observations.extend(X, y, w)
                ensemble = self._start(X, float(y.mean()))
                ensemble.learn_first(self._known())
            else:
                ensemble, parts = self._ensemble, self._asked(contexts, quick=True).parts
                self.observations.extend(X, y, w)
                ensemble.learn(parts, y - self._offset, w)
        except BaseException:
            self.observations.truncate(count)
            self.__dict__.update(before)
            raise
        self._scale.see(X)
        known = self._known()
        ensemble.drop(known)
        is_due = ensemble.is_due(known)
        if self._scale.is_outgrown(len(self), doubled=is_due):
            self._scale = self._scale.refreshed()
            known = self._known()
            ensemble.relearn(known)
        if is_due:
            ensemble.begin(known)
        ensemble.work(known, len(y))
        self._changed()

    def innovations(self, contexts: Asked, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return how surprising `outcomes` (N,) at `contexts` (N, D) are, before the update.

        While the scale is uncertain, outcomes follow a t distribution with 2a degrees of freedom;
        they are mapped to the normal deviates of the same probability.
        """
        z, due_to_f = super().innovations(contexts, outcomes)
        return self._mixed().normal_deviates(z), due_to_f

    def learn(self, contexts: Asked, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Update, and return the `innovations` of the outcomes.

        The first outcomes tell the constant and the unit, and cannot be judged: none is returned.
        """
        if len(self):
            return super().learn(contexts, outcomes)
        self.update(contexts, outcomes)
        return np.empty(0), np.empty(0)

    def correct(self, contexts: Asked, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        X = self.checked(contexts)
        old, new = as_outcomes(before, len(X)), as_outcomes(after, len(X))
        positions = self.observations.find(X, old)
        x, y, weights = self._known().at(positions)
        self.observations.outcomes[positions] = new
        if self._ensemble is not None:
            if (weights == 1.0).all():
                self._ensemble.correct(positions, x, y, new - self._offset)
            else:
                self._ensemble.relearn(self._known())
        self._changed()

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far, and of their evidence, by `rate`."""
        rate = as_positive(rate, "rate")
        if self._ensemble is not None:
            self._ensemble.discount(rate)
        self.observations.weights[:] *= rate
        self._changed()

    def maintain(self) -> None:
        """Finish the fits and trials that are under way."""
        while self._ensemble is not None and self._ensemble.work(self._known(), len(self)):
            self._changed()

    def empty(self, kernel: Kernel | None = None, noise_std: float | None = None) -> Posterior:
        """Return a mixture that has learned nothing; a single posterior if a kernel is given."""
        if kernel is not None:
            return DictionaryPosterior(kernel, noise_std or self.noise_std)
        other = MixturePosterior(self._kernels, self._ratios, self._seed)
        other._scale = self._scale.offered()
        return other

    def __repr__(self) -> str:
        members = 0 if self._ensemble is None else len(self._ensemble.members)
        return f"MixturePosterior: {len(self)} outcomes, {members} members"

    def _known(self) -> Known:
        return Known(self.observations, self._scale, self._offset)

    def _mixed(self, dimension: int = 1) -> Mixed:
        """Return members and weights; before any data those of a prior in D dimensions.

        That prior is stationary by default: polynomials differ by how far a context is from the
        origin, and where that is, is known only once contexts are scaled. Choosing the corners
        first, as polynomials would, cost a fifth of the regret on Friedman1.
        """
        if self._ensemble is None:
            members = prior_members(self._kernels, self._ratios, dimension)
            return Mixed.of(members, self._known().prior)
        if self._mix is None:
            self._mix = Mixed.of(self._ensemble.members, self._known().prior)
        return self._mix

    def _start(self, X: FloatArray, offset: float) -> Ensemble:
        """Make all members, for contexts like those offered and X."""
        self._scale = self._scale.refreshed(X)
        self._offset = offset
        self._ensemble = Ensemble(self._kernels, self._ratios, self._known(), self._seed)
        return self._ensemble

    def _asked(self, contexts: Asked, quick: bool = False) -> Average:
        """Return what each member says of `contexts`; `quick` is as good as `screen`."""
        if isinstance(contexts, Prediction) and contexts.state is self._version:
            average = contexts.work
            if isinstance(average, Average):
                return average if quick else average.sharpened(np.arange(len(contexts.contexts)))
        X = self.checked(contexts)
        mixed = self._mixed(X.shape[1])
        x = Contexts(self._scale.apply(X))
        posteriors = [member.posterior for member in mixed.members]
        parts = [each.screen(x) if quick else each.predict(x) for each in posteriors]
        return Average(mixed, parts)

    def _averaged(self, X: FloatArray, average: Average) -> Prediction:
        mean, std = average.moments()
        return Prediction(X, self._offset + mean, std, state=self._version, work=average)

    def _changed(self) -> None:
        """Make predictions so far stale."""
        self._version, self._mix = object(), None

    def _state(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_version", "_mix")}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._changed()
