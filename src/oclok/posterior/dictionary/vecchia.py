"""Beyond the budget: features of a dictionary and, for what they leave, the nearest outcomes.

    f = φᵀw + g       φ, w: features of a dictionary and their weights (`nystrom.py`)
                      g:    the rest, of prior covariance E(x, x') = k(x, x') - φ(x)ᵀφ(x')
    n                 nearest outcomes of a context x: features Φ_n (r, n), outcomes y_n (n,)
    ρ, e, E_n         E between x and x, x and n, n and n
    V²                noise variances of outcomes, a diagonal matrix

Given w, g(x) is conditioned on the nearest outcomes alone (Vecchia 1988), w on all outcomes:

    h = (E_n + V²)⁻¹e        φ̃ = φ - Φ_n h        λ = ρ - eᵀh
    mean = φ̃ᵀm + hᵀy_n       variance = λ + |Sᵀφ̃|²

A new outcome y is an observation of w: y - hᵀy_n has the features φ̃ and the noise variance
λ + V². Those of one batch are whitened by the Cholesky factor of (ssᵀ) ∘ E + V², s² = λ/ρ: the
correlations of g are taken to be those before conditioning. As neighbours are always earlier
outcomes, this is one Gaussian model of all that was observed. It is the exact posterior if
E = 0, or if all outcomes are neighbours.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg.blas import ddot, dgemv, dsyrk, dtrsm
from scipy.linalg.lapack import dposv

from oclok.arrays import chunks
from oclok.posterior.base import Innovations
from oclok.posterior.dictionary.forest import NONE, TREES
from oclok.posterior.dictionary.neighbours import Neighbours
from oclok.posterior.dictionary.nystrom import NystromModel
from oclok.posterior.dictionary.regression import FEW
from oclok.posterior.linalg import add_to_diagonal, factor, gram
from oclok.posterior.prediction import ContextsLike, Prediction
from oclok.threads import blas_threads
from oclok.typing import BoolArray, FloatArray, IntArray

#: Nearest outcomes of an arm that may be chosen; more make rounds longer and hardly better.
NEAREST = 48
#: Nearest outcomes, and how many trees are searched, for outcomes that are learned many at once.
NEAREST_OF_MANY, TREES_OF_MANY = 16, 2
#: Contexts whose neighbours are searched at once.
SEARCHED_AT_ONCE = 64
#: Noise variance of padding.
NO_OUTCOME = 1e200
#: Noise variances below this fraction of the prior's are rounding error in E.
LEAST_NOISE = 1e-10


class VecchiaConditionals(NamedTuple):
    """Contexts given their neighbours: φ and φ̃, (r, M); ρ, λ and hᵀy_n, (M,)."""

    phi: FloatArray
    features: FloatArray
    residual: FloatArray
    variance: FloatArray
    mean: FloatArray


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class VecchiaPrediction(Prediction):
    """A prediction with its parts; `weights` is m when it was made.

    `is_sharp`, shape (M,), says for which contexts all neighbours were used, not just the nearest.
    """

    model: VecchiaModel
    local: VecchiaConditionals
    whitened: FloatArray
    is_sharp: BoolArray
    weights: FloatArray
    _columns = ("whitened", "is_sharp")

    def at(self, positions: IntArray) -> Self:
        """Return the prediction of the contexts at `positions`, shape (K,)."""
        local = VecchiaConditionals(*(each[..., positions] for each in self.local))
        return super().at(positions)._with(local=local)

    def covariance(self) -> FloatArray:
        """Return the joint covariance of f at the contexts, shape (M, M)."""
        covariance = gram(self.whitened)
        covariance += self.model.covariance_of_g(self.contexts, self.local)
        return covariance

    def sharpen(self, positions: IntArray) -> VecchiaPrediction:
        """Return the prediction with all neighbours of the contexts at `positions`."""
        positions = positions[~self.is_sharp[positions]]
        if len(positions) == 0:
            return self
        if not self.model.is_current(self):
            return self.model.predict(self.contexts)
        sharp = self.model.predict(self.contexts[positions])

        def merged(names: tuple[str, ...], one: Any, other: Any) -> dict[str, Any]:
            changes = {name: getattr(one, name).copy(order="K") for name in names}
            for name, array in changes.items():
                array[..., positions] = getattr(other, name)
            return changes

        local = merged(("residual", "features", "variance", "mean"), self.local, sharp.local)
        changes = merged(("mean", "std", *self._columns), self, sharp)
        return self._with(**changes, local=self.local._replace(**local))


class VecchiaModel(NystromModel):
    """The posterior through a dictionary and the nearest outcomes.

    What its features have learned so far, if anything, is of contexts it covers, whose g is 0.
    """

    _at_once = 512

    def __init__(self, dictionary: NystromModel) -> None:
        self.__dict__.update(dictionary.__dict__)
        self.regression = copy.deepcopy(dictionary.regression)
        self.neighbours = Neighbours(self.prior.length_scale, self.dimension, self.rank)
        self._gain = 0.0

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        known = self.neighbours
        if not hasattr(known, "phi"):  # it follows from the rest, and is not saved
            known.phi = np.empty((known.size, self.rank))
            for rows in chunks(known.size, self._at_once):
                known.phi[rows] = self.features(known.X[rows])[0].T

    def blank(self) -> Self:
        """Return a model of the same dictionary that has learned nothing."""
        return type(self)(super().blank())

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats, in this model."""
        return self._gain + super().information_gain

    def is_current(self, prediction: Prediction) -> bool:
        """Return whether this model made `prediction` and has not changed since."""
        is_own = isinstance(prediction, VecchiaPrediction) and prediction.model is self
        return is_own and prediction.weights is self.regression.m  # type: ignore[attr-defined]

    def current(self, contexts: ContextsLike) -> VecchiaPrediction:
        """Return the prediction of `contexts`: the one given, made sharp, if it is current."""
        if isinstance(contexts, VecchiaPrediction) and self.is_current(contexts):
            return contexts.sharpen(np.arange(len(contexts.contexts)))
        return self.predict(contexts)

    def predict(self, contexts: ContextsLike) -> VecchiaPrediction:
        """Return mean and std of f at `contexts` (M, D)."""
        X = self.checked(contexts)
        with blas_threads(0.0):
            return self._prediction(X, self._condition(X, NEAREST, TREES), is_sharp=True)

    def screen(self, contexts: ContextsLike) -> VecchiaPrediction:
        """Return mean and std of f at `contexts` (M, D) given the nearest outcome of each alone."""
        X = self.checked(contexts)
        with blas_threads(0.0):
            return self._prediction(X, self._condition_on_one(X), is_sharp=False)

    def _prediction(
        self, X: FloatArray, local: VecchiaConditionals, is_sharp: bool
    ) -> VecchiaPrediction:
        whitened = self.regression.whiten(local.features)
        variance = np.einsum("rm,rm->m", whitened, whitened)
        variance += local.variance
        return VecchiaPrediction(
            X,
            self.regression.mean(local.features) + local.mean,
            np.sqrt(variance),
            model=self,
            local=local,
            whitened=whitened,
            is_sharp=np.full(len(X), is_sharp),
            weights=self.regression.m,
        )

    def _given_weights(self, X: FloatArray) -> tuple[FloatArray, FloatArray | float, FloatArray]:
        local = self._condition(X, NEAREST_OF_MANY, TREES_OF_MANY)
        return local.features, local.mean, local.variance

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far by `rate`."""
        super().discount(rate)
        self.neighbours.noise /= rate

    def _shift(self, X: FloatArray, change: FloatArray, noise: FloatArray) -> None:
        """Change outcomes: w by its covariance with f(x), g where they are neighbours.

        What neighbours of an outcome at the time say of it now is taken for what they said then.
        """
        self.regression.correct(self.predict(X).whitened, change, noise)
        for row, difference, std in zip(X, change, noise, strict=True):
            slot, known = self.neighbours.slot_of(row), self.neighbours
            if slot is not None:
                known.y[slot] += difference * min(known.noise[slot] / std**2, 1.0)

    def _checkpoint(self, count: int) -> Callable[[], None]:
        parts = super()._checkpoint(count), self.neighbours.checkpoint(count)

        def roll_back() -> None:
            for part in parts:
                part()

        return roll_back

    def _learn(
        self, contexts: ContextsLike, y: FloatArray, weights: FloatArray
    ) -> Innovations | None:
        X = self.checked(contexts)
        with blas_threads(0.0):  # its matrices are small, however many outcomes there are
            if len(y) <= FEW:
                local = self.current(contexts).local
            else:
                local = self._condition(X, NEAREST_OF_MANY, TREES_OF_MANY)
            least = LEAST_NOISE * self.largest_prior
            noise = np.maximum(self.noise_std**2 / weights, least)
            N = self.covariance_of_g(X, local)
            add_to_diagonal(N, noise)
            C = factor(N, min(noise.tolist()))
            features = dtrsm(1.0, C, local.features.T, lower=1).T
            z = dtrsm(1.0, C, (y - local.mean)[:, None], lower=1)[:, 0]
            error = z - self.regression.mean(features)
            P = self.regression.whiten(features)
            innovations = self.regression.learn(P, error, np.ones(len(z)))
            diagonal = C.diagonal()
            self._gain += float(np.log(diagonal / np.sqrt(noise)).sum())
            self.neighbours.store(X, y, noise, local.residual, local.phi, least)
        if innovations is None:
            return None
        z, signal = innovations
        return z, 1.0 - (1.0 - signal) * noise / diagonal**2

    def covariance_of_g(self, X: FloatArray, local: VecchiaConditionals) -> FloatArray:
        """Return (ssᵀ) ∘ E, whose diagonal is λ."""
        E = self.prior.of(X)
        E -= gram(local.phi)
        s = np.sqrt(local.variance / np.maximum(local.residual, np.finfo(float).tiny))
        E *= s
        E *= s[:, None]
        np.einsum("ii->i", E)[...] = local.variance
        return E

    def _condition_on_one(self, X: FloatArray) -> VecchiaConditionals:
        """Condition g at each context on its nearest outcome in one tree."""
        known, prior = self.neighbours, self.prior
        if known.size == 0:
            return self._condition(X, 1, 1)
        phi, residual, _ = self.features(X)
        n = known.nearest(X, 1, 1)[:, 0]
        Phi = known.phi[n]
        if prior.is_stationary:
            e = prior.between(known.X[n] - X, np.zeros_like(X[:1]))[:, 0]
        else:
            e = np.array([prior.between(known.X[[j]], X[[i]])[0, 0] for i, j in enumerate(n)])
        e -= np.einsum("mr,rm->m", Phi, phi)
        e[n == NONE] = 0.0
        h = e / (known.residual[n] + known.noise[n])
        variance = np.clip(residual - e * h, 0.0, residual)
        return VecchiaConditionals(phi, phi - Phi.T * h, residual, variance, h * known.y[n])

    def _condition(self, X: FloatArray, most: int, trees: int) -> VecchiaConditionals:
        """Condition g at each context on its nearest outcomes, at most `most` of them."""
        known = self.neighbours
        phi, residual, _ = self.features(X)
        features, variance, mean = phi.copy(), residual.copy(), np.zeros(len(X))
        for part in chunks(len(X) if known.size else 0, SEARCHED_AT_ONCE):
            neighbours = known.nearest(X[part], most, trees)
            y = known.y[neighbours]
            noise = np.zeros((len(y), y.shape[1] + 1))  # that of the context itself is 0
            noise[:, :-1] = np.where(neighbours == NONE, NO_OUTCOME, known.noise[neighbours])
            near = np.concatenate([known.X[neighbours], X[part, None]], axis=1)
            covariances = self.prior.of_blocks(near)
            for i, n in enumerate(neighbours):
                m = part.start + i
                h, e, Phi = self._weights_of(n, noise[i], covariances[i], features[:, m])
                features[:, m] -= dgemv(1.0, Phi, h)
                variance[m] -= ddot(h, e)
                mean[m] = ddot(h, y[i])
        variance = np.clip(variance, 0.0, residual)
        return VecchiaConditionals(phi, features, residual, variance, mean)

    def _weights_of(
        self, n: IntArray, noise: FloatArray, prior: FloatArray, phi: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return h and e (n,) and Φ_n (r, n) for a context, the last in `noise` and `prior`."""
        count = len(n)
        Phi = np.empty((count + 1, len(phi)))
        Phi[count] = phi
        self.neighbours.phi.take(n, axis=0, out=Phi[:count], mode="wrap")  # without a buffer
        E = dsyrk(-1.0, Phi.T, trans=1, beta=1.0, c=prior.T, lower=1, overwrite_c=1)
        e = E[count, :count].copy()
        add_to_diagonal(E, noise)
        _, h, failed = dposv(E[:count, :count], e, lower=1)
        if failed:  # by rounding; without its neighbours, it is the less certain
            h = np.zeros(count)
        return h, e, Phi[:count].T
