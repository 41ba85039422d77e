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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg.blas import ddot, dgemm, dgemv, dtrsm
from scipy.linalg.lapack import dtrtri

from oclok.errors import NumericalError
from oclok.posterior.base import distinct
from oclok.posterior.bounds import STATE_ROUNDING, TINY, error_bounds, kernel_rounding
from oclok.posterior.dictionary.model import Innovations, Model
from oclok.posterior.dictionary.regression import Regression
from oclok.posterior.kernels import Covariance, largest_of
from oclok.posterior.linalg import add_to_diagonal, gram
from oclok.posterior.observations import Observations
from oclok.posterior.pivoted import LEAST_PIVOT
from oclok.posterior.prediction import Asked, Prediction
from oclok.threads import blas_threads
from oclok.typing import FloatArray, IntArray

#: Entries of φ that `predict` works on at once: 32 MB.
PREDICTED_AT_ONCE = 4_000_000
#: Outcomes that are learned at once.
LEARNED_AT_ONCE = 2_048
#: Outcomes, in updates of equal size, whose rounding is bounded closely at once; until then it is
#: by a cheaper bound, which is good enough as long as it is this fraction of the trace.
SETTLED_AT_ONCE, GOOD_ENOUGH = 64, 0.1

_NO_CONTEXTS: FloatArray = np.empty((0, 0))


@dataclass(eq=False)
class Features:
    """φ and Sᵀφ, each (r, M); ρ and √ω, root of its rounding, each (M,); the largest ρ and κ."""

    phi: FloatArray
    whitened: FloatArray
    residual: FloatArray
    root: FloatArray
    largest: float
    kappa: float
    is_tight: bool = False

    def at(self, positions: IntArray) -> Features:
        """Return the features of the contexts at `positions`."""
        residual = self.residual[positions]
        return Features(
            self.phi.T.take(positions, axis=0).T,  # contiguous columns
            self.whitened.T.take(positions, axis=0).T,
            residual,
            self.root[positions],
            max(residual.tolist(), default=0.0),
            self.kappa,
            self.is_tight,
        )


