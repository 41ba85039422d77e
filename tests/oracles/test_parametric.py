"""Columns by name, and base arms that must or must not be chosen, for every oracle."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from oracle_instances import COVERAGES, SUMS, answer, exact_sum, feasible_sets

from oclok.errors import InfeasibleError, InputError, OracleError, UnresolvedError
from oclok.oracles import (
    Coverage,
    Knapsack,
    Matching,
    Oracle,
    Partition,
    Path,
    Program,
    SumOracle,
    TIMPlus,
    TopK,
)
from oclok.persistence import dumps, loads
from oclok.testing import check_oracle

ARMS = 6


def fixed_arms(rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Return a few base arms to include and others to exclude."""
    role = rng.choice(3, ARMS, p=[0.6, 0.2, 0.2])
    return np.flatnonzero(role == 1).tolist(), np.flatnonzero(role == 2).tolist()


def given(oracle: Oracle, include: list[int], exclude: list[int]) -> Oracle | None:
    try:
        return oracle.given(include, exclude)
    except InfeasibleError:
        return None


def remaining(oracle: Oracle, include: list[int], exclude: list[int]) -> list[tuple[int, ...]]:
    """Return, by brute force, the feasible sets that contain `include` and none of `exclude`."""
    if isinstance(oracle, TopK):  # k of those that are there, or all of fewer
        there = [m for m in range(ARMS) if m not in exclude]
        sets = feasible_sets(TopK(min(oracle.k, len(there))), ARMS) if there else []
    else:
        sets = feasible_sets(oracle, ARMS)
    return [s for s in sets if {*include} <= {*s} and not {*exclude} & {*s}]


@pytest.mark.parametrize("kind", SUMS)
def test_the_best_set_that_includes_and_excludes_is_found(kind: str) -> None:
    rng = np.random.default_rng(1)
    solved = refused = 0
    for _ in range(60 if kind == "Program" else 250):
        oracle, index = SUMS[kind](rng, ARMS), rng.integers(-8, 16, ARMS) / 8
        include, exclude = fixed_arms(rng)
        rest = given(oracle, include, exclude)
        sets = remaining(oracle, include, exclude)
        super_arm = None if rest is None else answer(rest, index)
        assert (super_arm is None) == (not sets)
        if super_arm is None:
            refused += 1
            continue
        solved += 1
        assert super_arm in sets
        best = max(exact_sum(index, s) for s in sets)
        assert float(exact_sum(index, super_arm)) == pytest.approx(float(best), abs=1e-9)
        assert rest.value(index, super_arm) == pytest.approx(float(best), abs=1e-9)
        assert [s for s in sets if rest.is_feasible(s)] == sets
        assert not any(rest.is_feasible(s) for s in feasible_sets(oracle, ARMS) if s not in sets)
        assert rest.alpha == 1
    assert solved > 15
    assert refused > 0


@pytest.mark.parametrize("kind", COVERAGES)
def test_coverage_keeps_its_guarantee_for_the_whole_value(kind: str) -> None:
    rng = np.random.default_rng(2)
    solved = refused = 0
    for _ in range(150):
        oracle, index = COVERAGES[kind](rng, ARMS), rng.random(ARMS)
        include, exclude = fixed_arms(rng)
        rest = given(oracle, include, exclude)
        sets = remaining(oracle, include, exclude)
        assert (rest is None) == (not sets)
        if rest is None:
            refused += 1
            continue
        solved += 1
        super_arm = tuple(rest(index).tolist())
        assert super_arm in sets
        assert [s for s in sets if rest.is_feasible(s)] == sets
        best, value = max(oracle.value(index, s) for s in sets), rest.value(index, super_arm)
        seeds = rest.k if kind == "TIMPlus" else 0  # TIM+ counts them, and may fail; not so here
        assert rest.alpha == oracle.alpha
        assert value + seeds >= rest.alpha * (best + seeds) - 1e-9
        if kind == "greedy":
            least = min(oracle.value(index, s) for s in sets)
            assert value >= least + (1 - 1 / math.e) * (best - least) - 1e-9
    assert solved > 15
    assert refused > 15


def test_exact_coverage_of_many_nodes_with_some_included_is_best() -> None:
    rng = np.random.default_rng(3)
    for k in (3, 4, 5):
        left, right = np.repeat(np.arange(9), 4), rng.integers(0, 12, 36)
        oracle = Coverage(left, right, k)
        index, wanted = rng.random(36), int(rng.integers(9))
        rest = oracle.given(include=[4 * wanted], exclude=[0] if wanted else [35])
        barred = 0 if wanted else 8
        best = max(
            oracle.value(index, np.flatnonzero(np.isin(left, [*nodes])))
            for nodes in _node_sets(k)
            if wanted in nodes and barred not in nodes
        )
        assert rest.value(index, rest(index)) == pytest.approx(best)


