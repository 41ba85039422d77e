"""How likely a random policy was to choose each arm, estimated by letting it choose again.

Logged with each decision, so that other policies can be judged on the log by inverse propensity
weights. The decision itself counts as one of the draws, so that no chosen arm has propensity 0.
"""

from __future__ import annotations

import numpy as np

from oclok.oracles.base import Oracle
from oclok.policies import Policy, Random, ThompsonSampling
from oclok.typing import FloatArray, IntArray

#: Draws per decision: the standard error is at most 0.05.
DRAWS = 100


def propensities(
    policy: Policy,
    contexts: FloatArray,
    oracle: Oracle,
    chosen: IntArray,
    rng: np.random.Generator,
) -> FloatArray | None:
    """Return the probability, shape (M,), of each arm to be chosen; None if nothing is random."""
    if not isinstance(policy, Random | ThompsonSampling):
        return None
    hits = np.zeros(len(contexts))
    hits[chosen] += 1
    for _ in range(DRAWS):
        if isinstance(policy, ThompsonSampling):
            index = policy.posterior.sample(contexts, rng)
        else:
            index = rng.random(len(contexts))
        hits[oracle(index)] += 1
    return hits / (DRAWS + 1)
