"""The base of all policies: count rounds, keep decisions until their outcomes are in.

A round has three steps, and nothing else changes a policy:

    proposal = policy.propose(contexts)     pure: what to choose, and why
    policy.commit(proposal)                 the super arm is played; counts the round
    policy.learn(contexts, outcomes)        outcomes of base arms that were played

`select` proposes, commits and keeps the decision open; `update` learns the outcomes of an open
decision. An `Agent` keeps open decisions itself: it calls the three steps and passes the contexts
that wait for outcomes as `pending`.

To add a policy, derive from `Policy`, write `_score` (contexts → index) and `_learn`
(contexts and outcomes → a better belief), and run `oclok.testing.check_policy` on it. Late,
partial and out-of-order feedback, propensities, saving and loading come with the base class.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from oclok import persistence
from oclok.decision import Decision, Propensities
from oclok.errors import FeedbackError, InputError, OracleError, StorageError
from oclok.oracles.base import Oracle, as_oracle
from oclok.persistence import Persistent
from oclok.policies.pending import Pending
from oclok.posterior.prediction import Prediction
from oclok.typing import ArrayLike, FloatArray, IntArray, Seed
from oclok.validation import as_contexts, as_outcomes, as_positions

#: Draws that estimate a propensity: its standard error is at most 0.05.
PROPENSITY_DRAWS = 100
#: Most pending arms that a policy conditions on: the latest. The cost grows with their cube.
MOST_PENDING = 512


@dataclass(frozen=True, eq=False)
class Belief:
    """What a policy believes about the base arms of a round; arrays of shape (M,).

    Attributes:
        index: optimistic estimate of each base arm's mean outcome.
        mean, std: of f, where the policy has them.
        error: bound on the distance of the index from the exact posterior's: 0 where equal,
            infinite (the default) where no bound is known.
        prediction: of the policy's posterior, if it has one.
    """

    index: FloatArray
    mean: FloatArray | None = None
    std: FloatArray | None = None
    error: FloatArray = None  # type: ignore[assignment]  # filled in below
    prediction: Prediction | None = None

    def __post_init__(self) -> None:
        if self.error is None:
            object.__setattr__(self, "error", np.full(len(self.index), np.inf))

    @property
    def is_exact(self) -> bool:
        """Whether every index is the exact posterior's own."""
        return not np.count_nonzero(self.error)


@dataclass(frozen=True, eq=False)
class Played:
    """A round as it is played, by this policy or another system.

    Attributes:
        contexts: of all base arms available, shape (M, D), read-only.
        oracle: feasible super arms and their rewards; None if not known.
        super_arm: positions of the base arms played, ascending.
    """

    contexts: FloatArray
    oracle: Oracle | None
    super_arm: IntArray


@dataclass(frozen=True, eq=False)
class Proposal(Played):
    """A super arm that a policy proposes, and what it believes.

    Attributes:
        decision: the policy's decision. Another `super_arm` is played if another system decides.
        belief: about all M base arms.
        rng: the policy's generator after the draw.
    """

    oracle: Oracle
    decision: Decision
    belief: Belief
    rng: np.random.Generator


