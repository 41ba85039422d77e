"""The kernel of the default model: one relevance per column, fitted by marginal likelihood.

    u, v     mapped columns, less their middles; their variances
    p, d²    r / rᵀv, the shares of the columns; Σ r (u - u')²

    k = C + a₁ Σ p u u' + (a₂ exp(-½d²) + a₃ Matérn₅⸝₂(d)) / (1 - exp(-rᵀv))

A constant, a linear function, a smooth and a rough one, each of variance a between contexts; noise
has variance ρ. What is searched is θ = (log r / r₀, log a, log ρ), where
r₀ = 1 / 2Σv makes d² one on average. Steps are those of Rprop (Riedmiller and Braun 1993), which
can be interrupted after each, and go by the signs of the slopes alone: single precision will do.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import sgemm, ssymv
from scipy.linalg.lapack import spotrf, spotri

from oclok.persistence import Persistent
from oclok.posterior.linalg import add_to_diagonal, product
from oclok.posterior.mixture.basis import Prepared
from oclok.posterior.mixture.columns import ColumnMap
from oclok.typing import FloatArray, Kernel

#: Variance of the constant, where outcomes have variance 1.
CONSTANT = 4.0
#: Log-normal priors, median and spread of the logarithm: relevance, the three a, and the noise.
RELEVANCE, VARIANCE, NOISE = (2.0, 2.0), (0.3, 1.3), (0.1, 1.3)
#: Least noise, and how far parameters are searched, in logarithms about the median.
LEAST_NOISE, REACH = 0.01, 5.0
#: Outcomes that a fit looks at, and its gradient steps.
MOST, STEPS = 256, 24
#: Steps at a time: at most so many, and fewer for more outcomes: steps times outcomes.
AT_ONCE, WORK = 12, 600


class RelevanceKernel(Persistent):
    """The kernel for a map of columns and parameters θ, (active + 4,)."""

    least_left = 1e-2
    far_below = 25.0  # how bad some outcomes were does not make unknown arms more promising

    def __init__(self, columns: ColumnMap, theta: FloatArray) -> None:
        self._restore({"columns": columns, "theta": theta})

    def prepare(self, X: FloatArray) -> Prepared:
        """Return what `between` takes, for contexts X (M, D)."""
        bent = (self.columns.apply(X) - self.columns.middle) * np.sqrt(self.relevance)
        return bent, 0.5 * np.einsum("nd,nd->n", bent, bent)

    def between(self, A: Prepared, B: Prepared) -> FloatArray:
        """Return k, shape (N, M), between contexts prepared."""
        dot = product(A[0], B[0])
        K, rough = _bent(_half_squares(dot, A[1], B[1]))
        K *= self.smooth
        K += self.rough * rough
        K += self.linear * dot
        K += CONSTANT
        return K

    def diagonal(self, A: Prepared) -> FloatArray:
        """Return k(x, x), shape (M,)."""
        variance: FloatArray = 2 * self.linear * A[1]
        return variance + (CONSTANT + self.smooth + self.rough)

    @property
    def kernel(self) -> Kernel:
        """What is not linear of it, for mapped contexts."""
        from sklearn.gaussian_process.kernels import RBF, Matern

        scales = np.full(self.columns.dimension, 1e5)
        scales[self.columns.active] = 1 / np.sqrt(self.relevance)
        kernel: Kernel = self.smooth * RBF(scales) + self.rough * Matern(scales, nu=2.5)
        return kernel

    def _state(self) -> dict[str, Any]:
        return {"columns": self.columns, "theta": self.theta}

    def _restore(self, state: dict[str, Any]) -> None:
        self.columns, self.theta = state["columns"], state["theta"]
        v, D = self.columns.variance, len(self.columns.active)
        self.relevance = np.exp(self.theta[:D]) / (2 * v.sum()) if D else np.empty(0)
        a = np.exp(self.theta[D:])
        self.noise = float(a[3])
        self.total = float(self.relevance @ v)
        self.share = self.relevance / self.total if D else self.relevance
        self.spread = -math.expm1(-self.total) if D else 1.0
        self.smooth, self.rough = float(a[1]) / self.spread, float(a[2]) / self.spread
        self.linear = float(a[0]) / self.total if D else 0.0


def prior_theta(
    columns: ColumnMap, relevance: float = RELEVANCE[0], is_stationary: bool = False
) -> FloatArray:
    """Return the prior's median, perhaps without linear functions."""
    D = len(columns.active)
    theta = np.log([relevance] * D + [VARIANCE[0]] * 3 + [NOISE[0]])
    if is_stationary:
        theta[D] = -math.inf
    return theta


