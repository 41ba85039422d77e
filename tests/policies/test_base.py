from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Ridge

from oclok.decision import Decision
from oclok.errors import ContextError, FeedbackError, OclokError, OracleError, OutcomeError
from oclok.oracles import Partition, TopK
from oclok.oracles.base import SumOracle
from oclok.persistence import dumps, loads
from oclok.policies import (
    ACCUCB,
    CCMAB,
    EpsilonGreedy,
    LinearThompson,
    NeuralLinear,
    OClokUCB,
    Played,
    Policy,
    Random,
    ThompsonSampling,
)
from oclok.posterior import ExactPosterior
from oclok.testing.assertions import check_alike

CONTEXTS = np.random.default_rng(0).random((6, 2))


def new_policy() -> OClokUCB:
    return OClokUCB(RBF(0.5), 0.1, TopK(3))


def played(rounds: int = 3) -> OClokUCB:
    policy, rng = new_policy(), np.random.default_rng(1)
    for _ in range(rounds):
        decision = policy.select(rng.random((6, 2)))
        policy.update(decision, rng.standard_normal(3))
    return policy


class Feedback(RuleBasedStateMachine):
    """Outcomes in any order and in pieces, against a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.policy: Policy = new_policy()
        self.rng = np.random.default_rng(7)
        self.learned: list[tuple[np.ndarray, float]] = []
        self.missing: dict[int, list[bool]] = {}
        self.decisions: dict[int, Decision] = {}

    @rule()
    def select(self) -> None:
        decision = self.policy.select(self.rng.random((6, 2)))
        self.decisions[decision.round] = decision
        self.missing[decision.round] = [True] * len(decision)

    @precondition(lambda self: self.decisions)
    @rule(data=st.data())
    def update(self, data: st.DataObject) -> None:
        t = data.draw(st.sampled_from(sorted(self.decisions)))
        seen = data.draw(st.lists(st.booleans(), min_size=3, max_size=3))
        decision = self.decisions[t]
        if data.draw(st.booleans()):
            decision = Decision.from_json(decision.to_json())
        outcomes = np.where(seen, self.rng.standard_normal(3), np.nan)
        missing = self.missing.get(t)
        if missing is None or any(s and not m for s, m in zip(seen, missing, strict=True)):
            before = dumps(self.policy)
            with pytest.raises(FeedbackError):
                self.policy.update(decision, outcomes)
            assert dumps(self.policy) == before
            return
        self.policy.update(decision, outcomes)
        self.learned += [(x, y) for x, y in zip(decision.contexts, outcomes, strict=True) if y == y]
        left = [m and not s for s, m in zip(seen, missing, strict=True)]
        if any(left):
            self.missing[t] = left
        else:
            del self.missing[t]

    @precondition(lambda self: self.missing)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        t = data.draw(st.sampled_from(sorted(self.missing)))
        self.policy.discard(self.decisions[t])
        del self.missing[t]

    @rule(count=st.integers(1, 4))
    def observe(self, count: int) -> None:
        X, y = self.rng.random((count, 2)), self.rng.standard_normal(count)
        self.policy.observe(X, y)
        self.learned += zip(X, y, strict=True)

    @rule()
    def restart(self) -> None:
        policy = loads(dumps(self.policy))
        assert isinstance(policy, Policy)
        self.policy = policy

    @invariant()
    def pending_is_what_is_missing(self) -> None:
        assert [decision.round for decision in self.policy.pending] == sorted(self.missing)
        assert len(self.policy.posterior) == len(self.learned)

    def teardown(self) -> None:
        if not self.learned:
            return
        judge = ExactPosterior(RBF(0.5), 0.1)
        judge.update([x for x, _ in self.learned], [y for _, y in self.learned])
        for ours, theirs in zip(
            self.policy.posterior.predict(CONTEXTS), judge.predict(CONTEXTS), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8)


Feedback.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestFeedbackComesInAnyOrder = Feedback.TestCase


def with_a_string() -> pd.DataFrame:
    table = pd.DataFrame(CONTEXTS, columns=["x", "y"])
    table["y"] = ["north"] * 6
    return table


BAD_CONTEXTS: dict[str, tuple[Any, str]] = {
    "NaN": (np.where(CONTEXTS[2, 1] == CONTEXTS, np.nan, CONTEXTS), "row 2, column 1 is nan"),
    "infinity": (np.where(CONTEXTS[0, 0] == CONTEXTS, np.inf, CONTEXTS), "row 0, column 0 is inf"),
    "dimension": (np.ones((4, 3)), r"2 columns.*\(4, 3\)"),
    "ragged": ([[1.0, 2.0], [3.0]], "rectangular"),
    "no arms": (np.empty((0, 2)), "no base arms"),
    "no arms, an empty list": ([], "shape"),
    "strings": ([["a", "b"]], "numbers.*'a'"),
    "a data frame with a string column": (with_a_string(), "numbers.*'north'"),
    "a data frame with missing numbers": (
        pd.DataFrame({"x": [1, None], "y": [0.5, 0.5]}),
        "row 1, column 0 is nan",
    ),
}


@pytest.mark.parametrize("kind", BAD_CONTEXTS)
@pytest.mark.parametrize("method", ["select", "index", "observe"])
def test_bad_contexts_are_named_and_change_nothing(kind: str, method: str) -> None:
    policy = played()
    before = dumps(policy)
    contexts, message = BAD_CONTEXTS[kind]
    call = {
        "select": policy.select,
        "index": policy.index,
        "observe": lambda X: policy.observe(X, np.zeros(len(X))),
    }[method]
    with pytest.raises(ContextError, match=message):
        call(contexts)
    assert dumps(policy) == before


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ([0.1, np.inf, 0.2], "position 1 is inf"),
        ([0.1, 0.2], r"shape \(3,\).*\(2,\)"),
        ([[0.1, 0.2, 0.3]], r"shape \(3,\)"),
        (["high", 0.1, 0.2], "numbers"),
        (None, "numbers"),
        ([0.1, [0.2], 0.3], "rectangular"),
    ],
)
def test_bad_outcomes_are_named_and_change_nothing(outcomes: Any, message: str) -> None:
    policy = played()
    decision = policy.select(CONTEXTS)
    before = dumps(policy)
    with pytest.raises(OutcomeError, match=message):
        policy.update(decision, outcomes)
    assert dumps(policy) == before
    policy.update(decision, [0.1, 0.2, 0.3])


def test_an_oracle_of_another_size_is_named_and_changes_nothing() -> None:
    policy = played()
    before = dumps(policy)
    with pytest.raises(OracleError, match="6") as caught:
        policy.select(CONTEXTS, Partition(groups=[0, 0, 1, 1], limits={0: 1, 1: 1}))
    assert "4" in str(caught.value)
    assert dumps(policy) == before


def test_no_oracle_at_all_is_named_and_changes_nothing() -> None:
    policy = OClokUCB(RBF(0.5), 0.1)
    before = dumps(policy)
    with pytest.raises(OracleError, match="oracle"):
        policy.select(CONTEXTS)
    assert dumps(policy) == before
    assert len(policy.select(CONTEXTS, TopK(2))) == 2


def test_contexts_that_do_not_fit_the_kernel_do_not_spoil_a_new_policy() -> None:
    policy = OClokUCB(RBF([0.5, 0.5]), 0.1, TopK(1))
    before = dumps(policy)
    with pytest.raises(ContextError):
        policy.select(np.ones((4, 3)))
    assert dumps(policy) == before
    policy.update(policy.select(CONTEXTS), [0.5])


class Lists(SumOracle):
    """A user's own oracle that returns what NumPy would take for positions."""

    alpha = 1.0

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def _solve(self, index: Any) -> Any:
        return self.answer

    def is_feasible(self, super_arm: Any) -> bool:
        return True


