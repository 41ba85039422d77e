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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg.blas import ddot, dgemm, dgemv, dsyrk, dtrsm
from scipy.linalg.lapack import dposv
from scipy.spatial.distance import cdist

from oclok.arrays import chunks, grown
from oclok.posterior.base import Innovations
from oclok.posterior.dictionary.forest import NONE, TREES, Forest
from oclok.posterior.dictionary.model import BasisPosterior
from oclok.posterior.dictionary.nystrom import NystromModel
from oclok.posterior.dictionary.regression import FEW
from oclok.posterior.linalg import add_to_diagonal, factor, gram
from oclok.posterior.prediction import ContextsLike, Prediction
from oclok.threads import blas_threads
from oclok.typing import BoolArray, FloatArray, IntArray

#: Nearest outcomes of an arm that may be chosen; more make rounds longer and hardly better.
NEAREST = 48
#: Outcomes, and entries of their contexts, up to which an arm is compared with all of them: that
#: is as fast as the forest, whose neighbours are approximate.
MOST_TO_COMPARE, ENTRIES_TO_COMPARE = 4_096, 40_000
#: Nearest outcomes, and how many trees are searched, for outcomes that are learned many at once.
NEAREST_OF_MANY, TREES_OF_MANY = 16, 2
#: Outcomes that can be neighbours: the latest. It bounds the memory; w remembers all outcomes.
WINDOW = 32_768
#: Outcomes that are learned at once, and contexts whose neighbours are searched at once.
LEARNED_AT_ONCE, SEARCHED_AT_ONCE = 512, 64
#: Noise variance of padding.
NO_OUTCOME = 1e200
#: Noise variances below this fraction of the prior's are rounding error in E.
LEAST_NOISE = 1e-10


@dataclass(frozen=True)
class VecchiaConditionals:
    """Contexts given their neighbours: φ and φ̃, (r, M); ρ, λ and hᵀy_n, (M,)."""

    phi: FloatArray
    features: FloatArray
    residual: FloatArray
    variance: FloatArray
    mean: FloatArray

    def at(self, positions: IntArray) -> VecchiaConditionals:
        """Return the same for the contexts at `positions`."""
        return VecchiaConditionals(
            np.asfortranarray(self.phi[:, positions]),
            np.asfortranarray(self.features[:, positions]),
            self.residual[positions],
            self.variance[positions],
            self.mean[positions],
        )

    def replaced(self, positions: IntArray, other: VecchiaConditionals) -> VecchiaConditionals:
        """Return the same with `other` at `positions`."""
        features, variance = self.features.copy(order="F"), self.variance.copy()
        mean = self.mean.copy()
        features[:, positions] = other.features
        variance[positions], mean[positions] = other.variance, other.mean
        return VecchiaConditionals(self.phi, features, self.residual, variance, mean)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class VecchiaPrediction(Prediction):
    """A prediction with what it was made of; `weights` is m when it was made.

    `is_sharp`, shape (M,), says for which contexts all neighbours were used, not just the nearest.
    """

    model: VecchiaModel
    local: VecchiaConditionals
    whitened: FloatArray
    is_sharp: BoolArray
    weights: FloatArray

    def at(self, positions: IntArray) -> VecchiaPrediction:
        """Return the prediction of the contexts at `positions`, shape (K,)."""
        return replace(
            self,
            **self._rows(positions),
            local=self.local.at(positions),
            whitened=np.asfortranarray(self.whitened[:, positions]),
            is_sharp=self.is_sharp[positions],
        )

    def covariance(self) -> FloatArray:
        """Return the joint covariance of f at the contexts, shape (M, M)."""
        covariance = gram(self.whitened)
        covariance += self.model.covariance_of_g(self.contexts, self.local)
        return covariance

    def sharpen(self, positions: IntArray) -> VecchiaPrediction:
        """Return the prediction with all neighbours of the contexts at `positions`."""
        positions = positions[~self.is_sharp[positions]]
        return self.model.sharpened(self, positions) if len(positions) else self


