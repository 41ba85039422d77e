"""What people would use instead, each with several sensible settings.

A player has `select(round) -> super_arm` and `learn(round, super_arm, outcomes)`. Libraries that
rank a fixed list of arms are asked for the score of one arm that has each base arm's features,
which is how their models are used where arms come and go; the round's oracle then chooses by
these scores, as it does for everybody.
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

from benchmarks.compare.tables import TableRound
from oclok.bench.problems.base import Round
from oclok.typing import FloatArray, IntArray

#: Polynomial features are left out where there would be more than this.
MOST_FEATURES = 500
#: Trees are refitted every so many rounds.
REFIT_EVERY = 10


class Player(Protocol):
    """Chooses super arms, and learns."""

    def select(self, current: Round) -> IntArray:
        """Return the super arm to play."""

    def learn(self, current: Round, super_arm: IntArray, outcomes: FloatArray) -> None:
        """Learn the outcomes of the arms that were chosen."""


class Model(Protocol):
    """Scores arms by their features x (M, p), and learns outcomes y (K,)."""

    def index(self, x: FloatArray) -> FloatArray:
        """Return the scores by which the oracle chooses."""

    def learn(self, x: FloatArray, y: FloatArray) -> None:
        """Learn the outcomes of arms that were chosen."""


class Features:
    """Contexts mapped to features; those of problems scaled to [0, 1] by the first round's arms.

    Args:
        degree: of polynomial features.
        fourier: lengthscale, in √D, of random Fourier features, instead of polynomial ones.
        seed: draws them. Each run has a draw of its own: one draw for all of them would make
            its luck look like skill.
    """

    def __init__(self, degree: int = 1, fourier: float | None = None, seed: int = 0) -> None:
        self._degree, self._fourier, self._seed = degree, fourier, seed
        self._map: Any = None

    def __call__(self, current: Round) -> FloatArray:
        x = current.contexts
        if self._map is None:
            self._low, self._span = np.zeros(x.shape[1]), np.ones(x.shape[1])
            if not isinstance(current, TableRound):
                self._low, span = x.min(axis=0), np.ptp(x, axis=0)
                self._span = np.where(span > 0, span, 1.0)
            self._map = self._made(x.shape[1]).fit(x)
        return np.asarray(self._map.transform((x - self._low) / self._span))

    def _made(self, dimension: int) -> Any:
        if self._fourier is not None:
            gamma = 0.5 / (self._fourier**2 * dimension)
            return RBFSampler(gamma=gamma, n_components=200, random_state=self._seed)
        degree = self._degree
        while degree > 1 and math.comb(dimension + degree, degree) > MOST_FEATURES:
            degree -= 1
        return PolynomialFeatures(degree)


class Peer:
    """A model that learns outcomes, standardised on tables, and an oracle that uses its scores.

    Args:
        make: returns the model; given the kind of outcomes if `by_kind`, which then stay as they
            are unless they are plain numbers.
        features: of the contexts; the contexts themselves if left out.
        epsilon: how often to choose at random.
    """

    def __init__(
        self,
        make: Callable[..., Model],
        features: Features | None = None,
        by_kind: bool = False,
        epsilon: float = 0.0,
    ) -> None:
        self._make, self._features, self._by_kind = make, features, by_kind
        self._epsilon, self._rng = epsilon, np.random.default_rng(0)
        self._model: Model | None = None

    def select(self, current: Round) -> IntArray:
        if self._model is None or self._rng.random() < self._epsilon:
            return current.oracle(self._rng.random(len(current.means)))
        return current.oracle(self._model.index(self._x(current)))

    def learn(self, current: Round, super_arm: IntArray, outcomes: FloatArray) -> None:
        kind = current.kind if isinstance(current, TableRound) else "number"
        if self._model is None:
            self._model = self._make(kind) if self._by_kind else self._make()
        if isinstance(current, TableRound) and not (self._by_kind and kind != "number"):
            outcomes = (outcomes - current.centre) / current.scale
        self._model.learn(self._x(current)[super_arm], outcomes)

    def _x(self, current: Round) -> FloatArray:
        return current.contexts if self._features is None else self._features(current)


class Linear:
    """Ridge regression: C²UCB (Qin et al. 2014), mean + α √(xᵀA⁻¹x), or Thompson sampling."""

    def __init__(self, alpha: float, is_sampled: bool = False) -> None:
        self._alpha, self._is_sampled = alpha, is_sampled
        self._rng = np.random.default_rng(0)
        self._A: FloatArray | None = None

    def index(self, x: FloatArray) -> FloatArray:
        assert self._A is not None
        L = np.linalg.cholesky(self._A)
        solved = np.linalg.solve(L, np.column_stack([self._b, x.T]))
        mean = solved[:, 0] @ solved[:, 1:]
        if self._is_sampled:
            draw = self._rng.standard_normal(len(self._b)) @ solved[:, 1:]
            return np.asarray(mean + self._alpha * draw)
        return np.asarray(mean + self._alpha * np.linalg.norm(solved[:, 1:], axis=0))

    def learn(self, x: FloatArray, y: FloatArray) -> None:
        if self._A is None:
            self._A, self._b = np.eye(x.shape[1]), np.zeros(x.shape[1])
        self._A += x.T @ x
        self._b += x.T @ y


class BayesianBandits:
    """bayesianbandits' regression; the index is a quantile of its samples, or one sample.

    Its GLM takes outcomes of 0 and 1 (logit link) and counts (log link).
    """

    def __init__(self, quantile: float | None, kind: str = "number") -> None:
        from bayesianbandits import BayesianGLM, EmpiricalBayesNormalRegressor

        self._quantile = quantile
        if kind == "number":
            self._model: Any = EmpiricalBayesNormalRegressor(random_state=0)
        else:
            link = "logit" if kind == "binary" else "log"
            self._model = BayesianGLM(link=link, random_state=0)

    def index(self, x: FloatArray) -> FloatArray:
        if self._quantile is None:
            return np.nan_to_num(np.ravel(self._model.sample(x, size=1)))
        samples = np.nan_to_num(self._model.sample(x, size=200))
        return np.asarray(np.quantile(samples, self._quantile, axis=0))

    def learn(self, x: FloatArray, y: FloatArray) -> None:
        self._model.partial_fit(x, y)


class MABWiser:
    """MABWiser with one arm, whose expectation at each base arm's features is the index."""

    def __init__(self, policy: Callable[[Any], Any]) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        self._mab = MAB(arms=[0], learning_policy=policy(LearningPolicy), seed=0)

    def index(self, x: FloatArray) -> FloatArray:
        expectations = self._mab.predict_expectations(x)
        return np.array([float(each[0]) for each in expectations])

    def learn(self, x: FloatArray, y: FloatArray) -> None:
        self._mab.partial_fit(np.zeros(len(y), dtype=int), y, x)


