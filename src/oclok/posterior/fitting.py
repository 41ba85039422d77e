"""Kernel and noise from data: the hyperparameters under which the outcomes are most likely.

    X, y     contexts (N, D) and outcomes (N,)
    θ        logarithms of the kernel's free hyperparameters, (P,)
    σ        standard deviation of the noise
    point    what is searched for: θ, and log σ as its last entry
    A        K(X, X) + σ²I, with Cholesky factor L
    a        A⁻¹y

    log p(y | X)          = -½ yᵀa - Σ log L_nn - ½ N log 2π
    ∂ log p / ∂θ_p        = ½ tr(W ∂K/∂θ_p),  W = aaᵀ - A⁻¹
    ∂ log p / ∂ log σ     = σ² tr W

    log prior             = -½ Σ ((point - location) / spread)²

The marginal likelihood can have several maxima and is flat far from them, hence more than one
start, chosen with care. Few data can make absurd values likely, such as a lengthscale of a
thousandth of the distance between any two contexts; weak log-normal priors prevent that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import norm
from scipy.linalg.blas import dsyr
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from oclok.errors import InputError
from oclok.persistence import Persistent
from oclok.posterior.kernels import compiled
from oclok.posterior.linalg import add_to_diagonal
from oclok.typing import ArrayLike, FloatArray, Kernel, Seed
from oclok.validation import as_contexts, as_count, as_noise_std, as_outcomes

#: Least and largest noise that is searched, in root mean squares of the outcomes.
NOISE_BOUNDS = (1e-3, 1e1)
#: Every start takes FEW_STEPS on FEW observations; only the best one goes on, with all of them.
FEW, FEW_STEPS = 100, 20
#: A restart is the likeliest of this many draws.
DRAWS = 16
#: Log-normal prior of a lengthscale, in √D spans of the contexts: median and spread of its
#: logarithm. Distances in a cube grow with √D, and lengthscales that fit do as well (Hvarfner et
#: al. 2024, whose median is wider: they have one outcome for each context chosen by optimism).
LENGTHSCALE_PRIOR = (0.8, 1.5)
#: The same of a variance and of the noise's standard deviation, in variances and standard
#: deviations of the outcomes.
VARIANCE_PRIOR = (1.0, 2.0)
NOISE_PRIOR = (0.2, 1.5)
#: How far from the given values restarts are drawn, as a factor: in turns near and far, as a
#: guess is often right within a factor of 10, and the bounds can be 10 decades apart.
NEAR, FAR = 30.0, 1e10


@dataclass(frozen=True)
class KernelFit(Persistent):
    """What `fit_kernel` found.

    Attributes:
        kernel: the fitted kernel, a new one; the given one if the fit brought nothing.
        noise_std: standard deviation of the noise that goes with it.
        log_likelihood: log marginal likelihood of the outcomes under both.
        start_log_likelihood: the same under the given kernel and noise. -inf if they have none
            in double precision. Never larger, except where the prior outweighs the likelihood.
        improved: whether anything better than what was given was found.
        count: how many observations were used.
        message: how the fit went, in words.
    """

    kernel: Kernel
    noise_std: float
    log_likelihood: float
    start_log_likelihood: float
    improved: bool
    count: int
    message: str


def fit_kernel(
    kernel: Kernel,
    contexts: ArrayLike,
    outcomes: ArrayLike,
    noise_std: float = 0.1,
    *,
    fit_noise: bool = True,
    prior: bool = True,
    restarts: int = 4,
    most: int = 1_000,
    seed: Seed = None,
) -> KernelFit:
    """Return the kernel and the noise under which the outcomes are most likely.

    Maximises the log marginal likelihood of a Gaussian process with zero mean, plus the log of
    a weak prior, over the kernel's hyperparameters within their bounds; those that are "fixed"
    stay. The search starts from the given values and `restarts` others, half of them around the
    given values, half within all the bounds. A fit that fails, or finds nothing better, returns
    what was given.

    A kernel such as `RBF` has variance 1: for outcomes of another scale, give
    `ConstantKernel(…) * RBF(…)`. Time grows with N³, memory with N² for each hyperparameter.

    Args:
        kernel: of scikit-learn, with the values to start from and their bounds.
        contexts: shape (N, D).
        outcomes: shape (N,).
        noise_std: standard deviation of the noise to start from.
        fit_noise: whether to fit the noise as well: between 0.001 and 10 times the root mean
            square of the outcomes, or up to `noise_std` if that is beyond.
        prior: whether lengthscales, variances and noise have log-normal priors, around 0.8 √D
            spans of the contexts, the variance of the outcomes and 0.2 of their standard deviation.
            False maximises the likelihood alone.
        restarts: how many starts besides the given values.
        most: how many observations to use; out of more, this many are drawn uniformly.
        seed: where restarts and that draw come from.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> contexts = np.linspace(0.0, 5.0, 100)[:, None]
        >>> noise = 0.1 * np.random.default_rng(0).standard_normal(100)
        >>> fit = fit_kernel(RBF(10.0), contexts, np.sin(2 * contexts[:, 0]) + noise, seed=0)
        >>> fit.improved, fit.kernel, round(fit.noise_std, 2)
        (True, RBF(length_scale=0.957), 0.1)
    """
    X = as_contexts(contexts)
    y = as_outcomes(outcomes, len(X))
    noise_std = as_noise_std(noise_std)
    restarts = as_count(restarts, "restarts", least=0)
    most = as_count(most, "most")
    compiled(kernel).of(X[:1])  # refuses a kernel that does not fit these contexts
    rng = np.random.default_rng(seed)
    if len(X) > most:
        rows = np.sort(rng.choice(len(X), most, replace=False))
        X, y = X[rows], y[rows]
    with np.errstate(all="ignore"):
        space = _Space(kernel, noise_std, fit_noise, X, y, prior)
        before = _solve(kernel(X), noise_std, y)[0]
        point, message = _search(space, X, y, restarts, rng)
        fitted, noise = kernel.clone_with_theta(point[:-1]), float(np.exp(point[-1]))
        after = _solve(fitted(X), noise, y)[0]
        gain = after - before if before > -math.inf else after
        gain += space.log_prior(point)[0] - space.log_prior(space.given)[0]
    if gain > 0:
        return KernelFit(fitted, noise, after, before, True, len(X), message)
    if after == -math.inf:
        message = "failed: K + σ²I is not finite and positive definite wherever it was tried"
    elif space.is_free.any():
        message = f"found nothing better than what was given; {message}"
    return KernelFit(kernel, noise_std, before, before, False, len(X), message)


class _Space:
    """The points that are searched, (P + 1,): what they stand for, where they lie, where to start.

    `is_free` where the bounds `lower` and `upper` differ; `start` is `given` within the bounds.
    """

    def __init__(
        self,
        kernel: Kernel,
        noise_std: float,
        fit_noise: bool,
        X: FloatArray,
        y: FloatArray,
        prior: bool,
    ) -> None:
        scale = norm(y) / math.sqrt(len(y)) or noise_std
        noises = [noise_std, *(scale * bound for bound in NOISE_BOUNDS if fit_noise)]
        bounds = np.vstack([np.reshape(kernel.bounds, (-1, 2)), np.log([min(noises), max(noises)])])
        self._kernel = kernel.clone_with_theta(kernel.theta)
        self.lower, self.upper = bounds.T
        self.is_free = self.lower < self.upper
        self.given: FloatArray = np.append(kernel.theta, math.log(noise_std))
        self.start: FloatArray = np.clip(self.given, self.lower, self.upper)
        if not ((self.lower <= self.upper).all() and np.isfinite(self.start).all()):
            raise InputError(
                "the kernel's hyperparameters must be above 0, and their bounds in order; got "
                f"{kernel!r} with bounds {np.exp(bounds).tolist()}"
            )
        self._names, medians, spreads = _priors(kernel, X, y)
        has_prior = np.isfinite(np.log(medians)) & self.is_free & prior
        self._location = np.where(has_prior, np.log(medians), 0.0)
        self._precision = np.where(has_prior, spreads**-2.0, 0.0)

    def log_prior(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the log prior of `point`, up to a constant, and its gradient."""
        offset = point - self._location
        gradient = -self._precision * offset
        return 0.5 * float(offset @ gradient), gradient

    def at(self, point: FloatArray) -> tuple[Kernel, float]:
        """Return kernel and noise at `point`; the next call changes the kernel: cloning is slow."""
        self._kernel.theta = point[:-1]
        return self._kernel, float(np.exp(point[-1]))

    def log_posterior(self, point: FloatArray, X: FloatArray, y: FloatArray) -> float:
        """Return log p(y | X) plus the log prior of `point`."""
        kernel, noise_std = self.at(point)
        return _solve(kernel(X), noise_std, y)[0] + self.log_prior(point)[0]

    def draw(self, rng: np.random.Generator, count: int, factor: float) -> FloatArray:
        """Return points, shape (count, P + 1), uniform within the bounds and near the start."""
        lower = np.maximum(self.lower, self.start - math.log(factor))
        upper = np.minimum(self.upper, self.start + math.log(factor))
        return rng.uniform(lower, upper, size=(count, len(lower)))

    def at_bounds(self, point: FloatArray) -> list[str]:
        """Return, in words, which entries of `point` are at their bounds."""
        return [
            f"{self._names[n]} is at its {side} bound, {np.exp(bounds[n]):.3g}"
            for side, bounds in (("lower", self.lower), ("upper", self.upper))
            for n in np.flatnonzero(np.isclose(point, bounds) & self.is_free)
        ]


