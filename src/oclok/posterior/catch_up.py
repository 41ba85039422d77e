"""A posterior that learns the past in steps, so that no single call stalls, and then takes over."""

from __future__ import annotations

from oclok.persistence import Persistent
from oclok.posterior.base import Posterior
from oclok.posterior.observations import Observations


class CatchUp(Persistent):
    """A posterior that is to take over from another one.

    Args:
        posterior: has learned nothing yet.
        start: how many of the oldest outcomes it leaves out.
    """

    def __init__(self, posterior: Posterior, start: int = 0) -> None:
        self.posterior = posterior
        self.start = start

    def advance(self, known: Observations, most: int) -> bool:
        """Learn up to `most` more outcomes of `known`; return True when caught up."""
        first = self.start + len(self.posterior)
        if first < len(known):
            self.posterior.update(*known.at(slice(first, first + most)))
        return first + most >= len(known)
