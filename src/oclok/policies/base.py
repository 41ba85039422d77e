"""What every policy is: rounds counted, decisions kept until their outcomes are in.

To add a policy, derive from `Policy`, write `_believe` (contexts → index) and `_learn`
(contexts and outcomes → a better belief), and run `oclok.testing.check_policy` on it. Late,
partial and out-of-order feedback, saving and loading come with the base class.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from oclok import persistence
from oclok.decision import Decision
from oclok.errors import FeedbackError, InputError, OracleError, StorageError
from oclok.oracles.base import Oracle
from oclok.persistence import Persistent
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_contexts, as_outcomes, as_positions


@dataclass(frozen=True)
class Belief:
    """What a policy thinks of the base arms of a round; each of shape (M,).

    Attributes:
        index: optimistic estimate of each base arm's mean outcome.
        mean, std: of f, where the policy has them.
        error: how far the index can be from that of the exact posterior, where that is known.
    """

    index: FloatArray
    mean: FloatArray | None = None
    std: FloatArray | None = None
    error: FloatArray | float | None = None

    def replaced(self, arms: BoolArray, other: Belief) -> Belief:
        """Return this belief with that of `other` about `arms`, a mask of shape (M,)."""
        changed = {}
        for name, value in self.__dict__.items():
            if value is not None:
                changed[name] = np.array(value)
                changed[name][arms] = getattr(other, name)
        return Belief(**changed)


class Policy(Persistent, ABC):
    """Choose a super arm each round, learn from the outcomes whenever they come.

    Args:
        oracle: default oracle; `select` can be given another one for its round.
        seed: seed of the policy's own randomness, for policies that have any.

    Attributes:
        round: t, the number of rounds (calls of `select`) so far.
    """

    def __init__(
        self, oracle: Oracle | None = None, seed: int | np.random.SeedSequence | None = None
    ) -> None:
        if oracle is not None and not isinstance(oracle, Oracle):
            raise OracleError(f"oracle must be an oclok.oracles.Oracle; got {oracle!r}")
        self.oracle = oracle
        self.round = 0
        self._rng = np.random.default_rng(seed if self._is_random else 0)
        self._dimension: int | None = None
        self._pending: dict[int, tuple[Decision, BoolArray]] = {}

    def select(self, contexts: ArrayLike, oracle: Oracle | None = None) -> Decision:
        """Choose a super arm among base arms with `contexts`, shape (M, D). Counts t up.

        Args:
            contexts: one row per base arm that is available in this round.
            oracle: feasible super arms of this round; the policy's own if left out.
        """
        X = self._as_contexts(contexts)
        chosen_by = self._oracle_for(oracle)
        t = self.round + 1
        rng = self._next_rng()
        belief = self._believe(X, t, rng)
        super_arm, belief, is_exact = self._choose(X, t, belief, chosen_by)
        super_arm = _as_super_arm(super_arm, len(X))
        decision = Decision.trusted(
            round=t,
            super_arm=super_arm,
            contexts=X[super_arm],
            index=belief.index[super_arm],
            mean=None if belief.mean is None else belief.mean[super_arm],
            std=None if belief.std is None else belief.std[super_arm],
            is_exact=is_exact,
        )
        self._decided(decision, X, belief)
        self.round, self._rng, self._dimension = t, rng, X.shape[1]
        if super_arm.size:
            self._pending[t] = (decision, np.ones(super_arm.size, dtype=bool))
        return decision

    def update(self, decision: Decision, outcomes: ArrayLike) -> None:
        """Learn the `outcomes`, shape (K,), of a decision's base arms, in their order.

        Outcomes may come late, out of order and in pieces: NaN stands where one was not seen,
        and another call may bring it. An outcome given twice, or one of a decision that this
        policy did not make, is a `FeedbackError`.
        """
        missing = self._missing(decision)
        y = as_outcomes(outcomes, missing.size, allow_nan=True)
        seen = ~np.isnan(y)
        if np.count_nonzero(seen > missing):
            twice = np.flatnonzero(seen > missing).tolist()
            raise FeedbackError(
                f"decision {decision.id}: outcomes of its base arms {twice} were given before; "
                "use NaN for outcomes that are not new"
            )
        if not seen.size:
            return
        count = np.count_nonzero(seen)
        if count == seen.size:
            self._learn(decision.contexts, y)
        elif count:
            self._learn(decision.contexts[seen], y[seen])
        missing = missing & ~seen
        if np.count_nonzero(missing):
            self._pending[decision.round] = (decision, missing)
        else:
            del self._pending[decision.round]

    def observe(self, contexts: ArrayLike, outcomes: ArrayLike) -> None:
        """Learn from data that the policy did not choose: contexts (N, D), outcomes (N,)."""
        X = self._as_contexts(contexts)
        y = as_outcomes(outcomes, len(X))
        self._learn(X, y)
        self._dimension = X.shape[1]

    def index(self, contexts: ArrayLike) -> FloatArray:
        """Return the indices, shape (M,), that `select` would use now. Changes nothing."""
        X = self._as_contexts(contexts)
        return self._believe(X, self.round + 1, self._next_rng()).index

    @property
    def pending(self) -> list[Decision]:
        """Decisions that wait for outcomes, oldest first."""
        return [decision for decision, _ in self._pending.values()]

    def discard(self, decision: Decision) -> None:
        """Stop waiting for the outcomes of `decision` that have not come."""
        if self._missing(decision).size:
            del self._pending[decision.round]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file, atomically; `load` continues exactly from here."""
        persistence.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a policy that `save` wrote. Nothing in the file is executed."""
        policy = persistence.load(path)
        if not isinstance(policy, cls):
            raise StorageError(f"{path}: holds a {type(policy).__name__}, not a {cls.__name__}")
        return policy

    _is_random: bool = False
    """Whether `_believe` draws from its `rng`; a class that does sets it to True."""

    @abstractmethod
    def _believe(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        """Return the belief about base arms with `contexts` in round `t`; change nothing."""

    @abstractmethod
    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        """Learn outcomes (N,) seen at contexts (N, D): all of them, or raise and none."""

    def _choose(
        self, contexts: FloatArray, t: int, belief: Belief, oracle: Oracle
    ) -> tuple[IntArray, Belief, bool]:
        """Return the super arm, the belief behind it and whether it is provably exact."""
        return oracle(belief.index), belief, False

    def _decided(self, decision: Decision, contexts: FloatArray, belief: Belief) -> None:
        """Take note of a decision that was just made among `contexts`, out of `belief`."""

    def _as_contexts(self, contexts: ArrayLike) -> FloatArray:
        """Return a read-only copy of `contexts`: finite, and of the dimension seen before."""
        return as_contexts(contexts, self._dimension)

    def _next_rng(self) -> np.random.Generator:
        """Return a generator in the state of the policy's own, to be kept if all goes well."""
        if not self._is_random:
            return self._rng
        bits = type(self._rng.bit_generator)(0)
        bits.state = self._rng.bit_generator.state
        return np.random.Generator(bits)

    def _oracle_for(self, oracle: Oracle | None) -> Oracle:
        chosen = self.oracle if oracle is None else oracle
        if chosen is None:
            raise OracleError(
                "no oracle: give one to the policy, or to select(contexts, oracle=…) each round"
            )
        if not isinstance(chosen, Oracle):
            raise OracleError(f"oracle must be an oclok.oracles.Oracle; got {chosen!r}")
        return chosen

    def _missing(self, decision: Decision) -> BoolArray:
        """Return which outcomes of `decision` have not come yet."""
        if not isinstance(decision, Decision):
            raise FeedbackError(f"expected a Decision made by select; got {decision!r}")
        if decision.super_arm.size == 0 and decision.round <= self.round:
            return np.zeros(0, dtype=bool)
        own, missing = self._pending.get(decision.round, (None, None))
        if missing is not None and (own is decision or own == decision):
            return missing
        if missing is None and decision.round <= self.round:
            raise FeedbackError(
                f"decision {decision.id} is not pending: all its outcomes were given before, or "
                "this policy did not make it"
            )
        raise FeedbackError(f"decision {decision.id} was not made by this policy")

    def _state(self) -> dict[str, Any]:
        return {**self.__dict__, "_pending": list(self._pending.values())}

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pending = {entry[0].round: entry for entry in state["_pending"]}


def _as_super_arm(super_arm: IntArray, arms: int) -> IntArray:
    """Return what an oracle chose as ascending positions below `arms`, or say what is wrong."""
    try:
        return as_positions(super_arm, "super_arm", arms)
    except InputError as reason:
        raise OracleError(f"the oracle made no valid choice: {reason}") from None