class Policy(Persistent, ABC):
    """Choose a super arm each round, learn from the outcomes whenever they come.

    Args:
        oracle: default oracle; `select` can be given another one for its round.
        seed: seed of the policy's own randomness, for policies that have any.

    Attributes:
        round: t, the number of rounds committed so far.
        awaited: number of outcomes of committed rounds that have not been learned.
        noise_std: of outcomes around f, as believed now; NaN where there is no such belief.
        uses_pending: whether `propose` takes `pending` into account.
    """

    noise_std: float = math.nan
    uses_pending: bool = False
    #: Whether `_score` draws from its `rng`; a class that does sets it to True.
    _is_random: bool = False

    def __init__(self, oracle: Oracle | None = None, seed: Seed = None) -> None:
        self.oracle = oracle if oracle is None else as_oracle(oracle)
        self.round = 0
        self.awaited = 0
        self._rng = np.random.default_rng(seed if self._is_random else 0)
        self._dimension: int | None = None
        self._pending = Pending()
        self._discarded = 0

    def select(self, contexts: ArrayLike, oracle: Oracle | None = None) -> Decision:
        """Choose a super arm among base arms with `contexts`, shape (M, D). Counts t up.

        `oracle` describes the feasible super arms of this round; the policy's own if left out.
        """
        proposal = self.propose(contexts, oracle, self._waiting())
        self.commit(proposal)
        self._pending.add(proposal.decision)
        return proposal.decision

    def update(self, decision: Decision, outcomes: ArrayLike) -> None:
        """Learn the `outcomes`, shape (K,), of a decision's base arms, in their order.

        Outcomes may come late, out of order and in pieces: NaN stands where one was not seen,
        and another call may bring it. An outcome given twice, or one of a decision that this
        policy did not make, is a `FeedbackError`.
        """
        y, seen = self._pending.match(decision, outcomes, self.round)
        if count := int(np.count_nonzero(seen)):
            X = decision.contexts
            X, y = (X, y.copy()) if count == len(seen) else (X[seen], y[seen])
            self._learn(X, y)
            self._pending.settle(decision, seen)
            self.awaited -= count

    def propose(
        self, contexts: ArrayLike, oracle: Oracle | None = None, pending: ArrayLike = ()
    ) -> Proposal:
        """Return what `select` would choose, and why. Changes nothing.

        `pending` are contexts (P, D) of base arms whose outcomes are outstanding, oldest first;
        only the latest 512 count, and only where `uses_pending`.
        """
        chosen_by = as_oracle(oracle, self.oracle)
        X = self._as_contexts(contexts)
        t, rng = self.round + 1, self._next_rng()
        belief = self._score(X, t, rng)
        super_arm, belief, is_exact = self._choose(t, belief, chosen_by, self._latest_of(pending))
        decision = Decision.trusted(
            round=t,
            super_arm=super_arm,
            contexts=X.take(super_arm, axis=0),
            index=belief.index[super_arm],
            mean=None if belief.mean is None else belief.mean[super_arm],
            std=None if belief.std is None else belief.std[super_arm],
            is_exact=is_exact,
        )
        return Proposal(X, chosen_by, super_arm, decision, belief, rng)

    def commit(self, played: Played) -> None:
        """Count a round that is played: a proposal, or what another system decided."""
        self._record(played)
        self.round += 1
        self.awaited += len(played.super_arm)
        self._dimension = played.contexts.shape[1]
        if isinstance(played, Proposal):
            self._rng = played.rng

    def learn(self, contexts: ArrayLike, outcomes: ArrayLike) -> None:
        """Learn outcomes (N,) of base arms that were played, with contexts (N, D)."""
        self.observe(contexts, outcomes)
        self.awaited -= len(np.asarray(outcomes))

    def observe(self, contexts: ArrayLike, outcomes: ArrayLike) -> None:
        """Learn from data that the policy did not choose: contexts (N, D), outcomes (N,)."""
        X = self._as_contexts(contexts)
        self._learn(X, as_outcomes(outcomes, len(X)))
        self._dimension = X.shape[1]

    def index(self, contexts: ArrayLike) -> FloatArray:
        """Return the indices, shape (M,), that `select` would use now. Changes nothing."""
        X = self._as_contexts(contexts)
        return self._score(X, self.round + 1, self._next_rng()).index

    def propensities(self, proposal: Proposal) -> Propensities | None:
        """Return how likely each base arm, and the super arm, was to be chosen.

        Exact where the policy can say, else estimated from `redraws`. None where nothing is random.
        """
        if not self._is_random:
            return None
        exact = self._exact_propensities(proposal)
        if exact is not None:
            return exact
        sets = self.redraws(proposal)
        return Propensities.counted(len(proposal.contexts), sets, proposal.decision.super_arm)

    def redraws(self, proposal: Proposal) -> list[IntArray]:
        """Return super arms that the policy might have chosen instead, and the one it did.

        The proposal itself is one of them, so that no arm it chooses has probability 0.
        """
        own = proposal.decision.super_arm
        if not self._is_random:
            return [own]
        rng = np.random.default_rng(int(_copied(proposal.rng).integers(2**63)))
        drawn = (self._redraw(proposal, rng) for _ in range(PROPENSITY_DRAWS))
        return [own, *(self._solve(proposal.oracle, index) for index in drawn)]

    @property
    def pending(self) -> list[Decision]:
        """Decisions that wait for outcomes, oldest first."""
        return [decision for decision, _ in self._pending]

    def discard(self, decision: Decision) -> None:
        """Stop waiting for the outcomes of `decision` that have not come."""
        if missing := int(np.count_nonzero(self._pending.missing(decision, self.round))):
            self._pending.settle(decision)
            self._discarded += missing
            self.awaited -= missing

    @property
    def can_correct(self) -> bool:
        """Whether the policy has a `correct`."""
        return type(self).correct is not Policy.correct

    def correct(self, contexts: ArrayLike, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        raise FeedbackError(f"{type(self).__name__} cannot correct an outcome it has learned")

    def maintain(self) -> None:
        """Do pending work now, so that later calls need not."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file, atomically; `load` continues exactly from here."""
        persistence.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a policy that `save` wrote. Nothing in the file is executed."""
        return persistence.load(path, cls)

    def __repr__(self) -> str:
        oracle = "no oracle" if self.oracle is None else repr(self.oracle)
        return f"{type(self).__name__}({oracle}): {self.round} rounds, {len(self._pending)} pending"

    @abstractmethod
    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        """Return the belief about base arms with `contexts` in round `t`; change nothing."""

    @abstractmethod
    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        """Learn outcomes (N,) seen at contexts (N, D): all of them, or raise and none."""

    def _choose(
        self, t: int, belief: Belief, oracle: Oracle, pending: FloatArray | None
    ) -> tuple[IntArray, Belief, bool | None]:
        """Return the super arm, the belief behind it and whether it is provably exact, if known."""
        return self._solve(oracle, belief.index), belief, None

    def _record(self, played: Played) -> None:
        """Record a committed round; raise and change nothing, or succeed."""

    def _exact_propensities(self, proposal: Proposal) -> Propensities | None:
        """Return the propensities of a random policy where they can be computed; else None."""
        return None

    def _redraw(self, proposal: Proposal, rng: np.random.Generator) -> FloatArray:
        """Return the indices (M,) that a random policy might have drawn instead."""
        return self._score(proposal.contexts, self.round + 1, rng).index

    def _solve(self, oracle: Oracle, index: FloatArray) -> IntArray:
        try:
            return as_positions(oracle(index), "super_arm", len(index))
        except InputError as reason:
            raise OracleError(f"the oracle made no valid choice: {reason}") from None

    def _waiting(self) -> FloatArray | tuple[()]:
        """Return the contexts (P, D) of open decisions, if the policy uses them."""
        return self._pending.contexts(MOST_PENDING) if self.uses_pending else ()

    def _latest_of(self, pending: ArrayLike) -> FloatArray | None:
        if not self.uses_pending or not len(np.asarray(pending)):
            return None
        return as_contexts(np.asarray(pending)[-MOST_PENDING:], self._dimension)

    def _as_contexts(self, contexts: ArrayLike) -> FloatArray:
        """Return a read-only copy of `contexts`: finite, and of the dimension seen before."""
        return as_contexts(contexts, self._dimension)

    def _next_rng(self) -> np.random.Generator:
        """Return a generator in the state of the policy's own; `commit` adopts it."""
        return _copied(self._rng) if self._is_random else self._rng

    def _restore(self, state: dict[str, Any]) -> None:
        if not isinstance(state["_pending"], Pending):
            raise StorageError("the pending decisions are missing")
        super()._restore(state)


def _copied(rng: np.random.Generator) -> np.random.Generator:
    """Return an independent generator in the same state."""
    bits = type(rng.bit_generator)(0)
    bits.state = rng.bit_generator.state
    return np.random.Generator(bits)
