"""Nyström features of a dictionary, with regression on their weights and bounds of the error.

    U         dictionary, (r, D)                    σ    standard deviation of the noise
    R         lower Cholesky factor of K(U, U), (r, r)
    φ(x)      R⁻¹k(U, x), features of a context; Φ those of the contexts at hand, (r, M)
    ρ(x)      k(x, x) - |φ(x)|², what the dictionary leaves of the prior variance; ≥ 0
    S, m      root of the covariance of the features' weights, their mean (`regression.py`)

    mean = φᵀm        variance = ρ + |Sᵀφ|²         (DTC, with ρ kept in the variance)

Rounding: φ(x)ᵀφ(x') is off by at most ε(κ + |w|₁κ_U)(κ' + |w'|₁κ_U), where w = R⁻ᵀφ(x) are the
weights of f(U) in the interpolation of f(x), κ = √k(x, x), κ_U the largest κ in U and ε the
relative rounding of K. |w|₁ takes a solve with Rᵀ; with c the row sums of |R⁻¹| it is at most
Σ|φ_i|c_i ≤ √(r Σφ_i²c_i²), for the price of a product with a vector.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg.blas import ddot, dgemm, dgemv, dtrsm
from scipy.linalg.lapack import dtrtri

from oclok.arrays import chunks
from oclok.errors import NumericalError
from oclok.posterior.base import Innovations
from oclok.posterior.bounds import STATE_ROUNDING, TINY, error_bounds, kernel_rounding
from oclok.posterior.cholesky import GrowingCholesky
from oclok.posterior.dictionary.regression import FEW, Regression
from oclok.posterior.incremental import IncrementalPosterior
from oclok.posterior.kernels import Covariance, largest_of
from oclok.posterior.linalg import add_to_diagonal, gram, product
from oclok.posterior.observations import Observations
from oclok.posterior.pivoted import LEAST_PIVOT
from oclok.posterior.prediction import ContextsLike, Prediction, distinct, in_chunks
from oclok.threads import blas_threads
from oclok.typing import ArrayLike, FloatArray
from oclok.validation import as_outcomes

#: Entries of φ that `predict` works on at once: 32 MB.
PREDICTED_AT_ONCE = 4_000_000
#: Outcomes that are learned at once.
LEARNED_AT_ONCE = 2_048
#: Outcomes whose rounding is bounded closely at once; until then a cheaper bound holds.
SETTLED_AT_ONCE = 64


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NystromPrediction(Prediction):
    """A prediction with m, φ and Sᵀφ, each (r, M), ρ and √ω, root of its rounding, each (M,)."""

    model: NystromModel
    weights: FloatArray
    phi: FloatArray
    whitened: FloatArray
    residual: FloatArray
    rounding_std: FloatArray
    _columns = ("phi", "whitened", "residual", "rounding_std")
    _cached = ("largest_residual",)

    @cached_property
    def largest_residual(self) -> float:
        """The largest ρ."""
        rho = self.residual
        return float(rho[rho.argmax()]) if len(rho) else 0.0  # quicker than `max`

    def covariance(self) -> FloatArray:
        """Return the joint covariance (M, M); correlations of ρ above the tolerance included."""
        covariance = gram(self.whitened)
        if self.largest_residual > self.model.tolerance:
            covariance += self.model.prior.of(self.contexts)
            covariance -= gram(self.phi)
        else:
            add_to_diagonal(covariance, self.residual)
        return covariance

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Return a sample of f (M,), by one of the weights where ρ is within the tolerance."""
        if self.largest_residual > self.model.tolerance:
            return super().sample(rng)
        sample = self.mean + dgemv(1.0, self.whitened, rng.standard_normal(len(self.phi)), trans=1)
        sample += np.sqrt(self.residual) * rng.standard_normal(len(sample))
        first, of = distinct(self.contexts)
        return np.asarray(sample[first[of]])


