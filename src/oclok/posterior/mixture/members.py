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
from oclok.posterior.dictionary import DictionaryPosterior
from oclok.posterior.dictionary.regression import FEW
from oclok.posterior.dictionary.vecchia import VecchiaModel
from oclok.posterior.kernels import Covariance
from oclok.posterior.linalg import add_to_diagonal
from oclok.posterior.mixture.relevance import LENGTHSCALE_PRIOR
from oclok.posterior.prediction import Prediction
from oclok.typing import FloatArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Noise variances of the members, where f varies by 1 between contexts.
NOISE_RATIOS = (0.003, 0.03, 0.3)
#: Lengthscales of the smooth members, in √D: distances in the unit cube grow with √D.
LENGTHSCALES = (0.1, 0.2, 0.4, 0.8, 1.6)
#: Variance of the constant, where f varies by 1: as good as a flat prior once outcomes are
#: centred, and still well-conditioned.
CONSTANT = 100.0
#: Lengthscale (in √D) and variance of what is particular to an arm, and not to its neighbours.
PARTICULAR = (0.02, 0.3)
#: Contexts drawn to see by how much a kernel's functions vary between contexts.
DRAWN = 256

#: What a dictionary may leave of a context's variance, in noise variances. A mixture has no bounds
#: to prove decisions by; at this tolerance a dictionary takes a third of the basis functions.
TOLERANCE = 1e-3

#: Outcomes that are learned at once.
AT_ONCE = 512
#: A member is surprised if so many latest outcomes were off by this factor more, in variance.
LATEST, SURPRISE = 40, 2.5


class ScalePrior(NamedTuple):
    """The inverse-gamma prior of s²: its shape a₀ and rate b₀."""

    shape: float
    rate: float


class Candidate(NamedTuple):
    """A kernel that members may have, and what its prior weight takes off their log evidence."""

    kernel: Covariance
    penalty: float = 0.0


