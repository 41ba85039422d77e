"""C²UCB: outcomes are linear in the contexts; the index is a ridge estimate plus its width."""

from __future__ import annotations

import numpy as np

from oclok.oracles.base import Oracle
from oclok.policies.base import Belief, Policy
from oclok.policies.linear import LinearRegression, with_constant
from oclok.typing import FloatArray
from oclok.validation import as_positive


class C2UCB(Policy):
    """C²UCB (Qin, Chen and Zhu 2014): contextual combinatorial UCB with a linear model.

    The index of a base arm is θ̂ᵀx + α √(xᵀV⁻¹x), where θ̂ is the ridge estimate from all
    outcomes so far and V = λI + Σ xxᵀ (their Algorithm 1). A constant is appended to each context,
    so that the model has an intercept.

    Args:
        oracle: default oracle.
        width: α, the same in every round.
        penalty: λ of the ridge estimate.

    Examples:
        >>> from oclok.oracles import TopK
        >>> policy = C2UCB(oracle=TopK(1))
        >>> policy.observe([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
        >>> policy.select([[0.5], [2.0]]).super_arm
        array([1])
    """

    def __init__(
        self, oracle: Oracle | None = None, *, width: float = 1.0, penalty: float = 1.0
    ) -> None:
        super().__init__(oracle)
        self.width = as_positive(width, "width")
        self.penalty = as_positive(penalty, "penalty")
        self._regression: LinearRegression | None = None

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        features = with_constant(contexts)
        regression = self._regression or LinearRegression(features.shape[1], self.penalty)
        mean = regression.mean(features)
        return Belief(mean + self.width * regression.width(features), mean)

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        features = with_constant(contexts)
        regression = self._regression or LinearRegression(features.shape[1], self.penalty)
        regression.update(features, outcomes)
        self._regression = regression
