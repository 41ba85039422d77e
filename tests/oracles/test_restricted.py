from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oclok.errors import InputError, OracleError
from oclok.oracles import Knapsack, Partition, TopK
from oclok.oracles.restricted import RestrictedOracle
from oclok.testing import check_oracle


@pytest.mark.parametrize(
    "inner",
    [Partition([0, 0, 1, 1, 1], 2), Knapsack([0.5, 0.2, 0.3, 0.9, 0.1], 0.8)],
    ids=["partition", "knapsack"],
)
def test_it_conforms(inner) -> None:
    check_oracle(RestrictedOracle(inner, [1, 2, 4, 5, 7], size=8))


@given(st.sets(st.integers(0, 11), min_size=1), st.integers(0, 1000))
def test_it_is_the_other_oracle_as_if_there_were_no_other_arms(positions, seed) -> None:
    index = np.random.default_rng(seed).standard_normal(12)
    some = np.array(sorted(positions))
    oracle = RestrictedOracle(TopK(3), list(positions), size=12)
    super_arm = oracle(index)
    np.testing.assert_array_equal(super_arm, some[TopK(3)(index[some])])
    assert oracle.is_feasible(super_arm)
    assert oracle.value(index, super_arm) == pytest.approx(index[super_arm].sum())


def test_arms_that_are_left_out_are_infeasible() -> None:
    oracle = RestrictedOracle(TopK(2), [0, 2, 3], size=5)
    assert oracle.is_feasible([0, 3])
    assert not oracle.is_feasible([0, 1])
    assert not oracle.is_feasible([1, 4])
    assert not oracle.is_feasible([3])


def test_arms_that_are_left_out_cannot_make_a_choice_unstable() -> None:
    oracle = RestrictedOracle(TopK(1), [0, 2], size=3)
    index, error = np.array([1.0, 0.99, 0.5]), np.full(3, 0.1)
    assert oracle.is_stable(index, np.array([0]), error)
    assert not TopK(1).is_stable(index, np.array([0]), error)
    assert not oracle.is_stable(index, np.array([0]), np.full(3, 0.3))


def test_positions_beyond_the_arms_are_refused() -> None:
    with pytest.raises(InputError, match="positions"):
        RestrictedOracle(TopK(1), [0, 5], size=5)


def test_an_index_for_another_number_of_arms_is_refused() -> None:
    with pytest.raises(OracleError, match="describes 5"):
        RestrictedOracle(TopK(1), [0, 4], size=5)(np.zeros(4))