class ContextualBandits:
    """contextualbandits' LinUCB: the score of one arm at each base arm's features.

    Its other policies are for outcomes of 0 and 1, and its LinTS, asked for scores of one arm,
    did no better than random.
    """

    def __init__(self, alpha: float) -> None:
        from contextualbandits.online import LinUCB

        self._model = LinUCB(nchoices=2, alpha=alpha, beta_prior=None, random_state=1)

    def index(self, x: FloatArray) -> FloatArray:
        return np.asarray(self._model.decision_function(x), dtype=np.float64)[:, 0]

    def learn(self, x: FloatArray, y: FloatArray) -> None:
        self._model.partial_fit(x, np.zeros(len(y), dtype=int), y)


class VowpalWabbit:
    """Vowpal Wabbit's conditional contextual bandit: a slot for each arm that is chosen.

    It fills slots itself, so it plays only where any 5 arms may be chosen.
    """

    def __init__(self, options: str) -> None:
        import vowpalwabbit

        self._vw = vowpalwabbit.Workspace(f"--ccb_explore_adf {options} --random_seed 1 --quiet")
        self._features = Features()
        self._played: tuple[list[str], list[tuple[int, float]]] | None = None

    def select(self, current: Round) -> IntArray:
        x = self._features(current)[:, 1:]
        lines = ["ccb shared |"]
        for row in x:
            pairs = " ".join(f"{n}:{value:.6g}" for n, value in enumerate(row))
            lines.append(f"ccb action |x {pairs}")
        slots = len(current.oracle(np.zeros(len(x))))
        decisions = self._vw.predict([*lines, *["ccb slot |"] * slots])
        taken = [slot[0] for slot in decisions]
        self._played = lines, taken
        return np.sort(np.array([arm for arm, _ in taken], dtype=np.intp))

    def learn(self, current: Round, super_arm: IntArray, outcomes: FloatArray) -> None:
        assert self._played is not None
        lines, taken = self._played
        if isinstance(current, TableRound):
            outcomes = (outcomes - current.centre) / current.scale
        seen = dict(zip(super_arm.tolist(), outcomes, strict=True))
        slots = [f"ccb slot {arm}:{-seen[arm]}:{probability} |" for arm, probability in taken]
        self._vw.learn([*lines, *slots])


class Trees:
    """50 trees of scikit-learn or LightGBM: mean + width · std between trees, if there is one."""

    def __init__(self, make: Callable[..., Any], width: float = 0.0, **settings: Any) -> None:
        self._trees = make(n_estimators=50, random_state=0, **settings)
        self._width, self._rounds = width, 0
        self._x: list[FloatArray] = []
        self._y: list[FloatArray] = []

    def index(self, x: FloatArray) -> FloatArray:
        if not self._width:
            return np.asarray(self._trees.predict(x))
        x = x.astype(np.float32)
        each = np.stack([tree.tree_.predict(x).ravel() for tree in self._trees.estimators_])
        return np.asarray(each.mean(axis=0) + self._width * each.std(axis=0))

    def learn(self, x: FloatArray, y: FloatArray) -> None:
        self._x.append(x)
        self._y.append(y)
        if self._rounds % REFIT_EVERY == 0:
            self._trees.fit(np.vstack(self._x), np.concatenate(self._y))
        self._rounds += 1


