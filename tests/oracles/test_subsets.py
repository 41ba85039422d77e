from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oclok.errors import InfeasibleError, InputError, OracleError, StorageError
from oclok.oracles import Partition, TopK
from oclok.persistence import dumps, loads
from oclok.testing.oracles import check_oracle

# Multiples of 1/8: sums are exact, and ties are frequent.
numbers = st.integers(-16, 16).map(lambda n: n / 8)


def by_rank(index):
    """Return positions from the best index to the worst, the lower one first between equals."""
    return sorted(range(len(index)), key=lambda position: (-index[position], position))


@settings(max_examples=500, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=12), st.integers(1, 14))
def test_top_k_is_the_k_best_and_the_lower_position_between_equals(index, k):
    assert TopK(k)(index).tolist() == sorted(by_rank(index)[:k])


@settings(max_examples=500, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=8), st.integers(1, 8))
def test_no_other_k_base_arms_are_worth_more_than_top_k(index, k):
    oracle = TopK(k, reward=np.cbrt)
    rivals = combinations(range(len(index)), min(k, len(index)))
    best = max(oracle.value(index, rival) for rival in rivals)
    assert oracle.value(index, oracle(index)) == best


def test_top_k_of_a_million_is_what_a_stable_sort_says():
    index = np.random.default_rng(0).integers(0, 1000, 1_000_000) / 7
    for k in (1, 999, 500_000):
        expected = np.sort(np.argsort(-index, kind="stable")[:k])
        np.testing.assert_array_equal(TopK(k)(index), expected)


def test_top_k_takes_all_of_fewer_and_refuses_none():
    assert TopK(5)([-1.0, 2.0]).tolist() == [0, 1]
    with pytest.raises(InfeasibleError, match="no base arms"):
        TopK(5)([])


def test_top_k_feasibility():
    oracle = TopK(3)
    assert oracle.is_feasible([7, 2, 5])
    assert oracle.is_feasible([1, 0])
    for wrong in ([], [0, 2], [1], [0, 1, 2, 3], [0, 1, 1], [-1, 0, 1], [0.0, 1.0, 2.0]):
        assert not oracle.is_feasible(wrong)


def test_the_reward_is_applied_to_the_sum():
    means = [0.5, 0.25, 2.0]
    assert TopK(2).value(means, [0, 2]) == 2.5
    assert TopK(2, np.log1p).value(means, [0, 2]) == np.log(3.5)
    assert TopK(2, lambda total: min(total, 1.0)).value(means, [0, 2]) == 1.0


def test_a_reward_that_is_not_finite_is_an_error():
    with pytest.raises(OracleError, match=r"sum -2.0 must be finite; it is nan"):
        TopK(1, np.log1p).value([-2.0], [0])


def test_a_super_arm_beyond_the_means_has_no_value():
    with pytest.raises(InputError, match="below 3"):
        TopK(2).value([1.0, 2.0, 3.0], [1, 3])


def test_the_lipschitz_constant_is_known_for_the_sum_and_for_log1p():
    assert TopK(2).lipschitz == TopK(2, np.log1p).lipschitz == 1
    assert TopK(2, np.exp).lipschitz is None


@settings(max_examples=200, deadline=None)
@given(st.data(), st.lists(numbers, min_size=1, max_size=8), st.integers(1, 4))
def test_a_stable_top_k_is_chosen_for_every_index_within_the_error(data, index, k):
    index, oracle = np.array(index), TopK(k)
    size = st.integers(0, 4).map(lambda n: n / 8)
    error = np.array(data.draw(st.lists(size, min_size=index.size, max_size=index.size)))
    super_arm = oracle(index)
    worst = index + error
    worst[super_arm] -= 2 * error[super_arm]
    if oracle.is_stable(index, super_arm, error):
        share = np.array([data.draw(st.floats(-1, 1)) for _ in index])
        assert oracle(index + share * error).tolist() == super_arm.tolist()
    else:  # another set is then as good, or better, somewhere
        rivals = combinations(range(index.size), super_arm.size)
        own = worst[super_arm].sum()
        assert any(worst[[*r]].sum() >= own for r in rivals if [*r] != super_arm.tolist())


