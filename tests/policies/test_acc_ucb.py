from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from oclok.errors import InputError
from oclok.oracles import TopK
from oclok.persistence import dumps, loads
from oclok.policies.acc_ucb import ACCUCB


class PlainNode:
    """A cell with exact borders, as lists of Fractions."""

    def __init__(self, low, high, depth, parent):
        self.low, self.high, self.depth, self.parent = low, high, depth, parent
        self.outcomes = []
        self.children = []

    def holds(self, context):
        return all(
            low <= x and (x < high or x == high == 1)
            for x, low, high in zip(context, self.low, self.high, strict=True)
        )

    def leaf(self, context):
        if not self.children:
            return self
        (child,) = [child for child in self.children if child.holds(context)]
        return child.leaf(context)


class PlainACCUCB:
    """The rules of ACC-UCB, one arm and one node at a time."""

    def __init__(self, horizon, dimension, v1, v2, rho, children, k, seed):
        self.T, self.D, self.N = horizon, dimension, children
        self.v1, self.v2, self.rho = v1, v2, rho
        self.k, self.rng = k, np.random.default_rng(seed)
        self.root = PlainNode([Fraction(0)] * dimension, [Fraction(1)] * dimension, 0, None)

    def indices(self, contexts):
        if not self.root.children:
            return list(self.rng.random(len(contexts)))
        return [self.index(self.root.leaf(context)) for context in contexts.tolist()]

    def index(self, node):
        h = node.depth
        bound = min(self.upper(node), self.upper(node.parent) + self.v1 * self.rho ** (h - 1))
        size = self.v1 * self.rho**h
        return bound + size + self.N * (self.v1 / self.v2) * size

    def upper(self, node):
        if not node.outcomes:
            return math.inf
        return sum(node.outcomes) / len(node.outcomes) + self.confidence(node)

    def confidence(self, node):
        return math.sqrt(2 * math.log(self.T) / len(node.outcomes))

    def best(self, indices):
        return sorted(sorted(range(len(indices)), key=lambda m: (-indices[m], m))[: self.k])

    def learn(self, contexts, outcomes):
        played = []
        for context, outcome in zip(contexts.tolist(), outcomes, strict=True):
            node = self.root.leaf(context)
            node.outcomes.append(float(outcome))
            if node not in played:
                played.append(node)
        for node in played:
            if self.confidence(node) <= self.v1 * self.rho**node.depth:
                self.split(node)

    def split(self, node):
        cut = self.N.bit_length() - 1
        sides = [(node.depth * cut + j) % self.D for j in range(cut)]
        for halves in itertools.product((0, 1), repeat=cut):
            low, high = list(node.low), list(node.high)
            for side, half in zip(sides, halves, strict=True):
                middle = (low[side] + high[side]) / 2
                if half:
                    low[side] = middle
                else:
                    high[side] = middle
            node.children.append(PlainNode(low, high, node.depth + 1, node))

    def size(self, node=None):
        node = node or self.root
        return 1 + sum(self.size(child) for child in node.children)


def mean_outcome(contexts):
    return np.cos(3 * contexts).mean(axis=1)


def some_contexts(rng, dimension):
    """A new set of arms, some of them on the borders of cells and of the cube."""
    count = int(rng.integers(3, 16))
    inside = rng.random((count, dimension))
    return np.where(rng.random((count, dimension)) < 0.2, np.round(inside * 8) / 8, inside)


SETTINGS = [
    # dimension, children, v1, v2, rho, rounds
    (1, 2, 1.0, 1.0, 0.5, 300),
    (1, 2, 4.0, 0.5, 0.8, 200),
    (2, 4, math.sqrt(2), 1.0, 0.5, 300),
    (2, 2, 3.0, 2.0, 0.7, 250),
    (3, 8, math.sqrt(3), 1.0, 0.5, 250),
    (3, 2, 4.0, 1.0, 0.8, 200),
    (4, 4, 5.0, 1.0, 0.7, 150),
]


@pytest.mark.parametrize(("dimension", "children", "v1", "v2", "rho", "rounds"), SETTINGS)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_decision_is_that_of_a_plain_transcription(
    dimension, children, v1, v2, rho, rounds, seed
):
    rng = np.random.default_rng(seed + 100)
    plain = PlainACCUCB(rounds, dimension, v1, v2, rho, children, k=4, seed=seed)
    policy = ACCUCB(rounds, dimension, v1, v2, rho, children, oracle=TopK(4), seed=seed)
    for _ in range(rounds):
        contexts = some_contexts(rng, dimension)
        index = policy.index(contexts)
        decision = policy.select(contexts)
        indices = plain.indices(contexts)
        np.testing.assert_allclose(index, indices, rtol=1e-13)
        assert decision.super_arm.tolist() == plain.best(indices)
        outcomes = mean_outcome(decision.contexts) + 0.1 * rng.standard_normal(len(decision))
        policy.update(decision, outcomes)
        plain.learn(decision.contexts, outcomes)
        assert policy.nodes == plain.size()
    assert policy.nodes > 2 * children


