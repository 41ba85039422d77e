"""The ten problems that everybody plays: K = 5 of about 100 arms a round, 250 rounds.

Contexts reach every player as the problem has them; a peer that needs scaled features scales
them itself, from the arms offered (`peers.Scaler`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_diabetes, load_digits

from oclok.bench import Channels, Codependency, Crowdsourcing, Movies
from oclok.bench.problems.base import Problem, Round, gaussian
from oclok.oracles import TopK
from oclok.typing import FloatArray

ROUNDS = 250
ARMS = 100
_ORACLE = TopK(5)


class Function(Problem):
    """A known function at contexts uniform in the unit cube."""

    def __init__(
        self,
        name: str,
        function: Callable[[FloatArray], FloatArray],
        dimension: int,
        noise_std: float,
        rounds: int,
        seed: int,
    ) -> None:
        super().__init__(rounds, seed)
        self.name, self.dimension = name, dimension
        self._function, self._noise = function, gaussian(noise_std)

    def _round(self, seed: np.random.SeedSequence) -> Round:
        contexts = np.random.default_rng(seed).random((ARMS, self.dimension))
        return Round(contexts, self._function(contexts), _ORACLE, self._noise)


class Sample(Problem):
    """Rows of a data set, drawn afresh each round; the same row can come again."""

    def __init__(
        self, name: str, rows: FloatArray, means: FloatArray, rounds: int, seed: int
    ) -> None:
        super().__init__(rounds, seed)
        self.name, self.data_name, self.dimension = name, "scikit-learn", rows.shape[1]
        self._rows, self._means, self._noise = rows, means, gaussian(0.1)

    def _round(self, seed: np.random.SeedSequence) -> Round:
        drawn = np.random.default_rng(seed).choice(len(self._rows), ARMS, replace=False)
        return Round(self._rows[drawn], self._means[drawn], _ORACLE, self._noise)


def friedman1(x: FloatArray) -> FloatArray:
    """Return Friedman's first function of 10 features, 5 of which do not matter."""
    value: FloatArray = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    return value + 10 * x[:, 3] + 5 * x[:, 4]


def hartmann6(x: FloatArray) -> FloatArray:
    """Return Hartmann's function of 6 features, as a maximum."""
    distances = ((x[:, None] - _HARTMANN_P) ** 2 * _HARTMANN_A).sum(axis=2)
    return np.asarray(np.exp(-distances) @ _HARTMANN_ALPHA)


_HARTMANN_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
_HARTMANN_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _diabetes(rounds: int, seed: int) -> Problem:
    """Patients whose disease progressed most; outcomes have mean 0 and variance 1."""
    rows, target = load_diabetes(return_X_y=True)
    return Sample("diabetes", rows, (target - target.mean()) / target.std(), rounds, seed)


def _digits(rounds: int, seed: int) -> Problem:
    """Images of one digit, another one for each seed: 8 × 8 pixels, 1 if it is that digit."""
    rows, target = load_digits(return_X_y=True)
    return Sample("digits", rows, (target == seed % 10).astype(np.float64), rounds, seed)


PROBLEMS: dict[str, Callable[[int, int], Problem]] = {
    "crowdsourcing": lambda rounds, seed: Crowdsourcing(rounds, seed),
    "codependency 0.1": lambda rounds, seed: Codependency(rounds, 0.1, seed),
    "codependency 0.5": lambda rounds, seed: Codependency(rounds, 0.5, seed),
    "codependency 1": lambda rounds, seed: Codependency(rounds, 1.0, seed),
    "channels": lambda rounds, seed: Channels(rounds, seed),
    # 270 outcomes a round: 100 rounds are 27,000 of them
    "movies": lambda rounds, seed: Movies(min(rounds, 100), seed, oracle="greedy"),
    "Friedman1": lambda rounds, seed: Function("Friedman1", friedman1, 10, 1.0, rounds, seed),
    "Hartmann6": lambda rounds, seed: Function("Hartmann6", hartmann6, 6, 0.1, rounds, seed),
    "diabetes": _diabetes,
    "digits": _digits,
}
