from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oclok.errors import ContextError, InputError
from oclok.oracles import TopK
from oclok.persistence import dumps, loads
from oclok.policies.acc_ucb import ACCUCB
from oclok.policies.grid import CCMAB, CUCB, LARGEST_GRID

MAKE = {
    "CUCB": lambda: CUCB(dimension=2, cells=3, oracle=TopK(2)),
    "CCMAB": lambda: CCMAB(horizon=100, dimension=2, oracle=TopK(2), seed=1),
}
#: All that know the unit cube.
IN_THE_CUBE = {**MAKE, "ACCUCB": lambda: ACCUCB(10, 2, oracle=TopK(1), seed=0)}


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
def test_every_decision_of_cucb_is_that_of_a_plain_transcription(dimension, cells, scale):
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
        assert index[~seen].min(initial=np.inf) > index[seen].max(initial=-np.inf)
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


class PlainCCMAB:
    """The rules of CC-MAB with top-K super arms, one arm and one cell at a time; no indices."""

    def __init__(self, horizon, dimension, k, seed):
        self.D, self.k, self.rng = dimension, k, np.random.default_rng(seed)
        self.h = next(h for h in itertools.count(1) if h ** (3 + dimension) >= horizon)
        self.outcomes = {}

    def cell(self, context):
        return tuple(min(math.floor(x * self.h), self.h - 1) for x in context)

    def select(self, contexts, t):
        seen = [self.outcomes.get(self.cell(context), []) for context in contexts.tolist()]
        needed = t ** (2 / (3 + self.D)) * math.log(t)
        explore = [m for m, outcomes in enumerate(seen) if len(outcomes) <= needed]
        draws = dict(zip(explore, self.rng.random(len(explore)), strict=True))
        exploit = [m for m in range(len(seen)) if m not in draws]
        explore.sort(key=lambda m: -draws[m])
        exploit.sort(key=lambda m: (-sum(seen[m]) / len(seen[m]), m))
        return sorted((explore + exploit)[: self.k]), explore, exploit

    def learn(self, contexts, outcomes):
        for context, outcome in zip(contexts.tolist(), outcomes, strict=True):
            self.outcomes.setdefault(self.cell(context), []).append(float(outcome))


def mean_outcome(contexts):
    return np.cos(3 * contexts).mean(axis=1) - 0.5


def some_contexts(rng, dimension):
    """A new set of arms, some of them on the borders of cells and of the cube."""
    count = int(rng.integers(3, 16))
    inside = rng.random((count, dimension))
    return np.where(rng.random((count, dimension)) < 0.2, np.round(inside * 6) / 6, inside)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("horizon", [40, 400])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_decision_of_cc_mab_is_that_of_a_plain_transcription(dimension, horizon, seed):
    rng = np.random.default_rng(seed + 100)
    plain = PlainCCMAB(horizon, dimension, k=4, seed=seed)
    policy = CCMAB(horizon, dimension, oracle=TopK(4), seed=seed)
    exploited = 0
    for t in range(1, 401):
        contexts = some_contexts(rng, dimension)
        index = policy.index(contexts)
        decision = policy.select(contexts)
        super_arm, explore, exploit = plain.select(contexts, t)
        assert decision.super_arm.tolist() == super_arm
        assert index[explore].min(initial=np.inf) > index[exploit].max(initial=-np.inf)
        exploited += len(set(super_arm) & set(exploit))
        outcomes = mean_outcome(decision.contexts) + 0.1 * rng.standard_normal(len(decision))
        policy.update(decision, outcomes)
        plain.learn(decision.contexts, outcomes)
    assert exploited


def test_late_and_partial_feedback_counts_when_it_comes():
    rng = np.random.default_rng(7)
    plain = PlainCCMAB(200, 2, k=3, seed=5)
    policy = CCMAB(200, 2, oracle=TopK(3), seed=5)
    learned: dict[str, np.ndarray] = {}
    for t in range(1, 201):
        contexts = some_contexts(rng, 2)
        decision = policy.select(contexts)
        assert decision.super_arm.tolist() == plain.select(contexts, t)[0]
        while len(policy.pending) > 4:
            late = policy.pending[rng.integers(len(policy.pending))]
            outcomes = mean_outcome(late.contexts) + 0.1 * rng.standard_normal(len(late))
            already = learned.setdefault(late.id, np.zeros(len(late), dtype=bool))
            seen = ~already & (rng.random(len(late)) < 0.6)
            already |= seen
            policy.update(late, np.where(seen, outcomes, np.nan))
            plain.learn(late.contexts[seen], outcomes[seen])


