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

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from oclok.errors import InputError, NumericalError
from oclok.posterior.base import Posterior
from oclok.posterior.dictionary import DictionaryPosterior
from oclok.posterior.linalg import std_of
from oclok.posterior.members import (
    CONSTANT,
    NOISE_RATIOS,
    Member,
    ScalePrior,
    default_kernels,
    dense_evidence,
)
from oclok.posterior.observations import Rows
from oclok.posterior.relevance import RelevanceFit
from oclok.typing import FloatArray, IntArray
from oclok.validation import check_kernel

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
#: Outcomes that a member that comes in late catches up on per update.
CATCH_UP = 160
GROWTH = 2.0
#: Fits begin at this many outcomes, and again at each doubling.
FIRST_FIT = 20
#: Gradient steps per update, times outcomes: all 24 at once for 40 outcomes, 8 for 128.
FIT_WORK = 1024
#: Log evidence that a fitted hyperparameter costs, in log N: half of what BIC takes.
FIT_PENALTY = 0.25
#: Contexts are scaled anew when their range has grown by this share at a doubling.
RANGE_SHARE = 0.1


class MixturePosterior(Posterior):
    """A posterior that learns which kernel, noise and scale are right.

    Args:
        kernels: kernels of f up to its scale, for contexts as they are. Left out, a set that
            serves any D, for contexts scaled by the arms offered, and one more kernel with a
            lengthscale per feature that is fitted as outcomes come.
        noise_ratios: variances of the noise to consider, where f has the kernel's variance.
        seed: draws the outcomes that fits and trials look at.

    Example:
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
        if not noise_ratios or not all(0 < ratio < math.inf for ratio in noise_ratios):
            raise InputError(f"noise_ratios must be above 0 and finite; got {noise_ratios!r}")
        self._kernels = None if kernels is None else list(kernels)
        self._ratios = [float(ratio) for ratio in noise_ratios]
        self._rng = np.random.default_rng(seed)
        self._X, self._y = Rows(), Rows()
        self._seen: FloatArray | None = None  # least and largest context offered, (2, D)
        self._range: FloatArray | None = None  # the same when contexts were last scaled
        self._offset = 0.0
        self._pool: list[Kernel] = []
        self._members: list[Member] = []
        self._late: list[Member] = []
        self._trials: list[int] = []
        self._fit: RelevanceFit | None = None
        self._next_doubling = FIRST_FIT
        self._surprise = 1.0

    @property
    def members(self) -> list[tuple[float, Kernel, float]]:
        """Weight, kernel and noise variance of each member, heaviest first.

        Kernel and noise are those of the outcomes: scaled, with the contexts in [0, 1] where
        the default set is used.
        """
        mixed = self._mixed()
        rows = [
            (weight, scale * member.posterior.kernel, scale * member.noise_ratio)
            for member, weight, scale in zip(*mixed, strict=True)
        ]
        return sorted(rows, key=lambda row: -row[0])

    @property
    def kernel(self) -> Kernel:
        """The heaviest member's kernel, scaled."""
        return self.members[0][1]

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise: the root of the mean variance over members."""
        mixed = self._mixed()
        ratios = [member.noise_ratio for member in mixed.members]
        return math.sqrt(float(mixed.weights * mixed.scales @ ratios))

    def _update(self, X: FloatArray, y: FloatArray) -> None:
        before = len(self)
        if before == 0:
            self._start(X, float(y.mean()))
        self._learn(self._scaled(X), y - self._offset)
        self._see(X)
        self._X.extend(X)
        self._y.extend(y)
        self._drop()
        if len(self) >= self._next_doubling:
            self._next_doubling = int(GROWTH * len(self))
            self._double()
        self._work()

    @property
    def dimension(self) -> int | None:
        """D, or None as long as nothing was offered or learned."""
        return None if self._seen is None else int(self._seen.shape[1])

    def maintain(self) -> None:
        """Finish the fits and trials that are under way."""
        while self._work():
            pass

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats: the mean over members."""
        gains = [member.posterior.information_gain for member in self._members]
        return float(self._mixed().weights @ gains) if gains else 0.0

    @property
    def inducing(self) -> FloatArray:
        """Contexts of the heaviest member's basis functions, shape (rank, D)."""
        if not self._members:
            return np.empty((0, 0))
        heaviest = self._members[int(np.argmax(self._mixed().weights))]
        return self._unscaled(heaviest.posterior.inducing)

    def with_kernel(self, kernel: Kernel, noise_std: float) -> Posterior:
        """Return a posterior of that one kernel and noise that has learned the same."""
        other = DictionaryPosterior(kernel, noise_std)
        if len(self):
            other.update(self.contexts, self.outcomes)
        return other

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        mixed = self._mixed()
        x = self._scaled(X)
        mean, square = np.zeros(len(X)), np.zeros(len(X))
        for member, weight, scale in zip(*mixed, strict=True):
            m, std = member.posterior.predict(x)
            mean += weight * m
            square += weight * (scale * std**2 + m**2)
        return mean + self._offset, std_of(square - mean**2)

    def _covariance(self, X: FloatArray) -> FloatArray:
        x = self._scaled(X)
        mean, square = np.zeros(len(X)), np.zeros((len(X), len(X)))
        for member, weight, scale in zip(*self._mixed(), strict=True):
            m = member.posterior.predict(x)[0]
            mean += weight * m
            square += weight * (scale * member.posterior.covariance(x) + np.outer(m, m))
        return square - np.outer(mean, mean)

    def _sample(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw a member by weight, its scale, and f given both: exact for the whole prior."""
        mixed = self._mixed()
        drawn = int(rng.choice(len(mixed.members), p=mixed.weights))
        member = mixed.members[drawn]
        shape, rate = member.scale(self._scale_prior())
        scale = rate / rng.gamma(shape)
        x = self._scaled(X)
        mean = member.posterior.predict(x)[0]
        sample = member.posterior.sample(x, rng)
        return self._offset + mean + math.sqrt(scale) * (sample - mean)

    def _expect(self, X: FloatArray, chosen: IntArray | None, at: FloatArray | None) -> None:
        self._see(X)
        if self._range is None:
            return
        x = self._scaled(X)
        for member in self._members:
            member.posterior.expect(x, chosen)

    def _mixed(self) -> _Mixed:
        prior = self._scale_prior()
        members = self._members or self._made(1)
        evidence = np.array([member.evidence(prior) for member in members])
        weights = np.exp(evidence - evidence.max())
        shapes, rates = np.array([member.scale(prior) for member in members]).T
        return _Mixed(members, weights / weights.sum(), rates / (shapes - 1))

    def _scale_prior(self) -> ScalePrior:
        """Return the prior of the scale, in units of the outcomes' variance."""
        variance = float(self._y.array.var()) if len(self) else 0.0
        return ScalePrior(SHAPE, RATE * (variance if variance > 0 else 1.0))

    def _see(self, X: FloatArray) -> None:
        """Widen the range of contexts offered so far."""
        ends = np.stack([X.min(axis=0), X.max(axis=0)])
        if self._seen is not None:
            ends[0] = np.minimum(ends[0], self._seen[0])
            ends[1] = np.maximum(ends[1], self._seen[1])
        self._seen = ends

    def _scaled(self, X: FloatArray) -> FloatArray:
        if self._kernels is not None:
            return X
        low, span = self._low_and_span(X)
        return (X - low) / span

    def _unscaled(self, x: FloatArray) -> FloatArray:
        if self._kernels is not None:
            return x
        low, span = self._low_and_span(x)
        return x * span + low

    def _low_and_span(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        ends = self._range
        if ends is None:
            ends = np.stack([X.min(axis=0), X.max(axis=0)]) if self._seen is None else self._seen
        span = ends[1] - ends[0]
        return ends[0], np.where(span > 0, span, 1.0)

    def _start(self, X: FloatArray, offset: float) -> None:
        """Make all members, for contexts like X."""
        self._see(X)
        self._range = self._seen
        self._offset = offset
        self._members = self._made(X.shape[1])

    def _made(self, dimension: int) -> list[Member]:
        self._pool = self._kernels or default_kernels(dimension)
        return [self._member(n) for n in range(len(self._pool) * len(self._ratios))]

    def _member(self, n: int) -> Member:
        kernel, ratio = divmod(n, len(self._ratios))
        member = Member(self._pool[kernel], self._ratios[ratio])
        member.number = n
        return member

    def _learn(self, x: FloatArray, y: FloatArray) -> None:
        """Let all members learn; one that cannot, in double precision, is dropped."""
        learned: list[Member] = []
        failure: NumericalError | None = None
        for member in self._members:
            try:
                member.learn(x, y)
                learned.append(member)
            except NumericalError as reason:
                failure = reason
        if failure is not None and not learned:
            raise failure
        self._members = learned

    def _drop(self) -> None:
        if len(self) < DROPPED_FROM:
            return
        weights = self._mixed().weights
        order = np.argsort(-weights, kind="stable")
        most = SURVIVORS if len(self) >= 2 * DROPPED_FROM else len(order)
        kept = [n for n in order[:most] if weights[n] >= DROPPED * weights.max()]
        self._members = [self._members[n] for n in sorted(kept)]

    def _double(self) -> None:
        """Begin what is due when the outcomes have doubled."""
        assert self._seen is not None
        assert self._range is not None
        if self._kernels is None:
            span = self._range[1] - self._range[0]
            grown = (self._seen[1] - self._seen[0] - span) > RANGE_SHARE * span
            if grown.any():
                self._range = self._seen
                self._relearn()
            x = self._scaled(self._X.array)
            y = self._y.array - self._offset
            prior = self._scale_prior()
            self._fit = RelevanceFit(x, y, prior.shape, prior.rate, self._rng)
        present = {member.number for member in (*self._members, *self._late)}
        every = len(self._pool) * len(self._ratios)
        self._trials = [n for n in range(every) if n not in present]

    def _relearn(self) -> None:
        """Learn everything anew in the new scale of contexts."""
        self._late = []
        fresh = [self._member(m.number) for m in self._members if m.number >= 0]
        members, self._members = self._members, fresh or self._made(self._X.array.shape[1])
        try:
            self._learn(self._scaled(self._X.array), self._y.array - self._offset)
        except NumericalError:
            self._members = members

    def _work(self) -> bool:
        """Do a little of what is due; return whether anything was."""
        if self._fit is not None:
            self._fit.advance(max(1, FIT_WORK // self._fit.size))
            if self._fit.steps_left:
                return True
            self._late.insert(0, self._fitted(self._fit))
            self._fit = None
        if self._late:
            self._catch_up(self._late[0])
            return True
        if self._trials:
            tried, self._trials = self._trials[:TRIED_PER_UPDATE], self._trials[TRIED_PER_UPDATE:]
            self._try(tried)
            return True
        return False

    def _catch_up(self, member: Member) -> None:
        rows = slice(len(member), len(member) + CATCH_UP)
        X, y = self._X.array[rows], self._y.array[rows]
        try:
            member.learn(self._scaled(X), y - self._offset)
        except NumericalError:
            self._late.remove(member)
            return
        if len(member) == len(self):
            self._late.remove(member)
            if member.is_fitted:
                self._members = [other for other in self._members if not other.is_fitted]
            self._members.append(member)
            self._drop()

    def _fitted(self, fit: RelevanceFit) -> Member:
        from sklearn.gaussian_process.kernels import RBF

        kernel = RBF(fit.lengthscales) + CONSTANT
        penalty = FIT_PENALTY * (len(fit.lengthscales) + 1) * math.log(len(self))
        return Member(kernel, fit.noise_ratio, penalty, is_fitted=True)

    def _try(self, numbers: list[int]) -> None:
        """Let dropped members that beat the best one on a sample of the outcomes come back."""
        rows = np.arange(len(self))
        if len(self) > TRIED_ON:
            rows = np.sort(self._rng.choice(len(self), TRIED_ON, replace=False))
        x, y = self._scaled(self._X.array[rows]), self._y.array[rows] - self._offset
        prior = self._scale_prior()
        best = self._members[int(np.argmax(self._mixed().weights))]
        to_beat = dense_evidence(best.posterior.kernel, best.noise_ratio, x, y, prior)
        for n in numbers:
            kernel, ratio = divmod(n, len(self._ratios))
            found = dense_evidence(self._pool[kernel], self._ratios[ratio], x, y, prior)
            if found > to_beat - best.penalty:
                self._late.append(self._member(n))


class _Mixed(NamedTuple):
    """Members with their weights and expected scales E[s²], each of shape (members,)."""

    members: list[Member]
    weights: FloatArray
    scales: FloatArray