class NystromModel(Model):
    """What is known of f through the features of a dictionary.

    Args:
        prior: prior covariance of f.
        noise_std: σ.
        U, R: dictionary (r, D), and the lower Cholesky factor (r, r) of its prior covariance.
        tolerance: where all ρ are at most this, their correlations are neglected.

    Attributes:
        regression: what is known of the features' weights.
        largest_prior: largest prior variance in the dictionary.
    """

    def __init__(
        self,
        prior: Covariance,
        noise_std: float,
        U: FloatArray,
        R: FloatArray,
        tolerance: float = 0.0,
    ) -> None:
        super().__init__(prior, noise_std)
        self.tolerance = tolerance
        self.U = U
        self.R = np.asfortranarray(R)
        self._prepare()
        self._begin()

    def _begin(self) -> None:
        """Know no outcome."""
        self.observations = Observations()
        self.regression = Regression(self.rank)
        self._trace = self._rough_trace = 0.0
        self._unsettled: tuple[tuple[FloatArray, FloatArray, FloatArray, float], ...] = ()
        self._version = object()

    def _prepare(self) -> None:
        """Compute what follows from the dictionary alone."""
        self.U.flags.writeable = False
        self.largest_prior = self.prior.largest(self.U)
        self._k_U = self.prior.to(self.U)
        self._rounding = math.sqrt(kernel_rounding(self.rank, self.prior.reach(self.U)))
        self._kappa_U = math.sqrt(self.largest_prior)
        row_sums = np.abs(dtrtri(self.R, lower=1)[0]).sum(axis=1)
        self._ones = np.ones(self.rank)
        self._squares = self.rank * (self._rounding * self._kappa_U * row_sums) ** 2
        self._version = object()

    def _state(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _DERIVED}

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    def blank(self) -> NystromModel:
        """Return a model of the same dictionary that has learned nothing."""
        model = copy.copy(self)
        model._begin()
        return model

    @property
    def trace(self) -> float:
        """A bound of Σ w (ρ + ω) over all outcomes learned, w their weights."""
        return self._trace + self._rough_trace

    @property
    def rank(self) -> int:
        """Size of the dictionary."""
        return len(self.U)

    @property
    def inducing(self) -> FloatArray:
        """The dictionary, shape (r, D), read-only."""
        return self.U

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes learned, in nats, through the dictionary."""
        return self.regression.information_gain

    def predict(self, contexts: Asked) -> Prediction:
        """Return mean and std of f at `contexts` (M, D), with bounds."""
        X = self.checked(contexts)
        step = max(PREDICTED_AT_ONCE // self.rank, 64)
        if len(X) > step:
            parts = [self.predict(X[i : i + step]) for i in range(0, len(X), step)]
            return Prediction.joined(X, parts)
        with blas_threads(2.0 * self.rank**2 * len(X)):
            work = self._worked(X)
            mean = self.regression.mean(work.phi)
            squares = work.whitened * work.whitened
            std = dgemv(1.0, squares, self._ones, beta=1.0, y=work.residual, trans=1)
        np.sqrt(std, out=std)
        return Prediction(X, mean, std, *self._bounds(std, work, self.trace), self._version, work)

    def refine(self, prediction: Prediction) -> Prediction:
        """Return the prediction with ω by the interpolation weights of its contexts."""
        work = self.worked(prediction)
        if work.is_tight:
            return prediction
        X, (mean, std) = prediction.contexts, prediction
        root, largest = self._tight(work.phi, work.kappa), work.largest
        tight = Features(work.phi, work.whitened, work.residual, root, largest, work.kappa, True)
        is_good = self._rough_trace <= GOOD_ENOUGH * self._trace
        errors = self._bounds(std, tight, self.trace if is_good else self._tight_trace())
        return Prediction(X, mean, std, *errors, self._version, tight)

    def features(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return φ (r, M) and ρ (M,) of X (M, D)."""
        phi, residual, _, _ = self._features(X)
        return phi, residual

    def worked(self, contexts: Asked) -> Features:
        """Return the features behind a prediction, computed again if it is stale."""
        if isinstance(contexts, Prediction) and contexts.state is self._version:
            assert isinstance(contexts.work, Features)
            return contexts.work
        return self._worked(self.checked(contexts))

    def asked(self, prediction: Prediction) -> Prediction:
        """Return a prediction that has the features of its contexts, if nothing else."""
        if prediction.state is self._version:
            return prediction
        X = prediction.contexts
        return replace(Prediction.of(X), state=self._version, work=self._worked(X))

    def uncovered(self, contexts: Asked) -> FloatArray:
        """Return the contexts whose ρ is above the tolerance, shape (n, D)."""
        f = self.worked(contexts)
        if f.largest <= self.tolerance:
            return _NO_CONTEXTS
        return self.checked(contexts)[f.residual > self.tolerance]

    def covariance(self, contexts: Asked) -> FloatArray:
        """Return the joint covariance (M, M); correlations of ρ above the tolerance included."""
        f = self.worked(contexts)
        covariance = gram(f.whitened)
        if f.largest > self.tolerance:
            covariance += self.prior.of(self.checked(contexts))
            covariance -= gram(f.phi)
        else:
            add_to_diagonal(covariance, f.residual)
        return covariance

    def sample(self, contexts: Asked, rng: np.random.Generator) -> FloatArray:
        """Return a sample of f (M,), by one of the weights where ρ is within the tolerance.

        What the dictionary leaves out is drawn apart, once for all contexts that are equal.
        """
        f = self.worked(contexts)
        if f.largest > self.tolerance:
            return super().sample(contexts, rng)
        sample = self.regression.mean(f.phi)
        sample += dgemv(1.0, f.whitened, rng.standard_normal(self.rank), trans=1)
        sample += np.sqrt(f.residual) * rng.standard_normal(len(sample))
        first, of = distinct(self.checked(contexts))
        return sample[first[of]]

    def sample_paths(self, contexts: Asked, count: int, rng: np.random.Generator) -> FloatArray:
        """Return `count` samples of f at `contexts` (M, D), shape (count, M).

        By samples of the weights; what the dictionary leaves out above the tolerance is drawn
        independently for each context, as a joint covariance of thousands would cost their cube.
        """
        X = self.checked(contexts)
        W = self.regression.sample(count, rng)
        least = max(self.tolerance, LEAST_PIVOT * self.largest_prior)
        result = np.empty((count, len(X)))
        for start in range(0, len(X), LEARNED_AT_ONCE):
            part = slice(start, start + LEARNED_AT_ONCE)
            phi, residual = self._known_features(contexts, part)
            result[:, part] = dgemm(1.0, W, phi, trans_a=1)
            if residual.max(initial=0.0) > least:
                result[:, part] += np.sqrt(residual) * rng.standard_normal((count, len(residual)))
        return result

    def _known_features(self, contexts: Asked, part: slice) -> tuple[FloatArray, FloatArray]:
        """Return φ (r, m) and ρ (m,) of a part of `contexts`, of a fresh prediction its own."""
        if isinstance(contexts, Prediction) and contexts.state is self._version:
            work = self.worked(contexts)
            return work.phi[:, part], work.residual[part]
        return self.features(self.checked(contexts)[part])

    def append(self, contexts: Asked, y: FloatArray, weights: FloatArray) -> Innovations | None:
        """Learn checked outcomes y (N,), of noise variance σ² / weights; all, or raise and none."""
        innovations = None
        if len(y) <= LEARNED_AT_ONCE:
            innovations = self._learn(self.worked(contexts), y, weights)
        else:
            self.learn_all(self.checked(contexts), y, weights)
        self.observations.extend(self.checked(contexts), y, weights)
        return innovations

    def learn_all(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Learn outcomes y (N,), of noise variance σ² / weights, seen at X (N, D): all, or none."""
        before, regression = dict(self.__dict__), copy.copy(self.regression)
        try:
            for start in range(0, len(X), LEARNED_AT_ONCE):
                part = slice(start, start + LEARNED_AT_ONCE)
                self._learn(self._worked(X[part]), y[part], weights[part])
        except BaseException:
            self.__dict__.update(before, regression=regression)
            raise

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far by `rate`."""
        self.regression.discount(rate)
        self._settle()
        self._trace *= rate
        self.observations.weights[:] *= rate
        self._version = object()

    def _shift(self, X: FloatArray, change: FloatArray, noise: FloatArray) -> None:
        self.regression.correct(self._worked(X).whitened, change, noise)

    def _learn(self, f: Features, y: FloatArray, weights: FloatArray) -> Innovations | None:
        trace = float(ddot(weights, f.residual + f.root * f.root))
        if not math.isfinite(trace):
            raise NumericalError("the posterior's factor is not finite; are contexts too large?")
        noise = self.noise_std / np.sqrt(weights)
        with blas_threads(2.0 * self.rank**2 * len(y)):
            innovations = self.regression.learn(f.phi, f.whitened, y, noise)
        self._rough_trace += trace
        self._unsettled = (*self._unsettled, (f.phi, f.residual, weights, f.kappa))
        if len(self._unsettled) * len(y) >= SETTLED_AT_ONCE:
            self._settle()
        self._version = object()
        return innovations

    def _settle(self) -> None:
        """Bound the rounding of the outcomes learned of late closely."""
        self._trace, self._rough_trace, self._unsettled = self._tight_trace(), 0.0, ()

    def _tight_trace(self) -> float:
        """Return Σ w (ρ + ω) over all outcomes learned, ω by |w|₁ itself."""
        if not self._unsettled:
            return self._trace
        parts = list(zip(*self._unsettled, strict=True))
        if len(parts[0]) == 1:
            phi, residual, weights = parts[0][0], parts[1][0], parts[2][0]
        else:
            phi = np.concatenate([part.T for part in parts[0]]).T  # contiguous columns
            residual, weights = np.concatenate(parts[1]), np.concatenate(parts[2])
        root = self._tight(phi, max(parts[3]))
        return self._trace + float(weights @ (residual + root * root))

    def _worked(self, X: FloatArray) -> Features:
        phi, residual, root, kappa = self._features(X)
        largest = float(np.maximum.reduce(residual, initial=0.0))
        return Features(phi, self.regression.whiten(phi), residual, root, largest, kappa)

    def _features(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return φ (r, M); ρ and √ω by the cheap bound of |w|₁, each (M,); the largest κ."""
        phi = dtrsm(1.0, self.R, self._k_U(X).T, lower=1, overwrite_b=1)
        prior = self.prior.variance(X)
        squares = phi * phi
        residual = prior - dgemv(1.0, squares, self._ones, trans=1)
        np.maximum(residual, 0.0, out=residual)
        kappa = math.sqrt(largest_of(prior))
        root = np.sqrt(dgemv(1.0, squares, self._squares, trans=1))
        root += self._rounding * kappa + TINY
        return phi, residual, root, kappa

    def _tight(self, phi: FloatArray, kappa: float) -> FloatArray:
        """Return √ω by |w|₁ itself for contexts with features φ (r, M), and κ up to `kappa`."""
        w = dtrsm(1.0, self.R, phi, lower=1, trans_a=1)
        scale = self._rounding * self._kappa_U
        root: FloatArray = dgemv(scale, np.abs(w, out=w), self._ones, trans=1)
        root += self._rounding * kappa + TINY
        return root

    def _bounds(
        self, std: FloatArray, work: Features, trace: float
    ) -> tuple[FloatArray, FloatArray]:
        slack = STATE_ROUNDING * self._kappa_U
        m = self.regression.m
        return error_bounds(
            std,
            work.residual,
            work.root,
            trace / self.noise_std**2,
            math.sqrt(self.regression.surprise),
            slack * max(1.0, math.sqrt(ddot(m, m))),
            slack,
        )


#: Attributes that `_prepare` computes.
_DERIVED = ("largest_prior", "_k_U", "_ones", "_squares", "_rounding", "_kappa_U", "_version")