def _priors(
    kernel: Kernel, X: FloatArray, y: FloatArray
) -> tuple[list[str], FloatArray, FloatArray]:
    """Return names, prior medians and spreads of a point's entries; inf where there is no prior."""
    span = np.ptp(X, axis=0)
    span = np.where(span > 0, span, 1.0) * math.sqrt(X.shape[1])
    scale = float(np.std(y)) or 1.0
    rows: list[tuple[str, float, float]] = []
    for hyperparameter in kernel.hyperparameters:
        name, count = hyperparameter.name, hyperparameter.n_elements
        for n in range(0 if hyperparameter.fixed else count):
            median, spread = 1.0, math.inf
            if name.endswith("length_scale"):
                median, spread = LENGTHSCALE_PRIOR
                median *= float(span[n] if count > 1 else span.mean())
            elif name.endswith("constant_value"):
                median, spread = VARIANCE_PRIOR
                median *= scale**2
            rows.append((f"{name}[{n}]" if count > 1 else name, median, spread))
    rows.append(("noise_std", NOISE_PRIOR[0] * scale, NOISE_PRIOR[1]))
    names, medians, spreads = zip(*rows, strict=True)
    return list(names), np.array(medians), np.array(spreads)


def _search(
    space: _Space, X: FloatArray, y: FloatArray, restarts: int, rng: np.random.Generator
) -> tuple[FloatArray, str]:
    """Return the best point found, on few observations and then all, and how the search went."""
    if not space.is_free.any():
        return space.start, "nothing to fit: all hyperparameters and the noise are fixed"
    rows = rng.choice(len(X), min(len(X), FEW), replace=False)
    few = X[rows], y[rows]
    starts = [space.start]
    for n in range(restarts):
        draws = space.draw(rng, DRAWS, factor=(NEAR, FAR)[n % 2])
        starts.append(max(draws, key=lambda point: space.log_posterior(point, *few)))
    ends = [_climb(space, point, *few, steps=FEW_STEPS).x for point in starts]
    best = max([*starts, *ends], key=lambda point: space.log_posterior(point, X, y))
    result = _climb(space, best, X, y)
    ending = "converged" if result.success else f"stopped early ({result.message})"
    return result.x, "; ".join([f"the search {ending}", *space.at_bounds(result.x)])


