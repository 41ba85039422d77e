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

from typing import TYPE_CHECKING

from oclok.posterior.dictionary.catching_up import CatchingUp
from oclok.posterior.dictionary.nystrom import LEARNED_AT_ONCE, NystromModel
from oclok.posterior.dictionary.regression import FEW
from oclok.posterior.dictionary.selection import (
    REMEMBERED,
    covering_model,
    covers,
    finer_model,
    first_model,
    most_pivots,
    partial_model,
    sample,
)
from oclok.posterior.dictionary.vecchia import VecchiaModel
from oclok.posterior.exact import ExactPosterior
from oclok.posterior.observations import Observations, Rows
from oclok.posterior.prediction import Asked, Prediction
from oclok.posterior.wrapping import WrappingPosterior
from oclok.typing import ArrayLike, FloatArray
from oclok.validation import Contexts, as_count, as_positive

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
#: Outcomes that a dictionary learns anew within one call, and a part of them where there are more.
#: At rank 130 that takes 4 and 1 ms, at rank 180 7 and 3 ms, where a round of 100 arms takes 0.7.
AT_ONCE, PER_CALL = 1_024, 256
#: The same for calls with many outcomes, as a multiple of them: a model has to gain on them. So
#: many outcomes have to come before a larger dictionary learns its next part, if there is time.
AHEAD, PACE = 4, 16
#: Contexts above the tolerance wait until they are this fraction of the dictionary, so that it
#: grows in few steps, unless one is above it by this factor: a growth costs 2Nr² operations.
NOVEL_FRACTION, URGENT = 1 / 16, 10.0
#: What a dictionary leaves of a context's variance may be neglected for a while, relative to the
#: noise's: the bounds include it, and it is little. Beyond that it takes the nearest outcomes.
NEGLIGIBLE = 1e-3
#: Most basis functions. The triangular solve and the product for 100 arms take 0.8 ms at rank
#: 256, 3.2 ms at rank 512.
MAX_RANK = 512


