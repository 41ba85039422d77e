"""Linear Thompson sampling: one sample of the weights of a linear model gives all indices."""

from __future__ import annotations

import numpy as np

from oclok.oracles.base import Oracle
from oclok.policies.base import Belief, Policy
from oclok.policies.linear import LinearRegression, with_constant
from oclok.typing import FloatArray
from oclok.validation import as_noise_std, as_positive


class LinearThompson(Policy):
    """Thompson sampling with a linear model (Agrawal and Goyal 2013; for sets Wen et al. 2015).

    Each round draws one θ from the posterior N(θ̂, σ²V⁻¹); the index of a base arm is θᵀx. A
    constant is appended to each context, so that the model has an intercept.

    Args:
        noise_std: σ, standard deviation of the outcomes' noise.
        oracle: default oracle.
        prior_std: standard deviation of each weight before any data.
        seed: seed of the samples.

    Examples:
        >>> from oclok.oracles import TopK
        >>> policy = LinearThompson(noise_std=0.1, oracle=TopK(1), seed=0)
        >>> policy.observe([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
        >>> policy.select([[0.5], [2.0]]).super_arm
        array([1])
    """

    _is_random = True

    def __init__(
        self,
        noise_std: float,
        oracle: Oracle | None = None,
        *,
        prior_std: float = 1.0,
        seed: int | np.random.SeedSequence | None = None,
    ) -> None:
        super().__init__(oracle, seed)
        self.noise_std = as_noise_std(noise_std)
        self.prior_std = as_positive(prior_std, "prior_std")
        self._regression: LinearRegression | None = None

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        features = with_constant(contexts)
        regression = self._regression or self._prior(features.shape[1])
        std = self.noise_std * regression.width(features)
        index = regression.sample(features, self.noise_std, rng)
        return Belief(index, regression.mean(features), std)

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        features = with_constant(contexts)
        regression = self._regression or self._prior(features.shape[1])
        regression.update(features, outcomes)
        self._regression = regression

    def _prior(self, dimension: int) -> LinearRegression:
        return LinearRegression(dimension, (self.noise_std / self.prior_std) ** 2)