@pytest.mark.parametrize("answer", [[0, 2], np.array([2, 0]), np.array([0, 2], dtype=np.int32)])
def test_positions_from_a_users_oracle_become_a_decision(answer: Any) -> None:
    policy = new_policy()
    decision = policy.select(CONTEXTS, Lists(answer))
    assert decision.super_arm.tolist() == [0, 2]
    np.testing.assert_array_equal(decision.contexts, CONTEXTS[[0, 2]])
    policy.update(Decision.from_json(decision.to_json()), [0.1, 0.2])


@pytest.mark.parametrize("answer", [[0, 6], [0, 0], [-1], [0.5], ["a"], None])
def test_positions_that_are_none_are_the_oracles_fault_and_change_nothing(answer: Any) -> None:
    policy = played()
    before = dumps(policy)
    with pytest.raises(OclokError):
        policy.select(CONTEXTS, Lists(answer))
    assert dumps(policy) == before


def test_a_round_without_a_feasible_base_arm_needs_no_outcomes() -> None:
    policy = played()
    decision = policy.select(CONTEXTS, Lists(np.empty(0, dtype=np.intp)))
    assert len(decision) == 0
    assert policy.pending == []
    policy.update(decision, [])
    assert Decision.from_json(decision.to_json()) == decision


def test_a_decision_of_another_policy_is_refused_though_its_round_is_pending() -> None:
    policy, stranger = played(), played()
    policy.select(CONTEXTS)
    foreign = stranger.select(CONTEXTS[::-1] + 0.01)
    before = dumps(policy)
    with pytest.raises(FeedbackError, match="not made by this policy"):
        policy.update(foreign, [0.1, 0.2, 0.3])
    assert dumps(policy) == before