def _lightgbm(**settings: Any) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(min_child_samples=5, num_leaves=15, n_jobs=1, verbosity=-1, **settings)


def _linear(degree: int, alpha: float, is_sampled: bool, _: int) -> Player:
    return Peer(lambda: Linear(alpha, is_sampled), Features(degree))


def _fourier(scale: float, alpha: float, seed: int) -> Player:
    return Peer(lambda: Linear(alpha), Features(fourier=scale, seed=seed))


def _bayesian(quantile: float | None, degree: int, is_glm: bool, _: int) -> Player:
    return Peer(partial(BayesianBandits, quantile), Features(degree), by_kind=is_glm)


def _bayesian_fourier(quantile: float | None, seed: int) -> Player:
    return Peer(lambda: BayesianBandits(quantile), Features(fourier=0.4, seed=seed))


def _trees(make: Callable[..., Any], width: float, _: int) -> Player:
    return Peer(lambda: Trees(make, width))


def _greedy_lightgbm(epsilon: float, _: int) -> Player:
    return Peer(lambda: Trees(_lightgbm), epsilon=epsilon)


Settings = dict[str, Callable[[int], Player]]

_LINEAR: Settings = {
    f"degree {degree}, α {alpha}": partial(_linear, degree, alpha, False)
    for degree in (1, 2, 3)
    for alpha in (0.1, 0.5)
}
_TREES: Settings = {
    f"{name}, {width}": partial(_trees, make, width)
    for name, make in (
        ("extra trees", ExtraTreesRegressor),
        ("random forest", RandomForestRegressor),
    )
    for width in (0.3, 1.0)
}
_LIGHTGBM: Settings = {f"ε {e}": partial(_greedy_lightgbm, e) for e in (0.02, 0.1)}

#: peer → setting → a new player for the run of a seed, on problems; cheap ones first.
PEERS: dict[str, Settings] = {
    "linear UCB": _LINEAR,
    "Fourier features": {
        f"l {scale}, α {alpha}": partial(_fourier, scale, alpha)
        for scale in (0.2, 0.6)
        for alpha in (0.1, 0.5)
    },
    "contextualbandits": {
        f"LinUCB {alpha}, degree {degree}": partial(
            lambda a, d, _: Peer(lambda: ContextualBandits(a), Features(d)), alpha, degree
        )
        for alpha in (0.1, 0.5)
        for degree in (1, 2)
    },
    "bayesianbandits": {
        **{f"UCB, degree {d}": partial(_bayesian, 0.84, d, False) for d in (1, 2, 3)},
        "UCB, Fourier": partial(_bayesian_fourier, 0.84),
        "Thompson, Fourier": partial(_bayesian_fourier, None),
        "Thompson, degree 2": partial(_bayesian, None, 2, False),
    },
    "Vowpal Wabbit": {
        "ε 0.05": lambda _: VowpalWabbit("--epsilon 0.05"),
        "ε 0.05, quadratic": lambda _: VowpalWabbit("--epsilon 0.05 --interactions xx"),
        "squarecb, quadratic": lambda _: VowpalWabbit("--squarecb --interactions xx"),
        "ε 0.05, quadratic, rate 5": lambda _: VowpalWabbit(
            "--epsilon 0.05 --interactions xx -l 5"
        ),
    },
    "scikit-learn trees": _TREES,
    "MABWiser": {
        "LinUCB 0.1, degree 1": lambda _: _mabwiser(lambda p: p.LinUCB(alpha=0.1), 1),
        "LinUCB 0.1, degree 2": lambda _: _mabwiser(lambda p: p.LinUCB(alpha=0.1), 2),
        "LinTS 0.1, degree 2": lambda _: _mabwiser(lambda p: p.LinTS(alpha=0.1), 2),
    },
}

#: The same on tables.
TABLE_PEERS: dict[str, Settings] = {
    "linear UCB": {k: v for k, v in _LINEAR.items() if not k.startswith("degree 3")},
    "linear Thompson": {f"v {v}": partial(_linear, 1, v, True) for v in (0.1, 0.5)},
    "bayesianbandits": {
        f"{model}, {rule}": partial(_bayesian, quantile, 1, is_glm)
        for model, is_glm in (("empirical Bayes", False), ("GLM where it fits", True))
        for rule, quantile in (("UCB", 0.84), ("Thompson", None))
    },
    "scikit-learn trees": _TREES,
    "LightGBM": _LIGHTGBM,
    "Vowpal Wabbit": {
        "ε 0.05": lambda _: VowpalWabbit("--epsilon 0.05"),
        "squarecb": lambda _: VowpalWabbit("--squarecb"),
    },
}


def _mabwiser(policy: Callable[[Any], Any], degree: int) -> Player:
    return Peer(lambda: MABWiser(policy), Features(degree))