class DictionaryPosterior(WrappingPosterior):
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
        self._next_try = float(FIRST_TRY)
        self._remembered, self._novel = Rows(), Rows()
        self._successor: CatchingUp | None = None
        self._finer: CatchingUp | None = None
        self._finer_made_at = 0

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
        other._remembered.extend(self._remembered.array)
        return other

    @property
    def dimension(self) -> int | None:
        """D, or None as long as nothing tells."""
        if len(self) == 0 and len(self._remembered):
            return int(self._remembered.array.shape[1])
        return super().dimension

    @property
    def in_use(self) -> ExactPosterior | NystromModel | VecchiaModel:
        """The posterior that answers now; see the head of this file."""
        return self._model

    def share(self, contexts: Rows) -> None:
        """Keep contexts in rows with others who learn the same outcomes; before the first one."""
        self.observations = Observations(contexts)
        self._model = self._exact()

    def refine(self, prediction: Prediction) -> Prediction:
        """Return a prediction with tighter bounds; `prediction` itself if there is none.

        First rounding is bounded closely; asked for more, the finer dictionary answers, unless
        it is still learning the past.
        """
        refined = self._model.refine(prediction)
        if refined is not prediction:
            return refined.without_work() if len(self) > MOST_TO_REFINE else refined
        if prediction.work is None or len(self) > MOST_TO_REFINE:
            return prediction
        finer = self._finer_model()
        if finer is None:
            return prediction
        answer = finer.refine(finer.predict(prediction))
        return Prediction(
            answer.contexts, answer.mean, answer.std, answer.mean_error, answer.std_error
        )

    def update(
        self, contexts: Asked, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        X, asked = self.checked(contexts), self._with_features(contexts)
        y, w = self.checked_outcomes(outcomes, weights, len(X))
        if self._must_change(asked, len(y)):
            self._change(X, y, w)
        else:
            self._note(asked)
            self._model.append(asked, y, w)
        self._advance(X)

    def learn(self, contexts: Asked, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Update, and return the `innovations` of the outcomes."""
        X, asked = self.checked(contexts), self._with_features(contexts)
        y, w = self.checked_outcomes(outcomes, None, len(X))
        if len(y) > FEW or self._must_change(asked, len(y)):
            return super().learn(asked, y)
        self._note(asked)
        innovations = self._model.append(asked, y, w)
        assert innovations is not None  # as there are few
        self._advance(X)
        return innovations

    def correct(self, contexts: Asked, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        self._model.correct(self._asked(contexts), before, after)
        self._finer = None
        if self._successor:
            self._successor = CatchingUp(self._successor.model.blank())

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far by `rate`, above 0."""
        self._model.discount(as_positive(rate, "rate"))
        for other in (self._successor, self._finer):
            if other:
                other.model.discount(rate)

    def offer(self, contexts: Asked) -> None:
        """Take contexts (M, D) as candidates for the dictionary."""
        X = self.checked(contexts)
        if isinstance(self._model, ExactPosterior):
            _remember(self._remembered, X if len(X) <= REMEMBERED else sample([X]))
        else:
            self._note(contexts if len(X) <= REMEMBERED else Contexts(sample([X])))

    def maintain(self) -> None:
        """Finish what is learned in steps: by a larger dictionary, and by the finer one."""
        if self._successor:
            self._successor.learn(self.observations, len(self))
            self._take_over()
        if self._finer:
            self._finer.learn(self.observations, len(self))

    def _with_features(self, contexts: Asked) -> Contexts | Prediction:
        """Return `contexts` checked, and with their features if the dictionary needs them."""
        asked = self._asked(contexts)
        if isinstance(self._model, NystromModel) and len(self.checked(asked)) <= LEARNED_AT_ONCE:
            return self._model.asked(asked)
        return asked

    def _exact(self) -> ExactPosterior:
        """Return the exact posterior of all outcomes so far, which shares the observations."""
        return ExactPosterior.of(self.kernel, self.noise_std, self.observations)

    def _note(self, contexts: Asked) -> None:
        """Remember which contexts the dictionary, in use or to come, does not cover."""
        model = self._model
        if isinstance(model, VecchiaModel) and self._successor:
            model = self._successor.model
        if isinstance(model, NystromModel):
            uncovered = model.uncovered(contexts)
            if len(uncovered):
                _remember(self._novel, uncovered)
                _remember(self._remembered, uncovered)

    def _must_change(self, asked: Asked, count: int) -> bool:
        """Return whether `count` contexts to be learned call for another model."""
        match self._model:
            case ExactPosterior():
                return len(self) + count >= min(self._next_try, self.max_rank + 1)
            case NystromModel() as model:
                if count > LEARNED_AT_ONCE:
                    return True
                largest = model.worked(asked).largest
                if self._successor:
                    return largest > self._negligible
                waiting = len(model.uncovered(asked)) + len(self._novel)
                too_many = waiting > max(8, NOVEL_FRACTION * model.rank)
                return too_many or largest > URGENT * self.tolerance
            case VecchiaModel():
                return False

    def _change(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Learn with another model, if there is need for one."""
        if isinstance(self._model, NystromModel):
            self._grow(self._model, X, y, weights)
        else:
            self._begin(X, y, weights)

    def _begin(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Learn with a first dictionary, or by the nearest outcomes beyond the budget."""
        count, seen = len(self) + len(y), [self.observations.contexts, X]
        remembered = self._remembered.array[-REMEMBERED:]
        model = first_model(
            self.prior, self.noise_std, seen, remembered, self.tolerance, self._most_pivots(count)
        )
        if model is not None:
            self._teach(model, X, y, weights)
        elif count <= self.max_rank:
            self._model.append(X, y, weights)
            self._next_try = RETRY * count
        else:
            part = partial_model(
                self.prior, self.noise_std, [*seen, remembered], self.max_rank // 2, self.tolerance
            )
            self._teach(part if covers(part, seen) else VecchiaModel(part), X, y, weights)

    def _grow(
        self, before: NystromModel, X: FloatArray, y: FloatArray, weights: FloatArray
    ) -> None:
        """Learn with a larger dictionary: now, or in steps if that is too much for one call."""
        count, novel = len(self) + len(y), self._novel.array[-REMEMBERED:]
        largest = self._successor.model if self._successor else before
        model = covering_model(largest, [novel, X], self._most_pivots(count))
        successor = self._successor
        if model is None or model.U is not largest.U:
            successor = None if model is None else CatchingUp(model)
        if model is None and count <= self.max_rank:
            exact = self._exact()
            exact.append(X, y, weights)
            self._model, self._next_try, self._finer = exact, RETRY * count, None
        elif successor and count <= max(AT_ONCE, AHEAD * len(y)):
            self._teach(successor.model, X, y, weights)
        elif model is None or not covers(before, [X], self._negligible):
            local = VecchiaModel(before)
            local.observations = self.observations
            local.append(X, y, weights)
            self._model, self._successor, self._finer = local, successor, None
        else:
            before.append(X, y, weights)
            self._successor = successor
        self._novel = Rows()

    @property
    def _negligible(self) -> float:
        return max(NEGLIGIBLE * self.noise_std**2, URGENT * self.tolerance)

    def _most_pivots(self, count: int) -> int:
        """Return the size of the largest dictionary that is worth having with N = `count`."""
        return min(most_pivots(count), self.max_rank)

    def _teach(
        self, model: NystromModel | VecchiaModel, X: FloatArray, y: FloatArray, weights: FloatArray
    ) -> None:
        """Make `model` the one in use, after all outcomes so far and y seen at X."""
        known = self.observations
        model.learn_all(known.contexts, known.outcomes, known.weights)
        model.observations = known
        model.append(X, y, weights)
        self._model, self._successor, self._finer = model, None, None

    def _advance(self, X: FloatArray) -> None:
        """Let others learn a part of what they missed, after the contexts X (n, D) were learned."""
        known = self.observations
        is_due = len(known) // PACE > (len(known) - len(X)) // PACE
        if self._successor:
            model = self._successor.model
            if not covers(model, [X], self._negligible):
                parts = [self._novel.array[-REMEMBERED:], X]
                larger = covering_model(model, parts, self._most_pivots(len(known)))
                self._successor = None if larger is None else CatchingUp(larger)
                self._novel = Rows()
            elif not is_due and isinstance(self._model, NystromModel):
                pass  # which is good enough meanwhile
            elif self._successor.learn(known, max(PER_CALL, AHEAD * len(X))):
                self._take_over()
        elif len(known) > MOST_TO_REFINE:
            self._finer = None
        elif self._finer and is_due and len(known) - self._finer.size >= PER_CALL:
            self._finer.learn(known, PER_CALL)

    def _take_over(self) -> None:
        """Make the successor, which has learned all outcomes, the model in use."""
        assert self._successor is not None
        self._model, self._successor, self._finer = self._successor.model, None, None
        self._model.observations = self.observations

    def _finer_model(self) -> NystromModel | None:
        """Return a model with a finer dictionary, once it has learned all outcomes so far."""
        if not isinstance(self._model, NystromModel):
            return None
        known = self.observations
        if self._finer is None or len(self) > 2 * self._finer_made_at:
            tolerance = FINER / max(len(self), 1_000) * self.tolerance
            parts = [known.contexts, self._remembered.array[-REMEMBERED:]]
            self._finer = CatchingUp(finer_model(self._model, parts, tolerance))
            self._finer_made_at = len(self)
        if len(self) - self._finer.size > AT_ONCE:
            return None  # `_advance` will teach it
        self._finer.learn(known, AT_ONCE)
        return self._finer.model


def _remember(rows: Rows, new: FloatArray) -> None:
    """Add `new`, and forget all but the last REMEMBERED rows now and then."""
    rows.extend(new)
    if len(rows) > 2 * REMEMBERED:
        rows.keep_last(REMEMBERED)
