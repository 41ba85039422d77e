"""A lengthscale per feature, fitted a few gradient steps at a time so that no round stalls.

    X, y     at most `MOST` contexts (N, D), scaled to [0, 1], and outcomes (N,)
    l, ρ     lengthscales (D,) and noise ratio; θ = (log l, log ρ) is what is searched
    A        K + ρI with inverse A⁻¹; K has variance 1
    u, p     A⁻¹1 and 1ᵀA⁻¹1                a    A⁻¹(y - c1), where c = uᵀy / p
    α, β     shape and rate of the scale's inverse-gamma posterior, β = b₀ + ½ (y - c1)ᵀa

The scale of f and its constant are integrated out, the constant under a flat prior:

    log p(y | θ) = -α log β - ½ log det A - ½ log p + const
    ∂ log p/∂A   = ½ W,    W = (α / β) aaᵀ - A⁻¹ + uuᵀ / p

plus log-normal priors. Steps are those of Rprop (Riedmiller and Braun 1993): a step size for each
parameter, which grows while the slope keeps its sign. From the prior's median, 24 of them came
within 0.5 nats of where L-BFGS converges, and they can be interrupted after each.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import dsymv, dsyr
from scipy.linalg.lapack import dpotrf, dpotri

from oclok.gradients import differentiate
from oclok.persistence import Persistent
from oclok.posterior.linalg import add_to_diagonal
from oclok.typing import FloatArray

#: Outcomes that are used; more are drawn from uniformly.
MOST = 128
#: Gradient steps of a fit.
STEPS = 24
#: Log-normal priors, median and spread of the logarithm: lengthscales in √D, and the noise ratio.
LENGTHSCALE_PRIOR = (0.8, 1.2)
NOISE_PRIOR = (0.05, 2.0)
#: How far lengthscales are searched, as factors of their median, and noise ratios.
LENGTHSCALE_RANGE = 400.0
NOISE_RANGE = (1e-4, 10.0)


class RelevanceFit(Persistent):
    """A fit of one lengthscale per feature that can be advanced bit by bit.

    Args:
        contexts: shape (N, D), scaled.
        outcomes: shape (N,).
        shape, rate: of the inverse-gamma prior of the scale, in the outcomes' units.
        rng: chooses among more than `MOST` outcomes.
    """

    def __init__(
        self,
        contexts: FloatArray,
        outcomes: FloatArray,
        shape: float,
        rate: float,
        rng: np.random.Generator,
    ) -> None:
        if len(outcomes) > MOST:
            rows = rng.choice(len(outcomes), MOST, replace=False)
            contexts, outcomes = contexts[rows], outcomes[rows]
        D = contexts.shape[1]
        self.X, self.y, self._shape, self._rate = contexts, outcomes, shape, rate
        medians = [LENGTHSCALE_PRIOR[0] * math.sqrt(D)] * D + [NOISE_PRIOR[0]]
        self.location = np.log(medians)
        self.precision = np.array([LENGTHSCALE_PRIOR[1]] * D + [NOISE_PRIOR[1]]) ** -2.0
        reach = math.log(LENGTHSCALE_RANGE)
        self.lower, self.upper = self.location - reach, self.location + reach
        self.lower[-1], self.upper[-1] = np.log(NOISE_RANGE)
        self._theta = self._best = self.location
        self._best_value = -math.inf
        self._step = np.full(D + 1, 0.3)
        self._slope = np.zeros(D + 1)
        self.steps_left = STEPS

    @property
    def size(self) -> int:
        """How many outcomes the fit uses."""
        return len(self.y)

    @property
    def lengthscales(self) -> FloatArray:
        """The best lengthscales so far, shape (D,)."""
        return np.asarray(np.exp(self._best[:-1]))

    @property
    def noise_ratio(self) -> float:
        """The best variance of the noise so far, where f has variance 1."""
        return math.exp(self._best[-1])

    def advance(self, steps: int) -> None:
        """Take at most so many steps."""
        for _ in range(min(steps, self.steps_left)):
            self._advance()

    def _advance(self) -> None:
        self.steps_left -= 1
        value, slope = self.log_posterior(self._theta)
        if not math.isfinite(value):
            self.steps_left = 0
            return
        if value > self._best_value:
            self._best_value, self._best = value, self._theta
        turned = slope * self._slope
        factor = np.where(turned > 0, 1.3, np.where(turned < 0, 0.5, 1.0))
        self._step = np.minimum(self._step * factor, 1.0)
        self._slope = np.where(turned < 0, 0.0, slope)
        moved = self._theta + np.sign(self._slope) * self._step
        self._theta = np.clip(moved, self.lower, self.upper)

    def log_posterior(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return log p(y | θ) + log prior, up to a constant, and its gradient, shape (D + 1,)."""
        from sklearn.gaussian_process.kernels import RBF  # 0.2 s that `import oclok` need not take

        y, ratio = self.y, math.exp(theta[-1])
        K, backward = differentiate(RBF(np.exp(theta[:-1])), self.X)
        A = np.array(K, order="F")
        add_to_diagonal(A, ratio)
        L, failed = dpotrf(A, lower=1, clean=0, overwrite_a=1)
        if failed:
            return -math.inf, np.zeros_like(theta)
        log_det = 2 * float(np.log(np.diag(L)).sum())
        inverse = dpotri(L, lower=1, overwrite_c=1)[0]
        u = dsymv(1.0, inverse, np.ones_like(y), lower=1)
        p = float(u.sum())
        c = float(u @ y) / p
        a = dsymv(1.0, inverse, y - c, lower=1)
        alpha = self._shape + 0.5 * (len(y) - 1)
        beta = self._rate + 0.5 * float((y - c) @ a)
        value = -alpha * math.log(beta) - 0.5 * log_det - 0.5 * math.log(p)
        W = np.negative(inverse, out=inverse)
        W = dsyr(alpha / beta, a, a=W, lower=1, overwrite_a=1)
        W = dsyr(1 / p, u, a=W, lower=1, overwrite_a=1)
        lengths = backward(W) if len(theta) > 2 else np.atleast_1d(backward(W))
        slope = 0.5 * np.append(lengths, ratio * np.trace(W))
        offset = theta - self.location
        return value - 0.5 * float(self.precision @ offset**2), slope - self.precision * offset
