"""A policy that learns beside requests thinks what one that was taught directly thinks."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from oclok import persistence
from oclok.oracles import TopK
from oclok.policies import UCB, Played
from oclok.service.learner import AT_ONCE, Learner


class Slow(UCB):
    """A policy that learns only when it is let."""

    def __init__(self) -> None:
        super().__init__(oracle=TopK(2))
        self.go = threading.Event()

    def observe(self, contexts, outcomes) -> None:
        assert self.go.wait(60)
        super().observe(contexts, outcomes)


def taught(policy, rng, rounds: int = 30) -> None:
    for _ in range(rounds):
        X = rng.random((8, 3))
        policy.commit(Played(X, TopK(2), np.array([0, 3])))
        y = X[[0, 3]].sum(axis=1)
        policy.learn(X[[0, 3]], y)
    policy.correct(X[[3]], y[[1]], y[[1]] + 0.5)


def test_after_all_steps_it_is_as_if_taught_directly():
    directly, later = UCB(oracle=TopK(2)), Learner(UCB(oracle=TopK(2)))
    taught(directly, np.random.default_rng(0))
    taught(later, np.random.default_rng(0))
    assert later.round == directly.round == 30
    assert (later.steps, later.waiting) == (0, 61)
    assert len(later.policy.posterior) == 0
    X = np.random.default_rng(1).random((20, 3))
    expected = directly.posterior.predict(X)
    np.testing.assert_allclose(later.posterior.predict(X).mean, expected.mean, atol=1e-9)
    assert (later.steps, later.waiting) == (61, 0)
    told = later.regret()
    assert told.median == pytest.approx(directly.regret().median, rel=1e-6)
    assert told.rounds == 30
    later.commit(Played(X, TopK(2), np.array([0, 3])))
    later.catch_up()
    assert later.regret() is told  # until there are half as many rounds again


def test_a_decision_is_a_function_of_its_basis():
    first, second = Learner(UCB(oracle=TopK(2))), Learner(UCB(oracle=TopK(2)))
    X = np.random.default_rng(1).random((20, 3))
    for learner in (first, second):
        taught(learner, np.random.default_rng(0))
    first.catch_up(17)
    proposal = first.propose(X)
    assert first.model_version == 17
    first.catch_up()
    second.catch_up(first.model_version)
    again = second.propose(X)
    np.testing.assert_array_equal(proposal.super_arm, again.super_arm)
    np.testing.assert_allclose(proposal.belief.index, again.belief.index, atol=1e-9)
    assert np.abs(first.propose(X).belief.index - proposal.belief.index).max() > 1e-3


def test_teaching_does_not_wait_for_learning():
    slow = Slow()
    learner = Learner(slow)
    learner.observe(np.eye(3), np.ones(3))
    thread = threading.Thread(target=learner.work)
    thread.start()
    learner.observe(np.eye(3), np.zeros(3))  # returns, though a step is under way
    learner.commit(Played(np.eye(3), TopK(2), np.array([0, 1])))
    assert (learner.round, learner.steps, learner.waiting) == (1, 0, 3)
    slow.go.set()
    thread.join(60)
    learner.catch_up()
    assert len(learner.posterior) == 6


def test_many_outcomes_are_learned_in_several_steps():
    learner = Learner(UCB(oracle=TopK(2)))
    rng = np.random.default_rng(0)
    learner.observe(rng.random((2 * AT_ONCE + 1, 2)), rng.random(2 * AT_ONCE + 1))
    assert learner.waiting == 3
    assert learner.work()
    assert len(learner.policy.posterior) == AT_ONCE


def test_what_fails_has_no_effect_and_counts_as_a_step(caplog):
    learner = Learner(UCB(oracle=TopK(2)))
    learner.observe(np.eye(3), np.ones(3))
    learner.correct(np.eye(3), np.full(3, 7.0), np.ones(3))  # 7 was never taught
    learner.observe(np.eye(3), np.zeros(3))
    learner.catch_up()
    assert (learner.steps, len(learner.posterior)) == (3, 6)
    assert "failed" in caplog.text


def test_any_error_that_is_the_same_everywhere_counts_as_a_step(caplog):
    class Wrong(UCB):
        """Cannot learn."""

        def observe(self, contexts, outcomes) -> None:
            raise ZeroDivisionError

    learner = Learner(Wrong(oracle=TopK(2)))
    learner.observe(np.eye(3), np.ones(3))
    assert learner.work()
    assert (learner.steps, learner.waiting) == (1, 0)
    assert "had no effect" in caplog.text


def test_a_policy_that_is_adopted_knows_steps_that_come_later():
    ahead, behind = Learner(UCB(oracle=TopK(2))), Learner(UCB(oracle=TopK(2)))
    taught(ahead, np.random.default_rng(0), 5)
    taught(behind, np.random.default_rng(0), 2)  # 5 of 11 steps, of which the last is another one
    ahead.catch_up(9)
    X = np.random.default_rng(1).random((20, 3))
    expected = ahead.propose(X).belief.index
    behind.adopt(9, persistence.loads(ahead.dumped()[1]))
    assert (behind.steps, behind.waiting) == (9, 0)
    for _ in range(4):
        behind.observe(np.eye(3), np.ones(3))  # steps 6 to 9
    assert behind.waiting == 0
    behind.catch_up()
    np.testing.assert_allclose(behind.propose(X).belief.index, expected, atol=1e-9)
    behind.observe(np.eye(3), np.ones(3))
    assert behind.work()
    assert behind.steps == 10
    behind.adopt(9, UCB(oracle=TopK(2)))
    assert behind.steps == 10


def test_it_can_be_asked_while_it_is_written_down():
    class Slow(UCB):
        """Takes its time to be written down."""

        writing, go = threading.Event(), threading.Event()

        def _state(self) -> dict:
            self.writing.set()
            assert self.go.wait(60)
            return super()._state()

    learner = Learner(Slow(oracle=TopK(2)))
    learner.observe(np.eye(3), np.ones(3))
    learner.catch_up()
    thread = threading.Thread(target=learner.dumped)
    thread.start()
    assert Slow.writing.wait(60)
    assert len(learner.propose(np.eye(3)).super_arm) == 2
    Slow.go.set()
    thread.join(60)


def test_an_error_that_other_processes_may_not_have_leaves_the_step_to_be_tried_again():
    class Short(UCB):
        """Has no memory for the first step."""

        failures = 1

        def observe(self, contexts, outcomes) -> None:
            if self.failures:
                self.failures -= 1
                raise MemoryError
            super().observe(contexts, outcomes)

    learner = Learner(Short(oracle=TopK(2)))
    learner.observe(np.eye(3), np.ones(3))
    with pytest.raises(MemoryError):
        learner.work()
    assert (learner.steps, learner.waiting) == (0, 1)
    assert learner.work()
    assert (learner.steps, len(learner.posterior)) == (1, 3)


def test_it_is_saved_with_its_policy_beside_it():
    learner = Learner(UCB(oracle=TopK(2)))
    taught(learner, np.random.default_rng(0), 5)
    loaded, given = persistence.loads(persistence.dumps(learner)), learner.given
    steps, policy = learner.dumped(given)
    loaded.adopt(steps, persistence.loads(policy))
    assert (loaded.steps, loaded.round, loaded.waiting) == (11, 5, 0)
    X = np.random.default_rng(1).random((4, 3))
    expected = learner.propose(X).belief.index
    np.testing.assert_allclose(loaded.propose(X).belief.index, expected, atol=1e-9)
    loaded.observe(X, np.ones(4))
    assert len(loaded.posterior) == 14
