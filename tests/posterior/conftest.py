"""Judges of posteriors: the kernels to try, and the formulas in 60-digit arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
)

KERNELS: dict[str, Callable[[int], Any]] = {
    "RBF": lambda D: RBF(0.7),
    "RBF, a lengthscale per dimension": lambda D: RBF(np.linspace(0.4, 1.5, D)),
    "Matérn 1/2": lambda D: Matern(0.8, nu=0.5),
    "Matérn 3/2": lambda D: Matern(np.linspace(0.5, 1.2, D), nu=1.5),
    "Matérn 5/2": lambda D: Matern(0.8, nu=2.5),
    "Matérn ∞": lambda D: Matern(0.8, nu=np.inf),
    "Matérn 0.8": lambda D: Matern(0.8, nu=0.8),
    "DotProduct": lambda D: DotProduct(0.6),
    "RationalQuadratic": lambda D: RationalQuadratic(0.7, alpha=1.3),
    "sum": lambda D: ConstantKernel(0.5) + RBF(0.6) + DotProduct(0.3),
    "product": lambda D: ConstantKernel(2.0) * Matern(0.9, nu=2.5) * RBF(1.4),
    "both": lambda D: 0.4 * RBF(0.5) * (DotProduct(0.5) + 1.0) + RationalQuadratic(1.0),
    "constant": lambda D: ConstantKernel(1.5),
    "power": lambda D: DotProduct(0.6) ** 2,
}


@pytest.fixture(params=KERNELS, scope="session")
def make_kernel(request: pytest.FixtureRequest) -> Callable[[int], Any]:
    return KERNELS[request.param]


@dataclass
class Judge:
    """A kernel of scikit-learn and the same one in exact arithmetic."""

    kernel: Any
    exactly: Callable[[Any, Any], Any]

    def posterior(
        self, X: np.ndarray, y: np.ndarray, x: np.ndarray, noise_std: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return mean, std and information gain by the textbook formulas."""
        with mpmath.workdps(60):
            noise = mpmath.mpf(noise_std) ** 2
            A = self._matrix(X, X) + noise * mpmath.eye(len(X))
            inverse, k = A**-1, self._matrix(X, x)
            weights = inverse * k
            mean = [float(v) for v in weights.T * mpmath.matrix(y.tolist())]
            std = [
                float(mpmath.sqrt(self.exactly(p, p) - sum(weights[:, m].T * k[:, m])))
                for m, p in enumerate(_exact_rows(x))
            ]
            gain = mpmath.log(mpmath.det(A)) / 2 - len(X) * mpmath.log(noise) / 2
            return np.array(mean), np.array(std), float(gain)

    def sparse(
        self, U: np.ndarray, X: np.ndarray, y: np.ndarray, x: np.ndarray, noise_std: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and std of Titsias' posterior with inducing points U."""
        with mpmath.workdps(60):
            noise = mpmath.mpf(noise_std) ** 2
            Kuu, Kux, k = self._matrix(U, U), self._matrix(U, X), self._matrix(U, x)
            inner = (Kuu + Kux * Kux.T / noise) ** -1
            mean = k.T * (inner * (Kux * mpmath.matrix(y.tolist()))) / noise
            prior, left = Kuu**-1 * k, inner * k
            std = [
                float(mpmath.sqrt(self.exactly(p, p) + sum(k[:, m].T * (left[:, m] - prior[:, m]))))
                for m, p in enumerate(_exact_rows(x))
            ]
            return np.array([float(v) for v in mean]), np.array(std)

    def _matrix(self, a: np.ndarray, b: np.ndarray) -> Any:
        right = _exact_rows(b)
        return mpmath.matrix([[self.exactly(p, q) for q in right] for p in _exact_rows(a)])


def rbf(length_scale: float) -> Judge:
    def exactly(p: Any, q: Any) -> Any:
        return mpmath.exp(-_squared(p, q) / (2 * mpmath.mpf(length_scale) ** 2))

    return Judge(RBF(length_scale), exactly)


def matern(length_scale: float, nu: float) -> Judge:
    def exactly(p: Any, q: Any) -> Any:
        d = mpmath.sqrt(2 * nu * _squared(p, q)) / mpmath.mpf(length_scale)
        return {0.5: 1, 1.5: 1 + d, 2.5: 1 + d + d**2 / 3}[nu] * mpmath.exp(-d)

    return Judge(Matern(length_scale, nu=nu), exactly)


def dot_product(sigma_0: float) -> Judge:
    def exactly(p: Any, q: Any) -> Any:
        return mpmath.mpf(sigma_0) ** 2 + sum(a * b for a, b in zip(p, q, strict=True))

    return Judge(DotProduct(sigma_0), exactly)


def _exact_rows(X: np.ndarray) -> list[list[Any]]:
    return [[mpmath.mpf(v) for v in row] for row in X.tolist()]


def _squared(p: Any, q: Any) -> Any:
    return sum((a - b) ** 2 for a, b in zip(p, q, strict=True))


def _around(rng: np.random.Generator, centre: float, spread: float, D: int) -> np.ndarray:
    return centre + spread * rng.random((24, D))


def _near_duplicates(rng: np.random.Generator) -> np.ndarray:
    return np.repeat(rng.random((4, 2)), 6, axis=0) + 1e-12 * rng.standard_normal((24, 2))


#: Judge, contexts, noise_std: what breaks a careless factorisation.
HARD: dict[str, tuple[Judge, Callable[[np.random.Generator], np.ndarray], float]] = {
    "near-duplicates, RBF": (rbf(1.0), _near_duplicates, 1e-4),
    "near-duplicates, Matérn 1/2": (matern(1.0, 0.5), _near_duplicates, 1e-4),
    "near-duplicates, Matérn 3/2": (matern(1.0, 1.5), _near_duplicates, 1e-4),
    "near-duplicates, DotProduct": (dot_product(1.0), _near_duplicates, 1e-4),
    "lengthscale 10, RBF": (rbf(10.0), lambda rng: rng.random((24, 1)), 1e-4),
    "lengthscale 10, Matérn 5/2": (matern(10.0, 2.5), lambda rng: rng.random((24, 1)), 1e-4),
    "at 1e6, RBF": (rbf(1.0), lambda rng: _around(rng, 1e6, 1.0, 2), 1e-4),
    "up to 1e6, RBF": (rbf(1e6), lambda rng: _around(rng, 0.0, 1e6, 2), 1e-4),
    "up to 1e6, Matérn 3/2": (matern(1e6, 1.5), lambda rng: _around(rng, 0.0, 1e6, 2), 1e-4),
    "up to 1e6, DotProduct": (dot_product(1.0), lambda rng: _around(rng, 0.0, 1e6, 3), 0.1),
    "up to 1e6, DotProduct, little noise": (
        dot_product(1.0),
        lambda rng: _around(rng, 0.0, 1e6, 3),
        1e-4,
    ),
    "at 1e6, DotProduct, little noise": (
        dot_product(1.0),
        lambda rng: _around(rng, 1e6, 1.0, 2),
        1e-4,
    ),
}


@dataclass
class Hard:
    """A hard problem: what to learn, and contexts to predict at."""

    judge: Judge
    noise_std: float
    X: np.ndarray
    y: np.ndarray
    x: np.ndarray

    @property
    def kernel(self) -> Any:
        return self.judge.kernel

    @property
    def prior_std(self) -> np.ndarray:
        return np.sqrt(self.kernel.diag(self.x))


@pytest.fixture(params=HARD)
def hard(request: pytest.FixtureRequest) -> Hard:
    judge, contexts, noise_std = HARD[request.param]
    rng = np.random.default_rng(5)
    X = contexts(rng)
    weights = rng.standard_normal(X.shape[1]) / np.abs(X).max()
    y = np.sin(2 * X @ weights) + noise_std * rng.standard_normal(len(X))
    between = X[:5] + rng.random((5, 1)) * (X[5:10] - X[:5])
    return Hard(judge, noise_std, X, y, np.vstack([X[:6], between, X.max(axis=0)]))
