from __future__ import annotations

from collections import Counter

import numpy as np

from oclok.oracles import TopK
from oclok.persistence import dumps, loads
from oclok.policies.random import Random

CONTEXTS = [[0.1], [-5.0], [2.0], [0.4]]


def test_every_super_arm_is_chosen_equally_often():
    policy = Random(oracle=TopK(2), seed=0)
    counts = Counter(tuple(policy.select(CONTEXTS).super_arm.tolist()) for _ in range(1200))
    assert len(counts) == 6
    assert min(counts.values()) > 150  # 200 expected, standard deviation 13


def test_outcomes_change_nothing():
    informed, blind = Random(oracle=TopK(1), seed=3), Random(oracle=TopK(1), seed=3)
    for _ in range(50):
        decision = informed.select(CONTEXTS)
        informed.update(decision, [1e6 * decision.super_arm[0]])
        informed.observe(CONTEXTS, [0.0, 1.0, 2.0, 3.0])
        assert blind.select(CONTEXTS) == decision


def test_indices_are_those_that_select_uses_next():
    policy = Random(oracle=TopK(4), seed=1)
    for _ in range(5):
        index = policy.index(CONTEXTS)
        np.testing.assert_array_equal(policy.index(CONTEXTS), index)
        np.testing.assert_array_equal(policy.select(CONTEXTS).index, index)


def test_a_loaded_policy_decides_as_the_saved_one_would_have():
    policy = Random(oracle=TopK(2), seed=1)
    policy.select(CONTEXTS)
    loaded = loads(dumps(policy))
    assert isinstance(loaded, Random)
    for _ in range(50):
        assert loaded.select(CONTEXTS) == policy.select(CONTEXTS)
