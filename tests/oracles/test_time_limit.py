"""Search that is cut short returns feasible sets, and bounds that hold."""

from __future__ import annotations

import time

import numpy as np
import pytest

from oclok.errors import InputError, OracleError
from oclok.oracles import Coverage, Knapsack, Program, TIMPlus, TopK, oracle_from_json
from oclok.oracles.parametric import Deadline

#: Seconds after the limit by which a call has returned even on a busy machine.
SLACK = 20.0


def program(seed, limit):
    rng = np.random.default_rng(seed)
    A = rng.integers(1, 100, (5, 60)).astype(float)
    return Program(A, None, A[:, :30].sum(axis=1), time_limit=limit), rng.random(60)


def coverage(seed, limit):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 200, (2, 2000))
    return Coverage(left, right, 20, time_limit=limit), rng.random(2000)


def knapsack(seed, limit):
    rng = np.random.default_rng(seed)
    costs = rng.uniform(1, 2, 400)
    return Knapsack(costs, costs.sum() / 2.1, time_limit=limit), costs + 1e-3 * rng.random(400)


@pytest.mark.parametrize("make", [program, coverage, knapsack])
def test_a_search_that_is_cut_short_is_feasible_and_states_its_gap(make):
    for limit in (1e-3, 0.2):
        oracle, index = make(0, limit)
        start = time.monotonic()
        try:
            found = oracle.solve(index)
        except OracleError:
            assert make is program  # the others start from a feasible set
            continue
        assert time.monotonic() - start < limit + SLACK
        assert oracle.is_feasible(found.super_arm)
        assert found.gap >= 0


@pytest.mark.parametrize("kind", ["program", "coverage", "knapsack"])
def test_the_gap_bounds_what_the_best_super_arm_is_worth_more(kind):
    rng = np.random.default_rng(3)
    for _ in range(20):
        index = rng.random(40)
        if kind == "program":
            A = rng.integers(1, 50, (3, 40)).astype(float)
            oracle = Program(A, None, A.sum(axis=1) / 3)
        elif kind == "coverage":
            oracle = Coverage(rng.integers(0, 15, 40), rng.integers(0, 12, 40), 5)
        else:
            costs = rng.uniform(1, 2, 40)
            index = costs + 0.01 * rng.random(40)
            oracle = Knapsack(costs, 20.0)
        best = oracle.solve(index)
        assert best.gap == 0
        value = oracle.value(index, best.super_arm)
        for limit in (1e-9, 1e-3, 0.01):
            try:
                found = oracle.limited(limit).solve(index)
            except OracleError:
                continue
            short = oracle.value(index, found.super_arm)
            assert short <= value * (1 + 1e-9)
            assert value <= short + found.gap + 1e-9


def test_four_equalities_over_thirty_arms_return_in_time():
    rng = np.random.default_rng(1)
    A = rng.random((4, 30))
    oracle = Program(A, A[:, :15].sum(axis=1), A[:, :15].sum(axis=1), time_limit=0.5)
    start = time.monotonic()
    with pytest.raises(OracleError, match=r"within 0\.5 s"):
        oracle(rng.random(30))
    assert time.monotonic() - start < SLACK


def test_tim_refuses_work_beyond_its_limits():
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 200, (2, 2000))
    with pytest.raises(OracleError, match="did not end within"):
        TIMPlus(left, right, 20, epsilon=0.01, time_limit=0.01)(rng.random(2000))
    with pytest.raises(OracleError, match="random numbers"):
        TIMPlus(left, right, 20, epsilon=1e-12)(rng.random(2000))


def test_an_instance_cut_short_proves_no_stability():
    oracle, index = coverage(0, 1e-3)
    assert oracle.solve(index).gap > 0
    oracle, index = knapsack(0, 1e-9)
    chosen = oracle(index)
    assert not oracle.is_stable(index, chosen, np.zeros(index.size))


def test_limits_are_arguments_that_can_only_become_tighter():
    form = {"kind": "Knapsack", "costs": [1.0, 2.0], "budget": 2.0, "time_limit": 0.5}
    oracle = oracle_from_json(form)
    assert oracle.to_json() == form
    assert oracle.limited(2.0).time_limit == 0.5
    assert oracle.limited(0.1).time_limit == 0.1
    assert oracle.limited(0.1).given(include=[0]).time_limit == 0.1
    assert TopK(2).limited(1.0)([0.1, 0.2, 0.3]).tolist() == [1, 2]
    with pytest.raises(InputError, match="time_limit"):
        Knapsack([1.0], 1.0, time_limit=0)


def test_a_guarantee_below_one_is_a_gap():
    greedy = Coverage([0, 1, 2], [0, 1, 1], 2, solver="greedy")
    found = greedy.solve([0.9, 0.8, 0.7])
    value = greedy.value([0.9, 0.8, 0.7], found.super_arm)
    assert found.gap == pytest.approx(value * (1 / greedy.alpha - 1))


def test_a_deadline_without_a_limit_never_passes():
    assert Deadline(None).remaining is None
    assert not Deadline(None).has_passed
    assert Deadline(1e-9).remaining == 0.0