class NystromModel(IncrementalPosterior):
    """The posterior through the features of a dictionary.

    Args:
        prior, noise_std: as for `Posterior`.
        U, R: dictionary (r, D), and the lower Cholesky factor (r, r) of its prior covariance.
        tolerance: where all ρ are at most this, their correlations are neglected.
    """

    _at_once, _judged_at_once = LEARNED_AT_ONCE, FEW
    #: What `_prepare` computes.
    _transient = ("largest_prior", "_k_U", "_factor", "_ones", "_scales", "_rounding", "_kappa_U")

    def __init__(
        self, prior: Covariance, noise_std: float, U: FloatArray, R: FloatArray, tolerance: float
    ) -> None:
        super().__init__(prior, noise_std)
        self.tolerance = tolerance
        self.U = U
        self.R = np.asfortranarray(R)
        self._prepare()
        self._begin()

    def _begin(self) -> None:
        """Reset to the prior."""
        self.observations = Observations()
        self.regression = Regression(self.rank)
        self._trace = self._rough_trace = 0.0
        self._unsettled: tuple[tuple[FloatArray, FloatArray, FloatArray], ...] = ()

    def _prepare(self) -> None:
        """Compute what follows from the dictionary alone."""
        self.U.flags.writeable = False
        self.largest_prior = self.prior.largest(self.U)
        self._k_U = self.prior.to(self.U)
        self._rounding = math.sqrt(kernel_rounding(self.rank, self.prior.reach(self.U)))
        self._kappa_U = math.sqrt(self.largest_prior)
        self._factor = GrowingCholesky()
        self._factor.append(self.R[:, :0], self.R)
        row_sums = np.abs(dtrtri(self.R, lower=1)[0]).sum(axis=1)
        self._ones = np.ones(self.rank)
        squares = self.rank * (self._rounding * self._kappa_U * row_sums) ** 2
        self._scales = np.array([-self._ones, squares]).T

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._prepare()

    def blank(self) -> Self:
        """Return a model of the same dictionary that has learned nothing."""
        model = copy.copy(self)
        model._begin()
        return model

    @property
    def trace(self) -> float:
        """A bound of Σ w (ρ + ω) over all outcomes learned, w their weights."""
        return self._trace + self._rough_trace

    @property
    def dimension(self) -> int:
        """D."""
        return int(self.U.shape[1])

    @property
    def inducing(self) -> FloatArray:
        """The dictionary, shape (r, D), read-only."""
        return self.U

    @property
    def rank(self) -> int:
        """How many contexts the dictionary has."""
        return len(self.U)

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes learned, in nats, through the dictionary."""
        return self.regression.information_gain

    def is_current(self, prediction: Prediction) -> bool:
        """Return whether this model made `prediction` and has not changed since."""
        return (
            type(prediction) is NystromPrediction
            and prediction.weights is self.regression.m
            and prediction.model.U is self.U
        )

    def predict(self, contexts: ContextsLike) -> Prediction:
        """Return mean and std of f at `contexts` (M, D), with bounds."""
        X = self.checked(contexts)
        return in_chunks(X, max(PREDICTED_AT_ONCE // self.rank, 64), self._predict)

    def _predict(self, X: FloatArray) -> NystromPrediction:
        m = self.regression.m
        with blas_threads(2.0 * self.rank**2 * len(X)):
            phi, residual, rounding_std = self.features(X)
            mean = self.regression.mean(phi)
            whitened = self.regression.whiten(phi)
            std = dgemv(1.0, whitened * whitened, self._ones, beta=1.0, y=residual, trans=1)
        np.sqrt(std, out=std)
        slack = STATE_ROUNDING * self._kappa_U
        mean_error, std_error = error_bounds(
            std,
            residual,
            rounding_std,
            self.trace / self.noise_std**2,
            math.sqrt(self.regression.quadratic_form),
            slack * max(1.0, math.sqrt(ddot(m, m))),
            slack,
        )
        return NystromPrediction.trusted(
            contexts=X,
            mean=mean,
            std=std,
            mean_error=mean_error,
            std_error=std_error,
            model=self,
            weights=m,
            phi=phi,
            whitened=whitened,
            residual=residual,
            rounding_std=rounding_std,
        )

    def features(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return φ (r, M) in C order, ρ (M,) and √ω (M,) by the cheap bound of |w|₁."""
        phi = self._factor.solve(self._k_U(X))
        prior = self.prior.variance(X)
        residual, rounding_std = dgemm(1.0, (phi * phi).T, self._scales).T
        residual += prior
        np.maximum(residual, 0.0, out=residual)
        np.sqrt(rounding_std, out=rounding_std)
        rounding_std += self._rounding * math.sqrt(largest_of(prior)) + TINY
        return phi, residual, rounding_std

    def _residual(self, contexts: ContextsLike) -> tuple[FloatArray, float]:
        """Return ρ of `contexts`, shape (M,), and the largest."""
        if type(contexts) is NystromPrediction and contexts.model.U is self.U:
            return contexts.residual, contexts.largest_residual
        residual = self.features(self.checked(contexts))[1]
        return residual, float(residual.max(initial=0.0))

    def uncovered(self, contexts: ContextsLike) -> FloatArray:
        """Return the contexts whose ρ is above the tolerance, shape (n, D)."""
        residual, largest = self._residual(contexts)
        if not largest > self.tolerance:
            return self.U[:0]
        return self.checked(contexts)[residual > self.tolerance]

    def largest_residual(self, contexts: ContextsLike) -> float:
        """Return the largest ρ of `contexts` (M, D)."""
        return self._residual(contexts)[1]

    def sample_paths(
        self, contexts: ContextsLike, count: int, rng: np.random.Generator
    ) -> FloatArray:
        """Return `count` samples of f at `contexts` (M, D), shape (count, M), by their weights."""
        X = self.checked(contexts)
        W = self.regression.sample(count, rng)
        least = max(self.tolerance, LEAST_PIVOT * self.largest_prior)
        result = np.empty((count, len(X)))
        for rows in chunks(len(X), self._at_once):
            phi, mean, variance = self._given_weights(X[rows])
            result[:, rows] = product(W.T, phi.T) + mean
            if variance.max(initial=0.0) > least:
                result[:, rows] += np.sqrt(variance) * rng.standard_normal((count, len(variance)))
        return result

    def _given_weights(self, X: FloatArray) -> tuple[FloatArray, FloatArray | float, FloatArray]:
        """Return features (r, M), and mean and variance (M,) of f less its part φᵀw."""
        phi, residual, _ = self.features(X)
        return phi, 0.0, residual

    def correct(self, contexts: ContextsLike, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        X, known = self.checked(contexts), self.observations
        old, new = as_outcomes(before, len(X)), as_outcomes(after, len(X))
        positions = known.find(X, old)
        self._shift(X, new - old, self.noise_std / np.sqrt(known.weights[positions]))
        known.outcomes[positions] = new

    def _shift(self, X: FloatArray, change: FloatArray, noise: FloatArray) -> None:
        """Change outcomes, learned at X (N, D) with standard deviations `noise`, by `change`.

        The posterior mean is linear in them: it moves by C(·, x)Δ/V², C the posterior covariance.
        """
        self.regression.correct(self._predict(X).whitened, change, noise)

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far by `rate`."""
        self.regression.discount(rate)
        self._settle()
        self._trace *= rate
        self.observations.weights[:] *= rate

    def _checkpoint(self, count: int) -> Callable[[], None]:
        state = dict(self.__dict__, regression=copy.deepcopy(self.regression))
        return lambda: self.__dict__.update(state)

    def _learn(
        self, contexts: ContextsLike, y: FloatArray, weights: FloatArray
    ) -> Innovations | None:
        f = contexts
        if not (type(f) is NystromPrediction and self.is_current(f)):
            f = self._predict(self.checked(contexts))
        trace = float(ddot(weights, f.residual + f.rounding_std * f.rounding_std))
        if not math.isfinite(trace):
            raise NumericalError("the posterior's factor is not finite; are contexts too large?")
        noise = self.noise_std / np.sqrt(weights)
        with blas_threads(2.0 * self.rank**2 * len(y)):
            innovations = self.regression.learn(f.whitened, y - f.mean, noise)
        self._rough_trace += trace
        self._unsettled = (*self._unsettled, (f.phi, f.residual, weights))
        if len(self._unsettled) * len(y) >= SETTLED_AT_ONCE:
            self._settle()
        return innovations

    def _settle(self) -> None:
        """Tighten the rounding bound of recent outcomes: Σ w (ρ + ω), ω by |w|₁ itself."""
        if not self._unsettled:
            return
        all_phi, residuals, all_weights = zip(*self._unsettled, strict=True)
        phi = np.ascontiguousarray(np.concatenate(all_phi, axis=1)).T
        residual, weights = np.concatenate(residuals), np.concatenate(all_weights)
        kappa = math.sqrt((residual + dgemv(1.0, phi * phi, self._ones)).max())
        w = dtrsm(1.0, self.R, phi, side=1, lower=1)
        root = dgemv(self._rounding * self._kappa_U, np.abs(w, out=w), self._ones)
        root += self._rounding * kappa + TINY
        self._trace += float(weights @ (residual + root * root))
        self._rough_trace, self._unsettled = 0.0, ()