@given(horizon=st.integers(1, 10**7), dimension=st.integers(1, 6))
def test_the_grid_is_the_coarsest_that_the_horizon_allows(horizon, dimension):
    cells = CCMAB(horizon, dimension).cells
    assert (cells - 1) ** (3 + dimension) < horizon <= cells ** (3 + dimension)


@pytest.mark.parametrize("side", range(1, 12))
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_a_horizon_that_is_a_perfect_power_gives_its_root(side, dimension):
    assert CCMAB(side ** (3 + dimension), dimension).cells == side


def test_the_paper_has_three_cells_a_side():
    assert CCMAB(horizon=300, dimension=3).cells == CCMAB(horizon=250, dimension=3).cells == 3


def test_in_round_one_exactly_the_cells_without_outcomes_are_under_explored():
    policy = CCMAB(horizon=16, dimension=1, oracle=TopK(1), seed=0)  # two cells
    policy.observe([[0.1]], [1e6])
    low, high, end = policy.index([[0.1], [0.5], [1.0]])
    assert low == 1e6
    assert min(high, end) > low


def test_base_arms_in_under_explored_cells_come_in_random_order():
    contexts = [[0.1], [0.2], [0.8], [0.9]]
    chosen = [CCMAB(100, 1, oracle=TopK(1), seed=s).select(contexts) for s in range(400)]
    counts = np.bincount([decision.super_arm[0] for decision in chosen], minlength=4)
    assert counts.min() > 70  # 100 expected, standard deviation 9


@pytest.mark.parametrize("name", MAKE)
def test_a_loaded_policy_decides_as_the_saved_one_would_have(name):
    rng = np.random.default_rng(3)
    policy = MAKE[name]()
    for _ in range(30):
        decision = policy.select(some_contexts(rng, 2))
        policy.update(decision, mean_outcome(decision.contexts))
    loaded = loads(dumps(policy))
    assert type(loaded) is type(policy)
    for _ in range(50):
        contexts = some_contexts(rng, 2)
        decision = policy.select(contexts)
        assert loaded.select(contexts) == decision
        outcomes = mean_outcome(decision.contexts)
        policy.update(decision, outcomes)
        loaded.update(decision, outcomes)


@pytest.mark.parametrize("name", IN_THE_CUBE)
@pytest.mark.parametrize("count", [1, 50])  # the first leaf of ACCUCB, or one that was split
@pytest.mark.parametrize("bad", [-0.1, -1e-12, 1.0000001])
def test_a_context_outside_the_cube_is_refused_and_changes_nothing(name, count, bad):
    policy = IN_THE_CUBE[name]()
    policy.observe(np.full((count, 2), 0.4), np.ones(count))
    before = dumps(policy)
    contexts = [[0.5, 0.5], [0.2, bad]]
    for call in (
        lambda: policy.select(contexts),
        lambda: policy.index(contexts),
        lambda: policy.observe(contexts, [1.0, 2.0]),
    ):
        with pytest.raises(ContextError, match=rf"cube \[0, 1\]\^2; row 1, column 1 is {bad}"):
            call()
    assert dumps(policy) == before


@pytest.mark.parametrize("name", IN_THE_CUBE)
def test_contexts_of_another_dimension_are_refused(name):
    with pytest.raises(ContextError, match="2 columns"):
        IN_THE_CUBE[name]().select([[0.1]])


def test_a_grid_that_does_not_fit_in_memory_is_refused():
    with pytest.raises(InputError, match="10000001 cells a side in dimension 1"):
        CUCB(dimension=1, cells=LARGEST_GRID + 1)


@pytest.mark.parametrize(
    ("policy", "wrong"),
    [
        (CUCB, {"cells": 0}),
        (CUCB, {"cells": 2.5}),
        (CUCB, {"dimension": 0}),
        (CCMAB, {"horizon": 0}),
        (CCMAB, {"horizon": 2.5}),
        (CCMAB, {"dimension": 0}),
    ],
)
def test_wrong_arguments_are_named(policy, wrong):
    (name,) = wrong
    right = {"dimension": 2, **({"cells": 3} if policy is CUCB else {"horizon": 10})}
    with pytest.raises(InputError, match=name):
        policy(**{**right, **wrong})