@pytest.mark.parametrize("children", [2, 4])
def test_late_and_partial_feedback_counts_as_the_feedback_of_a_round_of_its_own(children):
    rng = np.random.default_rng(7)
    plain = PlainACCUCB(200, 2, 3.0, 1.0, 0.7, children, k=3, seed=5)
    policy = ACCUCB(200, 2, 3.0, 1.0, 0.7, children, oracle=TopK(3), seed=5)
    learned: dict[str, np.ndarray] = {}
    for _ in range(200):
        contexts = some_contexts(rng, 2)
        indices = plain.indices(contexts)
        decision = policy.select(contexts)
        assert decision.super_arm.tolist() == plain.best(indices)
        while len(policy.pending) > 4:
            late = policy.pending[rng.integers(len(policy.pending))]
            outcomes = mean_outcome(late.contexts) + 0.1 * rng.standard_normal(len(late))
            already = learned.setdefault(late.id, np.zeros(len(late), dtype=bool))
            seen = ~already & (rng.random(len(late)) < 0.6)
            already |= seen
            policy.update(late, np.where(seen, outcomes, np.nan))
            plain.learn(late.contexts[seen], outcomes[seen])
    assert policy.nodes == plain.size() > 4 * children


def test_a_leaf_is_split_once_per_feedback_and_its_children_start_without_outcomes():
    policy = ACCUCB(horizon=10, dimension=1)
    policy.observe([[0.3]] * 1000, [0.5] * 1000)
    assert policy.nodes == 3
    parent = 0.5 + math.sqrt(2 * math.log(10) / 1000) + 1
    np.testing.assert_allclose(policy.index([[0.3], [0.8]]), parent + 0.5 + 2 * 0.5)


def test_defaults_are_those_of_the_paper():
    policy = ACCUCB(horizon=250, dimension=3)
    assert (policy.v1, policy.v2, policy.rho, policy.children) == (math.sqrt(3), 1.0, 0.5, 8)


def test_a_context_on_a_border_belongs_to_the_upper_cell_and_one_at_the_end_to_the_last():
    policy = ACCUCB(horizon=10, dimension=1, v1=100.0)
    policy.observe([[0.5]], [0.0])  # splits the root
    policy.observe([[0.75]], [5.0])
    low, half, high, end = policy.index([[np.nextafter(0.5, 0)], [0.5], [0.75], [1.0]])
    assert low != half
    assert high == end


def test_there_is_no_depth_at_which_cells_are_confused():
    # With T = 1 the confidence radius is 0 and every played leaf is split, far beyond the
    # 52 binary digits of a float.
    policy = ACCUCB(horizon=1, dimension=1)
    plain = PlainACCUCB(1, 1, 1.0, 1.0, 0.5, 2, k=1, seed=0)
    for outcome in np.linspace(0, 1, 90):
        for x in (0.0, 1 / 3, 1.0):
            policy.observe([[x]], [outcome])
            plain.learn(np.array([[x]]), [outcome])
    contexts = np.array([[0.0], [5e-324], [1e-20], [1 / 3], [np.nextafter(1, 0)], [1.0]])
    np.testing.assert_allclose(policy.index(contexts), plain.indices(contexts), rtol=1e-13)
    assert policy.nodes == plain.size()


def test_indices_are_random_while_the_root_is_the_only_node():
    contexts = [[0.1], [0.5], [0.9]]
    chosen = [ACCUCB(100, 1, oracle=TopK(1), seed=s).select(contexts) for s in range(300)]
    counts = np.bincount([decision.super_arm[0] for decision in chosen], minlength=3)
    assert counts.min() > 70  # 100 expected, standard deviation 8


def test_a_loaded_policy_decides_as_the_saved_one_would_have():
    rng = np.random.default_rng(3)
    policy = ACCUCB(100, 2, v1=3.0, oracle=TopK(2), seed=1)
    for saved_at in (0, 40):
        while policy.round < saved_at:
            decision = policy.select(some_contexts(rng, 2))
            policy.update(decision, mean_outcome(decision.contexts))
        first, second = loads(dumps(policy)), loads(dumps(policy))
        assert isinstance(first, ACCUCB)
        assert dumps(first) == dumps(policy)
        for _ in range(50):
            contexts = some_contexts(rng, 2)
            decision = first.select(contexts)
            assert second.select(contexts) == decision
            outcomes = mean_outcome(decision.contexts)
            first.update(decision, outcomes)
            second.update(decision, outcomes)
        assert first.nodes == second.nodes > 1


@pytest.mark.parametrize(
    ("dimension", "allowed"), [(1, [2]), (2, [2, 4]), (3, [2, 8]), (4, [2, 4, 16]), (29, [2])]
)
def test_children_must_halve_all_sides_equally_often(dimension, allowed):
    for children in allowed:
        assert ACCUCB(10, dimension, children=children).children == children
    for children in {1, 2, 3, 4, 8, 16, 32, 2**29} - set(allowed):
        with pytest.raises(InputError) as error:
            ACCUCB(10, dimension, children=children)
        assert str(allowed) in str(error.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"horizon": 0},
        {"dimension": 1.5},
        {"v1": 0.0},
        {"v2": -1.0},
        {"rho": 1.0},
        {"children": 2.0},
        {"children": 0},
    ],
)
def test_wrong_arguments_are_named(wrong):
    (name,) = wrong
    with pytest.raises(InputError, match=name):
        ACCUCB(**{"horizon": 10, "dimension": 2, **wrong})