class Member(Persistent):
    """A kernel and a noise ratio: a posterior of f / s with its evidence.

    Args:
        kernel: covariance of f / s, perhaps compiled.
        ratio: ρ.
        number: which of the members to begin with it is; None for one that was fitted.
        penalty: what is taken off the log evidence, for its prior weight or for hyperparameters
            that were fitted.
    """

    def __init__(
        self,
        kernel: Kernel | Covariance,
        ratio: float,
        number: int | None = None,
        penalty: float = 0.0,
    ) -> None:
        self.posterior = DictionaryPosterior(kernel, math.sqrt(ratio))
        self.posterior.tolerance = TOLERANCE * ratio
        self.ratio, self.number, self.penalty = ratio, number, penalty
        self._count = self._squares = self._log_det = 0.0
        self._latest: FloatArray = np.empty(0)

    def __len__(self) -> int:
        return len(self.posterior)

    @property
    def is_fitted(self) -> bool:
        """Whether the kernel was fitted to the outcomes."""
        return self.number is None

    def empty(self) -> Member:
        """Return the same member before any data."""
        return Member(self.posterior.prior, self.ratio, self.number, self.penalty)

    def learn(self, asked: Prediction, y: FloatArray, weights: FloatArray) -> None:
        """Learn centred outcomes `y` (N,), of noise variance ρ / weights.

        Up to `AT_ONCE` of them all or none; more bit by bit.
        """
        if len(y) <= AT_ONCE:
            self._learn(asked, y, weights)
            return
        for start in range(0, len(y), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            self._learn(Prediction.of(asked.contexts[rows]), y[rows], weights[rows])

    def correct(self, x: FloatArray, before: FloatArray, after: FloatArray) -> None:
        """Replace centred outcomes `before` (N,), of weight 1, learned at x (N, D), by `after`.

        Σ z² is yᵀA⁻¹y with A⁻¹y = (y - mean) / ρ: it grows by (y' - y)ᵀA⁻¹(y' + y).
        """
        residuals = before - self.posterior.predict(x).mean
        self.posterior.correct(x, before, after)
        residuals = residuals + after - self.posterior.predict(x).mean
        squares = self._squares + float((after - before) @ residuals) / self.ratio
        self._squares = max(squares, 0.0)

    def discount(self, rate: float) -> None:
        """Let what was learned, and the evidence it gave, count less."""
        self.posterior.discount(rate)
        self._count, self._squares = rate * self._count, rate * self._squares
        self._log_det *= rate

    def evidence(self, prior: ScalePrior) -> float:
        """Return log p(y), up to what all members share, less the penalty."""
        return _evidence(self._count, self._squares, self._log_det, prior) - self.penalty

    def scale(self, prior: ScalePrior) -> tuple[float, float]:
        """Return shape a and rate b of the scale s² given the outcomes."""
        return prior.shape + 0.5 * self._count, prior.rate + 0.5 * self._squares

    def is_surprised(self, prior: ScalePrior) -> bool:
        """Return whether the latest outcomes were much farther off than the earlier ones."""
        shape, rate = self.scale(prior)
        n = len(self._latest)
        return n == LATEST and float(self._latest @ self._latest) > SURPRISE * n * rate / shape

    def calm(self) -> None:
        """Forget the latest outcomes' surprise."""
        self._latest = np.empty(0)

    def _learn(self, asked: Prediction, y: FloatArray, weights: FloatArray) -> None:
        """Learn outcomes: few by their innovations, many without, which cost their cube.

        (y - mean)ᵀS⁻¹(y - mean), with S the covariance of y, needs no S: the mean afterwards is
        y - ρS⁻¹(y - mean). With neighbours alone it is not quite, and innovations are used.
        """
        gain = self.posterior.information_gain
        is_local = isinstance(self.posterior.in_use, VecchiaModel)
        if (len(y) <= FEW or is_local) and (weights == 1.0).all():
            z = self.posterior.learn(asked, y)[0]
            squares = float(z @ z)
        else:
            before = self.posterior.predict(asked)
            self.posterior.update(before, y, weights)
            residuals, noise = y - before.mean, self.ratio / weights
            left = y - self.posterior.predict(before.contexts).mean
            squares = max(float((residuals / noise) @ left), 0.0)
            z = residuals / np.sqrt(before.std**2 + noise)
        self._count += len(y)
        self._squares += squares
        self._log_det += self.posterior.information_gain - gain
        self._log_det += 0.5 * len(y) * math.log(self.ratio)
        self._latest = np.concatenate([self._latest, z])[-LATEST:]


def members_of(candidates: list[Candidate], ratios: list[float]) -> list[Member]:
    """Return a member for each kernel and noise ratio."""
    pairs = [(candidate, ratio) for candidate in candidates for ratio in ratios]
    return [Member(c.kernel, ratio, n, c.penalty) for n, (c, ratio) in enumerate(pairs)]


def dense_evidence(K: FloatArray, noise: FloatArray, y: FloatArray, prior: ScalePrior) -> float:
    """Return the evidence of few outcomes `y` (N,) of covariance K (N, N) and noise variances."""
    A = np.array(K, order="F")
    add_to_diagonal(A, noise)
    L, failed = dpotrf(A, lower=1, overwrite_a=1)
    if failed:
        return -math.inf
    z = dtrsm(1.0, L, y[:, None], lower=1)[:, 0]
    return _evidence(len(y), float(z @ z), float(np.log(np.diag(L)).sum()), prior)


def default_candidates(dimension: int) -> list[Candidate]:
    """Return kernels for contexts in [0, 1]^D that between them fit most of what people learn.

    Smooth functions of any lengthscale; polynomials; and either with an effect particular to
    each arm, as where the same arms come again. All with a constant.

    They vary by 1 between contexts: scale and noise mean the same for each. With variance 1
    instead, an RBF of lengthscale 1.6 √D varies by 0.03: it stood for noise without signal, and
    explored so little that 5 of 120 runs on digits took over 30 rounds to find the first image of
    their digit. A member for which all arms are alike is no help: with it, regret on 2% of clicks
    was 0.67 of random's after 400 rounds (8 seeds), and is 0.43 without (4 seeds).
    """
    from sklearn.gaussian_process.kernels import DotProduct

    linear = DotProduct(1.0)
    every = [*_stationary(dimension), (linear, 0.0), (linear**2, 0.0), (linear**3, 0.0)]
    scaled = [(_of_unit_spread(kernel, dimension), penalty) for kernel, penalty in every]
    for kernel in (_smooth(0.8, dimension), linear):
        scaled.append((_of_unit_spread(kernel, dimension) + _particular(dimension), 0.0))
    return [Candidate(Covariance(kernel + CONSTANT), penalty) for kernel, penalty in scaled]


def stationary_candidates(dimension: int) -> list[Candidate]:
    """Return those of the default kernels that treat all contexts in [0, 1]^D alike.

    Their weights are those of the log-normal prior that fitted lengthscales have: without it, the
    first rounds explore as if f were as likely to be rough as smooth. They have no constant:
    before any outcome it is the same for all arms, and so large that oracles for probabilities
    could not tell one set of arms from another.
    """
    return [Candidate(Covariance(kernel), penalty) for kernel, penalty in _stationary(dimension)]


def _stationary(dimension: int) -> list[tuple[Kernel, float]]:
    """Return smooth kernels and their penalties."""
    median, spread = LENGTHSCALE_PRIOR
    return [
        (_smooth(each, dimension), (math.log(each / median) / spread) ** 2 / 2)
        for each in LENGTHSCALES
    ]


def _of_unit_spread(kernel: Kernel, dimension: int) -> Kernel:
    """Return a multiple of `kernel` whose functions have variance 1 about their mean over x."""
    K = kernel(np.random.default_rng(0).random((DRAWN, dimension)))
    return kernel * (1 / float(np.diag(K).mean() - K.mean()))


def _smooth(lengthscale: float, dimension: int) -> Kernel:
    from sklearn.gaussian_process.kernels import RBF

    return RBF(lengthscale * math.sqrt(dimension))


def _particular(dimension: int) -> Kernel:
    return PARTICULAR[1] * _smooth(PARTICULAR[0], dimension)


def _evidence(n: float, squares: float, log_det: float, prior: ScalePrior) -> float:
    shape, rate = prior.shape + 0.5 * n, prior.rate + 0.5 * squares
    value = math.lgamma(shape) - math.lgamma(prior.shape) + prior.shape * math.log(prior.rate)
    return value - shape * math.log(rate) - log_det