def _climb(
    space: _Space, start: FloatArray, X: FloatArray, y: FloatArray, steps: int = 15_000
) -> Any:
    """Return where L-BFGS-B gets from `start` in at most `steps`.

    A point without a likelihood counts as slightly worse than all seen before, which shortens the
    step; infinity would end the line search.
    """
    worst = 0.0

    def loss(point: FloatArray) -> tuple[float, FloatArray]:
        nonlocal worst
        value, gradient = _log_likelihood_and_gradient(*space.at(point), X, y)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            return worst + 1.0, np.zeros(len(point))
        log_prior, prior_gradient = space.log_prior(point)
        value += log_prior
        worst = max(worst, -value)
        return -value, -gradient - prior_gradient

    bounds = np.stack([space.lower, space.upper], axis=1)
    from scipy.optimize import minimize  # 0.3 s that `import oclok` need not take

    options = {"maxiter": steps}
    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)


def _log_likelihood_and_gradient(
    kernel: Kernel, noise_std: float, X: FloatArray, y: FloatArray
) -> tuple[float, FloatArray]:
    """Return log p(y | X) and its gradient with respect to θ and, last, log σ."""
    K, dK = kernel(X, eval_gradient=True)  # (N, N) and (N, N, P)
    value, L, a = _solve(K, noise_std, y)
    if value == -math.inf:
        return value, np.zeros(kernel.n_dims + 1)
    W = dpotri(L, lower=1, overwrite_c=1)[0]
    np.negative(W, out=W)
    W = dsyr(1.0, a, a=W, lower=1, overwrite_a=1)
    # The lower triangle twice, the diagonal once: W and dK are symmetric.
    W = np.tril(W, -1) + 0.5 * np.diag(W.diagonal())
    of_noise = 2 * noise_std * noise_std * np.trace(W)
    return value, np.append(W.reshape(-1) @ dK.reshape(W.size, -1), of_noise)


def _solve(K: FloatArray, noise_std: float, y: FloatArray) -> tuple[float, Any, Any]:
    """Return log p(y | X), L (its upper triangle is not cleared) and a."""
    A = np.array(K, dtype=np.float64, order="F")
    add_to_diagonal(A, noise_std * noise_std)
    L, failed = dpotrf(A, lower=1, clean=0, overwrite_a=1)
    if failed:
        return -math.inf, None, None
    a = dpotrs(L, y, lower=1)[0]
    value = -0.5 * float(y @ a) - float(np.log(np.diag(L)).sum())
    value -= 0.5 * len(y) * math.log(2 * math.pi)
    return (value, L, a) if math.isfinite(value) else (-math.inf, None, None)