class VecchiaModel(BasisPosterior):
    """What is known of f through a dictionary and the nearest outcomes.

    Args:
        weights: the dictionary, with what its features have learned so far, if anything: of
            outcomes at contexts that it covers, whose g is 0.
    """

    def __init__(self, weights: NystromModel) -> None:
        super().__init__(weights.prior, weights.noise_std)
        self.observations = weights.observations
        self.weights = copy.copy(weights)
        self.weights.regression = copy.copy(weights.regression)
        self._forest = Forest(self.prior.length_scale)
        self._X = np.empty((0, weights.U.shape[1]))
        self._y, self._noise, self._residual = np.empty(0), np.empty(0), np.empty(0)
        self._phi = np.empty((0, weights.rank))
        self._size = self._next = 0
        self._slots: dict[int, int] = {}  # by a hash of the context
        self._gain = 0.0

    def _state(self) -> dict[str, Any]:
        """Return the state without Φ and what else follows from contexts and dictionary."""
        state = {k: v for k, v in self.__dict__.items() if k not in _DERIVED}
        for name in _BY_SLOT[:-1]:
            state[name] = state[name][: self._size]
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._slots = {hash(x.tobytes()): slot for slot, x in enumerate(self._X[: self._size])}
        self._phi = np.empty((self._size, self.weights.rank))
        for rows in chunks(self._size, LEARNED_AT_ONCE):
            self._phi[rows] = self.weights.raw_features(self._X[rows])[0].T

    def blank(self) -> VecchiaModel:
        """Return a model of the same dictionary that has learned nothing."""
        return VecchiaModel(self.weights.blank())

    @property
    def rank(self) -> int:
        """Size of the dictionary."""
        return self.weights.rank

    @property
    def inducing(self) -> FloatArray:
        """The dictionary, shape (r, D)."""
        return self.weights.inducing

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats, in this model."""
        return self._gain + self.weights.information_gain

    def is_current(self, prediction: Prediction) -> bool:
        """Return whether this model made `prediction` and has not changed since."""
        is_own = isinstance(prediction, VecchiaPrediction) and prediction.model is self
        return is_own and prediction.weights is self.weights.regression.m  # type: ignore[attr-defined]

    def current(self, contexts: ContextsLike) -> VecchiaPrediction:
        """Return the prediction of `contexts`: the one given, made sharp, if it is current."""
        if isinstance(contexts, VecchiaPrediction) and self.is_current(contexts):
            return contexts.sharpen(np.arange(len(contexts.contexts)))
        return self.predict(contexts)

    def predict(self, contexts: ContextsLike) -> VecchiaPrediction:
        """Return mean and std of f at `contexts` (M, D)."""
        X = self.checked(contexts)
        with blas_threads(0.0):
            phi, residual, _, _ = self.weights.raw_features(X)
            local = self._condition(X, phi, residual, NEAREST, TREES)
            return self._prediction(X, local, np.ones(len(X), dtype=bool))

    def screen(self, contexts: ContextsLike) -> VecchiaPrediction:
        """Return mean and std of f at `contexts` (M, D) given the nearest outcome of each alone."""
        X = self.checked(contexts)
        with blas_threads(0.0):
            phi, residual, _, _ = self.weights.raw_features(X)
            local = self._condition_on_one(X, phi, residual)
            return self._prediction(X, local, np.zeros(len(X), dtype=bool))

    def sharpened(self, rough: VecchiaPrediction, positions: IntArray) -> VecchiaPrediction:
        """Return `rough` with all neighbours of the contexts at `positions`."""
        if not self.is_current(rough):
            return self.predict(rough.contexts)
        X, phi = rough.contexts[positions], rough.local.phi[:, positions]
        is_new = np.zeros(len(rough.is_sharp), dtype=bool)
        is_new[positions] = True
        with blas_threads(0.0):
            local = self._condition(X, phi, rough.local.residual[positions], NEAREST, TREES)
            sharp = self._prediction(X, local, is_new[positions])
        mean, std, whitened = rough.mean.copy(), rough.std.copy(), rough.whitened.copy(order="F")
        mean[positions], std[positions] = sharp.mean, sharp.std
        whitened[:, positions] = sharp.whitened
        return replace(
            rough,
            mean=mean,
            std=std,
            local=rough.local.replaced(positions, local),
            whitened=whitened,
            is_sharp=rough.is_sharp | is_new,
        )

    def sample_paths(
        self, contexts: ContextsLike, count: int, rng: np.random.Generator
    ) -> FloatArray:
        """Return `count` samples of f (M, D), shape (count, M); g is drawn independently."""
        X = self.checked(contexts)
        W = self.weights.regression.sample(count, rng)
        result = np.empty((count, len(X)))
        for rows in chunks(len(X), LEARNED_AT_ONCE):
            local = self._condition_many(X[rows])
            noise = rng.standard_normal((count, len(local.mean)))
            result[:, rows] = dgemm(1.0, W, local.features, trans_a=1)
            result[:, rows] += local.mean + np.sqrt(local.variance) * noise
        return result

    def append(
        self, contexts: ContextsLike, y: FloatArray, weights: FloatArray
    ) -> Innovations | None:
        """Learn checked outcomes y (N,), of noise variance σ² / weights; all, or raise and none."""
        X, innovations = self.checked(contexts), None
        with blas_threads(0.0):  # its matrices are small, however many outcomes there are
            if len(y) <= FEW:
                innovations = self._learn(X, self.current(contexts).local, y, weights)
            else:
                self._learn_many(X, y, weights)
        self.observations.extend(X, y, weights)
        return innovations

    def _learn_many(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Learn any number of outcomes: all of them, or raise and none.

        What is overwritten is kept until all is learned.
        """
        before, regression = dict(self.__dict__), dict(self.weights.regression.__dict__)
        before.update({name: copy.copy(before[name]) for name in ("_y", "_noise", "_slots")})
        before["_forest"] = copy.deepcopy(self._forest)
        slots = (self._next + np.arange(min(len(y), WINDOW))) % WINDOW
        slots = slots[slots < self._size]
        overwritten = {name: getattr(self, name)[slots] for name in _BY_SLOT}
        try:
            for rows in chunks(len(X), LEARNED_AT_ONCE):
                self._learn(X[rows], self._condition_many(X[rows]), y[rows], weights[rows])
        except BaseException:
            self.__dict__.update(before)
            self.weights.regression.__dict__.update(regression)
            for name, values in overwritten.items():
                getattr(self, name)[slots] = values
            raise

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far by `rate`."""
        self.weights.regression.discount(rate)
        self._noise = self._noise / rate
        self.observations.weights[:] *= rate

    def _shift(self, X: FloatArray, change: FloatArray, noise: FloatArray) -> None:
        """Change outcomes: w by its covariance with f(x), g where they are neighbours.

        What neighbours of an outcome at the time say of it now is taken for what they said then.
        """
        regression = self.weights.regression
        features = self.predict(X).local.features
        regression.correct(regression.whiten(features), change, noise)
        for row, difference, std in zip(X, change, noise, strict=True):
            slot = self._slots.get(hash(row.tobytes()))
            if slot is not None and np.array_equal(self._X[slot], row):
                self._y[slot] += difference * min(self._noise[slot] / std**2, 1.0)

    def _learn(
        self, X: FloatArray, local: VecchiaConditionals, y: FloatArray, weights: FloatArray
    ) -> Innovations | None:
        least = LEAST_NOISE * self.weights.largest_prior
        noise = np.maximum(self.noise_std**2 / weights, least)
        N = self.covariance_of_g(X, local)
        add_to_diagonal(N, noise)
        C = factor(N, min(noise.tolist()))
        features = np.asfortranarray(dtrsm(1.0, C, local.features.T, lower=1).T)
        z = dtrsm(1.0, C, (y - local.mean)[:, None], lower=1)[:, 0]
        regression = self.weights.regression
        innovations = regression.learn(features, regression.whiten(features), z, np.ones(len(z)))
        diagonal = C.diagonal()
        self._gain += float(np.log(diagonal / np.sqrt(noise)).sum())
        self._store(X, local, y, noise)
        if innovations is None:
            return None
        z, due = innovations
        return z, 1.0 - (1.0 - due) * noise / diagonal**2

    def _prediction(
        self, X: FloatArray, local: VecchiaConditionals, is_sharp: BoolArray
    ) -> VecchiaPrediction:
        regression = self.weights.regression
        whitened = regression.whiten(local.features)
        variance = np.einsum("rm,rm->m", whitened, whitened)
        variance += local.variance
        mean = regression.mean(local.features)
        mean += local.mean
        return VecchiaPrediction(
            X,
            mean,
            np.sqrt(variance),
            model=self,
            local=local,
            whitened=whitened,
            is_sharp=is_sharp,
            weights=regression.m,
        )

    def _condition_many(self, X: FloatArray) -> VecchiaConditionals:
        """Condition g at each of many contexts on fewer neighbours."""
        phi, residual, _, _ = self.weights.raw_features(X)
        return self._condition(X, phi, residual, NEAREST_OF_MANY, TREES_OF_MANY)

    def _condition_on_one(
        self, X: FloatArray, phi: FloatArray, residual: FloatArray
    ) -> VecchiaConditionals:
        """Condition g at each context on its nearest outcome in one tree."""
        if self._size == 0:
            return self._condition(X, phi, residual, 1, 1)
        prior = self.prior
        candidates = self._forest.candidates(X, 1)
        distance = self._distances(X, candidates)
        distance[candidates == NONE] = np.inf
        nearest = distance.argmin(axis=1)
        rows = np.arange(len(X))
        n = candidates[rows, nearest]
        Phi = self._phi[n]
        if prior.is_stationary:
            e = prior.between(self._X[n] - X, np.zeros_like(X[:1]))[:, 0]
        else:
            e = np.array([prior.between(self._X[[j]], X[[i]])[0, 0] for i, j in enumerate(n)])
        e -= np.einsum("mr,rm->m", Phi, phi)
        e[n == NONE] = 0.0
        h = e / (self._residual[n] + self._noise[n])
        variance = np.clip(residual - e * h, 0.0, residual)
        features = phi - Phi.T * h
        return VecchiaConditionals(phi, features, residual, variance, h * self._y[n])

    def _condition(
        self, X: FloatArray, phi: FloatArray, residual: FloatArray, most: int, trees: int
    ) -> VecchiaConditionals:
        """Condition g at each context on its nearest outcomes, at most `most` of them."""
        features, variance, mean = phi.copy(order="F"), residual.copy(), np.zeros(len(X))
        for part in chunks(len(X), SEARCHED_AT_ONCE):
            neighbours = self._neighbours(X[part], most, trees)
            if neighbours.shape[1] == 0:
                continue
            y = self._y[neighbours]
            noise = np.zeros((len(y), y.shape[1] + 1))  # that of the context itself is 0
            noise[:, :-1] = np.where(neighbours == NONE, NO_OUTCOME, self._noise[neighbours])
            near = np.concatenate([self._X[neighbours], X[part, None]], axis=1)
            covariances = self.prior.of_blocks(near)
            for i, n in enumerate(neighbours):
                m = part.start + i
                h, e, Phi = self._weights_of(n, noise[i], covariances[i], features[:, m])
                features[:, m] -= dgemv(1.0, Phi, h)
                variance[m] -= ddot(h, e)
                mean[m] = ddot(h, y[i])
        variance = np.clip(variance, 0.0, residual)
        return VecchiaConditionals(phi, features, residual, variance, mean)

    def _neighbours(self, X: FloatArray, most: int, trees: int) -> IntArray:
        """Return the nearest outcomes of each context, padded with -1, shape (M, ≤ most)."""
        if self._size == 0:
            return np.empty((len(X), 0), dtype=np.intp)
        if trees == TREES and self._are_few:
            scale = self.prior.length_scale
            distance = cdist(X / scale, self._X[: self._size] / scale, "sqeuclidean")
            most = min(most, self._size)
            return np.argpartition(distance, most - 1, axis=1)[:, :most]
        found = np.sort(self._forest.candidates(X, trees), axis=1)
        distance = self._distances(X, found)
        found[:, 1:][found[:, 1:] == found[:, :-1]] = NONE  # in several trees
        if most >= found.shape[1]:
            return found
        distance[found == NONE] = np.inf
        nearest = np.argpartition(distance, most - 1, axis=1)[:, :most]
        return np.take_along_axis(found, nearest, axis=1)

    def _distances(self, X: FloatArray, slots: IntArray) -> FloatArray:
        """Return squared distances, up to a factor, of X (M, D) to outcomes `slots` (M, n)."""
        away = self._X[slots]
        away -= X[:, None]
        if self.prior.length_scale.ndim:
            away /= self.prior.length_scale
        distances: FloatArray = np.einsum("mcd,mcd->mc", away, away)
        return distances

    @property
    def _are_few(self) -> bool:
        size = self._size
        return size <= MOST_TO_COMPARE and size * self._X.shape[1] <= ENTRIES_TO_COMPARE

    def _weights_of(
        self, n: IntArray, noise: FloatArray, prior: FloatArray, phi: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return h and e, each (n,), and Φ_n (r, n) for the neighbours n of a context.

        `noise` and `prior` are those of all of them, the context last, and `phi` is its φ.
        """
        count = len(n)
        Phi = np.empty((count + 1, len(phi)))
        Phi[count] = phi
        self._phi.take(n, axis=0, out=Phi[:count], mode="wrap")  # without a buffer
        E = dsyrk(-1.0, Phi.T, trans=1, beta=1.0, c=prior.T, lower=1, overwrite_c=1)
        e = E[count, :count].copy()
        add_to_diagonal(E, noise)
        _, h, failed = dposv(E[:count, :count], e, lower=1)
        if failed:  # by rounding; without its neighbours, it is the less certain
            h = np.zeros(count)
        return h, e, Phi[:count].T

    def covariance_of_g(self, X: FloatArray, local: VecchiaConditionals) -> FloatArray:
        """Return (ssᵀ) ∘ E, whose diagonal is λ."""
        E = self.prior.of(X)
        E -= gram(local.phi)
        s = np.sqrt(local.variance / np.maximum(local.residual, np.finfo(float).tiny))
        E *= s
        E *= s[:, None]
        np.einsum("ii->i", E)[...] = local.variance
        return E

    def _merge(self, X: FloatArray, y: FloatArray, noise: FloatArray) -> IntArray:
        """Merge outcomes at equal contexts, in `y` and `noise` as well; return which are left."""
        first: dict[int, int] = {}
        new = []
        for n, row in enumerate(X):
            key = hash(row.tobytes())
            slot, twin = self._slots.get(key), first.get(key)
            if slot is not None and np.array_equal(self._X[slot], row):
                values, noises, at = self._y, self._noise, slot
            elif twin is not None and np.array_equal(X[twin], row):
                values, noises, at = y, noise, twin
            else:
                first[key] = n
                new.append(n)
                continue
            share = noises[at] / (noises[at] + noise[n])
            values[at] += share * (y[n] - values[at])
            noises[at] = max(noises[at] * (1.0 - share), LEAST_NOISE * self.weights.largest_prior)
        return np.array(new, dtype=np.intp)

    def _store(
        self, X: FloatArray, local: VecchiaConditionals, y: FloatArray, noise: FloatArray
    ) -> None:
        """Make outcomes neighbours of those to come, in place of the oldest beyond WINDOW.

        Outcomes at one context share a slot: their mean, with as much noise as that has.
        """
        y, noise = y.copy(), noise.copy()
        new = self._merge(X, y, noise)
        if len(new) == 0:
            return
        room = min(self._next + len(new) + 1, WINDOW)  # the last row stands for "none" until then
        for name in _BY_SLOT:
            value = float(name == "_noise")  # of the row that stands for "none"
            setattr(self, name, grown(getattr(self, name), room, value, WINDOW))
        slots = (self._next + np.arange(len(new))) % WINDOW
        for slot, n in zip(slots.tolist(), new, strict=True):
            if slot < self._size:
                self._slots.pop(hash(self._X[slot].tobytes()), None)
            self._slots[hash(X[n].tobytes())] = slot
        self._X[slots], self._y[slots], self._noise[slots] = X[new], y[new], noise[new]
        self._residual[slots], self._phi[slots] = local.residual[new], local.phi.T[new]
        self._forest.insert(self._X, slots)
        self._next = int(slots[-1] + 1) % WINDOW
        self._size = max(self._size, int(slots.max()) + 1)


#: Arrays with a row for each outcome that can be a neighbour.
_BY_SLOT = ("_X", "_y", "_noise", "_residual", "_phi")
#: Attributes that follow from the others.
_DERIVED = ("_phi", "_slots")
