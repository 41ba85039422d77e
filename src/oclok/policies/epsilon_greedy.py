"""ε-greedy on any regressor: mostly what it predicts to be best, sometimes a random super arm."""

from __future__ import annotations

from typing import Any

import numpy as np

from oclok.decision import Propensities
from oclok.errors import InputError, NumericalError
from oclok.oracles.base import Oracle
from oclok.policies.base import Belief, Policy, Proposal
from oclok.typing import FloatArray, Seed
from oclok.validation import as_nonnegative

#: The regressor is fitted again once the number of outcomes has grown by this factor: with one
#: that takes time ∝ N, all fits together cost 11 times the last one.
REFIT_GROWTH = 1.1


class EpsilonGreedy(Policy):
    """Play what a regressor predicts to be best; with probability ε, a random super arm.

    The index of a base arm is the regressor's prediction; in rounds of exploration, and before
    any data, it is uniform in [0, 1). With `TopK(K)` among M arms a base arm is thus chosen with
    probability ε K/M, plus 1 - ε where it is among the predicted best: its propensity.

    Loading a saved policy fits the regressor again, to the same outcomes. With the same version of
    scikit-learn that gives the same one: a `random_state` of None is drawn from the seed. Only
    scikit-learn's own regressors, pipelines included, with plain parameters can be saved.

    Args:
        regressor: a scikit-learn regressor, which is not changed.
        epsilon: ε, probability of exploration in a round.

    Examples:
        >>> from sklearn.neighbors import KNeighborsRegressor
        >>> from oclok.oracles import TopK
        >>> policy = EpsilonGreedy(KNeighborsRegressor(1), epsilon=0.1, oracle=TopK(1), seed=0)
        >>> policy.observe([[0.0], [1.0], [2.0]], [0.0, 2.0, 1.0])
        >>> policy.select([[0.2], [1.1]]).super_arm
        array([1])
    """

    _is_random = True
    _transient = ("_fitted",)

    def __init__(
        self,
        regressor: Any,
        epsilon: float = 0.1,
        oracle: Oracle | None = None,
        *,
        seed: Seed = None,
    ) -> None:
        super().__init__(oracle, seed)
        if isinstance(regressor, type) or not (
            hasattr(regressor, "fit") and hasattr(regressor, "predict")
        ):
            raise InputError(
                "regressor must be an instance of a scikit-learn regressor, such as "
                f"RandomForestRegressor(); got {regressor!r}"
            )
        self.epsilon = as_nonnegative(epsilon, "epsilon")
        if self.epsilon > 1:
            raise InputError(f"epsilon must be between 0 and 1; got {epsilon!r}")
        self.regressor = _deterministic(regressor, int(self._rng.integers(2**31)))
        self._contexts: FloatArray = np.empty((0, 0))
        self._outcomes: FloatArray = np.empty(0)
        self._fitted_on = 0
        self._fitted: Any = None

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        if self._fitted is None:
            return Belief(self._draw(None, len(contexts), rng))
        mean = np.asarray(self._fitted.predict(contexts), dtype=np.float64).reshape(len(contexts))
        return Belief(self._draw(mean, len(contexts), rng), mean)

    def _exact_propensities(self, proposal: Proposal) -> Propensities | None:
        arms, oracle = len(proposal.contexts), proposal.oracle
        uniform, mean = oracle.uniform_propensities(arms), proposal.belief.mean
        if uniform is None or mean is None:
            return uniform
        greedy = self._solve(oracle, mean)
        certain = Propensities.certain(arms, greedy)
        if not np.array_equal(greedy, proposal.decision.super_arm):
            certain = certain._replace(super_arm=0.0)
        return certain.mixed(uniform, self.epsilon)

    def _redraw(self, proposal: Proposal, rng: np.random.Generator) -> FloatArray:
        return self._draw(proposal.belief.mean, len(proposal.contexts), rng)

    def _draw(self, mean: FloatArray | None, arms: int, rng: np.random.Generator) -> FloatArray:
        explores, anything = rng.random() < self.epsilon, rng.random(arms)
        return anything if explores or mean is None else mean

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        X = np.vstack([self._contexts.reshape(-1, contexts.shape[1]), contexts])
        y = np.append(self._outcomes, outcomes)
        if y.size >= REFIT_GROWTH * self._fitted_on:
            self._fitted, self._fitted_on = self._fit(X, y), y.size
        self._contexts, self._outcomes = X, y

    def _fit(self, X: FloatArray, y: FloatArray) -> Any:
        from sklearn.base import clone

        try:
            return clone(self.regressor).fit(X, y)
        except Exception as reason:  # whatever a regressor may raise
            raise NumericalError(
                f"{type(self.regressor).__name__} cannot be fitted to {y.size} outcomes: {reason}"
            ) from reason

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        n = self._fitted_on
        self._fitted = self._fit(self._contexts[:n], self._outcomes[:n]) if n else None


def _deterministic(regressor: Any, seed: int) -> Any:
    """Return an unfitted copy of `regressor` in which no `random_state` is None."""
    from sklearn.base import clone

    copy = clone(regressor)
    names = [name for name in copy.get_params() if name.split("__")[-1] == "random_state"]
    unset = {name: seed for name in names if copy.get_params()[name] is None}
    return copy.set_params(**unset)
