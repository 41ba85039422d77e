from __future__ import annotations

import itertools

import numpy as np
import pytest

from oclok.bench.experiments.published.influence import SharedNumbers, greedy, influences
from oclok.errors import OracleError

#: Movies 0, 1, 2 and users 0, …, 4, of whom 0, 1 and 2 are taken for the movies.
LEFT = np.array([0, 0, 1, 1, 2, 2, 0])
RIGHT = np.array([1, 3, 2, 4, 0, 4, 0])
P = np.array([0.9, 0.3, 0.8, 0.5, 0.2, 0.6, 0.7])


def reached(edges, nodes):
    """Return all nodes to which `edges` lead from `nodes`, by search."""
    found, fresh = set(nodes), list(nodes)
    while fresh:
        tail = fresh.pop()
        for a, b in edges:
            if a == tail and b not in found:
                found.add(b)
                fresh.append(b)
    return found


def influence(nodes):
    """Return the expected number of nodes reached from `nodes`: all 2^7 states of the edges."""
    total = 0.0
    for states in itertools.product([0, 1], repeat=len(P)):
        chance = np.prod(np.where(states, P, 1 - P))
        edges = [(int(a), int(b)) for a, b, live in zip(LEFT, RIGHT, states, strict=True) if live]
        total += chance * len(reached(edges, nodes))
    return total


def test_influence_runs_over_several_hops_as_counted_by_hand():
    draws = 2**15
    reach = influences(LEFT, RIGHT, P, (1,), draws)
    shares = np.unpackbits(reach.view(np.uint8), axis=2).mean(axis=2)
    for source in range(3):
        expected = influence([source])
        assert shares[:, source].sum() == pytest.approx(expected, abs=5 * 2 / np.sqrt(draws))


def test_nodes_are_chosen_greedily_by_influence():
    best = max(range(5), key=lambda node: influence([node]))
    second = max(set(range(5)) - {best}, key=lambda node: influence([best, node]))
    assert greedy(influences(LEFT, RIGHT, P, (1,)), 2) == [best, second]


def test_a_path_is_worth_more_than_direct_users_though_the_reward_counts_these_only():
    # Movie 0 leads to user 1, taken for movie 1, which leads to everyone; movie 2 to two users.
    left = np.array([0, 1, 1, 1, 2, 2])
    right = np.array([1, 3, 4, 5, 6, 7])
    oracle = SharedNumbers(left, right, k=1)
    means = np.full(6, 0.9)
    assert oracle(means).tolist() == [0]
    assert oracle.value(means, [0]) == pytest.approx(0.9)
    assert oracle.value(means, [4, 5]) == pytest.approx(1.8)


def test_an_edge_from_a_node_to_itself_changes_nothing():
    left, right = np.array([0, 0, 1, 1]), np.array([0, 2, 3, 4])
    assert SharedNumbers(left, right, k=1)([1.0, 0.9, 0.8, 0.8]).tolist() == [2, 3]


def test_the_super_arm_is_all_edges_of_the_chosen_nodes_and_the_same_each_time():
    rng = np.random.default_rng(0)
    left, right = rng.integers(8, size=60), rng.integers(20, size=60)
    left[:8], right[:20] = np.arange(8), np.arange(20)
    oracle, index = SharedNumbers(left, right, k=3, seed=4), rng.random(60)
    super_arm = oracle(index)
    assert oracle.is_feasible(super_arm)
    assert np.array_equal(super_arm, oracle(index))
    assert np.array_equal(super_arm, SharedNumbers(left, right, k=3, seed=4)(index))


def test_it_promises_nothing():
    oracle = SharedNumbers(LEFT, RIGHT, k=1)
    assert oracle.alpha == 0.0
    assert oracle.lipschitz is None
    with pytest.raises(OracleError):
        oracle([0.5])