def _node_sets(k: int):
    from itertools import combinations

    return combinations(range(9), k)


@pytest.mark.parametrize("make", [*SUMS.values(), *COVERAGES.values()], ids=[*SUMS, *COVERAGES])
def test_steps_include_and_exclude_as_well(make: Callable[..., Oracle]) -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        oracle, index = make(rng, ARMS), rng.random(ARMS)
        rest = given(oracle, *fixed_arms(rng))
        if rest is None or not rest.is_sequential:
            continue
        chosen = np.empty(0, dtype=np.intp)
        while (new := rest.choose_next(index, chosen)).size:
            chosen = np.sort(np.append(chosen, new))
        if chosen.size:
            assert rest.is_feasible(chosen)
        if rest.alpha == 1 and rest.steps_keep_alpha:
            assert tuple(chosen) == (answer(rest, index) or ())


@pytest.mark.parametrize("kind", ["TopK", "Partition", "Knapsack", "Matching"])
def test_oracles_with_arms_fixed_pass_the_suite(kind: str) -> None:
    rng = np.random.default_rng(0)
    own = {"TopK": TopK(3), "Partition": Partition(list("aabbab"), 2)}
    oracle = own.get(kind) or SUMS[kind](rng, ARMS)
    check_oracle(oracle.given(exclude=[2, 5]), ARMS)
    check_oracle(oracle.given(include=[1], exclude=[4]), ARMS)


def test_fixing_arms_twice_fixes_all_of_them() -> None:
    oracle = TopK(3).given(include=[5]).given(include=[0], exclude=[1])
    assert oracle([0.1, 0.9, 0.5, 0.6, 0.2, 0.0]).tolist() == [0, 3, 5]
    assert repr(oracle) == "TopK(k=3).given(include=[0, 5], exclude=[1])"
    twin = loads(dumps(oracle))
    assert dumps(twin) == dumps(oracle)
    assert twin([0.1, 0.9, 0.5, 0.6, 0.2, 0.0]).tolist() == [0, 3, 5]


def test_what_cannot_be_fixed_is_refused() -> None:
    with pytest.raises(InputError, match="position 1 is in both include and exclude"):
        TopK(2).given(include=[0, 1], exclude=[1])
    with pytest.raises(InputError, match="include must be below 3"):
        Knapsack([1, 2, 3], 4).given(include=[3])
    with pytest.raises(OracleError, match="position 9 is included or excluded; there are 4"):
        TopK(2).given(exclude=[9])(np.zeros(4))
    with pytest.raises(InfeasibleError, match=r"cost 5\.0; the budget is 4\.0"):
        Knapsack([1, 2, 3], 4).given(include=[1, 2])
    around = Path([0, 1, 2, 1], [1, 2, 1, 3], source=0, target=3)
    assert around.given(exclude=[1])(np.full(4, -1.0)).tolist() == [0, 3]
    with pytest.raises(InfeasibleError, match="no path from node 0 to 3 has edge 1"):
        around.given(include=[1])
    both_ways = Path([0, 0, 1, 2, 1, 2, 3], [1, 2, 2, 1, 3, 3, 4], source=0, target=4)
    with pytest.raises(OracleError, match="graph has a cycle"):
        both_ways.given(include=[6])
    assert around.given(include=[3], exclude=[2])(np.full(4, 1.0)).tolist() == [0, 3]


class Everything(SumOracle):
    alpha = 1.0

    def _solve(self, index):
        return np.arange(index.size)

    def is_feasible(self, super_arm):
        return self._positions(super_arm) is not None


def test_an_oracle_of_ones_own_supports_none_of_this_unless_it_says_so() -> None:
    oracle = Everything()
    assert oracle.columns == ()
    assert oracle.resolve(lambda name: []) is oracle
    with pytest.raises(OracleError, match="Everything cannot include or exclude"):
        oracle.given(include=[0])
    with pytest.raises(OracleError, match="Everything has no JSON form"):
        oracle.to_json()


# Columns -------------------------------------------------------------------------------------

