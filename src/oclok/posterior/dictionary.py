"""As good as exact at a cost that does not grow with N: features of a small dictionary.

Smooth kernels have a small numerical rank: given some hundred well-chosen contexts U, every
other context has next to no variance left. The posterior is then Bayesian linear regression on
their features (`features.py`), with a bound on its error (`bounds.py`).
`choosing.py` tells which contexts U are.

Three phases: exact as long as there is little data; then a dictionary, chosen by one pivoted
Cholesky over all contexts seen so far, chosen or not; or exact for ever, where the kernel is
too rough to have a small rank. A finer dictionary is made and kept up only for rounds in which
the bound of the first does not settle a decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg.blas import dgemv

from oclok.posterior.base import Bounded, Posterior
from oclok.posterior.bounds import Features, bounded, moments
from oclok.posterior.choosing import (
    REMEMBERED,
    covering_model,
    finer_model,
    first_model,
    latest,
    most_worthwhile,
    sample,
)
from oclok.posterior.exact import ExactPosterior
from oclok.posterior.features import FEW, FeatureModel
from oclok.posterior.linalg import add_to_diagonal, gram
from oclok.posterior.observations import Rows, are_same, find_rows
from oclok.threads import blas_threads
from oclok.typing import FloatArray, IntArray
from oclok.validation import as_positive

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Observations before a dictionary is tried; again at RETRY times as many if it was too large.
START, RETRY = 200, 1.5
#: The error follows tolerance / σ²; a larger tolerance than this share of σ² is not used.
NOISE_SHARE = 1e-6
#: Tolerance of the finer dictionary, as a share of the first's. The bound grows with N, so that
#: with N observations it is FINER / N, which keeps the bound the same, and at most FINER / 1,000.
FINER = 10.0
#: Observations up to which undecided rounds go to the finer dictionary: a round of 5 outcomes
#: that does costs 1.6 times one that does not, and from here on nearly every one would.
AFFORDABLE = 50_000
#: Contexts above the tolerance wait until they are this share of the dictionary, so that it
#: grows in few steps, unless one is above it by this factor: a growth costs 2Nr² operations.
NOVEL_SHARE, URGENT = 1 / 16, 10.0
#: Growths that may cost more than the dictionary saves, with this many arms in a round, before
#: it is given up. Contexts that drift for ever need new dictionary entries for ever.
GROWTHS, TYPICAL_ARMS = 10, 100


class DictionaryPosterior(Posterior):
    """The exact posterior in all but name, at a flat cost for smooth kernels.

    Args:
        kernel: a kernel of `sklearn.gaussian_process.kernels`.
        noise_std: standard deviation σ of the noise of an outcome.
        tolerance: a context enters the dictionary when its variance, given those in it, is
            above this; at most 1e-6 σ² is used.

    Example:
        >>> import numpy as np
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> contexts = np.random.default_rng(0).random((2_000, 2))
        >>> posterior = DictionaryPosterior(RBF(1.0), noise_std=0.1)
        >>> posterior.update(contexts, np.sin(contexts).sum(axis=1))
        >>> len(posterior), posterior.rank < 60
        (2000, True)
    """

    def __init__(self, kernel: Kernel, noise_std: float, tolerance: float = 1e-8) -> None:
        super().__init__(kernel, noise_std)
        self._given_tolerance = as_positive(tolerance, "tolerance")
        self.tolerance = min(self._given_tolerance, NOISE_SHARE * self.noise_std**2)
        self._belief: ExactPosterior | FeatureModel = ExactPosterior(kernel, noise_std)
        self._finer: FeatureModel | None = None
        self._finer_size = self._finer_made_at = 0
        self._saved = 0.0
        self._weights = Rows()
        self._remembered: FloatArray | None = None
        self._novel: FloatArray | None = None
        self._next_try = float(START)
        self._chosen: Features | None = None
        self._asked: Features | None = None

    @property
    def dimension(self) -> int | None:
        """D, or None as long as nothing tells."""
        if len(self) == 0 and self._remembered is not None:
            return int(self._remembered.shape[1])
        return super().dimension

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats; through the dictionary where there is one."""
        return self._belief.information_gain

    @property
    def inducing(self) -> FloatArray:
        """The dictionary, shape (rank, D); all contexts so far while it is simply exact."""
        if isinstance(self._belief, FeatureModel):
            return self._belief.U.copy()
        return self._belief.inducing

    def with_kernel(self, kernel: Kernel, noise_std: float) -> DictionaryPosterior:
        """Return a posterior with another kernel and noise that has learned the same."""
        other = DictionaryPosterior(kernel, noise_std, self._given_tolerance)
        other._remembered = self._remembered
        if len(self):
            other._update_weighted(self._X.array, self._y.array, self._weights.array)
        return other

    def _expect(self, X: FloatArray, chosen: IntArray | None, at: FloatArray | None) -> None:
        """Take X as candidates for the dictionary, and keep the features of those `chosen`."""
        if isinstance(self._belief, ExactPosterior):
            self._belief._expect(X, chosen, at)
            self._remembered = latest(self._remembered, sample([X]))
            return
        if len(X) > REMEMBERED:
            X, chosen = sample([X]), None
        f = self._features(self._belief, X)
        if chosen is not None and at is not None and len(at):
            self._chosen = f.at(at, chosen)
        if f.largest > self.tolerance:
            novel = X[f.residual > self.tolerance]
            self._novel = latest(self._novel, novel)
            self._remembered = latest(self._remembered, novel)

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean, std, _, _ = self._predict_bounded(X)
        return mean, std

    def _predict_bounded(self, X: FloatArray) -> Bounded:
        if isinstance(self._belief, ExactPosterior):
            return self._belief._predict_bounded(X)
        mean, variance, residual, self._asked = moments(self._belief, X)
        return bounded(self._belief, mean, variance, residual)

    def _predict_known(self, X: FloatArray) -> FloatArray:
        if isinstance(self._belief, ExactPosterior):
            return self._belief._predict_known(X)
        return self._belief.mean(self._features(self._belief, X).phi)

    def _refine(self, X: FloatArray) -> Bounded | None:
        if isinstance(self._belief, ExactPosterior) or len(self) > AFFORDABLE:
            return None
        finer = self._finer_model(self._belief)
        mean, variance, residual, _ = moments(finer, X)
        return bounded(finer, mean, variance, residual)

    def _sample(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Sample the weights of the features: no covariance of the arms is needed."""
        if isinstance(self._belief, ExactPosterior):
            return self._belief._sample(X, rng)
        f = self._features(self._belief, X)
        if f.largest > self.tolerance:
            return super()._sample(X, rng)
        sample = self._belief.mean(f.phi)
        sample += dgemv(1.0, f.whitened, rng.standard_normal(self._belief.rank), trans=1)
        sample += np.sqrt(f.residual) * rng.standard_normal(len(X))
        return sample

    def _covariance(self, X: FloatArray) -> FloatArray:
        if isinstance(self._belief, ExactPosterior):
            return self._belief._covariance(X)
        f = self._features(self._belief, X)
        covariance = gram(f.whitened)
        if f.largest > self.tolerance:
            covariance += self._belief.covariance.of(X)
            covariance -= gram(f.phi)
        else:
            add_to_diagonal(covariance, f.residual)
        return covariance

    def _update(self, X: FloatArray, y: FloatArray) -> None:
        self._update_weighted(X, y, np.ones(len(y)))

    def _update_judged(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        ones = np.ones(len(y))
        if isinstance(self._belief, ExactPosterior):
            if len(self) + len(y) >= self._next_try:
                return super()._update_judged(X, y)
            judged = self._belief._update_judged(X, y)
        else:
            f = self._features(self._belief, X)
            if len(y) > FEW or self._must_grow(self._belief, f):
                return super()._update_judged(X, y)
            learned = self._absorb(self._belief, f, y, ones)
            assert learned is not None
            judged = learned
        self._keep(X, y, ones)
        return judged

    def _update_weighted(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Learn outcomes whose noise has variance σ² / weights, shape (N,)."""
        if isinstance(self._belief, ExactPosterior):
            self._update_exact(self._belief, X, y, weights)
        else:
            f = self._features(self._belief, X)
            if self._must_grow(self._belief, f):
                self._grow(self._belief, X, y, weights)
            else:
                self._absorb(self._belief, f, y, weights)
        self._keep(X, y, weights)

    def _keep(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        self._X.extend(X)
        self._y.extend(y)
        self._weights.extend(weights)
        self._chosen = self._asked = None

    def _update_exact(
        self, exact: ExactPosterior, X: FloatArray, y: FloatArray, weights: FloatArray
    ) -> None:
        count = len(self) + len(y)
        model = None
        if count >= self._next_try:
            model = first_model(
                self._prior, self.noise_std, [self._X.array, X], self._remembered, self.tolerance
            )
        if model is not None:
            self._belief = self._taught(model, X, y, weights)
            return
        exact._update_weighted(X, y, weights)
        if count >= self._next_try:
            self._next_try = RETRY * count

    def _must_grow(self, model: FeatureModel, f: Features) -> bool:
        """Return whether too many contexts are above the tolerance, or one of `f` too far."""
        waiting = 0 if self._novel is None else len(self._novel)
        if f.largest > self.tolerance:
            waiting += int(np.count_nonzero(f.residual > self.tolerance))
        too_many = waiting > max(8, NOVEL_SHARE * model.rank)
        return too_many or f.largest > URGENT * self.tolerance

    def _absorb(
        self, model: FeatureModel, f: Features, y: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Learn with the dictionary as it is, and return what `model` says of that."""
        learned = model.absorb_features(f.phi, f.whitened, f.residual, y, weights)
        if f.largest > self.tolerance:
            self._novel = latest(self._novel, f.X[f.residual > self.tolerance])
        saved = float(len(self)) ** 2 - 2.0 * model.rank**2
        self._saved += max(saved, 0.0) * TYPICAL_ARMS
        return learned

    def _grow(self, model: FeatureModel, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Learn with a dictionary that covers all contexts, or exactly if that is cheaper."""
        count = len(self) + len(y)
        grown = covering_model(model, [self._novel, X], self.tolerance, most_worthwhile(count))
        cost = 0.0 if grown is None else 2.0 * count * grown.rank**2
        saved = self._saved - cost
        if grown is not None and saved >= -GROWTHS * cost:
            self._belief, self._saved = self._taught(grown, X, y, weights), saved
        else:
            exact = ExactPosterior(self.kernel, self.noise_std)
            if len(self):
                exact._update_weighted(self._X.array, self._y.array, self._weights.array)
            exact._update_weighted(X, y, weights)
            self._belief, self._next_try, self._saved = exact, 2.0 * count, 0.0
        self._novel = self._finer = None

    def _taught(
        self, model: FeatureModel, X: FloatArray, y: FloatArray, weights: FloatArray
    ) -> FeatureModel:
        """Return `model` with all outcomes so far, and y seen at X, learned exactly."""
        model.absorb(self._X.array, self._y.array, self._weights.array)
        model.absorb(X, y, weights)
        return model

    def _finer_model(self, model: FeatureModel) -> FeatureModel:
        """Return a model with a finer dictionary that knows all outcomes so far."""
        finer, known = self._finer, self._finer_size
        if finer is None or len(self) > 2 * self._finer_made_at:
            tolerance = FINER / max(len(self), 1_000) * self.tolerance
            finer = finer_model(model, [self._X.array, self._remembered], tolerance)
            known, self._finer_made_at = 0, len(self)
        new = slice(known, len(self))
        finer.absorb(self._X.array[new], self._y.array[new], self._weights.array[new])
        self._finer, self._finer_size = finer, len(self)
        return finer

    def _features(self, model: FeatureModel, X: FloatArray) -> Features:
        """Return the features of X, from what was asked last where X is part of that."""
        for known in (self._chosen, self._asked):
            if known is not None and are_same(known.X, X):
                return known
        for known in (self._chosen, self._asked):
            positions = None if known is None else find_rows(known.X, X)
            if known is not None and positions is not None:
                return known.at(X, positions)
        with blas_threads(2.0 * model.rank**2 * len(X)):
            phi, residual = model.features(X)
            return Features.of(X, phi, model.whiten(phi), residual)

    def _state(self) -> dict[str, Any]:
        """Return the state, and drop what `predict` left behind, as `ExactPosterior` does."""
        self._asked = None
        return dict(self.__dict__)

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._chosen = None if self._chosen is None else Features(*self._chosen)
