"""As good as exact at a cost that does not grow with N: Nyström features of a small dictionary.

Smooth kernels have a small numerical rank: given some hundred well-chosen contexts U, every
other context has next to no variance left. The posterior is then Bayesian linear regression on
their features (`nystrom.py`), with a bound on its error (`bounds.py`); `selection.py` chooses U.

              N ≥ next try, and few pivots cover all contexts
    exact  ──────────────────────────────────────────────────►  dictionary  ─┐ contexts that it
      ▲                                                             │   ▲    │ does not cover:
      └─────────────────────────────────────────────────────────────┘   └────┘ it grows
              growing costs more than the dictionary saves

A finer dictionary is made and kept up only for rounds in which the bounds of the first do not
settle a decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oclok.posterior.base import Posterior
from oclok.posterior.exact import ExactPosterior
from oclok.posterior.nystrom import FEW, NystromModel
from oclok.posterior.paths import sample_weights
from oclok.posterior.prediction import Asked, Prediction
from oclok.posterior.selection import (
    REMEMBERED,
    covering_model,
    finer_model,
    first_model,
    latest,
    most_pivots,
    sample,
)
from oclok.typing import ArrayLike, FloatArray
from oclok.validation import as_positive

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Outcomes before a dictionary is tried; again at RETRY times as many if it was too large.
FIRST_TRY, RETRY = 200, 1.5
#: The error follows tolerance / σ²; a larger tolerance than this fraction of σ² is not used.
LARGEST_TOLERANCE = 1e-6
#: Tolerance of the finer dictionary, as a fraction of the first's. The bound grows with N, so that
#: with N outcomes it is FINER / N, which keeps the bound the same, and at most FINER / 1,000.
FINER = 10.0
#: Outcomes up to which undecided rounds go to the finer dictionary: a round of 5 outcomes
#: that does costs 1.6 times one that does not, and from here on nearly every one would.
MOST_TO_REFINE = 50_000
#: Contexts above the tolerance wait until they are this fraction of the dictionary, so that it
#: grows in few steps, unless one is above it by this factor: a growth costs 2Nr² operations.
NOVEL_FRACTION, URGENT = 1 / 16, 10.0
#: Growths that may cost more than the dictionary saves, with this many arms per round, before
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
        self.tolerance = min(self._given_tolerance, LARGEST_TOLERANCE * self.noise_std**2)
        self._model: ExactPosterior | NystromModel = self._exact()
        self._finer: NystromModel | None = None
        self._finer_size = self._finer_made_at = 0
        self._saved = 0.0
        self._remembered: FloatArray | None = None
        self._novel: FloatArray | None = None
        self._next_try = float(FIRST_TRY)

    def empty(
        self, kernel: Kernel | None = None, noise_std: float | None = None
    ) -> DictionaryPosterior:
        """Return a posterior that has learned nothing, but has been offered the same contexts."""
        other = DictionaryPosterior(
            kernel or self.kernel, noise_std or self.noise_std, self._given_tolerance
        )
        other._remembered = self._remembered
        return other

    @property
    def dimension(self) -> int | None:
        """D, or None as long as nothing tells."""
        if len(self) == 0 and self._remembered is not None:
            return int(self._remembered.shape[1])
        return super().dimension

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats; through the dictionary where there is one."""
        return self._model.information_gain

    @property
    def inducing(self) -> FloatArray:
        """The dictionary, shape (rank, D); all contexts so far while it is simply exact."""
        return self._model.inducing

    def predict(self, contexts: Asked) -> Prediction:
        """Return mean and std of f at `contexts` (M, D), with bounds."""
        if isinstance(self._model, ExactPosterior):
            return self._model.predict(contexts)
        return self._model.predict(self.checked(contexts))

    def covariance(self, contexts: Asked) -> FloatArray:
        """Return the joint covariance, shape (M, M), of f at `contexts` (M, D)."""
        if isinstance(self._model, ExactPosterior):
            return self._model.covariance(contexts)
        return self._model.covariance_of(self._asked(contexts), self.tolerance)

    def sample(self, contexts: Asked, rng: np.random.Generator) -> FloatArray:
        """Return one joint sample, shape (M,), of f at `contexts` (M, D)."""
        if isinstance(self._model, ExactPosterior):
            return self._model.sample(contexts, rng)
        asked = self._asked(contexts)
        if self._model.worked(asked).largest > self.tolerance:
            return super().sample(asked, rng)
        return self._model.sample(asked, rng)

    def sample_paths(self, contexts: Asked, count: int, rng: np.random.Generator) -> FloatArray:
        """Return `count` samples of f at `contexts` (M, D), shape (count, M)."""
        if isinstance(self._model, ExactPosterior):
            return super().sample_paths(contexts, count, rng)
        return sample_weights(self._model, self.checked(contexts), count, rng)

    def refine(self, prediction: Prediction) -> Prediction:
        """Return a prediction with tighter bounds; `prediction` itself if there is none.

        First rounding is bounded closely; asked for more, the finer dictionary answers.
        """
        if isinstance(self._model, ExactPosterior):
            return prediction
        tight = self._model.tightened(prediction)
        if tight is not prediction:
            return tight
        if len(self) > MOST_TO_REFINE or prediction.work is None:
            return prediction
        finer = self._finer_model(self._model)
        answer = finer.tightened(finer.predict(prediction.contexts))
        return Prediction(
            answer.contexts, answer.mean, answer.std, answer.mean_error, answer.std_error
        )

    def offer(self, contexts: Asked) -> None:
        """Take contexts (M, D) as candidates for the dictionary."""
        X = self.checked(contexts)
        if isinstance(self._model, ExactPosterior):
            self._remembered = latest(self._remembered, sample([X]))
            return
        if len(X) > REMEMBERED:
            contexts = X = sample([X])
        f = self._model.worked(self._asked(contexts))
        if f.largest > self.tolerance:
            novel = X[f.residual > self.tolerance]
            self._novel = latest(self._novel, novel)
            self._remembered = latest(self._remembered, novel)

    def update(
        self, contexts: Asked, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        asked = self._asked(contexts)
        y, w = self.checked_outcomes(outcomes, weights, len(asked.contexts))
        if not self._must_change(asked):
            self._absorb(asked, y, w)
        elif isinstance(self._model, ExactPosterior):
            self._leave_exact(self._model, asked.contexts, y, w)
        else:
            self._grow(self._model, asked.contexts, y, w)

    def learn(self, contexts: Asked, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Update, and return the `innovations` of the outcomes."""
        asked = self._asked(contexts)
        y, w = self.checked_outcomes(outcomes, None, len(asked.contexts))
        if len(y) > FEW or self._must_change(asked):
            return super().learn(asked, y)
        innovations = self._absorb(asked, y, w)
        assert innovations is not None  # as there are few
        return innovations

    def correct(self, contexts: Asked, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        known = self.observations
        if isinstance(self._model, ExactPosterior) or not (known.weights == 1.0).all():
            super().correct(contexts, before, after)
            return
        X = self.checked(contexts)
        old, _ = self.checked_outcomes(before, None, len(X))
        new, _ = self.checked_outcomes(after, None, len(X))
        positions = known.find(X, old)
        self._model.correct(self._asked(contexts), new - old)
        known.outcomes[positions] = new
        self._finer = None

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far by `rate`, above 0."""
        if isinstance(self._model, ExactPosterior):
            super().discount(rate)
        else:
            self._model.discount(as_positive(rate, "rate"))
            self.observations.weights[:] *= rate
            self._finer = None

    def _asked(self, contexts: Asked) -> Prediction:
        """Return `contexts` as a prediction, with their features if there is a dictionary."""
        asked = contexts
        if not isinstance(asked, Prediction):
            asked = Prediction.of(self.checked(asked))
        return asked if isinstance(self._model, ExactPosterior) else self._model.asked(asked)

    def _exact(self) -> ExactPosterior:
        """Return the exact posterior of all outcomes so far, which shares the observations."""
        return ExactPosterior.of(self.kernel, self.noise_std, self.observations)

    def _must_change(self, asked: Prediction) -> bool:
        """Return whether contexts to be learned call for another dictionary, or a first one."""
        if isinstance(self._model, ExactPosterior):
            return len(self) + len(asked.contexts) >= self._next_try
        f = self._model.worked(asked)
        waiting = 0 if self._novel is None else len(self._novel)
        if f.largest > self.tolerance:
            waiting += int(np.count_nonzero(f.residual > self.tolerance))
        too_many = waiting > max(8, NOVEL_FRACTION * self._model.rank)
        return too_many or f.largest > URGENT * self.tolerance

    def _absorb(
        self, asked: Prediction, y: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Learn with the model as it is, and return the innovations of few outcomes."""
        model = self._model
        if isinstance(model, ExactPosterior):
            if (weights == 1.0).all():
                return model.learn(asked, y)
            model.update(asked, y, weights)
            return None
        f = model.worked(asked)
        novel = asked.contexts[f.residual > self.tolerance]
        innovations = model.learn(asked, y, weights)
        self.observations.extend(asked.contexts, y, weights)
        if len(novel):
            self._novel = latest(self._novel, novel)
        saved = float(len(self)) ** 2 - 2.0 * model.rank**2
        self._saved += max(saved, 0.0) * TYPICAL_ARMS
        return innovations

    def _leave_exact(
        self, exact: ExactPosterior, X: FloatArray, y: FloatArray, weights: FloatArray
    ) -> None:
        """Learn with a first dictionary, or stay exact if that would be too large."""
        known = self.observations
        model = first_model(
            self.prior, self.noise_std, [known.contexts, X], self._remembered, self.tolerance
        )
        if model is None:
            exact.update(X, y, weights)
            self._next_try = RETRY * len(self)
        else:
            self._teach(model, X, y, weights)

    def _grow(self, model: NystromModel, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Learn with a dictionary that covers all contexts, or exactly if that is cheaper."""
        count = len(self) + len(y)
        grown = covering_model(model, [self._novel, X], self.tolerance, most_pivots(count))
        cost = 0.0 if grown is None else 2.0 * count * grown.rank**2
        if grown is not None and self._saved >= (1 - GROWTHS) * cost:
            self._teach(grown, X, y, weights)
            self._saved -= cost
        else:
            exact = self._exact()
            exact.update(X, y, weights)
            self._model, self._next_try, self._saved = exact, 2.0 * count, 0.0
        self._novel = self._finer = None

    def _teach(
        self, model: NystromModel, X: FloatArray, y: FloatArray, weights: FloatArray
    ) -> None:
        """Make `model` the one in use, after all outcomes so far and y seen at X."""
        known = self.observations
        model.learn_all(known.contexts, known.outcomes, known.weights)
        model.learn_all(X, y, weights)
        known.extend(X, y, weights)
        self._model = model

    def _finer_model(self, model: NystromModel) -> NystromModel:
        """Return a model with a finer dictionary that knows all outcomes so far."""
        known = self.observations
        finer, start = self._finer, self._finer_size
        if finer is None or len(self) > 2 * self._finer_made_at:
            tolerance = FINER / max(len(self), 1_000) * self.tolerance
            finer = finer_model(model, [known.contexts, self._remembered], tolerance)
            start, self._finer_made_at = 0, len(self)
        finer.learn_all(known.contexts[start:], known.outcomes[start:], known.weights[start:])
        self._finer, self._finer_size = finer, len(self)
        return finer