COLUMNS = {
    "price": [3.0, 2.0, 2.0, 1.0],
    "hours": [1, 1, 2, 2],
    "region": ["north", "north", "south", "south"],
    "driver": ["ann", "ann", "bob", "bob"],
    "rider": [7, 8, 7, 8],
    "from": ["a", "a", "b", "c"],
    "to": ["b", "c", "d", "d"],
}
NAMED: list[tuple[Oracle, Oracle, tuple[str, ...]]] = [
    (Knapsack("price", 4), Knapsack(COLUMNS["price"], 4), ("price",)),
    (Partition("region", 1), Partition(COLUMNS["region"], 1), ("region",)),
    (
        Partition("rider", {"7": 1, "8": 2}),
        Partition(COLUMNS["rider"], {7: 1, 8: 2}),
        ("rider",),
    ),
    (
        Matching("driver", "rider", 2),
        Matching(COLUMNS["driver"], COLUMNS["rider"], 2),
        ("driver", "rider"),
    ),
    (Matching("rider", "rider"), Matching(COLUMNS["rider"], COLUMNS["rider"]), ("rider",)),
    (
        Coverage("driver", "rider", 1, solver="greedy"),
        Coverage(COLUMNS["driver"], COLUMNS["rider"], 1, solver="greedy"),
        ("driver", "rider"),
    ),
    (
        TIMPlus("driver", [7, 8, 7, 8], 1, seed=3),
        TIMPlus(COLUMNS["driver"], [7, 8, 7, 8], 1, seed=3),
        ("driver",),
    ),
    (
        Path("from", "to", "a", "d"),
        Path(COLUMNS["from"], COLUMNS["to"], "a", "d"),
        ("from", "to"),
    ),
    (
        Program(["price", [1, 1, 0, 0], "hours"], None, [5, 1, 4]),
        Program([COLUMNS["price"], [1, 1, 0, 0], COLUMNS["hours"]], None, [5, 1, 4]),
        ("price", "hours"),
    ),
]
KINDS = [f"{type(oracle).__name__}-{number}" for number, (oracle, _, _) in enumerate(NAMED)]


@pytest.mark.parametrize(("named", "plain", "columns"), NAMED, ids=KINDS)
def test_columns_are_resolved_by_name(named, plain, columns) -> None:
    assert named.columns == columns
    resolved = named.resolve(COLUMNS.__getitem__)
    assert type(resolved) is type(plain)
    assert resolved.columns == ()
    assert resolved.resolve(COLUMNS.__getitem__) is resolved
    assert (resolved.alpha, resolved.beta) == (plain.alpha, plain.beta)
    for index in np.random.default_rng(0).random((5, 4)):
        assert resolved(index).tolist() == plain(index).tolist()


@pytest.mark.parametrize(("named", "plain", "columns"), NAMED, ids=KINDS)
def test_an_unresolved_oracle_says_what_it_needs(named, plain, columns) -> None:
    index, chosen = np.ones(4), np.array([0])
    calls = [
        lambda: named(index),
        lambda: named.value(index, [0]),
        lambda: named.is_feasible([0]),
        lambda: named.given(include=[0]),
    ]
    if named.is_sequential:
        calls.append(lambda: named.choose_next(index, chosen))
    for call in calls:
        with pytest.raises(UnresolvedError, match=f"'{columns[0]}'.*resolve"):
            call()
    assert named.beta == 0.0 or not isinstance(named, TIMPlus)


@pytest.mark.parametrize("oracle", [o for pair in NAMED for o in pair[:2]], ids=repr)
def test_every_oracle_can_be_saved_resolved_or_not(oracle) -> None:
    twin = loads(dumps(oracle))
    assert repr(twin) == repr(oracle)
    assert twin.columns == oracle.columns
    assert dumps(twin) == dumps(oracle)


def test_a_column_is_checked_when_it_is_resolved() -> None:
    with pytest.raises(InputError, match="costs must be numbers"):
        Knapsack("region", 4).resolve(COLUMNS.__getitem__)
    with pytest.raises(InputError, match="costs must be at least 0"):
        Knapsack("price", 4).resolve(lambda name: [-1.0])
    with pytest.raises(InputError, match="group 'south' is missing"):
        Partition("region", {"north": 1}).resolve(COLUMNS.__getitem__)
    with pytest.raises(InputError, match="no missing label; position 1"):
        Partition("region", 1).resolve(lambda name: ["a", math.nan])
    with pytest.raises(InputError, match=r"left must be integers or strings.*position 1 is nan"):
        Matching("driver", "rider").resolve(lambda name: np.array(["a", math.nan], dtype=object))
    with pytest.raises(InputError, match="budget must be at least 0"):
        Knapsack("price", -1)


def test_reprs_are_short_and_say_what_the_oracle_is() -> None:
    assert repr(TopK(5)) == "TopK(k=5)"
    assert repr(TopK(5, "log1p")) == "TopK(k=5, reward=np.log1p)"
    assert repr(Knapsack("price", 100)) == "Knapsack(costs='price', budget=100.0)"
    assert repr(Knapsack(np.ones(60), 6)) == "Knapsack(costs=<60 values>, budget=6.0)"
    assert repr(Program(np.ones((2, 9)), None, 1)) == (
        "Program(A=<2×9 values>, lower=-inf, upper=1.0)"
    )
