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

A larger dictionary that is too much for one call learns the past in steps, one per update
(`maintain` takes all of them), and then takes over.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from oclok.arrays import GrowableArray
from oclok.posterior.base import Innovations
from oclok.posterior.dictionary.nystrom import LEARNED_AT_ONCE, NystromModel
from oclok.posterior.dictionary.regression import FEW
from oclok.posterior.dictionary.selection import (
    LARGEST_FRACTION,
    REMEMBERED,
    covering_model,
    covers,
    first_model,
    partial_model,
    sample,
)
from oclok.posterior.dictionary.vecchia import VecchiaModel
from oclok.posterior.exact import ExactPosterior
from oclok.posterior.incremental import IncrementalPosterior
from oclok.posterior.kernels import Covariance
from oclok.posterior.observations import Observations
from oclok.posterior.prediction import ContextsLike
from oclok.posterior.wrapping import WrappingPosterior, learn_past
from oclok.typing import ArrayLike, FloatArray, Kernel
from oclok.validation import as_count, as_positive

#: Outcomes that a larger dictionary learns within one call, and the part it learns per call where
#: there are more.
AT_ONCE, PER_CALL = 1_280, 256
#: The same for calls with many outcomes, as a multiple of them, so that it gains on them; and the
#: number of new outcomes after which it learns its next part, if there is time.
AHEAD, PACE = 4, 16
#: Outcomes before a dictionary is tried; again at RETRY times as many if it was too large.
FIRST_TRY, RETRY = 200, 1.5
#: The error follows tolerance / σ²; a larger tolerance than this fraction of σ² is not used.
LARGEST_TOLERANCE = 1e-6
#: Contexts above the tolerance wait until they are this fraction of the dictionary, so that it
#: grows in few steps, unless one is above it by this factor: a growth costs 2Nr² operations.
NOVEL_FRACTION, URGENT = 1 / 16, 10.0
#: Residual variance, relative to the noise's, that may be neglected while a larger dictionary
#: catches up: the bounds include it. Beyond it, the nearest outcomes take over.
NEGLIGIBLE = 1e-3
#: Most basis functions; the cost of a round grows with their square.
MAX_RANK = 512