@pytest.mark.parametrize("k", [0, -1, 1.5, None, True])
def test_k_must_be_a_positive_integer(k):
    with pytest.raises(InputError, match="k must be an integer"):
        TopK(k)


def test_the_reward_must_be_a_function():
    with pytest.raises(InputError, match="reward must be a function"):
        TopK(2, reward=3)


def test_top_k_survives_a_save_with_its_reward_if_that_is_a_ufunc():
    oracle = loads(dumps(TopK(2, np.log1p)))
    assert (oracle.k, oracle.reward, oracle.lipschitz) == (2, np.log1p, 1)
    with pytest.raises(StorageError):
        dumps(TopK(2, lambda total: total))


@pytest.mark.parametrize("arms", [1, 2, 3, 8])
def test_top_k_passes_the_suite(arms):
    check_oracle(TopK(3), arms)
    check_oracle(TopK(3, np.log1p), arms, families=["unit"])


def is_within(groups, limits, chosen):
    return all(sum(groups[arm] == label for arm in chosen) <= limits[label] for label in limits)


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_no_subset_within_the_limits_is_worth_more_than_partitions(data):
    arms = data.draw(st.lists(st.tuples(st.sampled_from("abc"), numbers), max_size=8))
    groups, index = [label for label, _ in arms], [number for _, number in arms]
    limits = {label: data.draw(st.integers(0, 3)) for label in "abc"}
    oracle = Partition(groups, limits)
    best = 0.0
    for size in range(len(arms) + 1):
        for subset in combinations(range(len(arms)), size):
            is_feasible = is_within(groups, limits, subset)
            assert oracle.is_feasible(subset) == is_feasible
            if is_feasible:
                best = max(best, sum(index[arm] for arm in subset))
    super_arm = oracle(index)
    assert is_within(groups, limits, super_arm)
    assert sum(index[arm] for arm in super_arm) == best
    assert all(index[arm] > 0 for arm in super_arm)


def test_partition_takes_the_lower_position_between_equals():
    oracle = Partition([1, 0, 1, 0, 1, 0], 2)
    assert oracle(np.ones(6)).tolist() == [0, 1, 2, 3]


def test_partition_leaves_out_what_is_not_positive():
    oracle = Partition([0, 0, 1], 2)
    assert oracle([-1.0, 0.0, -2.0]).tolist() == []
    assert oracle.is_feasible([])


def test_partition_labels_can_be_any_hashable_values():
    index = [0.1, 0.2, 0.3]
    limits = {("x", 1): 1, None: 0}
    assert Partition([("x", 1), ("x", 1), None], limits)(index).tolist() == [1]
    assert Partition(np.array(["u", "v", "v"]), 1)(index).tolist() == [0, 2]
    assert Partition(np.array([5, -5, 5]), {5: 1, -5: 1, 77: 9})(index).tolist() == [1, 2]


def test_partition_of_no_base_arms_is_the_empty_super_arm():
    assert Partition([], 3)([]).tolist() == []


def test_partition_refuses_bad_groups_and_limits():
    with pytest.raises(InputError, match="group 'b' is missing"):
        Partition(["a", "b"], {"a": 1})
    with pytest.raises(InputError, match=r"limits\['a'\] must be an integer"):
        Partition(["a"], {"a": -1})
    with pytest.raises(InputError, match="limits must be an integer"):
        Partition(["a"], 1.5)
    with pytest.raises(InputError, match="hashable"):
        Partition([["a"], ["b"]], 1)
    with pytest.raises(InputError, match="hashable"):
        Partition(7, 1)


def test_partition_refuses_limits_of_a_wrong_type_even_without_base_arms():
    with pytest.raises(InputError, match="limits must be an integer"):
        Partition([], "many")


def test_partition_passes_the_suite():
    check_oracle(Partition([0, 1, 1, 2, 2, 2, 0, 3], {0: 1, 1: 2, 2: 2, 3: 0}))
    check_oracle(Partition(list("aabbab"), 2))


def test_fewer_arms_than_k_are_all_taken_with_a_warning():
    with pytest.warns(UserWarning, match=r"TopK\(.*9\) got fewer than k base arms"):
        assert TopK(9)([0.1, 0.3, 0.2]).tolist() == [0, 1, 2]
