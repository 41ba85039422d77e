from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oclok.errors import InputError, OracleError
from oclok.oracles import Knapsack
from oclok.persistence import dumps, loads
from oclok.testing.oracles import check_oracle

reals = st.floats(0, 10, allow_subnormal=False)


def best_value(index, fits):
    """Return the largest sum of `index` over the subsets that fit, by trying all of them."""
    subsets = (s for size in range(len(index) + 1) for s in combinations(range(len(index)), size))
    return max(sum(index[arm] for arm in subset) for subset in subsets if fits(subset))


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(-8, 24)), max_size=9), st.integers(0, 100)
)
def test_decimal_costs_fit_as_they_do_on_paper(arms, tenths_of_budget):
    costs, index = [cost for cost, _ in arms], [number / 8 for _, number in arms]
    oracle = Knapsack([cost / 10 for cost in costs], tenths_of_budget / 10)

    def fits(subset):
        return sum(costs[arm] for arm in subset) <= tenths_of_budget

    super_arm = oracle(index)
    assert fits(super_arm)
    assert oracle.is_feasible(super_arm)
    assert sum(index[arm] for arm in super_arm) == best_value(index, fits)
    assert all(index[arm] > 0 for arm in super_arm)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(reals, st.floats(-1, 5)), max_size=9), reals)
def test_no_choice_with_real_costs_is_worth_more(arms, budget):
    costs, index = [cost for cost, _ in arms], [number for _, number in arms]
    oracle = Knapsack(costs, budget)
    super_arm = oracle(index)
    best = best_value(index, oracle.is_feasible)
    assert oracle.is_feasible(super_arm)
    assert oracle.value(index, super_arm) >= best - 1e-9 * max(1.0, best)


@settings(max_examples=300, deadline=None)
@given(st.lists(reals, min_size=1, max_size=8), st.floats(1e-300, 1e300))
def test_feasible_is_what_fits_give_or_take_a_unit_per_base_arm(costs, scale):
    costs = [cost * scale for cost in costs]
    budget = max(costs) * 1.5
    chosen = list(range(len(costs)))
    total = sum(map(Fraction, costs))
    unit = Fraction(budget) / 2**48
    is_feasible = Knapsack(costs, budget).is_feasible(chosen)
    if total <= budget:
        assert is_feasible
    if total > Fraction(budget) + len(costs) * unit + unit:
        assert not is_feasible


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["unrelated", "related", "equal index", "equal cost", "few costs"])
def test_a_hundred_base_arms_agree_with_a_table_of_whole_costs(kind, seed):
    rng = np.random.default_rng(seed)
    costs = rng.integers(1, 200, 100)
    index = rng.random(100)
    if kind == "related":
        index = costs / 200 + 0.1 * index
    if kind == "equal index":
        index = np.ones(100)
    if kind == "equal cost":
        costs = np.full(100, 7)
    if kind == "few costs":
        costs = rng.integers(1, 4, 100)
    budget = int(costs.sum() * rng.uniform(0.05, 0.9))
    table = np.zeros(budget + 1)  # the best value for each budget, one base arm after another
    for cost, gain in zip(costs, index, strict=True):
        table[cost:] = np.maximum(table[cost:], table[: budget + 1 - cost] + gain)
    oracle = Knapsack(costs / 7, budget / 7)
    super_arm = oracle(index)
    assert costs[super_arm].sum() <= budget
    assert oracle.value(index, super_arm) == pytest.approx(table[-1], rel=1e-12)


def test_a_thousand_base_arms_are_no_obstacle():
    rng = np.random.default_rng(0)
    costs, index = rng.random(1000), rng.random(1000)
    oracle = Knapsack(costs, 100.0)
    super_arm = oracle(index)
    assert oracle.is_feasible(super_arm)
    by_density = np.argsort(-index / costs)
    fits = np.cumsum(costs[by_density]) <= 100.0
    relaxed = index[by_density[fits]].sum()
    broken = by_density[fits.sum()]
    relaxed += (100.0 - costs[by_density[fits]].sum()) * index[broken] / costs[broken]
    assert relaxed - 0.01 < oracle.value(index, super_arm) <= relaxed


def test_what_costs_nothing_is_taken_even_without_a_budget():
    oracle = Knapsack([0.0, 1e-300, 0.0, 0.0], budget=0)
    assert oracle([1.0, 5.0, -1.0, 0.5]).tolist() == [0, 3]
    assert oracle.is_feasible([0, 2, 3])
    assert not oracle.is_feasible([1])


def test_what_costs_more_than_the_budget_is_never_taken():
    assert Knapsack([2.0, 1e300], 1e-10)([1.0, 9.0]).tolist() == []
    assert Knapsack([0.5, 1.5, 0.25], 1.0)([0.1, 9.0, 0.1]).tolist() == [0, 2]


def test_indices_that_are_not_positive_are_left_out():
    assert Knapsack([0.0, 1.0, 1.0], 5.0)([0.0, -1.0, 2.0]).tolist() == [2]


def test_no_base_arms_give_the_empty_super_arm():
    assert Knapsack([], 1.0)([]).tolist() == []


@given(st.integers(1, 12), st.integers(0, 14))
def test_between_twins_the_lower_positions_are_chosen(arms, count):
    oracle = Knapsack(np.full(arms, 0.1), count / 10)
    assert oracle(np.full(arms, 0.3)).tolist() == list(range(min(arms, count)))


def test_huge_and_tiny_indices_are_solved_as_well():
    costs, index = [3.0, 2.0, 2.0], np.array([1.5, 1.0, 1.0])
    for scale in (1e308, 1e-300):
        assert Knapsack(costs, 4.0)(index * scale).tolist() == [1, 2]


def test_an_index_proportional_to_costs_without_a_common_unit_is_refused():
    costs = np.random.default_rng(0).random(60)
    with pytest.raises(OracleError, match="round the costs"):
        Knapsack(costs, 10.0)(costs)
    rounded = costs.round(3)
    super_arm = Knapsack(rounded, 10.0)(rounded)
    assert rounded[super_arm].sum() == pytest.approx(10.0)


def test_costs_are_copied():
    costs = np.array([1.0, 2.0])
    oracle = Knapsack(costs, 2.0)
    costs[:] = 0.0
    assert oracle.costs.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("costs", "budget", "message"),
    [
        ([1.0, -0.5], 1.0, r"costs must be at least 0; position 1 is -0\.5"),
        ([1.0, np.nan], 1.0, "costs must be finite"),
        ([[1.0]], 1.0, "costs must have shape"),
        ([1.0], -1.0, "budget must be at least 0; got -1"),
        ([1.0], np.inf, "budget must be finite"),
        ([1.0], "much", "budget must be numbers"),
    ],
)
def test_bad_costs_and_budgets_are_refused(costs, budget, message):
    with pytest.raises(InputError, match=message):
        Knapsack(costs, budget)


def test_a_loaded_knapsack_answers_alike():
    rng = np.random.default_rng(3)
    oracle = Knapsack(rng.random(50), 5.0)
    twin = loads(dumps(oracle))
    for index in rng.standard_normal((20, 50)):
        np.testing.assert_array_equal(twin(index), oracle(index))


@pytest.mark.parametrize("budget", [0.0, 0.3, 1.5, 100.0])
def test_the_knapsack_passes_the_suite(budget):
    check_oracle(Knapsack([0.1, 0.2, 0.0, 0.7, 0.7, 0.31, 1.6, 0.45], budget))
