"""Members of a mixture: one kernel and one noise ratio each, and how well they foresaw.

    k, ρ     kernel of f / s, and variance of the noise / s²; s² is the unknown scale
    z        innovations C⁻¹(y - mean) in units where s = 1; independent N(0, s²) under the member
    a₀, b₀   shape and rate of the inverse-gamma prior of s²

With s² integrated out, a member's outcomes so far have the log density

    log p(y) = log Γ(a) - log Γ(a₀) + a₀ log b₀ - a log b - Σ log C_nn - ½ N log 2π
    a = a₀ + ½N        b = b₀ + ½ Σ z²

and s² is inverse-gamma(a, b) given them. Σ log C_nn is the information gain plus N log √ρ.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from oclok.persistence import Persistent
from oclok.posterior.base import Posterior
from oclok.posterior.dictionary import DictionaryPosterior
from oclok.posterior.kernels import Covariance
from oclok.posterior.linalg import add_to_diagonal
from oclok.typing import FloatArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Noise variances of the members, where f has variance 1.
NOISE_RATIOS = (0.003, 0.03, 0.3)
#: Lengthscales of the smooth members, in √D: distances in the unit cube grow with √D.
LENGTHSCALES = (0.1, 0.2, 0.4, 0.8, 1.6)
#: Variance of the constant, where f has variance 1: as good as a flat prior once outcomes are
#: centred, and still well-conditioned.
CONSTANT = 100.0
#: Lengthscale (in √D) and variance of what is particular to an arm, and not to its neighbours.
PARTICULAR = (0.02, 0.3)


class ScalePrior(NamedTuple):
    """The inverse-gamma prior of s²: its shape a₀ and rate b₀."""

    shape: float
    rate: float


class Member(Persistent):
    """A kernel and a noise ratio: a posterior of f / s with its evidence.

    Args:
        kernel: covariance of f / s.
        noise_ratio: ρ.
        penalty: what is taken off the log evidence, for hyperparameters that were fitted.
        is_fitted: whether the kernel was fitted to the outcomes.
    """

    def __init__(
        self, kernel: Kernel, noise_ratio: float, penalty: float = 0.0, is_fitted: bool = False
    ) -> None:
        self.posterior: Posterior = DictionaryPosterior(kernel, math.sqrt(noise_ratio))
        self.noise_ratio = noise_ratio
        self.penalty = penalty
        self.is_fitted = is_fitted
        self.squares = 0.0
        self.number = -1

    def __len__(self) -> int:
        return len(self.posterior)

    def learn(self, X: FloatArray, y: FloatArray) -> None:
        """Learn centred outcomes `y` (N,) seen at scaled contexts `X` (N, D): all or none."""
        z, _ = self.posterior.innovations(X, y)
        self.posterior.update(X, y)
        self.squares += float(z @ z)

    def evidence(self, prior: ScalePrior) -> float:
        """Return log p(y), up to what all members share, less the penalty."""
        log_det = self.posterior.information_gain + 0.5 * len(self) * math.log(self.noise_ratio)
        return _evidence(len(self), self.squares, log_det, prior) - self.penalty

    def scale(self, prior: ScalePrior) -> tuple[float, float]:
        """Return shape a and rate b of the scale s² given the outcomes."""
        return prior.shape + 0.5 * len(self), prior.rate + 0.5 * self.squares


def dense_evidence(
    kernel: Kernel, noise_ratio: float, X: FloatArray, y: FloatArray, prior: ScalePrior
) -> float:
    """Return the evidence of few outcomes `y` (N,) at `X` (N, D) by one dense factorisation."""
    A = np.array(Covariance(kernel).of(X), order="F")
    add_to_diagonal(A, noise_ratio)
    L, failed = dpotrf(A, lower=1, overwrite_a=1)
    if failed:
        return -math.inf
    z = dtrsm(1.0, L, y[:, None], lower=1)[:, 0]
    return _evidence(len(y), float(z @ z), float(np.log(np.diag(L)).sum()), prior)


def default_kernels(dimension: int) -> list[Kernel]:
    """Return kernels for contexts in [0, 1]^D that between them fit most of what people learn.

    Smooth functions of any lengthscale; polynomials, of variance 1 on average; and either with
    an effect particular to each arm, as where the same arms come again. All with a constant.
    """
    from sklearn.gaussian_process.kernels import RBF, DotProduct

    root = math.sqrt(dimension)
    variance = 1.0 + dimension / 3
    particular = PARTICULAR[1] * RBF(PARTICULAR[0] * root)
    linear = DotProduct(1.0) * (1 / variance)
    kernels: list[Kernel] = [RBF(scale * root) for scale in LENGTHSCALES]
    kernels += [linear, DotProduct(1.0) ** 2 * variance**-2, DotProduct(1.0) ** 3 * variance**-3]
    kernels += [RBF(0.8 * root) + particular, linear + particular]
    return [kernel + CONSTANT for kernel in kernels]


def _evidence(n: int, squares: float, log_det: float, prior: ScalePrior) -> float:
    shape, rate = prior.shape + 0.5 * n, prior.rate + 0.5 * squares
    value = math.lgamma(shape) - math.lgamma(prior.shape) + prior.shape * math.log(prior.rate)
    return value - shape * math.log(rate) - log_det
