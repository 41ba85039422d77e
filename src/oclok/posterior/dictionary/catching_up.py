"""A model that learns the past in steps: one that is to take over, or to be asked now and then."""
# Tested in tests/posterior/dictionary/test_posterior.py: growth in steps, and the finer dictionary.

from __future__ import annotations

from oclok.persistence import Persistent
from oclok.posterior.dictionary.nystrom import NystromModel
from oclok.posterior.observations import Observations

#: Outcomes that a dictionary learns anew within one call, and a part of them where there are more.
#: At rank 130 that takes 5 and 2 ms, at rank 180 9 and 3 ms, where a round of 100 arms takes 0.6.
AT_ONCE, PER_CALL = 1_280, 256
#: The same for calls with many outcomes, as a multiple of them: a model has to gain on them. So
#: many outcomes have to come before a larger dictionary learns its next part, if there is time.
AHEAD, PACE = 4, 16


class CatchingUp(Persistent):
    """A model that learns the past, a part of it per call.

    Attributes:
        model: the model.
        size: how many outcomes it has learned so far.
    """

    def __init__(self, model: NystromModel) -> None:
        self.model = model
        self.size = 0

    def learn(self, known: Observations, most: int) -> bool:
        """Learn at `most` so many further outcomes; return whether these were all."""
        part = slice(self.size, min(self.size + most, len(known)))
        if self.size < len(known):
            self.model.learn_all(*known.at(part))
        self.size = part.stop
        return self.size == len(known)
