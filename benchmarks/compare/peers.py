"""What people would use instead, each with several sensible settings.

A player has `select(contexts, oracle) -> super_arm` and `learn(contexts, outcomes)`. Libraries
that rank a fixed list of arms are asked for the score of one arm that has each base arm's
features, which is how their models are used where arms come and go; the round's oracle then
chooses by these scores, as it does for everybody.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import PolynomialFeatures

from oclok.oracles.base import Oracle
from oclok.typing import FloatArray, IntArray

#: Polynomial features are left out where there would be more than this.
MOST_FEATURES = 500


class Player(Protocol):
    """Chooses super arms, and learns."""

    def select(self, contexts: FloatArray, oracle: Oracle) -> IntArray:
        """Return the super arm to play."""

    def learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        """Learn the outcomes of the arms that were chosen."""


class Features:
    """Contexts scaled to [0, 1] by the arms of the first round, then mapped.

    Args:
        degree: of polynomial features.
        fourier: lengthscale, in √D, of random Fourier features, instead of polynomial ones.
        seed: draws them. Each run has a draw of its own: one draw for all of them would make
            its luck look like skill.
    """

    def __init__(self, degree: int = 1, fourier: float | None = None, seed: int = 0) -> None:
        self._degree, self._fourier, self._seed = degree, fourier, seed
        self._map: Any = None

    def __call__(self, contexts: FloatArray) -> FloatArray:
        if self._map is None:
            self._low = contexts.min(axis=0)
            span = contexts.max(axis=0) - self._low
            self._span = np.where(span > 0, span, 1.0)
            self._map = self._made(contexts.shape[1]).fit(contexts)
        return np.asarray(self._map.transform((contexts - self._low) / self._span))

    def _made(self, dimension: int) -> Any:
        if self._fourier is not None:
            gamma = 0.5 / (self._fourier**2 * dimension)
            return RBFSampler(gamma=gamma, n_components=200, random_state=self._seed)
        degree = self._degree
        while degree > 1 and math.comb(dimension + degree, degree) > MOST_FEATURES:
            degree -= 1
        return PolynomialFeatures(degree)


class LinearUCB:
    """C²UCB with ridge regression (Qin et al. 2014): mean + α √(xᵀA⁻¹x)."""

    def __init__(self, alpha: float, features: Features) -> None:
        self._alpha, self._features = alpha, features
        self._A: FloatArray | None = None

    def select(self, contexts: FloatArray, oracle: Oracle) -> IntArray:
        x = self._features(contexts)
        if self._A is None:
            self._A, self._b = np.eye(x.shape[1]), np.zeros(x.shape[1])
        solved = np.linalg.solve(self._A, np.column_stack([self._b, x.T]))
        width = np.sqrt(np.einsum("mp,pm->m", x, solved[:, 1:]))
        return oracle(x @ solved[:, 0] + self._alpha * width)

    def learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        x = self._features(contexts)
        assert self._A is not None
        self._A += x.T @ x
        self._b += x.T @ outcomes


class BayesianBandits:
    """bayesianbandits' regression; the index is a quantile of its samples, or one sample."""

    def __init__(self, quantile: float | None, features: Features) -> None:
        from bayesianbandits import EmpiricalBayesNormalRegressor

        self._quantile, self._features = quantile, features
        self._model = EmpiricalBayesNormalRegressor(random_state=0)
        self._is_new = True

    def select(self, contexts: FloatArray, oracle: Oracle) -> IntArray:
        x = self._features(contexts)
        if self._is_new:
            return oracle(np.ones(len(x)))
        if self._quantile is None:
            return oracle(np.ravel(self._model.sample(x, size=1)))
        return oracle(np.quantile(self._model.sample(x, size=200), self._quantile, axis=0))

    def learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        x = self._features(contexts)
        if self._is_new:
            self._model.fit(x, outcomes)
        else:
            self._model.partial_fit(x, outcomes)
        self._is_new = False


class MABWiser:
    """MABWiser with one arm, whose expectation at each base arm's features is the index."""

    def __init__(self, policy: Callable[[Any], Any], features: Features) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        self._features = features
        self._mab = MAB(arms=[0], learning_policy=policy(LearningPolicy), seed=0)
        self._is_new = True

    def select(self, contexts: FloatArray, oracle: Oracle) -> IntArray:
        x = self._features(contexts)
        if self._is_new:
            return oracle(np.ones(len(x)))
        expectations = self._mab.predict_expectations(x)
        return oracle(np.array([float(each[0]) for each in expectations]))

    def learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        x, arms = self._features(contexts), np.zeros(len(outcomes), dtype=int)
        (self._mab.fit if self._is_new else self._mab.partial_fit)(arms, outcomes, x)
        self._is_new = False


class ContextualBandits:
    """contextualbandits' LinUCB: the score of one arm at each base arm's features.

    Its other policies are for outcomes of 0 and 1, and its LinTS, asked for scores of one arm,
    did no better than random.
    """

    def __init__(self, alpha: float, features: Features) -> None:
        from contextualbandits.online import LinUCB

        self._features = features
        self._model = LinUCB(nchoices=2, alpha=alpha, beta_prior=None, random_state=1)

    def select(self, contexts: FloatArray, oracle: Oracle) -> IntArray:
        scores = self._model.decision_function(self._features(contexts))
        return oracle(np.asarray(scores, dtype=np.float64)[:, 0])

    def learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        arms = np.zeros(len(outcomes), dtype=int)
        self._model.partial_fit(self._features(contexts), arms, outcomes)


