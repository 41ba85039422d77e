"""The default model: a Gaussian process with a relevance per column, and trees. Nothing to choose.

    y        outcomes, less a constant and in a unit of their own (`generation.py`)
    w        share of the Gaussian process in the mean (`stacking.py`)
    g, V     its mean and covariance                h    mean of the trees (`trees.py`)

    mean = w g + (1 - w) h            covariance = V + var(w) (g - h)(g - h)ᵀ

Where contexts return, what stays with them is learned on top (`memory.py`). With kernels given,
there are neither trees nor memory, but a Gaussian process per kernel and noise level, weighed by
their evidence (`members.py`).

One long file, since kernels, trees, memory and weights change together: in `update`, `correct`,
`discount` and when a generation takes over.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
from scipy.special import ndtri

from oclok.arrays import GrowableArray
from oclok.errors import InputError
from oclok.posterior.base import Innovations, Posterior
from oclok.posterior.dictionary import DictionaryPosterior
from oclok.posterior.kernels import Covariance
from oclok.posterior.linalg import std_of
from oclok.posterior.mixture.basis import GivenKernel
from oclok.posterior.mixture.columns import ColumnMap, Offered
from oclok.posterior.mixture.generation import Generation, sampled, unit_of
from oclok.posterior.mixture.members import Member, moments, weights_of
from oclok.posterior.mixture.memory import Memory
from oclok.posterior.mixture.outcomes import OutcomeKind
from oclok.posterior.mixture.prediction import MixturePrediction
from oclok.posterior.mixture.predictive import Predictive
from oclok.posterior.mixture.relevance import RelevanceFit, RelevanceKernel, prior_theta
from oclok.posterior.mixture.stacking import Stack
from oclok.posterior.mixture.trees import TREES, ExtraTrees
from oclok.posterior.observations import Observations
from oclok.posterior.prediction import ContextsLike, Prediction
from oclok.typing import ArrayLike, FloatArray, Kernel
from oclok.validation import as_outcomes, as_positive, check_kernel

#: Noise variances of given kernels, where f has the kernel's variance.
NOISE_RATIOS = (0.003, 0.03, 0.3)
#: Members of given kernels that have less than this share of the largest weight are dropped.
UNLIKELY = 1e-9
#: Up to this many outcomes everything is made anew with each update. The first fit comes then,
#: and another one whenever outcomes have doubled.
FIRST_FIT = 20
#: Relevances of all columns before the first fit: members smooth, less smooth and rough.
FIRST_RELEVANCES = (0.2, 0.7, 2.0)
#: Variance of f as long as outcomes tell none. Small, so that oracles for probabilities can tell
#: sets of arms apart.
UNTOLD = 0.002
#: How often all trees are grown anew until there are e times the outcomes; at most one tree per so
#: many outcomes, or one per update.
RENEWALS, PER_TREE = 1.0, 5
#: Means that differ by less than this share of the noise tell little.
FLAT = 0.5
#: Past errors that the distribution of outcomes goes by.
ERRORS = 256


class MixturePosterior(Posterior):
    """A posterior that learns which columns matter, how smooth f is, its scale and the noise.

    Args:
        kernels: kernels of f up to its scale, for contexts as they are. Left out, a kernel with a
            relevance per column is fitted as outcomes come, and trees are grown.
        noise_ratios: variances of the noise to consider with given kernels, where f has the
            kernel's variance.
        seed: of the trees, and of the outcomes that fits look at.

    Examples:
        >>> posterior = MixturePosterior()
        >>> contexts = np.random.default_rng(0).random((50, 3))
        >>> posterior.update(contexts, 1000 + 20 * np.sin(6 * contexts[:, 0]))
        >>> mean, std = posterior.predict([[0.25, 0.5, 0.5], [0.75, 0.5, 0.5]])
        >>> mean.round(-1)
        array([1020.,  980.])
    """

    _transient = ("_version", "_seen")

    def __init__(
        self,
        kernels: Sequence[Kernel] | None = None,
        noise_ratios: Sequence[float] = NOISE_RATIOS,
        seed: int = 0,
    ) -> None:
        if kernels is not None and not kernels:
            raise InputError("kernels must not be empty; leave them out for the default model")
        for kernel in kernels or ():
            check_kernel(kernel)
        if not noise_ratios:
            raise InputError("noise_ratios must not be empty")
        self._kernels = None if kernels is None else [Covariance(kernel) for kernel in kernels]
        self._ratios = [as_positive(ratio, "noise ratio") for ratio in noise_ratios]
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self.observations = Observations()
        self._offered = Offered(seed)
        self._generation: Generation | None = None
        self._fit: RelevanceFit | None = None
        self._next: Generation | None = None
        self._next_fit = FIRST_FIT
        self._forest = ExtraTrees(seed)
        self._tree_due = 0.0
        self._stack = Stack()
        self._errors: FloatArray = np.empty(0)
        self._memory = Memory()
        self._before = GrowableArray()
        self._version: object = object()
        self._seen: tuple[object, OutcomeKind] | None = None

    @property
    def members(self) -> list[tuple[float, Any, float]]:
        """Weight, kernel and noise variance of each member, heaviest first; trees by that name.

        Kernel and noise are in units of the outcomes; the default kernel has contexts mapped.
        """
        members, unit = self._in_use()
        share = self._share
        rows = [
            (
                share * float(w),
                unit**2 * m.scale * m.regression.prior.kernel,
                unit**2 * m.scale * m.ratio,
            )
            for w, m in zip(weights_of(members), members, strict=True)
        ]
        if share < 1:
            rows.append((1 - share, "trees", self.noise_std**2))
        return sorted(rows, key=lambda row: -row[0])

    @property
    def kernel(self) -> Kernel:
        """The heaviest kernel, in units of the outcomes."""
        kernel: Kernel = next(row[1] for row in self.members if row[1] != "trees")
        return kernel

    @property
    def prior(self) -> Covariance:  # type: ignore[override]
        """The heaviest kernel, compiled."""
        return Covariance(self.kernel)

    @property
    def noise_std(self) -> float:  # type: ignore[override]
        """Standard deviation of the noise: of what does not stay with a context."""
        return math.sqrt((1 - self._memory.share) * self._unexplained)

    @property
    def _unexplained(self) -> float:
        """Variance of outcomes around what features explain: the mean over members."""
        members, unit = self._in_use()
        variances = np.array([member.scale * member.ratio for member in members])
        return unit**2 * float(weights_of(members) @ variances)

    @property
    def dimension(self) -> int | None:
        """D, or None as long as nothing tells."""
        if self.observations.dimension is not None:
            return self.observations.dimension
        if len(self._offered.contexts):
            return int(self._offered.contexts.shape[1])
        return next((k.dimension for k in self._kernels or () if k.dimension), None)

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats: the mean over members."""
        members, _ = self._in_use()
        gains = np.array([member.regression.gain for member in members])
        return float(weights_of(members) @ gains)

    @property
    def inducing(self) -> FloatArray:
        """Contexts of the heaviest member's basis functions, shape (rank, D)."""
        members, _ = self._in_use()
        basis = members[int(np.argmax(weights_of(members)))].regression.basis
        return basis.copy()

    @property
    def range(self) -> tuple[float, float]:
        """Least and largest outcome possible: those met at least five times; else infinite."""
        return self._kind.low, self._kind.high

    def is_doubtful(self, prediction: Prediction) -> bool:
        """Return whether there may be more to find than `prediction` shows.

        So it may where means hardly differ beside the noise: all arms tried may be equally bad. And
        where a ceiling is inferred from outcomes of more than two values: arms chosen for being
        alike meet the same outcome over and over.
        """
        is_flat = float(prediction.mean.std()) < FLAT * self.noise_std
        has_ceiling = self.range[1] < math.inf and len(np.unique(self.observations.outcomes)) > 2
        return len(self) >= FIRST_FIT and (is_flat or has_ceiling)

    def is_current(self, prediction: Prediction) -> bool:
        """Return whether this posterior made `prediction` and has not changed since."""
        return isinstance(prediction, MixturePrediction) and prediction.version is self._version

    def current(self, contexts: ContextsLike) -> MixturePrediction:
        """Return the prediction of `contexts`: the one given, if it is current."""
        if isinstance(contexts, MixturePrediction) and self.is_current(contexts):
            return contexts
        return self.predict(contexts)

    def predict(self, contexts: ContextsLike) -> MixturePrediction:
        """Return mean and standard deviation of f, without noise, at `contexts` (M, D)."""
        X = self.checked(contexts)
        members, unit = self._in_use(X)
        parts = [member.regression.features(X) for member in members]
        gp, variance, left = moments(members, weights_of(members), parts)
        gp, variance, left = self._offset + unit * gp, unit**2 * variance, unit**2 * left
        trees = self._forest.predict(X) if len(self._forest) else gp
        apart = trees - gp
        base = gp + (1 - self._share) * apart
        variance += self._stack.variance * apart**2
        recalled = self._memory.recall(X)
        kept, own = self._memory.kept(recalled, left, self._unexplained)
        mean = base + kept * (recalled.mean - base)
        factor = self._kind.factor(mean)
        return MixturePrediction(
            X,
            mean,
            std_of((1 - kept) ** 2 * variance + own) * factor,
            members=members,
            unit=unit,
            parts=parts,
            gp=gp,
            trees=trees,
            base=base,
            variance=variance,
            left=left,
            recalled=recalled,
            kept=kept,
            own=own,
            factor=factor,
            doubt=math.sqrt(self._stack.variance),
            range=self.range,
            version=self._version,
        )

    def predictive(self, contexts: ContextsLike) -> Predictive:
        """Return the distributions of outcomes at `contexts` (M, D)."""
        mean, std = self.current(contexts)
        low, high, _, is_binary, is_integer = self._kind
        spread = np.hypot(std, self.noise_std * self._kind.factor(mean))
        return Predictive(mean, spread, low, high, self._errors, is_binary, is_integer)

    def sample_paths(
        self, contexts: ContextsLike, count: int, rng: np.random.Generator
    ) -> FloatArray:
        """Return `count` samples of f at `contexts` (M, D), within the range; (count, M)."""
        return self.current(contexts).paths(count, rng)

    def offer(self, contexts: ContextsLike) -> None:
        """Tell which contexts (M, D) were available: how columns are spread is seen from them."""
        self._offered.see(self.checked(contexts))

    def update(
        self, contexts: ContextsLike, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        X = self.checked(contexts)
        y, w = self.checked_outcomes(outcomes, weights, len(X))
        before = self.current(contexts) if len(self) else None
        count = len(self)
        generation = self._generation
        undo = None if generation is None else generation.snapshot()
        try:
            self.observations.extend(X, y, w)
            if self._generation is None or len(self) < FIRST_FIT:
                self._generation = self._made()
                self._generation.catch_up(self.observations, np.ones(len(self)), len(self))
            else:
                seen = np.zeros(len(y)) if before is None else before.recalled.weight
                parts = None if before is None else before.parts
                self._generation.learn(X, y, w, self._memory.weights(seen), parts)
        except BaseException:
            self.observations.truncate(count)
            self._generation = generation
            if undo is not None:
                undo()
            raise
        if before is not None:
            self._judge(before, y)
        if self._kernels is None:
            self._before.extend(self._memory.add(X, y, w))
            self._grow(X, y, w)
            if not self.is_resting:
                self._prepare(len(y))
        else:
            self._before.extend(np.zeros(len(y)))
            members = self._generation.members
            weights = weights_of(members)
            likely = weights > UNLIKELY * weights.max()
            self._generation.members = list(compress(members, likely))
        self._version = object()

    def innovations(self, contexts: ContextsLike, outcomes: ArrayLike) -> Innovations:
        """Return how surprising `outcomes` (N,) at `contexts` (N, D) are, before the update.

        The normal deviates of the same probability under the predictive distribution; where
        outcomes are discrete, of a random number between P(Y < y) and P(Y ≤ y).
        """
        prediction, noise = self.current(contexts), self.noise_std
        y = as_outcomes(outcomes, len(prediction.mean))
        predictive = self.predictive(prediction)
        low, high = predictive.around(y)
        u = low + (high - low) * np.random.default_rng(len(self)).random(len(y))
        variance = prediction.std**2
        return ndtri(np.clip(u, 1e-12, 1 - 1e-12)), variance / (variance + noise**2)

    def learn(self, contexts: ContextsLike, outcomes: ArrayLike) -> Innovations:
        """Update, and return the `innovations` of the outcomes.

        The first outcomes tell the constant, the unit and the kernel, and are not judged: none is
        returned for them.
        """
        if len(self) >= FIRST_FIT:
            return super().learn(contexts, outcomes)
        self.update(contexts, outcomes)
        return np.empty(0), np.empty(0)

    def correct(self, contexts: ContextsLike, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        X = self.checked(contexts)
        old, new = as_outcomes(before, len(X)), as_outcomes(after, len(X))
        positions = self.observations.find(X, old)
        weights = self.observations.weights[positions]
        self.observations.outcomes[positions] = new
        if len(self) < FIRST_FIT:
            self._generation = self._made()
            self._generation.catch_up(self.observations, np.ones(len(self)), len(self))
        for generation in (self._generation, self._next):
            if generation is not None and len(self) >= FIRST_FIT:
                rows = positions < generation.learned
                change = (new - old)[rows] / generation.unit
                worth = self._worth[positions[rows]]
                for member in generation.members:
                    member.regression.correct(X[rows], change, weights[rows] * worth)
        if len(self._forest):
            self._forest.correct(X, new - old, weights)
        if self._kernels is None:
            self._memory.correct(X, new - old, weights)
        self._version = object()

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far, and of their evidence, by `rate`."""
        rate = as_positive(rate, "rate")
        self.observations.weights[:] *= rate
        for generation in (self._generation, self._next):
            for member in () if generation is None else generation.members:
                member.discount(rate)
        self._forest.discount(rate)
        self._memory.discount(rate)
        self._version = object()

    def maintain(self) -> None:
        """Finish the next generation if one is under way."""
        while self._fit is not None or self._next is not None:
            self._prepare(len(self))
            self._version = object()

    def empty(self, kernel: Kernel | None = None, noise_std: float | None = None) -> Posterior:
        """Return a mixture that has learned nothing; a single posterior if a kernel is given."""
        if kernel is not None:
            return DictionaryPosterior(kernel, noise_std or self.noise_std)
        kernels = None if self._kernels is None else [each.kernel for each in self._kernels]
        other = MixturePosterior(kernels, self._ratios, self._seed)
        other._offered = copy.deepcopy(self._offered)
        return other

    def __repr__(self) -> str:
        return f"MixturePosterior: {len(self)} outcomes, rank {self.rank}"

    @property
    def _kind(self) -> OutcomeKind:
        """What kind of outcomes there are, seen once per state."""
        if self._seen is None or self._seen[0] is not self._version:
            self._seen = self._version, OutcomeKind.of(self.observations.outcomes)
        return self._seen[1]

    @property
    def _offset(self) -> float:
        return 0.0 if self._generation is None else self._generation.offset

    @property
    def _share(self) -> float:
        """Share of the Gaussian processes."""
        return self._stack.share if len(self._forest) else 1.0

    def _in_use(self, X: FloatArray | None = None) -> tuple[list[Member], float]:
        """Return members and the unit of outcomes; before any outcome those of the prior."""
        if self._generation is not None:
            return self._generation.members, self._generation.unit
        if self._kernels is not None:
            return [Member(GivenKernel(k), ratio) for k, ratio in self._candidates()], UNTOLD**0.5
        if len(self._offered.contexts):
            X = self._offered.contexts
        columns = ColumnMap(np.zeros((1, self.dimension or 1)) if X is None else X)
        kernel = RelevanceKernel(columns, prior_theta(columns, is_stationary=True))
        return [Member(kernel, kernel.noise)], UNTOLD**0.5

    def _candidates(self) -> list[tuple[Covariance, float]]:
        return [(kernel, ratio) for kernel in self._kernels or () for ratio in self._ratios]

    def _made(self) -> Generation:
        """Return a generation of the prior's kernels that has learned nothing."""
        if self._kernels is not None:
            members = [Member(GivenKernel(k), ratio) for k, ratio in self._candidates()]
        else:
            columns = ColumnMap(self._reference())
            thetas = [prior_theta(columns, relevance) for relevance in FIRST_RELEVANCES]
            kernels = [RelevanceKernel(columns, theta) for theta in thetas]
            members = [Member(kernel, kernel.noise) for kernel in kernels]
        return Generation(members, self.observations.outcomes)

    def _reference(self) -> FloatArray:
        """Return contexts from which to see how columns are spread."""
        offered = self._offered.contexts
        return offered if len(offered) > 1 else self.observations.contexts[-1024:]

    def _judge(self, before: MixturePrediction, y: FloatArray) -> None:
        """Take note of how far off a prediction was."""
        factor = self._kind.factor(before.mean)
        if len(self._forest):
            self._stack.see(y - before.gp, y - before.trees, (1 - before.kept) ** 2)
        if before.recalled.weight.any():
            squares = factor**2
            self._memory.judge(
                y,
                before.base,
                before.variance * squares,
                before.left * squares,
                self._unexplained * squares,
                before.recalled,
                self.range if self._kind.is_binary else None,
            )
        noise = self.noise_std * factor
        z = (y - before.mean) / np.hypot(before.std, noise)
        self._errors = np.concatenate([self._errors, z])[-ERRORS:]

    def _grow(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Let trees learn outcomes, and grow some."""
        assert self._generation is not None
        kernel = self._generation.members[0].regression.prior
        assert isinstance(kernel, RelevanceKernel)
        if len(self._forest):
            self._forest.learn(X, y, weights)
        if self.is_resting:
            return
        due = RENEWALS * TREES * len(y) / len(self)
        self._tree_due = min(self._tree_due + due, max(1.0, len(y) / PER_TREE), float(TREES))
        while self._tree_due >= 1.0 or not len(self._forest):
            self._tree_due = max(self._tree_due - 1.0, 0.0)
            if not self._forest.grow(kernel.columns, *self.observations.at(slice(len(self)))):
                break

    @property
    def _worth(self) -> FloatArray:
        """What outcomes so far are worth, shape (N,): less where their contexts had returned."""
        return self._memory.weights(self._before.array)

    def _prepare(self, new: int) -> None:
        """Do a part of the next generation if it is time, after an update of `new` outcomes.

        Whenever the outcomes have doubled, columns are mapped anew, a kernel is fitted to a sample,
        and its member learns the past. That is done a step per update, so that no round stalls.
        """
        known = self.observations
        if self._fit is None and self._next is None and len(self) >= self._next_fit:
            self._next_fit = 2 * len(self)
            X, y, weights = sampled(known, self._worth, self._rng)
            y = (y - y.mean()) / unit_of(known.outcomes)
            self._fit = RelevanceFit(ColumnMap(self._reference()), X, y, weights)
        if self._fit is not None:
            self._fit.advance()
            if not self._fit.steps_left:
                kernel = self._fit.kernel
                self._next = Generation([Member(kernel, kernel.noise)], known.outcomes)
                self._fit = None
        elif self._next is not None:
            self._next.catch_up(known, self._worth, new)
            if self._next.learned == len(self):
                self._generation, self._next = self._next, None

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._version = object()
        if self._kernels is None:
            self._memory.fill(*self.observations.at(slice(len(self))))