class DictionaryPosterior(WrappingPosterior):
    """The exact posterior in all but name, at a flat cost for smooth kernels.

    Args:
        kernel, noise_std: as for `Posterior`.
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
        kernel: Kernel | Covariance,
        noise_std: float,
        tolerance: float = 1e-8,
        max_rank: int = MAX_RANK,
    ) -> None:
        self._model: IncrementalPosterior = ExactPosterior(kernel, noise_std)
        self._given_tolerance = as_positive(tolerance, "tolerance")
        self.tolerance = min(self._given_tolerance, LARGEST_TOLERANCE * self.noise_std**2)
        self.max_rank = as_count(max_rank, "max_rank")
        self._next_try = float(FIRST_TRY)
        self._remembered, self._novel = GrowableArray(), GrowableArray()
        self._successor: NystromModel | None = None

    def empty(self, kernel: Kernel | None = None, noise_std: float | None = None) -> Self:
        """Return a posterior that has learned nothing, but has been offered the same contexts."""
        budget = self._given_tolerance, self.max_rank
        other = type(self)(kernel or self.prior, noise_std or self.noise_std, *budget)
        other._remembered.extend(self._remembered.array)
        return other

    @property
    def dimension(self) -> int | None:
        """D, or None as long as it is unknown."""
        return super().dimension or self._remembered.width

    @property
    def delegate(self) -> IncrementalPosterior:
        """The posterior that answers now; see the head of this file."""
        return self._model

    @property
    def _dictionary(self) -> NystromModel | None:
        """The dictionary that answers, or is to take over from the nearest outcomes."""
        model = self._model
        if type(model) is NystromModel:  # `isinstance` of an abstract class takes longer
            return model
        return self._successor if type(model) is VecchiaModel else None

    def update(
        self, contexts: ContextsLike, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        contexts = self._predicted(contexts)
        X = self.checked(contexts)
        y, w = self.checked_outcomes(outcomes, weights, len(X))
        if not self._must_change(contexts, len(y)):
            self._append(contexts, y, w)
            return
        if isinstance(self._model, NystromModel):
            self._grow(self._model, X, y, w)
        else:
            self._begin(X, y, w)
        self._advance(X)

    def learn(self, contexts: ContextsLike, outcomes: ArrayLike) -> Innovations:
        """Update, and return the `innovations` of the outcomes."""
        contexts = self._predicted(contexts)
        y, w = self.checked_outcomes(outcomes, None, len(self.checked(contexts)))
        if len(y) > FEW or self._must_change(contexts, len(y)):
            return super().learn(contexts, y)
        innovations = self._append(contexts, y, w)
        assert innovations is not None  # as there are few
        return innovations

    def correct(self, contexts: ContextsLike, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        self._model.correct(self.checked(contexts), before, after)
        if self._successor is not None:
            self._successor = self._successor.blank()

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far by `rate`, above 0."""
        self._model.discount(as_positive(rate, "rate"))
        if self._successor is not None:
            self._successor.discount(rate)

    def offer(self, contexts: ContextsLike) -> None:
        """Take contexts (M, D) as candidates for the dictionary."""
        X = self.checked(contexts)
        if len(X) > REMEMBERED:
            contexts = X = sample([X])
        if type(self._model) is ExactPosterior:
            _remember(self._remembered, X)
        else:
            self._note(contexts)

    def maintain(self) -> None:
        """Finish what a larger dictionary learns in steps."""
        if self._successor is not None:
            learn_past(self._successor, self.observations, len(self))
            self._model, self._successor = self._successor, None

    def _note(self, contexts: ContextsLike) -> None:
        """Remember which contexts the dictionary, in use or to come, does not cover."""
        dictionary = self._dictionary
        if dictionary is not None:
            uncovered = dictionary.uncovered(contexts)
            if len(uncovered):
                _remember(self._novel, uncovered)
                _remember(self._remembered, uncovered)

    def _must_change(self, contexts: ContextsLike, count: int) -> bool:
        """Return whether `count` contexts to be learned call for another model."""
        model = self._model
        if type(model) is ExactPosterior:
            return len(self) + count >= min(self._next_try, self.max_rank + 1)
        if type(model) is not NystromModel:
            return False
        if count > LEARNED_AT_ONCE:
            return True
        largest = model.largest_residual(contexts)
        if self._successor is not None:
            return largest > self._negligible
        waiting = len(model.uncovered(contexts)) + len(self._novel)
        too_many = waiting > max(8, NOVEL_FRACTION * model.rank)
        return too_many or largest > URGENT * self.tolerance

    def _predicted(self, contexts: ContextsLike) -> ContextsLike:
        """Return contexts with a prediction, by which a dictionary is judged and learns."""
        is_dictionary = type(self._model) is NystromModel
        if is_dictionary and len(self.checked(contexts)) <= LEARNED_AT_ONCE:
            return self._model.current(contexts)
        return contexts

    def _append(
        self, contexts: ContextsLike, y: FloatArray, weights: FloatArray
    ) -> Innovations | None:
        """Learn with the model in use."""
        self._note(contexts)
        innovations = self._model.append(contexts, y, weights)
        self._advance(self.checked(contexts))
        return innovations

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
            self._model.update(X, y, weights)
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
        count = len(self) + len(y)
        largest = before if self._successor is None else self._successor
        larger = self._larger(largest, X, count)
        successor = self._successor if larger is largest else larger
        if larger is None and count <= self.max_rank:
            self._teach(ExactPosterior(self.prior, self.noise_std), X, y, weights)
            self._next_try = RETRY * count
        elif successor is not None and count <= max(AT_ONCE, AHEAD * len(y)):
            self._teach(successor.blank(), X, y, weights)
        else:
            if larger is None or not covers(before, [X], self._negligible):
                before = VecchiaModel(before)
            before.update(X, y, weights)
            self._model, self._successor = before, successor
        self._novel = GrowableArray()

    def _larger(self, model: NystromModel, X: FloatArray, count: int) -> NystromModel | None:
        """Return `model` if it covers all contexts, or a larger one that has learned nothing.

        None if that takes more basis functions than are worth having.
        """
        parts = [self._novel.array[-REMEMBERED:], X]
        larger = covering_model(model, parts, self._most_pivots(count))
        if larger is not None and larger is not model:
            larger.observations = Observations(self.observations.rows)  # takes no further memory
        return larger

    @property
    def _negligible(self) -> float:
        return max(NEGLIGIBLE * self.noise_std**2, URGENT * self.tolerance)

    def _most_pivots(self, count: int) -> int:
        """Return the size of the largest dictionary that is worth having with N = `count`."""
        return min(int(LARGEST_FRACTION * count), self.max_rank)

    def _teach(
        self, model: IncrementalPosterior, X: FloatArray, y: FloatArray, weights: FloatArray
    ) -> None:
        """Use `model` after it has learned all outcomes so far and y seen at X."""
        known = self.observations
        model.observations = Observations(known.rows)
        if len(known):
            pairs = zip(known.at(slice(None)), (X, y, weights), strict=True)
            X, y, weights = (np.concatenate(pair) for pair in pairs)
        model.update(X, y, weights)
        self._model, self._successor = model, None

    def _advance(self, X: FloatArray) -> None:
        """Let a larger dictionary learn more of the past, after the contexts X (n, D)."""
        if self._successor is None:
            return
        successor, count = self._successor, len(self)
        most, is_due = max(PER_CALL, AHEAD * len(X)), count // PACE > (count - len(X)) // PACE
        if not covers(successor, [X], self._negligible):
            self._successor = self._larger(successor, X, count)
            self._novel = GrowableArray()
        elif type(self._model) is NystromModel and not is_due:
            pass  # which is good enough meanwhile
        elif learn_past(successor, self.observations, most):
            self._model, self._successor = successor, None


def _remember(rows: GrowableArray, new: FloatArray) -> None:
    """Add `new`, and forget all but the last REMEMBERED rows now and then."""
    rows.extend(new)
    if len(rows) > 2 * REMEMBERED:
        rows.keep_last(REMEMBERED)