def test_feedback_comes_after_a_restart(tmp_path: Any) -> None:
    policy = played()
    decision = policy.select(CONTEXTS)
    text = decision.to_json()
    policy.save(tmp_path / "policy")
    after = Policy.load(tmp_path / "policy")
    for one in (policy, after):
        one.update(Decision.from_json(text), [0.1, 0.2, 0.3])
    check_alike(policy, after, "a loaded policy")


def test_writing_to_contexts_after_select_does_not_reach_the_policy() -> None:
    policy, twin = played(), played()
    contexts = CONTEXTS.copy()
    decision = policy.select(contexts)
    contexts[:] = 9.0
    policy.update(decision, [0.1, 0.2, 0.3])
    twin.update(twin.select(CONTEXTS), [0.1, 0.2, 0.3])
    assert dumps(policy) == dumps(twin)


@pytest.mark.parametrize("look", ["index", "dumps", "predict"])
def test_looking_between_select_and_update_changes_nothing_that_is_learned(look: str) -> None:
    looked, blind = played(0), played(0)
    rng = np.random.default_rng(3)
    for _ in range(30):
        contexts, outcomes, other = rng.random((20, 2)), rng.standard_normal(3), rng.random((7, 2))
        first, second = looked.select(contexts), blind.select(contexts)
        if look == "index":
            looked.index(other)
        elif look == "predict":
            looked.posterior.predict(other)
        else:
            dumps(looked)
        looked.update(first, outcomes)
        blind.update(second, outcomes)
    assert dumps(looked) == dumps(blind)


def test_loading_as_another_class_is_refused(tmp_path: Any) -> None:
    from oclok.errors import StorageError
    from oclok.policies.random import Random

    played().save(tmp_path / "policy")
    assert type(Policy.load(tmp_path / "policy")) is OClokUCB
    with pytest.raises(StorageError, match=r"OClokUCB.*Random"):
        Random.load(tmp_path / "policy")


class TestProposals:
    """What is proposed, committed and learned, as `select` and `update` do it."""

    def test_a_proposal_changes_nothing_and_is_what_select_chooses(self) -> None:
        policy = played()
        before = dumps(policy)
        proposal = policy.propose(CONTEXTS)
        assert dumps(policy) == before
        assert policy.select(CONTEXTS) == proposal.decision

    @pytest.mark.parametrize("make", [new_policy, lambda: ThompsonSampling(oracle=TopK(3), seed=0)])
    def test_the_three_steps_are_select_and_update(self, make: Any) -> None:
        one, other, rng = make(), make(), np.random.default_rng(3)
        for _ in range(12):
            contexts, outcomes = rng.random((6, 2)), rng.standard_normal(3)
            decision, proposal = one.select(contexts), other.propose(contexts)
            assert proposal.decision == decision
            one.update(decision, outcomes)
            other.commit(proposal)
            assert other.awaited == 3
            other.learn(contexts[proposal.super_arm], outcomes)
        assert (other.round, other.awaited, one.awaited) == (12, 0, 0)
        assert dumps(one) == dumps(other)

    def test_a_round_that_another_system_decided_counts_and_its_outcomes_are_learned(self) -> None:
        policy = played()
        policy.commit(Played(CONTEXTS, TopK(3), np.array([0, 5])))
        assert (policy.round, policy.awaited, policy.pending) == (4, 2, [])
        policy.learn(CONTEXTS[[0, 5]], [1.0, 2.0])
        assert (policy.awaited, len(policy.posterior)) == (0, 11)
        assert policy.certificate().rounds == 3

    def test_outside_data_settle_nothing_that_is_awaited(self) -> None:
        policy = played()
        policy.select(CONTEXTS)
        policy.observe(CONTEXTS[:3], [0.0, 0.0, 0.0])
        assert policy.awaited == 3


