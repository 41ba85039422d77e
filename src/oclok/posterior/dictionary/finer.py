"""A finer dictionary, for rounds in which the bounds of the one in use do not settle a decision.

It is made when it is first asked, and learns what it missed when it is asked again: a round of 5
outcomes that does costs 1.6 times one that does not.
"""
# Tested in tests/posterior/dictionary/test_posterior.py: through what a posterior refines.

from __future__ import annotations

from oclok.persistence import Persistent
from oclok.posterior.dictionary.catching_up import PER_CALL, CatchingUp
from oclok.posterior.dictionary.nystrom import NystromModel
from oclok.posterior.dictionary.selection import finer_model
from oclok.posterior.observations import Observations
from oclok.posterior.prediction import Prediction
from oclok.typing import FloatArray

#: Its tolerance, as a fraction of the first's. The bound grows with N, so that with N outcomes it
#: is FINER / N, which keeps the bound the same, and at most FINER / 1,000.
FINER = 10.0
#: Outcomes up to which bounds are tightened. Beyond, half of the rounds of RBF(1) are undecided,
#: closer bounds of rounding settle a quarter of these, and a round that asks takes half as long
#: again; a linear model of outcomes that are not linear has no proofs by then.
MOST_TO_REFINE = 50_000
#: Outcomes that it learns within the round that asks: 5 ms at rank 160. If it missed more, it
#: learns them in parts, and does not answer until then.
LEARNED_WHEN_ASKED = 768


class FinerDictionary(Persistent):
    """A dictionary that is asked now and then."""

    def __init__(self) -> None:
        self._learner: CatchingUp | None = None
        self._made_at = 0

    def refine(
        self,
        prediction: Prediction,
        model: NystromModel,
        known: Observations,
        remembered: FloatArray,
    ) -> Prediction:
        """Return what it says; `prediction`, of `model`, if it is still learning the past."""
        count = len(known)
        if self._learner is None or count > 2 * self._made_at:
            tolerance = FINER / max(count, 1_000) * model.tolerance
            self._learner = CatchingUp(finer_model(model, [known.contexts, remembered], tolerance))
            self._made_at = count
        if count - self._learner.size > LEARNED_WHEN_ASKED:
            return prediction  # `advance` will teach it
        self._learner.learn(known, LEARNED_WHEN_ASKED)
        finer = self._learner.model
        return finer.refine(finer.predict(prediction)).without_work()

    def advance(self, known: Observations) -> None:
        """Learn a part of what it missed, if that is too much for the round that asks."""
        if len(known) > MOST_TO_REFINE:
            self._learner = None  # nobody will ask any more
        if self._learner and len(known) - self._learner.size > LEARNED_WHEN_ASKED:
            self._learner.learn(known, PER_CALL)

    def maintain(self, known: Observations) -> None:
        """Learn all that it missed."""
        if self._learner:
            self._learner.learn(known, len(known))

    def discount(self, rate: float) -> None:
        """Multiply the weights of all that it learned by `rate`."""
        if self._learner:
            self._learner.model.discount(rate)