class RelevanceFit(Persistent):
    """A search for the parameters that can be advanced step by step.

    Args:
        columns: the map of contexts.
        contexts, outcomes, weights: of at most `MOST` outcomes, standardised.
    """

    def __init__(
        self, columns: ColumnMap, contexts: FloatArray, outcomes: FloatArray, weights: FloatArray
    ) -> None:
        self.columns, self._X, self._y, self._weights = columns, contexts, outcomes, weights
        D = len(columns.active)
        self._location = prior_theta(columns)
        spread = np.array([RELEVANCE[1]] * D + [VARIANCE[1]] * 3 + [NOISE[1]])
        self._precision = spread**-2.0
        self._theta = self.best = self._location
        self._best_value = -math.inf
        self._step, self._slope = np.full(D + 4, 0.3), np.zeros(D + 4)
        self.steps_left = STEPS

    def advance(self) -> None:
        """Take some steps."""
        for _ in range(max(1, min(AT_ONCE, WORK // len(self._y)))):
            if self.steps_left:
                self._climb()

    @property
    def kernel(self) -> RelevanceKernel:
        """The best kernel so far."""
        return RelevanceKernel(self.columns, self.best)

    def _climb(self) -> None:
        self.steps_left -= 1
        value, slope = self.log_posterior(self._theta)
        if not math.isfinite(value):
            self.steps_left = 0
            return
        if value > self._best_value:
            self._best_value, self.best = value, self._theta
        turned = slope * self._slope
        factor = np.where(turned > 0, 1.3, np.where(turned < 0, 0.5, 1.0))
        self._step = np.minimum(self._step * factor, 1.0)
        self._slope = np.where(turned < 0, 0.0, slope)
        moved = self._theta + np.sign(self._slope) * self._step
        self._theta = np.clip(moved, self._location - REACH, self._location + REACH)
        self._theta[-1] = max(self._theta[-1], math.log(LEAST_NOISE))

    def log_posterior(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return log p(y | θ) + log prior, up to a constant, and its gradient."""
        kernel = RelevanceKernel(self.columns, theta)
        v = self.columns.variance
        bent = self._u * _single(np.sqrt(kernel.relevance))
        linear = _gram(bent)
        squares = 0.5 * linear.diagonal()
        h = _half_squares(linear, squares, squares)
        linear *= kernel.linear
        smooth = kernel.smooth * np.exp(-h)
        root = np.sqrt(10 * h)
        decay = kernel.rough * np.exp(-root)
        root += 1
        h *= 10 / 3
        h += root
        rough = decay * h
        parts = [linear, smooth, rough]
        K = linear + smooth
        K += rough
        K += CONSTANT
        add_to_diagonal(K, _single(kernel.noise / self._weights))
        L, failed = spotrf(K.T, lower=1, clean=0, overwrite_a=1)
        if failed:
            return -math.inf, np.zeros_like(theta)
        log_det = 2 * float(np.log(np.diag(L)).sum())
        inverse = spotri(L, lower=1, overwrite_c=1)[0]
        y = _single(self._y)
        alpha = ssymv(1.0, inverse, y, lower=1)
        G = np.tril(inverse, -1)
        G += G.T
        add_to_diagonal(G, np.diag(inverse))
        G *= -0.5
        G += np.outer(0.5 * alpha, alpha)  # ∂ log p / ∂K
        traces = [float(np.vdot(G, part)) for part in parts]
        slope = np.zeros_like(theta)
        D = len(v)
        slope[:D] = -traces[0] * kernel.share * v
        decay *= (5 / 3) * root
        H = (smooth + decay) * G
        slope[:D] -= H.sum(axis=1) @ bent**2
        slope[:D] += _quadratic(bent, H + kernel.linear * G)
        bend = math.exp(-kernel.total) / kernel.spread
        slope[:D] -= (traces[1] + traces[2]) * bend * kernel.relevance * v
        slope[D : D + 3] = traces
        slope[-1] = kernel.noise * float((np.diag(G) / self._weights).sum())
        offset = theta - self._location
        value = -0.5 * float(y @ alpha) - 0.5 * log_det
        return value - 0.5 * float(self._precision @ offset**2), slope - self._precision * offset

    @cached_property
    def _u(self) -> Any:
        return _single(self.columns.apply(self._X) - self.columns.middle)

    def _state(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_u"}


def _half_squares(dot: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Return ½d², shape (N, M), by products of vectors, and half their squared norms a and b."""
    h = a[:, None] - dot
    h += b
    return np.maximum(h, 0.0, out=h)


def _bent(h: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return exp(-h) and the Matérn 5/2 function of √2h."""
    root = np.sqrt(10 * h)
    rough = np.exp(-root)
    rough *= 1 + root + (10 / 3) * h
    return np.exp(-h), rough


def _single(array: FloatArray) -> Any:
    """Return `array` in single precision, which is enough for the sign of a slope."""
    return array.astype(np.float32)


def _gram(A: Any) -> Any:
    """Return AAᵀ, shape (N, N), in single precision."""
    return sgemm(1.0, A.T, A.T, trans_a=1).T if A.shape[1] else np.zeros((len(A),) * 2, A.dtype)


def _quadratic(A: Any, G: Any) -> FloatArray:
    """Return the diagonal of AᵀGA, shape (D,), with G symmetric, in single precision."""
    GA = sgemm(1.0, A.T, G.T).T if A.shape[1] else A
    return np.asarray(np.einsum("nd,nd->d", A, GA))
