"""As good as exact at a cost that does not grow with N: Nyström features of a small dictionary.

Smooth kernels have a small numerical rank: given some hundred well-chosen contexts U, every
other context has next to no variance left. The posterior is then Bayesian linear regression on
their features (`nystrom.py`), with a bound on its error (`bounds.py`); `selection.py` chooses U.
For other kernels, or contexts that no dictionary of `max_rank` covers, what the dictionary
leaves is learned from the nearest outcomes (`vecchia.py`).

              N ≥ next try, and few pivots cover all contexts
    exact  ──────────────────────────────────────────────────►  dictionary  ─┐ contexts that it
      │                                                             │   ▲    │ does not cover:
      │ N > max_rank                      growing is too much for   │   └────┘ it grows
      ▼                                   one call, or ends above   │   ▲
    nearest outcomes  ◄─────────────────  max_rank  ◄───────────────┘   │ a larger dictionary
      └─────────────────────────────────────────────────────────────────┘ has caught up

A larger dictionary that is too much for one call learns the past in steps, a step per update
(`maintain` does all of them), and then takes over. A finer dictionary is made and kept up only
for rounds in which the bounds of the first do not settle a decision.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from oclok.posterior.base import Posterior
from oclok.posterior.exact import APPENDED_AT_ONCE, ExactPosterior
from oclok.posterior.nystrom import FEW, LEARNED_AT_ONCE, NystromModel
from oclok.posterior.paths import sample_weights
from oclok.posterior.prediction import Asked, Prediction
from oclok.posterior.selection import (
    REMEMBERED,
    covering_model,
    finer_model,
    first_model,
    latest,
    most_pivots,
    partial_model,
    sample,
)
from oclok.posterior.vecchia import VecchiaModel
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_count, as_positive

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
#: Outcomes that it learns in one call, if it has to catch up.
MOST_TO_CATCH_UP = 4_096
#: Contexts above the tolerance wait until they are this fraction of the dictionary, so that it
#: grows in few steps, unless one is above it by this factor: a growth costs 2Nr² operations.
NOVEL_FRACTION, URGENT = 1 / 16, 10.0
#: Operations, 2Nr² of them, up to which a dictionary grows within one call: some 10 ms,
#: by estimate.
MOST_TO_GROW = 2.5e8
#: Most basis functions. The triangular solve and the product for 100 arms take 0.8 ms at rank
#: 256, 3.2 ms at rank 512.
MAX_RANK = 512


_NO_CONTEXTS: FloatArray = np.empty((0, 0))


class DictionaryPosterior(Posterior):
    """The exact posterior in all but name, at a flat cost for smooth kernels.

    Args:
        kernel: a kernel of `sklearn.gaussian_process.kernels`.
        noise_std: standard deviation σ of the noise of an outcome.
        tolerance: a context enters the dictionary when its variance, given those in it, is
            above this; at most 1e-6 σ² is used.
        max_rank: most basis functions. Beyond it, the posterior is an approximation with no
            bounds: a dictionary of half as many, and the nearest outcomes of each arm.

    Examples:
        >>> import numpy as np
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> contexts = np.random.default_rng(0).random((2_000, 2))
        >>> posterior = DictionaryPosterior(RBF(1.0), noise_std=0.1)
        >>> posterior.update(contexts, np.sin(contexts).sum(axis=1))
        >>> len(posterior), posterior.rank < 60
        (2000, True)
    """

    def __init__(
        self,
        kernel: Kernel,
        noise_std: float,
        tolerance: float = 1e-8,
        max_rank: int = MAX_RANK,
    ) -> None:
        super().__init__(kernel, noise_std)
        self._given_tolerance = as_positive(tolerance, "tolerance")
        self.tolerance = min(self._given_tolerance, LARGEST_TOLERANCE * self.noise_std**2)
        self.max_rank = as_count(max_rank, "max_rank")
        self._model: ExactPosterior | NystromModel | VecchiaModel = self._exact()
        self._successor: NystromModel | None = None
        self._taught = 0
        self._finer: NystromModel | None = None
        self._finer_size = self._finer_made_at = 0
        self._remembered: FloatArray | None = None
        self._novel: FloatArray | None = None
        self._next_try = float(FIRST_TRY)

    def empty(
        self, kernel: Kernel | None = None, noise_std: float | None = None
    ) -> DictionaryPosterior:
        """Return a posterior that has learned nothing, but has been offered the same contexts."""
        other = DictionaryPosterior(
            kernel or self.kernel,
            noise_std or self.noise_std,
            self._given_tolerance,
            self.max_rank,
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
        """Return mean and std of f at `contexts` (M, D), with bounds where there are any."""
        if isinstance(self._model, ExactPosterior):
            return self._model.predict(contexts)
        return self._model.predict(self.checked(contexts))

    def screen(self, contexts: Asked) -> Prediction:
        """Return what is quick to say of many contexts; `sharpen` says the rest of few."""
        if isinstance(self._model, VecchiaModel):
            return self._model.screen(self.checked(contexts))
        return self.predict(contexts)

    def sharpen(self, prediction: Prediction, positions: IntArray) -> Prediction:
        """Return `prediction` with what `predict` says at `positions`."""
        if isinstance(self._model, VecchiaModel):
            return self._model.sharpen(prediction, positions)
        return prediction

    def covariance(self, contexts: Asked) -> FloatArray:
        """Return the joint covariance, shape (M, M), of f at `contexts` (M, D)."""
        if isinstance(self._model, ExactPosterior):
            return self._model.covariance(contexts)
        asked = self._asked(contexts)
        if isinstance(self._model, VecchiaModel):
            return self._model.covariance_of(asked)
        return self._model.covariance_of(asked, self.tolerance)

    def sample(self, contexts: Asked, rng: np.random.Generator) -> FloatArray:
        """Return one joint sample, shape (M,), of f at `contexts` (M, D)."""
        if isinstance(self._model, ExactPosterior):
            return self._model.sample(contexts, rng)
        asked = self._asked(contexts)
        if isinstance(self._model, VecchiaModel) or len(self._uncovered(asked)):
            return super().sample(asked, rng)
        return self._model.sample(asked, rng)

    def sample_paths(self, contexts: Asked, count: int, rng: np.random.Generator) -> FloatArray:
        """Return `count` samples of f at `contexts` (M, D), shape (count, M)."""
        if isinstance(self._model, ExactPosterior):
            return super().sample_paths(contexts, count, rng)
        if isinstance(self._model, VecchiaModel):
            return self._model.sample_paths(self.checked(contexts), count, rng)
        return sample_weights(self._model, self.checked(contexts), count, rng)

    def refine(self, prediction: Prediction) -> Prediction:
        """Return a prediction with tighter bounds; `prediction` itself if there is none.

        First rounding is bounded closely; asked for more, the finer dictionary answers.
        """
        if not isinstance(self._model, NystromModel):
            return prediction
        tight = self._model.tightened(prediction)
        if tight is not prediction:
            return tight
        if len(self) > MOST_TO_REFINE or prediction.work is None:
            return prediction
        finer = self._finer_model(self._model)
        if finer is None:
            return prediction
        answer = finer.tightened(finer.predict(prediction.contexts))
        return Prediction(
            answer.contexts, answer.mean, answer.std, answer.mean_error, answer.std_error
        )

    def offer(self, contexts: Asked) -> None:
        """Take contexts (M, D) as candidates for the dictionary."""
        X = self.checked(contexts)
        if isinstance(self._model, ExactPosterior):
            self._remembered = latest(self._remembered, sample([X]))
        elif isinstance(self._model, NystromModel):
            if len(X) > REMEMBERED:
                contexts = sample([X])
            self._note(self._asked(contexts))

    def maintain(self) -> None:
        """Finish growing, if a larger dictionary is learning the past."""
        while self._successor is not None:
            self._advance()

    def update(
        self, contexts: Asked, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        asked = self._asked(contexts)
        y, w = self.checked_outcomes(outcomes, weights, len(asked.contexts))
        if not self._must_change(asked):
            self._absorb(asked, y, w)
        elif isinstance(self._model, NystromModel):
            self._grow(self._model, asked.contexts, y, w)
        elif isinstance(self._model, ExactPosterior):
            self._leave_exact(self._model, asked.contexts, y, w)
        self._advance()

    def learn(self, contexts: Asked, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Update, and return the `innovations` of the outcomes."""
        asked = self._asked(contexts)
        y, w = self.checked_outcomes(outcomes, None, len(asked.contexts))
        if len(y) > FEW or self._must_change(asked):
            return super().learn(asked, y)
        innovations = self._absorb(asked, y, w)
        assert innovations is not None  # as there are few
        self._advance()
        return innovations

    def correct(self, contexts: Asked, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        known = self.observations
        if not isinstance(self._model, NystromModel) or not (known.weights == 1.0).all():
            super().correct(contexts, before, after)
            return
        X = self.checked(contexts)
        old, _ = self.checked_outcomes(before, None, len(X))
        new, _ = self.checked_outcomes(after, None, len(X))
        positions = known.find(X, old)
        self._model.correct(self._asked(contexts), new - old)
        known.outcomes[positions] = new
        self._successor = self._finer = None

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far by `rate`, above 0."""
        if isinstance(self._model, ExactPosterior):
            super().discount(rate)
        else:
            self._model.discount(as_positive(rate, "rate"))
            self.observations.weights[:] *= rate
            self._successor = self._finer = None

    def _asked(self, contexts: Asked) -> Prediction:
        """Return `contexts` as a prediction, with their features if there is a dictionary."""
        asked = contexts
        if not isinstance(asked, Prediction):
            asked = Prediction.of(self.checked(asked))
        return self._model.asked(asked) if isinstance(self._model, NystromModel) else asked

    def _exact(self) -> ExactPosterior:
        """Return the exact posterior of all outcomes so far, which shares the observations."""
        return ExactPosterior.of(self.kernel, self.noise_std, self.observations)

    def _must_change(self, asked: Prediction) -> bool:
        """Return whether contexts to be learned call for another dictionary, or a first one."""
        if isinstance(self._model, ExactPosterior):
            return len(self) + len(asked.contexts) >= min(self._next_try, self.max_rank + 1)
        if isinstance(self._model, VecchiaModel):
            return False
        waiting = len(self._uncovered(asked)) + (0 if self._novel is None else len(self._novel))
        too_many = waiting > max(8, NOVEL_FRACTION * self._model.rank)
        return too_many or self._model.worked(asked).largest > URGENT * self.tolerance

    def _uncovered(self, asked: Prediction) -> FloatArray:
        """Return the contexts that the dictionary does not cover, shape (n, D)."""
        assert isinstance(self._model, NystromModel)
        f = self._model.worked(asked)
        if f.largest <= self.tolerance:
            return _NO_CONTEXTS
        return asked.contexts[f.residual > self.tolerance]

    def _note(self, asked: Prediction) -> None:
        """Remember which contexts the dictionary does not cover."""
        novel = self._uncovered(asked)
        if len(novel):
            self._novel = latest(self._novel, novel)
            self._remembered = latest(self._remembered, novel)

    def _absorb(
        self, asked: Prediction, y: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Learn with the model as it is, and return the innovations of few outcomes."""
        model = self._model
        if isinstance(model, ExactPosterior):
            if len(y) <= APPENDED_AT_ONCE:
                return model.append(asked, y, weights)
            model.update(asked, y, weights)
            return None
        if isinstance(model, NystromModel):
            self._note(asked)
        if isinstance(model, VecchiaModel) and len(y) > FEW:
            model = copy.deepcopy(model)  # so that all or none is learned
            model.learn_all(asked.contexts, y, weights)
            innovations, self._model = None, model
        else:
            innovations = model.learn(asked, y, weights)
        self.observations.extend(asked.contexts, y, weights)
        return innovations

    def _leave_exact(
        self, exact: ExactPosterior, X: FloatArray, y: FloatArray, weights: FloatArray
    ) -> None:
        """Learn with a first dictionary; if that would be too large, exactly or by neighbours."""
        seen: list[FloatArray | None] = [self.observations.contexts, X]
        count = len(self) + len(y)
        model = first_model(
            self.prior,
            self.noise_std,
            seen,
            self._remembered,
            self.tolerance,
            min(most_pivots(count), self.max_rank),
        )
        if model is not None:
            self._teach(model, X, y, weights)
        elif count <= self.max_rank:
            exact.update(X, y, weights)
            self._next_try = RETRY * len(self)
        else:
            part = partial_model(
                self.prior, self.noise_std, [*seen, self._remembered], self.max_rank // 2
            )
            self._teach(VecchiaModel(part), X, y, weights)

    def _grow(self, model: NystromModel, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Learn with a dictionary that covers all contexts, at once or later."""
        count = len(self) + len(y)
        largest = min(most_pivots(count), self.max_rank)
        grown = covering_model(model, [self._novel, X], self.tolerance, largest)
        if grown is not None and 2.0 * count * grown.rank**2 <= MOST_TO_GROW:
            self._teach(grown, X, y, weights)
        elif count <= self.max_rank:
            exact = self._exact()
            exact.update(X, y, weights)
            self._model, self._next_try = exact, 2.0 * count
        else:
            local = VecchiaModel(copy.deepcopy(model))
            local.learn_all(X, y, weights)
            self.observations.extend(X, y, weights)
            self._model, self._successor, self._taught = local, grown, 0
        self._novel = self._finer = None

    def _advance(self) -> None:
        """Teach the successor a part of what it missed, and let it take over if that was all."""
        if self._successor is None:
            return
        known, part = self.observations, slice(self._taught, self._taught + LEARNED_AT_ONCE)
        self._successor.learn_all(known.contexts[part], known.outcomes[part], known.weights[part])
        self._taught = min(part.stop, len(self))
        if self._taught == len(self):
            self._model, self._successor = self._successor, None

    def _teach(
        self,
        model: NystromModel | VecchiaModel,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray,
    ) -> None:
        """Make `model` the one in use, after all outcomes so far and y seen at X."""
        known = self.observations
        model.learn_all(known.contexts, known.outcomes, known.weights)
        model.learn_all(X, y, weights)
        known.extend(X, y, weights)
        self._model = model

    def _finer_model(self, model: NystromModel) -> NystromModel | None:
        """Return a model with a finer dictionary, once it has learned all outcomes so far."""
        known = self.observations
        if self._finer is None or len(self) > 2 * self._finer_made_at:
            tolerance = FINER / max(len(self), 1_000) * self.tolerance
            self._finer = finer_model(model, [known.contexts, self._remembered], tolerance)
            self._finer_size, self._finer_made_at = 0, len(self)
        part = slice(self._finer_size, self._finer_size + MOST_TO_CATCH_UP)
        self._finer.learn_all(known.contexts[part], known.outcomes[part], known.weights[part])
        self._finer_size = min(part.stop, len(self))
        return self._finer if self._finer_size == len(self) else None
