from __future__ import annotations

import numpy as np
import pytest

from oclok.agent.arms import as_arms
from oclok.agent.baseline import Baseline
from oclok.errors import InputError
from oclok.oracles import Knapsack, TopK

ARMS = as_arms(
    {
        "a": {"price": 3.0, "rating": 0.1},
        "b": {"price": 1.0, "rating": 0.9},
        "c": {"price": 2.0, "rating": None},
        "d": {"price": None, "rating": 0.4},
    }
)
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"sort": "price"}, [1, 2]),
        ({"sort": "price", "descending": True}, [0, 2]),
        ({"score": "rating"}, [1, 3]),
    ],
)
def test_a_rule_takes_the_first_by_its_column(rule: dict, expected: list[int]) -> None:
    baseline = Baseline(rule)
    chosen = baseline.choose(TopK(2), ARMS, RNG)
    assert chosen.tolist() == expected
    p = baseline.propensities(TopK(2), 4, chosen, chosen, 0)
    assert p.arms[expected].tolist() == [1, 1]
    assert (p.super_arm, p.draws) == (1.0, 0)
    assert baseline.propensities(TopK(2), 4, chosen, np.array([0, 3]), 0).super_arm == 0


def test_a_rule_ends_in_a_feasible_set() -> None:
    baseline, oracle = Baseline({"sort": "price"}), Knapsack([3.0, 1.0, 2.0, 9.0], 3.0)
    chosen = baseline.choose(oracle, ARMS, RNG)
    assert chosen.tolist() == [1, 2]


def test_uniform_sets_of_a_top_k_are_counted_and_others_drawn() -> None:
    baseline = Baseline("uniform")
    chosen = np.array([0, 1])
    exact = baseline.propensities(TopK(2), 4, chosen, chosen, 0)
    np.testing.assert_allclose(exact.arms, 0.5)
    assert (exact.super_arm, exact.draws) == (1 / 6, 0)
    oracle = Knapsack([1.0, 1.0, 1.0, 1.0], 2.0)  # the same sets, and it cannot count them
    drawn = baseline.propensities(oracle, 4, chosen, chosen, 0)
    assert drawn.draws > 100
    np.testing.assert_allclose(drawn.arms, 0.5, atol=4 * np.sqrt(0.25 / drawn.draws))
    assert abs(drawn.super_arm - 1 / 6) < 4 * np.sqrt(0.14 / drawn.draws)


@pytest.mark.parametrize(
    "rule", ["cheapest", {"sort": 3}, {"price": "sort"}, {"score": "x", "k": 1}]
)
def test_other_rules_are_refused(rule: object) -> None:
    with pytest.raises(InputError, match="baseline must be"):
        Baseline(rule)  # type: ignore[arg-type]
