"""Shadow mode: how the agent's choices differ from another system's, and the expected gain.

    A   arms that the agent preferred and the system did not choose, in a round      R   rounds kept
    B   arms that the system chose and the agent did not prefer
    w   1/R for each arm of each A, -1/R for each of each B; f ~ posterior with mean m, covariance C

The gain per round, in sums of outcomes, is wᵀf: normal with mean wᵀm and variance wᵀCw, under
today's posterior, which has learned the outcomes of the system's choices. The agent's choices are
those of its index then, not those that look best now, so there is no winner's curse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from oclok.persistence import Persistent
from oclok.policies import Policy
from oclok.typing import FloatArray, IntArray
from oclok.validation import as_probability

#: Latest rounds in which agent and system differed, and most arms of theirs that are compared.
KEPT, MOST_ARMS = 200, 1_000


@dataclass(frozen=True)
class Comparison:
    """The agent against the system that decides.

    Attributes:
        rounds: decisions so far.
        different: those in which the agent would have chosen otherwise.
        gain: expected change of a round's sum of outcomes, had the agent decided; NaN without a
            posterior.
        lower, upper: ends of the interval that holds the gain with probability `level`.
        level: of the interval.
    """

    rounds: int
    different: int
    gain: float
    lower: float
    upper: float
    level: float

    def __str__(self) -> str:
        if not self.rounds:
            return "no decisions yet"
        return (
            f"the agent would have chosen otherwise in {self.different} of {self.rounds} "
            f"decisions; it expects that to change the sum of outcomes by {self.gain:+.3g} per "
            f"decision ({self.level:.0%} interval {self.lower:+.3g} to {self.upper:+.3g})"
        )


class Shadow(Persistent):
    """Remembers where the agent and the deciding system differed."""

    def __init__(self) -> None:
        self.rounds = 0
        self.different = 0
        self._kept: list[tuple[FloatArray, FloatArray]] = []  # with the sign of each arm

    def record(self, contexts: FloatArray, preferred: IntArray, chosen: IntArray) -> None:
        """Note what the agent preferred and what was chosen, as positions into `contexts`."""
        self.rounds += 1
        differing = np.setxor1d(preferred, chosen)
        if differing.size:
            self.different += 1
            sign = np.where(np.isin(differing, preferred), 1.0, -1.0)
            self._kept.append((contexts[differing], sign))
            del self._kept[:-KEPT]

    def comparison(self, policy: Policy, level: float = 0.95) -> Comparison:
        """Return the expected gain under the policy's posterior."""
        level = as_probability(level, "level")
        posterior = getattr(policy, "posterior", None)
        gain = width = math.nan
        if self.rounds and not self.different:
            gain = width = 0.0
        elif self.rounds and posterior is not None:
            X, w = self._weighted()
            share, prediction = self.different / self.rounds, posterior.predict(X)
            gain = share * float(w @ prediction.mean)
            variance = max(float(w @ prediction.covariance() @ w), 0.0)
            width = float(ndtri(0.5 + level / 2)) * share * math.sqrt(variance)
        return Comparison(self.rounds, self.different, gain, gain - width, gain + width, level)

    def _weighted(self) -> tuple[FloatArray, FloatArray]:
        """Return the contexts of the latest differences, and the weight of each in their mean."""
        sizes = np.cumsum([len(signs) for _, signs in reversed(self._kept)])
        rounds = max(1, int(np.count_nonzero(sizes <= MOST_ARMS)))
        contexts, signs = zip(*self._kept[-rounds:], strict=True)
        return np.vstack(contexts), np.concatenate(signs) / rounds