class VowpalWabbit:
    """Vowpal Wabbit's conditional contextual bandit: a slot for each arm that is chosen.

    It fills slots itself, so it plays only where any 5 arms may be chosen.
    """

    def __init__(self, options: str) -> None:
        import vowpalwabbit

        self._vw = vowpalwabbit.Workspace(f"--ccb_explore_adf {options} --random_seed 1 --quiet")
        self._features = Features()
        self._played: tuple[list[str], list[tuple[int, float]]] | None = None

    def select(self, contexts: FloatArray, oracle: Oracle) -> IntArray:
        x = self._features(contexts)[:, 1:]
        lines = ["ccb shared |"]
        for row in x:
            pairs = " ".join(f"{n}:{value:.6g}" for n, value in enumerate(row))
            lines.append(f"ccb action |x {pairs}")
        slots = len(oracle(np.zeros(len(x))))
        decisions = self._vw.predict([*lines, *["ccb slot |"] * slots])
        taken = [slot[0] for slot in decisions]
        self._played = lines, taken
        return np.sort(np.array([arm for arm, _ in taken], dtype=np.intp))

    def learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        assert self._played is not None
        lines, taken = self._played
        seen = dict(zip(sorted(arm for arm, _ in taken), outcomes, strict=True))
        slots = [f"ccb slot {arm}:{-seen[arm]}:{probability} |" for arm, probability in taken]
        self._vw.learn([*lines, *slots])


class EnsembleUCB:
    """Trees of scikit-learn: mean + width · std over the trees, fitted anew as data grow by 10%."""

    def __init__(self, make: Callable[..., Any], width: float) -> None:
        self._model = make(n_estimators=100, min_samples_leaf=2, random_state=0)
        self._width, self._fitted, self._draws = width, 0, np.random.default_rng(0)
        self._X: list[FloatArray] = []
        self._y: list[FloatArray] = []

    def select(self, contexts: FloatArray, oracle: Oracle) -> IntArray:
        if not self._fitted:
            return oracle(np.ones(len(contexts)))
        x = contexts.astype(np.float32)
        each = np.stack([tree.predict(x) for tree in self._model.estimators_])
        index = each.mean(axis=0) + self._width * each.std(axis=0)
        return oracle(index + 1e-9 * self._draws.random(len(index)))

    def learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        self._X.append(contexts)
        self._y.append(outcomes)
        learned = sum(map(len, self._y))
        if learned >= 1.1 * self._fitted:
            self._model.fit(np.vstack(self._X), np.concatenate(self._y))
            self._fitted = learned


#: peer → setting → a new player for the run of a seed; cheap ones first.
PEERS: dict[str, dict[str, Callable[[int], Player]]] = {
    "C2UCB": {
        f"degree {degree}, α {alpha}": partial(
            lambda d, a, _: LinearUCB(a, Features(d)), degree, alpha
        )
        for degree in (1, 2, 3)
        for alpha in (0.1, 0.5)
    },
    "Fourier features": {
        f"l {scale}, α {alpha}": partial(
            lambda s, a, seed: LinearUCB(a, Features(fourier=s, seed=seed)), scale, alpha
        )
        for scale in (0.2, 0.6)
        for alpha in (0.1, 0.5)
    },
    "contextualbandits": {
        f"LinUCB {alpha}, degree {degree}": partial(
            lambda a, d, _: ContextualBandits(a, Features(d)), alpha, degree
        )
        for alpha in (0.1, 0.5)
        for degree in (1, 2)
    },
    "bayesianbandits": {
        **{
            f"UCB, degree {d}": partial(lambda d, _: BayesianBandits(0.84, Features(d)), d)
            for d in (1, 2, 3)
        },
        "UCB, Fourier": lambda seed: BayesianBandits(0.84, Features(fourier=0.4, seed=seed)),
        "Thompson, Fourier": lambda seed: BayesianBandits(None, Features(fourier=0.4, seed=seed)),
        "Thompson, degree 2": lambda _: BayesianBandits(None, Features(2)),
    },
    "Vowpal Wabbit": {
        "ε 0.05": lambda _: VowpalWabbit("--epsilon 0.05"),
        "ε 0.05, quadratic": lambda _: VowpalWabbit("--epsilon 0.05 --interactions xx"),
        "squarecb, quadratic": lambda _: VowpalWabbit("--squarecb --interactions xx"),
        "ε 0.05, quadratic, rate 5": lambda _: VowpalWabbit(
            "--epsilon 0.05 --interactions xx -l 5"
        ),
    },
    "scikit-learn trees": {
        "extra trees, 1": lambda _: EnsembleUCB(ExtraTreesRegressor, 1.0),
        "random forest, 1": lambda _: EnsembleUCB(RandomForestRegressor, 1.0),
    },
    "MABWiser": {
        "LinUCB 0.1, degree 1": lambda _: MABWiser(lambda p: p.LinUCB(alpha=0.1), Features(1)),
        "LinUCB 0.1, degree 2": lambda _: MABWiser(lambda p: p.LinUCB(alpha=0.1), Features(2)),
        "LinTS 0.1, degree 2": lambda _: MABWiser(lambda p: p.LinTS(alpha=0.1), Features(2)),
    },
}
