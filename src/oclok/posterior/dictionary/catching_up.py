"""A model that learns the past in steps: one that is to take over, or to be asked now and then."""
# Tested in tests/posterior/dictionary/test_posterior.py: growth in steps, and the finer dictionary.

from __future__ import annotations

from oclok.persistence import Persistent
from oclok.posterior.dictionary.nystrom import NystromModel
from oclok.posterior.observations import Observations


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
        part = slice(self.size, self.size + most)
        if self.size < len(known):
            self.model.learn_all(known.contexts[part], known.outcomes[part], known.weights[part])
        self.size = min(part.stop, len(known))
        return self.size == len(known)
