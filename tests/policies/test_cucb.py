from __future__ import annotations

import math

import numpy as np
import pytest

from oclok.errors import ContextError, InputError
from oclok.oracles import TopK
from oclok.persistence import dumps, loads
from oclok.policies.cucb import CUCB
from oclok.policies.grid import LARGEST_GRID


class PlainCUCB:
    """The rules of CUCB with top-K super arms, one arm and one cell at a time."""

    def __init__(self, cells, k):
        self.cells, self.k, self.outcomes = cells, k, {}

    def cell(self, context):
        return tuple(min(math.floor(x * self.cells), self.cells - 1) for x in context)

    def select(self, contexts, t):
        indices = []
        for context in contexts.tolist():
            seen = self.outcomes.get(self.cell(context))
            if seen is None:
                indices.append(math.inf)
            else:
                n = len(seen)
                indices.append(sum(seen) / n + math.sqrt(3 * math.log(t) / (2 * n)))
        best = sorted(range(len(indices)), key=lambda m: (-indices[m], m))[: self.k]
        return sorted(best), np.array(indices)

    def learn(self, contexts, outcomes):
        for context, outcome in zip(contexts.tolist(), outcomes, strict=True):
            self.outcomes.setdefault(self.cell(context), []).append(float(outcome))


@pytest.mark.parametrize(("dimension", "cells"), [(1, 1), (1, 7), (2, 4), (3, 3)])
@pytest.mark.parametrize("scale", [1.0, -1e6])
def test_every_decision_is_that_of_a_plain_transcription(dimension, cells, scale):
    rng = np.random.default_rng(0)
    plain = PlainCUCB(cells, k=3)
    policy = CUCB(dimension, cells, oracle=TopK(3))
    for t in range(1, 201):
        inside = rng.random((int(rng.integers(3, 12)), dimension))
        contexts = np.where(rng.random(inside.shape) < 0.2, np.round(inside * 4) / 4, inside)
        index = policy.index(contexts)
        decision = policy.select(contexts)
        super_arm, indices = plain.select(contexts, t)
        seen = np.isfinite(indices)
        assert decision.super_arm.tolist() == super_arm
        np.testing.assert_allclose(index[seen], indices[seen], rtol=1e-13)
        assert np.isfinite(index).all()
        if seen.any() and not seen.all():
            assert index[~seen].min() > index[seen].max()
        outcomes = scale * np.cos(decision.contexts).mean(axis=1)
        outcomes += 0.1 * rng.standard_normal(len(decision))
        policy.update(decision, outcomes)
        plain.learn(decision.contexts, outcomes)
    assert seen.all()


def test_an_outcome_that_was_not_seen_is_not_counted():
    policy = CUCB(dimension=1, cells=2, oracle=TopK(2))
    decision = policy.select([[0.1], [0.9]])
    policy.update(decision, [np.nan, 3.0])
    never_seen, seen = policy.index([[0.1], [0.9]])
    assert never_seen > seen == 3 + math.sqrt(3 * math.log(2) / 2)
    policy.update(decision, [4.0, np.nan])
    assert policy.index([[0.1]])[0] == 4 + math.sqrt(3 * math.log(2) / 2)


def test_a_loaded_policy_decides_as_the_saved_one_would_have():
    rng = np.random.default_rng(3)
    policy = CUCB(dimension=2, cells=3, oracle=TopK(2))
    policy.observe(rng.random((20, 2)), rng.random(20))
    loaded = loads(dumps(policy))
    assert isinstance(loaded, CUCB)
    for _ in range(50):
        contexts = rng.random((8, 2))
        decision = policy.select(contexts)
        assert loaded.select(contexts) == decision
        outcomes = rng.random(2)
        policy.update(decision, outcomes)
        loaded.update(decision, outcomes)


def test_a_context_outside_the_cube_is_refused_and_changes_nothing():
    policy = CUCB(dimension=2, cells=3, oracle=TopK(1))
    policy.observe([[0.3, 0.4]], [1.0])
    before = dumps(policy)
    contexts = [[0.5, 0.5], [0.2, -0.1]]
    for call in (
        lambda: policy.select(contexts),
        lambda: policy.index(contexts),
        lambda: policy.observe(contexts, [1.0, 2.0]),
    ):
        with pytest.raises(ContextError, match=r"unit cube \[0, 1\]\^2; row 1, column 1 is -0.1"):
            call()
    assert dumps(policy) == before


def test_contexts_of_another_dimension_are_refused():
    with pytest.raises(ContextError, match="2 columns"):
        CUCB(dimension=2, cells=3, oracle=TopK(1)).select([[0.1]])


def test_a_grid_that_does_not_fit_in_memory_is_refused():
    with pytest.raises(InputError, match="10000001 cells a side in dimension 1"):
        CUCB(dimension=1, cells=LARGEST_GRID + 1)


@pytest.mark.parametrize("wrong", [{"cells": 0}, {"cells": 2.5}, {"dimension": 0}])
def test_wrong_arguments_are_named(wrong):
    (name,) = wrong
    with pytest.raises(InputError, match=name):
        CUCB(**{"dimension": 2, "cells": 3, **wrong})
