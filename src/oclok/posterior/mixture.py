"""Bayesian model averaging over kernels, noise levels and scale: nothing to choose.

    y        outcomes less their mean in the first update, (N,)
    x        contexts scaled to [0, 1] by the arms offered so far, (M, D)
    w_i      weight of member i, ∝ its evidence
    s_i²     its scale, inverse-gamma(a_i, b_i) given the outcomes; mean b_i / (a_i - 1)
    m_i, V_i its posterior mean and covariance of f / s_i

    mean = Σ w_i m_i        covariance = Σ w_i (E[s_i²] V_i + m_i m_iᵀ) - mean meanᵀ

Members are learned as outcomes come. Those that foresaw them badly are dropped, so that few are
left to pay for. Whenever the outcomes have doubled, and when the survivors are surprised, dropped
members are tried again on a sample of the outcomes, and a member with a lengthscale per feature
is fitted; both a little each round, so that no round stalls.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtr

from oclok.errors import InputError, NumericalError
from oclok.posterior.base import Posterior
from oclok.posterior.dictionary import DictionaryPosterior
from oclok.posterior.kernels import Covariance
from oclok.posterior.linalg import std_of
from oclok.posterior.members import (
    AT_ONCE,
    CONSTANT,
    LENGTHSCALES,
    NOISE_RATIOS,
    Member,
    ScalePrior,
    default_kernels,
    dense_evidence,
)
from oclok.posterior.observations import Observations
from oclok.posterior.prediction import Asked, Prediction
from oclok.posterior.relevance import RelevanceFit
from oclok.posterior.scaling import ContextScale
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import Contexts, as_outcomes, as_positive, check_kernel

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Prior of the scale: shape, and rate in variances of the outcomes. Weak: worth two outcomes.
SHAPE, RATE = 2.0, 0.05
#: Members below this share of the best are dropped, from so many outcomes on, ...
DROPPED, DROPPED_FROM = 1e-3, 40
#: ... and all but so many once there are twice as many outcomes.
SURVIVORS = 4
#: Outcomes that dropped members are tried on, and how many are tried per update.
TRIED_ON, TRIED_PER_UPDATE = 128, 3
#: Outcomes that a member that comes in late catches up on per update: so many at least, and so
#: many times those of the update.
CATCH_UP, CATCH_UP_RATE = 160, 4
#: Fits begin at this many outcomes, and again at each doubling.
FIRST_FIT = 20
#: Gradient steps per update, times outcomes: all 24 at once for 40 outcomes, 8 for 128.
FIT_WORK = 1024
#: Log evidence that a fitted hyperparameter costs, in log N: half of what BIC takes.
FIT_PENALTY = 0.25


class MixturePosterior(Posterior):
    """A posterior that learns which kernel, noise and scale are right.

    Args:
        kernels: kernels of f up to its scale, for contexts as they are. Left out, a set that
            serves any D, for contexts scaled by the arms offered, and one more kernel with a
            lengthscale per feature that is fitted as outcomes come.
        noise_ratios: variances of the noise to consider, where f has the kernel's variance.
        seed: draws the outcomes that fits and trials look at.

    Examples:
        >>> posterior = MixturePosterior()
        >>> contexts = np.random.default_rng(0).random((50, 3))
        >>> posterior.update(contexts, 1000 + 20 * np.sin(6 * contexts[:, 0]))
        >>> mean, std = posterior.predict([[0.25, 0.5, 0.5], [0.75, 0.5, 0.5]])
        >>> mean.round(-1)
        array([1020.,  980.])
    """

    def __init__(
        self,
        kernels: Sequence[Kernel] | None = None,
        noise_ratios: Sequence[float] = NOISE_RATIOS,
        seed: int = 0,
    ) -> None:
        if kernels is not None and not kernels:
            raise InputError("kernels must not be empty; leave them out for the default set")
        for kernel in kernels or ():
            check_kernel(kernel)
        if not noise_ratios:
            raise InputError("noise_ratios must not be empty")
        self._kernels = None if kernels is None else list(kernels)
        self._ratios = [as_positive(ratio, "noise ratio") for ratio in noise_ratios]
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self.observations = Observations()
        self._scale = ContextScale(is_fixed=kernels is not None)
        self._offset = 0.0
        self._pool: list[Kernel] = []
        self._members: list[Member] = []
        self._late: list[Member] = []
        self._trials: list[int] = []
        self._fit: RelevanceFit | None = None
        self._next_doubling = FIRST_FIT
        self._version: object = object()
        self._mix: _Mixed | None = None

    @property
    def members(self) -> list[tuple[float, Kernel, float]]:
        """Weight, kernel and noise variance of each member, heaviest first.

        Kernel and noise are those of the outcomes; the contexts of the default set are scaled.
        """
        rows = [
            (float(weight), float(scale) * member.posterior.kernel, float(scale * member.ratio))
            for member, weight, scale in zip(*self._mixed(), strict=True)
        ]
        return sorted(rows, key=lambda row: -row[0])

    @property
    def kernel(self) -> Kernel:
        """The heaviest member's kernel, in units of the outcomes."""
        return self.members[0][1]

    @property
    def prior(self) -> Covariance:  # type: ignore[override]
        """The heaviest member's kernel, compiled."""
        return Covariance(self.kernel)

    @property
    def noise_std(self) -> float:  # type: ignore[override]
        """Standard deviation of the noise: the root of the mean variance over members."""
        members, weights, scales = self._mixed()
        return math.sqrt(
            sum(w * s * m.ratio for m, w, s in zip(members, weights, scales, strict=True))
        )

    @property
    def dimension(self) -> int | None:
        """D, or None as long as nothing tells."""
        if self._scale.dimension is not None or self._kernels is None:
            return self._scale.dimension
        return next((d for k in self._kernels if (d := Covariance(k).dimension)), None)

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats: the mean over members."""
        members, weights, _ = self._mixed()
        gains = [member.posterior.information_gain for member in members]
        return float(weights @ np.array(gains))

    @property
    def inducing(self) -> FloatArray:
        """Contexts of the heaviest member's basis functions, shape (rank, D)."""
        if not self._members:
            return np.empty((0, 0))
        return self._scale.undo(self._heaviest().posterior.inducing)

    def predict(self, contexts: Asked) -> Prediction:
        """Return mean and standard deviation of f, without noise, at `contexts` (M, D)."""
        X = self.checked(contexts)
        mixed, parts = self._asked(contexts)
        means = np.array([part.mean for part in parts])
        variances = np.array([part.std for part in parts]) ** 2
        mean = mixed.weights @ means
        variance = mixed.weights @ (mixed.scales[:, None] * variances + (means - mean) ** 2)
        work = _Parts(mixed, parts)
        return Prediction(X, self._offset + mean, std_of(variance), state=self._version, work=work)

    def covariance(self, contexts: Asked) -> FloatArray:
        """Return the joint covariance, shape (M, M), of f at `contexts` (M, D)."""
        mixed, parts = self._asked(contexts)
        mean = mixed.weights @ np.array([part.mean for part in parts])
        total = np.zeros((len(mean), len(mean)))
        for part, member, weight, scale in zip(parts, *mixed, strict=True):
            apart = part.mean - mean
            total += weight * scale * member.posterior.covariance(part)
            total += weight * np.outer(apart, apart)
        return total

    def sample(self, contexts: Asked, rng: np.random.Generator) -> FloatArray:
        """Return one joint sample, shape (M,), of f at `contexts` (M, D).

        Draws a member by its weight, its scale, and f given both: a sample of the posterior of
        the hierarchical prior, in which kernel, noise and scale are unknown.
        """
        mixed, parts = self._asked(contexts)
        drawn = int(rng.choice(len(parts), p=mixed.weights))
        shape, rate = mixed.members[drawn].scale(self._scale_prior())
        part = parts[drawn]
        sample = mixed.members[drawn].posterior.sample(part, rng) - part.mean
        result: FloatArray = self._offset + part.mean + math.sqrt(rate / rng.gamma(shape)) * sample
        return result

    def sample_paths(self, contexts: Asked, count: int, rng: np.random.Generator) -> FloatArray:
        """Return `count` samples of f at `contexts` (M, D), as `sample` draws; (count, M)."""
        mixed, parts = self._asked(contexts)
        samples = []
        for n, drawn in enumerate(rng.multinomial(count, mixed.weights)):
            member, part = mixed.members[n], parts[n]
            shape, rate = member.scale(self._scale_prior())
            f = member.posterior.sample_paths(part.contexts, int(drawn), rng) - part.mean
            scales = np.sqrt(rate / rng.gamma(shape, size=(int(drawn), 1)))
            samples.append(self._offset + part.mean + scales * f)
        return rng.permutation(np.concatenate(samples))

    def offer(self, contexts: Asked) -> None:
        """Tell which contexts (M, D) were available: their range is what scales contexts."""
        X = self.checked(contexts)
        self._scale.see(X)
        if not len(self):
            return
        parts: Sequence[Asked] = [Contexts(self._scale.apply(X))] * len(self._members)
        if isinstance(contexts, Prediction) and contexts.state is self._version:
            parts = self._asked(contexts)[1]
        for member, part in zip(self._members, parts, strict=True):
            member.posterior.offer(part)

    def update(
        self, contexts: Asked, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        X = self.checked(contexts)
        y, w = self.checked_outcomes(outcomes, weights, len(X))
        before = dict(self.__dict__)
        if len(self) == 0:
            self._start(X, float(y.mean()))
            contexts = X
        try:
            parts = self._asked(contexts)[1]
            self._members = _learn(self._members, parts, y - self._offset, w)
        except NumericalError:
            self.__dict__.update(before)
            raise
        self._scale.see(X)
        self.observations.extend(X, y, w)
        self._changed()
        self._drop()
        if len(self) >= self._next_doubling or self._is_surprised():
            self._begin()
        self._work(max(CATCH_UP, CATCH_UP_RATE * len(y)))

    def innovations(self, contexts: Asked, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return how surprising `outcomes` (N,) at `contexts` (N, D) are, before the update.

        While the scale is uncertain, outcomes follow a t distribution with 2a degrees of freedom;
        they are mapped to the normal deviates of the same probability.
        """
        z, due_to_f = super().innovations(contexts, outcomes)
        shape, _ = self._heaviest().scale(self._scale_prior())
        t = np.abs(z) * math.sqrt(shape / (shape - 1))
        tail = np.maximum(stdtr(2 * shape, -t), np.finfo(float).tiny)
        return -np.sign(z) * ndtri(tail), due_to_f

    def learn(self, contexts: Asked, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Update, and return the `innovations` of the outcomes.

        The first outcomes tell the constant and the unit, and cannot be judged: none is returned.
        """
        if len(self):
            return super().learn(contexts, outcomes)
        self.update(contexts, outcomes)
        return np.empty(0), np.empty(0)

    def correct(self, contexts: Asked, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        X = self.checked(contexts)
        old, new = as_outcomes(before, len(X)), as_outcomes(after, len(X))
        positions = self.observations.find(X, old)
        x, y, _ = self._known(positions)
        self.observations.outcomes[positions] = new
        if (self.observations.weights != 1.0).any():
            self._relearn_members()
            return
        for member in (*self._members, *self._late):
            rows = positions < len(member)  # a late one may not have come to them
            if rows.any():
                member.correct(x[rows], y[rows], (new - self._offset)[rows])
        self._changed()

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far, and of their evidence, by `rate`."""
        for member in self._members:
            member.discount(as_positive(rate, "rate"))
        self._late, self._fit = [], None
        self.observations.weights[:] *= rate
        self._changed()

    def maintain(self) -> None:
        """Finish the fits and trials that are under way."""
        while self._work(len(self)):
            pass

    def empty(self, kernel: Kernel | None = None, noise_std: float | None = None) -> Posterior:
        """Return a mixture that has learned nothing; a single posterior if a kernel is given."""
        if kernel is not None:
            return DictionaryPosterior(kernel, noise_std or self.noise_std)
        other = MixturePosterior(self._kernels, self._ratios, self._seed)
        other._scale = self._scale.offered()
        return other

    def __repr__(self) -> str:
        return f"MixturePosterior: {len(self)} outcomes, {len(self._members)} members"

    def _mixed(self, dimension: int = 1) -> _Mixed:
        """Return members, weights and scales; before any data those of a prior in D dimensions.

        That prior is stationary by default: polynomials differ by how far a context is from the
        origin, and where that is, is known only once contexts are scaled. Choosing the corners
        first, as polynomials would, cost a fifth of the regret on Friedman1.
        """
        if self._mix is None or not self._members:
            stationary = self._kernels_of(dimension)[: len(LENGTHSCALES)]
            members = self._members or self._made(self._kernels or stationary)
            prior = self._scale_prior()
            evidence = np.array([member.evidence(prior) for member in members])
            weights = np.exp(evidence - evidence.max())
            shapes, rates = np.array([member.scale(prior) for member in members]).T
            self._mix = _Mixed(members, weights / weights.sum(), rates / (shapes - 1))
        return self._mix

    def _heaviest(self) -> Member:
        mixed = self._mixed()
        return mixed.members[int(np.argmax(mixed.weights))]

    def _asked(self, contexts: Asked) -> tuple[_Mixed, list[Prediction]]:
        """Return the mixture and what each member says of `contexts`."""
        if isinstance(contexts, Prediction) and contexts.state is self._version:
            work = contexts.work
            if isinstance(work, _Parts):
                return work.mixed, work.parts
        X = self.checked(contexts)
        mixed = self._mixed(X.shape[1])
        x = Contexts(self._scale.apply(X))
        return mixed, [member.posterior.predict(x) for member in mixed.members]

    def _scale_prior(self) -> ScalePrior:
        """Return the prior of the scale, in units of the outcomes' variance."""
        variance = float(self.observations.outcomes.var()) if len(self) else 0.0
        return ScalePrior(SHAPE, RATE * (variance if variance > 0 else 1.0))

    def _start(self, X: FloatArray, offset: float) -> None:
        """Make all members, for contexts like those offered and X."""
        self._scale = self._scale.refreshed(X)
        self._offset = offset
        self._pool = self._kernels_of(X.shape[1])
        self._members = self._made(self._pool)
        self._changed()

    def _kernels_of(self, dimension: int) -> list[Kernel]:
        return self._kernels or default_kernels(dimension)

    def _made(self, pool: list[Kernel]) -> list[Member]:
        pairs = [(kernel, ratio) for kernel in pool for ratio in self._ratios]
        return [Member(*pair, number=n) for n, pair in enumerate(pairs)]

    def _drop(self) -> None:
        if len(self) < DROPPED_FROM:
            return
        weights = self._mixed().weights
        order = np.argsort(-weights, kind="stable")
        most = SURVIVORS if len(self) >= 2 * DROPPED_FROM else len(order)
        kept = [n for n in order[:most] if weights[n] >= DROPPED * weights.max()]
        self._members = [self._members[n] for n in sorted(kept)]
        self._changed()

    def _is_surprised(self) -> bool:
        """Return whether the heaviest member has foreseen the latest outcomes badly."""
        heaviest = self._heaviest()
        return heaviest.is_surprised(self._scale_prior()) and not (self._trials or self._late)

    def _begin(self) -> None:
        """Begin what is due when the outcomes have doubled, or surprise."""
        for member in self._members:
            member.calm()
        self._next_doubling = 2 * len(self)
        if self._scale.is_outgrown:
            self._scale = self._scale.refreshed()
            self._relearn_members()
        if self._kernels is None:
            x, y, _ = self._known()
            self._fit = RelevanceFit(x, y, *self._scale_prior(), self._rng)
        present = {member.number for member in (*self._members, *self._late)}
        every = range(len(self._pool) * len(self._ratios))
        self._trials = [n for n in every if n not in present]

    def _known(
        self, rows: slice | IntArray = slice(None)
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return scaled contexts, centred outcomes and weights at `rows`."""
        known = self.observations
        x = self._scale.apply(known.contexts[rows])
        return x, known.outcomes[rows] - self._offset, known.weights[rows]

    def _relearn_members(self) -> None:
        """Learn everything anew: the contexts' scale or some outcomes have changed."""
        self._late = []
        fresh = [member.empty() for member in self._members]
        x, y, w = self._known()
        parts = [Prediction.of(x)] * len(fresh)
        self._members = _learn(fresh, parts, y, w)
        self._changed()

    def _work(self, catch_up: int) -> bool:
        """Do a little of what is due; return whether anything was."""
        if self._fit is not None:
            self._fit.advance(max(1, FIT_WORK // self._fit.size))
            if self._fit.steps_left:
                return True
            self._late.insert(0, self._fitted(self._fit))
            self._fit = None
        if self._late:
            self._catch_up(self._late[0], catch_up)
            return True
        if self._trials:
            tried, self._trials = self._trials[:TRIED_PER_UPDATE], self._trials[TRIED_PER_UPDATE:]
            self._try(tried)
            return True
        return False

    def _catch_up(self, member: Member, count: int) -> None:
        x, y, w = self._known(slice(len(member), len(member) + count))
        try:
            member.learn(Prediction.of(x), y, w)
        except NumericalError:
            self._late.remove(member)
            return
        if len(member) < len(self):
            return
        self._late.remove(member)
        if member.is_fitted:
            self._members = [other for other in self._members if not other.is_fitted]
        self._members.append(member)
        self._changed()
        self._drop()

    def _fitted(self, fit: RelevanceFit) -> Member:
        from sklearn.gaussian_process.kernels import RBF

        penalty = FIT_PENALTY * (len(fit.lengthscales) + 1) * math.log(len(self))
        return Member(RBF(fit.lengthscales) + CONSTANT, fit.noise_ratio, penalty=penalty)

    def _try(self, numbers: list[int]) -> None:
        """Let dropped members that beat the best one on a sample of the outcomes come back."""
        rows = np.arange(len(self))
        if len(self) > TRIED_ON:
            rows = np.sort(self._rng.choice(len(self), TRIED_ON, replace=False))
        x, y, w = self._known(rows)
        prior = self._scale_prior()
        best = self._heaviest()
        to_beat = dense_evidence(best.posterior.kernel, best.ratio / w, x, y, prior) - best.penalty
        for n in numbers:
            kernel, ratio = self._pool[n // len(self._ratios)], self._ratios[n % len(self._ratios)]
            if dense_evidence(kernel, ratio / w, x, y, prior) > to_beat:
                self._late.append(Member(kernel, ratio, n))

    def _changed(self) -> None:
        """Make predictions so far stale."""
        self._version, self._mix = object(), None

    def _state(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_version", "_mix")}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._changed()


class _Mixed(NamedTuple):
    """Members with their weights and expected scales E[s²], each of shape (members,)."""

    members: list[Member]
    weights: FloatArray
    scales: FloatArray


class _Parts(NamedTuple):
    """What each member says of the same contexts."""

    mixed: _Mixed
    parts: list[Prediction]

    def at(self, positions: IntArray) -> _Parts:
        return _Parts(self.mixed, [part.at(positions) for part in self.parts])


def _learn(
    members: list[Member], parts: list[Prediction], y: FloatArray, weights: FloatArray
) -> list[Member]:
    """Let all members learn, and return those that can, in double precision; at least one."""
    if len(y) > AT_ONCE:
        members = copy.deepcopy(members)  # or a failure would leave them with a part of y
    learned: list[Member] = []
    failure: NumericalError | None = None
    for member, part in zip(members, parts, strict=True):
        try:
            member.learn(part, y, weights)
            learned.append(member)
        except NumericalError as reason:
            failure = reason
    if failure is not None and not learned:
        raise failure
    return learned
