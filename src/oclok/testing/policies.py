"""`check_policy`: whether a class is a policy that can be left to run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from oclok.decision import Decision
from oclok.errors import FeedbackError, OracleError
from oclok.oracles import Partition
from oclok.policies.base import Policy
from oclok.testing.assertions import (
    bad_contexts,
    bad_outcomes,
    check,
    check_alike,
    check_equal,
    check_refused,
    reloaded,
    saved,
    unchanged,
)
from oclok.typing import FloatArray

#: Rounds that a loaded policy is compared with the saved one.
ROUNDS = 50
#: Outcomes shown per arm, and rounds played afterwards, when judging whether a policy learns.
SEEN, PLAYED = 10, 10

IGNORES = "If the policy is meant to ignore outcomes, pass learns=False"


def check_policy(
    make: Callable[[], Policy],
    *,
    arms: int = 20,
    dimension: int = 2,
    learns: bool = True,
    seed: int = 0,
) -> None:
    """Raise an `AssertionError` that says what is wrong with the policies that `make` returns.

    Args:
        make: returns a new policy whose default oracle takes any number of base arms, such as
            `TopK`, and chooses at least two of them.
        arms: number of base arms of a round.
        dimension: D of the contexts to try; they lie in the unit cube.
        learns: the policy claims to learn: outcomes change its state, and raise or lower the
            index of the arms they were seen for. False for one that ignores outcomes.
        seed: seed of contexts and outcomes.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from oclok import OClokUCB
        >>> from oclok.oracles import TopK
        >>> check_policy(lambda: OClokUCB(RBF(0.5), noise_std=0.1, oracle=TopK(3)))
    """
    rounds = _Rounds(arms, dimension, np.random.default_rng(seed))
    _check_select(make(), rounds)
    _check_index(make(), rounds)
    _check_late_feedback(make(), rounds)
    _check_feedback_in_pieces(make(), rounds)
    _check_wrong_feedback(make(), make(), rounds)
    _check_bad_input(make(), rounds)
    _check_json(make(), rounds)
    _check_observe(make(), rounds)
    _check_discard(make(), rounds)
    _check_saving(make(), rounds)
    if learns:
        _check_learns_from_update(make(), rounds)
        _check_learns_from_observe(make(), rounds)


class _Rounds:
    """Seeded contexts, and outcomes for them."""

    def __init__(self, arms: int, dimension: int, rng: np.random.Generator) -> None:
        self._shape, self._rng = (arms, dimension), rng

    def contexts(self) -> FloatArray:
        return self._rng.random(self._shape)

    def outcomes(self, decision: Decision) -> FloatArray:
        noise = self._rng.standard_normal(len(decision))
        return np.asarray(np.sin(5 * decision.contexts[:, 0]) + 0.1 * noise)

    def play(self, policy: Policy, count: int) -> None:
        """Let `policy` select and learn for `count` rounds."""
        for _ in range(count):
            decision = policy.select(self.contexts())
            policy.update(decision, self.outcomes(decision))


def _check_select(policy: Policy, rounds: _Rounds) -> None:
    check(policy.round == 0, f"a new policy is in round 0; got {policy.round}")
    check(policy.pending == [], "a new policy waits for no outcomes")
    for t in range(1, 13):
        contexts = rounds.contexts()
        given = contexts.copy()
        decision = policy.select(contexts)
        check(isinstance(decision, Decision), f"select must return a Decision; got {decision!r}")
        check(decision.round == t, f"select number {t} made a decision of round {decision.round}")
        check(policy.round == t, f"after {t} selects the policy is in round {policy.round}")
        check_equal(contexts, given, "select wrote to the contexts it was given")
        _check_decision(decision, contexts)
        check(decision in policy.pending, "a decision is not pending after select")
        policy.update(decision, rounds.outcomes(decision))
        check(policy.round == t, "update changed the round")
        check(policy.pending == [], "a decision is still pending after all its outcomes")


def _check_decision(decision: Decision, contexts: FloatArray) -> None:
    chosen = decision.super_arm
    check(chosen.size >= 2, f"the oracle of `make` must choose two base arms; got {chosen.size}")
    check(chosen.dtype == np.intp, f"super_arm has dtype {chosen.dtype}; expected intp")
    check((np.diff(chosen) > 0).all(), f"super_arm is not ascending and distinct: {chosen}")
    wrong = "decision.contexts are not the contexts of its super arm"
    check_equal(decision.contexts, contexts[chosen], wrong)
    check(len(decision) == chosen.size, f"len(decision) is {len(decision)}")
    for name in ("super_arm", "contexts", "index", "mean", "std"):
        value = getattr(decision, name)
        if value is None:
            continue
        check(len(value) == chosen.size, f"decision.{name} has {len(value)} rows")
        check(np.isfinite(value).all(), f"decision.{name} is not finite: {value}")
        check(not value.flags.writeable, f"decision.{name} can be written to")
        check(not np.shares_memory(value, contexts), f"decision.{name} is a view of the contexts")


def _check_index(policy: Policy, rounds: _Rounds) -> None:
    for _ in range(8):
        contexts = rounds.contexts()
        with unchanged(policy, "index"):
            index = policy.index(contexts)
        again = policy.index(contexts)
        check(index.shape == (len(contexts),), f"index has shape {index.shape}")
        check_equal(index, again, "two calls of index in a row gave different numbers")
        decision = policy.select(contexts)
        if not getattr(policy, "condition_on_chosen", False):  # the index moves while it chooses
            wrong = "select used another index than the one that `index` returned just before"
            check_equal(decision.index, index[decision.super_arm], wrong)
        policy.update(decision, rounds.outcomes(decision))


def _check_late_feedback(policy: Policy, rounds: _Rounds) -> None:
    rounds.play(policy, 3)
    decisions = [policy.select(rounds.contexts()) for _ in range(6)]
    check(policy.pending == decisions, "pending is not the decisions without outcomes, in order")
    for position in (4, 0, 5, 2, 1, 3):
        policy.update(decisions[position], rounds.outcomes(decisions[position]))
    check(policy.pending == [], "decisions are pending after all outcomes came out of order")
    rounds.play(policy, 1)


def _check_feedback_in_pieces(policy: Policy, rounds: _Rounds) -> None:
    rounds.play(policy, 3)
    decision = policy.select(rounds.contexts())
    outcomes = rounds.outcomes(decision)
    with unchanged(policy, "an update with nothing but NaN"):
        policy.update(decision, np.full(len(decision), np.nan))
    for position in reversed(range(len(decision))):
        check(policy.pending == [decision], "a decision with missing outcomes is not pending")
        piece = np.full(len(decision), np.nan)
        piece[position] = outcomes[position]
        policy.update(decision, piece)
        _refuse_feedback(policy, decision, piece, "an outcome given twice")
    check(policy.pending == [], "a decision is pending after all its outcomes came in pieces")


def _check_wrong_feedback(policy: Policy, stranger: Policy, rounds: _Rounds) -> None:
    rounds.play(policy, 3)
    rounds.play(stranger, 3)
    decision = policy.select(rounds.contexts())
    outcomes = rounds.outcomes(decision)
    foreign, later = (stranger.select(rounds.contexts()) for _ in range(2))
    _refuse_feedback(policy, foreign, outcomes, "a decision of another policy, of this round")
    _refuse_feedback(policy, later, outcomes, "a decision of another policy, of a later round")
    _refuse_feedback(policy, None, outcomes, "no decision")
    policy.update(decision, outcomes)
    _refuse_feedback(policy, decision, outcomes, "all outcomes given twice")
    _refuse_feedback(policy, foreign, outcomes, "a decision of another policy, of a past round")


def _refuse_feedback(policy: Policy, decision: Any, outcomes: FloatArray, what: str) -> None:
    check_refused(policy, what, policy.update, decision, outcomes, error=FeedbackError)


def _check_bad_input(policy: Policy, rounds: _Rounds) -> None:
    contexts = rounds.contexts()
    for after in (0, 4):
        rounds.play(policy, after)
        for what, bad in bad_contexts(contexts).items():
            if what == "contexts of another dimension" and not after:
                continue  # nothing says yet which dimension is right
            check_refused(policy, what, policy.select, bad)
            check_refused(policy, what, policy.index, bad)
            zeros = np.zeros(len(contexts) + ("ragged" in what))
            check_refused(policy, what, policy.observe, bad, zeros)
        oracles = {"of another size": Partition([0] * (len(contexts) + 1), 1), "that is none": 5}
        for what, oracle in oracles.items():
            what = f"an oracle {what}"
            check_refused(policy, what, policy.select, contexts, oracle, error=OracleError)
        for what, bad in bad_outcomes(np.zeros(len(contexts))).items():
            check_refused(policy, what, policy.observe, contexts, bad)
    decision = policy.select(contexts)
    outcomes = rounds.outcomes(decision)
    for what, bad in bad_outcomes(outcomes, nan_is_bad=False).items():
        check_refused(policy, what, policy.update, decision, bad)
    policy.update(decision, outcomes)
    check(policy.pending == [], "a decision is pending though its outcomes came after bad ones")


def _check_json(policy: Policy, rounds: _Rounds) -> None:
    rounds.play(policy, 3)
    first, second = (policy.select(rounds.contexts()) for _ in range(2))
    for decision in (second, first):
        read = Decision.from_json(decision.to_json())
        check(read == decision and read.id == decision.id, "a decision is another after JSON")
        policy.update(read, rounds.outcomes(decision))
        outcomes = np.zeros(len(decision))
        _refuse_feedback(policy, decision, outcomes, "a decision learned through its JSON")


def _check_observe(policy: Policy, rounds: _Rounds) -> None:
    for after in (0, 3):
        rounds.play(policy, after)
        before = policy.round
        contexts = rounds.contexts()
        policy.observe(contexts, np.sin(5 * contexts[:, 0]))
        check(policy.round == before, "observe changed the round")
        check(policy.pending == [], "observe left something pending")
    rounds.play(policy, 3)


def _check_discard(policy: Policy, rounds: _Rounds) -> None:
    rounds.play(policy, 3)
    first, second, third = (policy.select(rounds.contexts()) for _ in range(3))
    piece = rounds.outcomes(second)
    piece[0] = np.nan
    policy.update(second, piece)
    policy.discard(second)
    check(policy.pending == [first, third], "discard did not drop just the one decision")
    late = np.where(np.isnan(piece), 0.5, np.nan)
    _refuse_feedback(policy, second, late, "outcomes of a discarded decision")
    what = "discarding a decision twice"
    check_refused(policy, what, policy.discard, second, error=FeedbackError)
    policy.update(third, rounds.outcomes(third))
    policy.update(first, rounds.outcomes(first))


def _check_saving(policy: Policy, rounds: _Rounds) -> None:
    rounds.play(policy, 5)
    early, late = (policy.select(rounds.contexts()) for _ in range(2))
    piece = rounds.outcomes(early)
    piece[0] = np.nan
    policy.update(early, piece)
    policy.index(rounds.contexts())
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "policy.oclok"
        with unchanged(policy, "save"):
            policy.save(path)
        loaded = type(policy).load(path)
    check(type(loaded) is type(policy), "loading gave another class")
    check(saved(loaded) == saved(policy), "a loaded policy would be saved as another file")
    check(loaded.pending == policy.pending, "a loaded policy waits for other outcomes")
    rest = np.where(np.isnan(piece), 0.5, np.nan)
    for one in (policy, loaded):
        one.update(early, rest)
    for _ in range(ROUNDS):
        contexts = rounds.contexts()
        decision, again = policy.select(contexts), loaded.select(contexts)
        wrong = f"a loaded policy decides otherwise in round {decision.round}"
        check_equal(again.super_arm, decision.super_arm, wrong)
        outcomes = rounds.outcomes(decision)
        policy.update(decision, outcomes)
        loaded.update(again, outcomes)
    outcomes = rounds.outcomes(late)
    for one in (policy, loaded):
        one.update(late, outcomes)
    check_alike(loaded, policy, "a loaded policy that went on")


def _check_learns_from_update(policy: Policy, rounds: _Rounds) -> None:
    rounds.play(policy, 2)
    decision = policy.select(rounds.contexts())
    outcomes, twin = rounds.outcomes(decision), reloaded(policy)
    policy.update(decision, outcomes)
    twin.update(decision, -outcomes)
    wrong = "outcomes given to update leave no trace in the state: does _learn do anything?"
    check(saved(policy) != saved(twin), f"{wrong} {IGNORES}")


def _check_learns_from_observe(policy: Policy, rounds: _Rounds) -> None:
    """Show the policy and a twin opposite outcomes: their indices must move apart accordingly.

    Over several rounds, as some of them may be spent on exploration whatever was seen.
    """
    contexts, twin = rounds.contexts(), reloaded(policy)
    outcomes = np.sin(5 * contexts[:, 0])
    for one, sign in ((policy, 1.0), (twin, -1.0)):
        one.observe(np.repeat(contexts, SEEN, axis=0), np.repeat(sign * outcomes, SEEN))
    moved = 0.0
    for _ in range(PLAYED):
        moved += float((policy.index(contexts) - twin.index(contexts)) @ outcomes)
        for one in (policy, twin):
            one.discard(one.select(contexts))
    wrong = "the index does not follow the outcomes seen: opposite outcomes moved it by"
    check(moved > 0, f"{wrong} {moved:.3g} in their direction. {IGNORES}")