class TestPropensities:
    """How likely a random policy is to choose each base arm."""

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Random(TopK(2), seed=0),
            lambda: ThompsonSampling(RBF(0.5), 0.3, TopK(2), seed=0),
            lambda: EpsilonGreedy(Ridge(), 0.5, TopK(2), seed=0),
            lambda: LinearThompson(0.5, TopK(2), seed=0),
            lambda: NeuralLinear(0.5, TopK(2), seed=0),
            lambda: CCMAB(100, 2, TopK(2), seed=0),
            lambda: ACCUCB(100, 2, oracle=TopK(2), seed=0),
        ],
        ids=["Random", "Thompson", "EpsilonGreedy", "Linear", "Neural", "CCMAB", "ACCUCB"],
    )
    def test_they_are_how_often_arms_are_chosen(self, make: Any) -> None:
        policy, rng = make(), np.random.default_rng(1)
        policy.observe(CONTEXTS[:3], [0.3, 0.1, 0.2])
        counts, estimates = np.zeros(6), np.zeros(6)
        for _ in range(30):
            proposal = policy.propose(CONTEXTS)
            p = policy.propensities(proposal).arms
            assert (p[proposal.super_arm] > 0).all()
            np.testing.assert_allclose(p.sum(), 2)
            counts[proposal.super_arm] += 1
            estimates += p
            policy.commit(proposal)
        # Both are means of 30 rounds, with a standard error of at most 0.09.
        np.testing.assert_allclose(estimates / 30, counts / 30, atol=0.35)
        again = policy.propose(rng.random((6, 2)))
        first, second = policy.propensities(again), policy.propensities(again)
        np.testing.assert_array_equal(first.arms, second.arms)
        assert 0 < first.super_arm == second.super_arm <= 1

    def test_a_random_super_arm_has_k_of_m(self) -> None:
        policy = Random(TopK(2), seed=0)
        p = policy.propensities(policy.propose(CONTEXTS))
        assert p is not None
        np.testing.assert_allclose(p.arms, 1 / 3)
        assert (p.super_arm, p.draws) == (1 / 15, 0)
        fixed = policy.propensities(policy.propose(CONTEXTS, TopK(2).given([1], [0])))
        assert fixed is not None
        np.testing.assert_allclose(fixed.arms, [0, 1, 0.25, 0.25, 0.25, 0.25])
        assert fixed.super_arm == 0.25

    def test_epsilon_greedy_states_its_formula(self) -> None:
        policy = EpsilonGreedy(Ridge(), 0.3, TopK(1), seed=0)
        policy.observe(CONTEXTS, CONTEXTS[:, 0])
        proposal = policy.propose(CONTEXTS)
        p, mean = policy.propensities(proposal), proposal.belief.mean
        assert p is not None
        assert mean is not None
        expected = np.full(6, 0.3 / 6)
        expected[np.argmax(mean)] += 0.7
        np.testing.assert_allclose(p.arms, expected)
        assert (p.super_arm, p.draws) == (expected[proposal.super_arm[0]], 0)

    def test_thompson_sampling_of_two_arms_is_a_normal_probability(self) -> None:
        policy = ThompsonSampling(RBF(0.5), 0.3, TopK(1), seed=0)
        policy.observe([[0.0], [0.0], [1.0]], [0.2, 0.1, -0.1])
        estimates = []
        for _ in range(40):
            proposal = policy.propose([[0.0], [1.0]])
            estimates.append(policy.propensities(proposal).arms[0])  # type: ignore[union-attr]
            policy.commit(proposal)
        mean, _ = policy.posterior.predict([[0.0], [1.0]])
        C = policy.posterior.covariance([[0.0], [1.0]])
        expected = norm.cdf((mean[0] - mean[1]) / np.sqrt(C[0, 0] + C[1, 1] - 2 * C[0, 1]))
        assert abs(np.mean(estimates) - expected) < 0.04

    def test_a_policy_that_is_not_random_has_none(self) -> None:
        policy = new_policy()
        assert policy.propensities(policy.propose(CONTEXTS)) is None
