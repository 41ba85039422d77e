"""Of workers that share a folder one learns, and the others know what it knows."""

from __future__ import annotations

import numpy as np

from oclok.oracles import TopK
from oclok.policies import UCB, Played
from oclok.service import sharing
from oclok.service.learner import Learner
from oclok.service.sharing import Sharing

X = np.random.default_rng(1).random((20, 3))


def teach(learner: Learner, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(5):
        contexts = rng.random((8, 3))
        learner.commit(Played(contexts, TopK(2), np.array([0, 3])))
        learner.learn(contexts[[0, 3]], contexts[[0, 3]].sum(axis=1))


def work(own: Sharing, learner: Learner) -> None:
    for _ in range(12):
        own.work(7, learner)


def test_a_follower_adopts_what_the_leader_has_learned(tmp_path, monkeypatch):
    monkeypatch.setattr(sharing, "EVERY", 0.0)
    monkeypatch.setattr(sharing, "MULTIPLE", 0.0)
    monkeypatch.setattr(sharing, "LOOK_EVERY", 0.0)
    first, second = Sharing(str(tmp_path)), Sharing(str(tmp_path))
    learners = [Learner(UCB(oracle=TopK(2))) for _ in range(3)]
    leader, follower, alone = learners
    for learner in learners:
        teach(learner, 0)
    work(first, leader)
    assert (leader.steps, leader.is_following) == (10, False)
    steps = []
    follower.policy.learn = lambda *_: steps.append(1)  # it takes no step of its own
    work(second, follower)
    assert (follower.steps, follower.waiting, follower.is_following) == (10, 0, True)
    assert not steps
    alone.catch_up()
    expected = alone.propose(X).belief.index
    np.testing.assert_allclose(follower.propose(X).belief.index, expected, atol=1e-9)

    # The leader drops its model: the follower goes on where it is.
    first.lead_only(())
    for learner in (follower, alone):
        teach(learner, 1)
    work(second, follower)
    alone.catch_up()
    assert (follower.steps, follower.is_following) == (20, False)
    expected = alone.propose(X).belief.index
    np.testing.assert_allclose(follower.propose(X).belief.index, expected, atol=1e-9)


def test_alone_a_worker_learns_for_every_agent():
    learner = Learner(UCB(oracle=TopK(2)))
    teach(learner, 0)
    work(Sharing(None), learner)
    assert (learner.steps, learner.is_following) == (10, False)
