"""Which members a mixture has: dropped, tried again and fitted as outcomes come.

Members that foresaw the outcomes badly are dropped, so that few are left to pay for. Whenever the
outcomes have doubled, and when the survivors are surprised, dropped members are tried again on a
sample of the outcomes, and a member with a lengthscale per feature is fitted. Members that come
in late learn the past first. All of it is done a little per update, so that no round stalls.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import numpy as np

from oclok.errors import NumericalError
from oclok.persistence import Persistent
from oclok.posterior.dictionary.vecchia import VecchiaModel
from oclok.posterior.kernels import Covariance
from oclok.posterior.mixture.averaging import Mixed
from oclok.posterior.mixture.members import (
    AT_ONCE,
    CONSTANT,
    Candidate,
    Member,
    ScalePrior,
    default_candidates,
    dense_evidence,
    members_of,
    stationary_candidates,
)
from oclok.posterior.mixture.relevance import RelevanceFit
from oclok.posterior.mixture.scaling import SAMPLED, Known
from oclok.posterior.observations import Rows
from oclok.posterior.prediction import Prediction
from oclok.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Members below this fraction of the best are dropped, from so many outcomes on, ...
DROPPED, DROPPED_FROM = 1e-3, 40
#: ... and all but so many from so many outcomes on.
SURVIVORS = ((80, 4), (200, 2))
#: Members that are tried per update.
TRIED_PER_UPDATE = 3
#: Samples on which a member has to be better than those present before it learns all of the past.
#: On one sample of 12,000 outcomes, 13% of them defaults, each of 6 members was better by chance in
#: 2% to 25% of 60 draws; none of them was in 8 draws of 512 outcomes.
SAMPLES = 2
#: Outcomes that a late member learns per update: so many, and so many times those of the update.
#: One that looks up the nearest outcomes learns fewer: they take it 0.7 ms each, so that 80 took
#: 60 ms, for which a decision of 1 ms waited.
CATCH_UP, CATCH_UP_RATE, CATCH_UP_NEAREST = 80, 4, 16
#: Surprises count once there are so many times the outcomes of the last trials: a member that
#: comes in learns all of the past, which is linear in N only if that is a geometric series.
LEAST_GROWTH = 1.25
#: Fits begin at this many outcomes, and again at each doubling.
FIRST_FIT = 20
#: Gradient steps per update: so many, and fewer for more outcomes: steps times outcomes.
MOST_STEPS, FIT_WORK = 8, 1024
#: Log evidence that a fitted hyperparameter costs, in log N: half of what BIC takes.
FIT_PENALTY = 0.25


class Ensemble(Persistent):
    """The members of a mixture, and those that may come in.

    Args:
        kernels: kernels to choose from; None for the default set, and with it a member with a
            lengthscale per feature that is fitted.
        ratios: noise variances to choose from; a member is a kernel and a ratio.
        known: the first outcomes.
        seed: draws the outcomes that fits and trials look at.
    """

    def __init__(
        self, kernels: list[Kernel] | None, ratios: list[float], known: Known, seed: int
    ) -> None:
        self._is_default = kernels is None
        self._candidates = _given(kernels) or default_candidates(known.dimension)
        self._ratios = ratios
        self._rng = np.random.default_rng(seed)
        self.members = _sharing(known.scaled(), members_of(self._candidates, ratios))
        self._late: list[Member] = []
        self._trials: list[int] = []
        self._fit: RelevanceFit | None = None
        self._next_doubling = FIRST_FIT

    def learn(self, parts: list[Prediction], y: FloatArray, weights: FloatArray) -> None:
        """Let all members learn, and keep those that can, in double precision; at least one.

        If none can, raise and leave all as they are.
        """
        self.members = _learned(self.members, parts, y, weights)

    def learn_first(self, known: Known) -> None:
        """Learn all outcomes; of more than SAMPLED, with the members that foresee a sample best.

        All 30 members learning 270 outcomes took a second.
        """
        x, y, w = known.at()
        if len(y) > SAMPLED:
            evidence = _evidence_of(self.members, known.sample(self._rng), known.prior)
            best = np.argsort(-evidence, kind="stable")[: SURVIVORS[0][1]]
            self.members = [self.members[n] for n in sorted(best)]
        self.learn([Prediction.of(x)] * len(self.members), y, w)

    def relearn(self, known: Known) -> None:
        """Learn everything anew: the contexts' scale or some outcomes have changed."""
        self._late = []
        x, y, w = known.at()
        fresh = _sharing(known.scaled(), [member.empty() for member in self.members])
        self.members = _learned(fresh, [Prediction.of(x)] * len(fresh), y, w)

    def correct(
        self, positions: IntArray, x: FloatArray, before: FloatArray, after: FloatArray
    ) -> None:
        """Replace outcomes of weight 1, those at `positions`, seen at x (N, D), by `after` (N,)."""
        for member in (*self.members, *self._late):
            rows = positions < len(member)  # a late one may not have come to them
            if rows.any():
                member.correct(x[rows], before[rows], after[rows])

    def discount(self, rate: float) -> None:
        """Let what was learned, and the evidence it gave, count less."""
        for member in self.members:
            member.discount(rate)
        self._late, self._fit = [], None

    def drop(self, known: Known) -> None:
        """Drop members that foresaw the outcomes badly."""
        if len(known) < DROPPED_FROM:
            return
        weights = Mixed.of(self.members, known.prior).weights
        most = min([count for least, count in SURVIVORS if len(known) >= least], default=None)
        order = np.argsort(-weights, kind="stable")[:most]
        kept = sorted(n for n in order if weights[n] >= DROPPED * weights.max())
        self.members = [self.members[n] for n in kept]

    def is_due(self, known: Known) -> bool:
        """Return whether the outcomes have doubled, or surprise the heaviest member."""
        if len(known) >= self._next_doubling:
            return True
        if len(known) < LEAST_GROWTH * self._next_doubling / 2:
            return False
        heaviest = Mixed.of(self.members, known.prior).heaviest
        return heaviest.is_surprised(known.prior) and not (self._trials or self._late)

    def begin(self, known: Known) -> None:
        """Begin what is due: trials of dropped members, and a fit."""
        for member in self.members:
            member.calm()
        self._next_doubling = 2 * len(known)
        if self._is_default:
            x, y, _ = known.at()
            self._fit = RelevanceFit(x, y, *known.prior, self._rng)
        present = {member.number for member in (*self.members, *self._late)}
        every = range(len(self._candidates) * len(self._ratios))
        self._trials = [n for n in every if n not in present]

    def work(self, known: Known, new: int) -> bool:
        """Do a part of what is due, after an update of `new` outcomes; return whether any was."""
        if self._fit is not None:
            self._fit.advance(max(1, min(MOST_STEPS, FIT_WORK // self._fit.size)))
            if not self._fit.steps_left:
                fitted = self._fitted(self._fit, len(known))
                self._late = [*_sharing(self._contexts, [fitted]), *self._late]
                self._fit = None
        elif self._late:
            is_slow = isinstance(self._late[0].posterior.in_use, VecchiaModel)
            least = CATCH_UP_NEAREST if is_slow else CATCH_UP
            self._catch_up(known, max(least, CATCH_UP_RATE * new))
        elif self._trials:
            tried, self._trials = self._trials[:TRIED_PER_UPDATE], self._trials[TRIED_PER_UPDATE:]
            better = list(map(self._made, tried))
            for _ in range(SAMPLES):
                better = self._better(better, known)
            self._late += _sharing(self._contexts, better)
        else:
            return False
        return True

    @property
    def _contexts(self) -> Rows:
        return self.members[0].posterior.observations.rows

    def _better(self, tried: list[Member], known: Known) -> list[Member]:
        """Return those that foresee a sample of the outcomes better than all present members."""
        if not tried:
            return []
        present, sample = len(self.members), known.sample(self._rng)
        evidence = _evidence_of([*self.members, *tried], sample, known.prior)
        best = evidence[:present].max()
        return [tried[n] for n in np.flatnonzero(evidence[present:] > best)]

    def _made(self, number: int) -> Member:
        kernel, penalty = self._candidates[number // len(self._ratios)]
        return Member(kernel, self._ratios[number % len(self._ratios)], number, penalty)

    def _fitted(self, fit: RelevanceFit, count: int) -> Member:
        from sklearn.gaussian_process.kernels import RBF

        penalty = FIT_PENALTY * (len(fit.lengthscales) + 1) * math.log(count)
        return Member(RBF(fit.lengthscales) + CONSTANT, fit.noise_ratio, penalty=penalty)

    def _catch_up(self, known: Known, count: int) -> None:
        """Let the first late member learn `count` outcomes, and come in if that was all."""
        member = self._late[0]
        x, y, w = known.at(slice(len(member), len(member) + count))
        try:
            member.learn(Prediction.of(x), y, w)
        except NumericalError:
            self._late.remove(member)
            return
        if len(member) < len(known):
            return
        self._late.remove(member)
        if member.is_fitted:
            self.members = [other for other in self.members if not other.is_fitted]
        self.members.append(member)
        self.drop(known)


def prior_members(
    kernels: list[Kernel] | None, ratios: list[float], dimension: int
) -> list[Member]:
    """Return members before any data, of D-dimensional contexts whose origin is not known yet."""
    return members_of(_given(kernels) or stationary_candidates(dimension), ratios)


def _given(kernels: list[Kernel] | None) -> list[Candidate]:
    return [Candidate(Covariance(kernel)) for kernel in kernels or ()]


def _sharing(contexts: Rows, members: list[Member]) -> list[Member]:
    """Return new members that have the contexts they learn from in the same rows."""
    for member in members:
        member.posterior.share(contexts)
    return members


def _evidence_of(
    members: list[Member], sample: tuple[FloatArray, FloatArray, FloatArray], prior: ScalePrior
) -> FloatArray:
    """Return the members' evidence of a sample of the outcomes, shape (members,)."""
    x, y, w = sample
    covariances: dict[int, FloatArray] = {}  # several members have the same kernel
    evidence = []
    for member in members:
        kernel = member.posterior.prior
        if id(kernel) not in covariances:
            covariances[id(kernel)] = kernel.of(x)
        found = dense_evidence(covariances[id(kernel)], member.ratio / w, y, prior)
        evidence.append(found - member.penalty)
    return np.array(evidence)


def _learned(
    members: list[Member], parts: list[Prediction], y: FloatArray, weights: FloatArray
) -> list[Member]:
    """Let all members learn, and return those that can, in double precision; at least one."""
    if len(y) > AT_ONCE:  # a failure would leave them with a part of y
        rows = members[0].posterior.observations.rows
        members = copy.deepcopy(members, {id(rows): rows})
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
