"""Random: every order of the base arms is equally likely, whatever was seen."""

from __future__ import annotations

import numpy as np

from oclok.decision import Propensities
from oclok.policies.base import Belief, Policy, Proposal
from oclok.typing import FloatArray


class Random(Policy):
    """Give every base arm a uniformly random index in [0, 1) and learn nothing.

    With `TopK` every super arm is equally likely; other oracles solve their problem for random
    indices. The arguments are those of `Policy`.

    Examples:
        >>> from oclok.oracles import TopK
        >>> policy = Random(oracle=TopK(2), seed=0)
        >>> decision = policy.select([[0.1, 0.9], [0.5, 0.5], [0.8, 0.3]])
        >>> policy.update(decision, [0.4, 0.6])
    """

    _is_random = True

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        return Belief(rng.random(len(contexts)))

    def _exact_propensities(self, proposal: Proposal) -> Propensities | None:
        return proposal.oracle.uniform_propensities(len(proposal.contexts))

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        pass
