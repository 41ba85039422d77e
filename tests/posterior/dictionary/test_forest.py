"""The forest finds near contexts, whatever the order, the dimension and the repetitions."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from oclok.posterior.dictionary.forest import BUCKET, NONE, TREES, Forest


def forest_of(X: np.ndarray, scale: float = 1.0) -> Forest:
    forest = Forest(np.asarray(scale))
    for positions in np.array_split(np.arange(len(X)), -(-len(X) // 64)):
        forest.insert(X, positions)
    return forest


def found(forest: Forest, x: np.ndarray, trees: int = TREES) -> set[int]:
    return set(forest.candidates(x[None], trees)[0].tolist()) - {NONE}


@pytest.mark.parametrize("dimension", [1, 3, 20])
def test_every_context_is_its_own_candidate_in_every_tree(dimension):
    X = np.random.default_rng(0).random((500, dimension))
    forest = forest_of(X)
    for position in range(0, 500, 7):
        assert position in found(forest, X[position], trees=1)
        assert list(forest.candidates(X[position][None])[0]).count(position) == TREES


def test_candidates_of_one_tree_do_not_repeat():
    X = np.random.default_rng(0).random((1_000, 2))
    members = forest_of(X).candidates(X[:50], 1)
    for row in members:
        row = row[row != NONE]
        assert len(set(row.tolist())) == len(row) <= BUCKET


def test_most_of_the_nearest_are_among_the_candidates():
    rng = np.random.default_rng(0)
    X, asked = rng.random((3_000, 3)), rng.random((100, 3))
    forest = forest_of(X)
    nearest = np.argsort(cdist(asked, X), axis=1)[:, :16]
    recall = [
        len(found(forest, x) & set(row.tolist())) / 16
        for x, row in zip(asked, nearest, strict=True)
    ]
    assert np.mean(recall) > 0.8


def test_a_coordinate_of_long_lengthscale_is_not_split():
    X = np.random.default_rng(0).random((2_000, 2))
    forest = forest_of(X, np.array([0.1, 1e6]))
    x = np.linspace(0, 1, 50)
    low, high = (forest.candidates(np.column_stack([x, np.full(50, y)])) for y in (0.0, 1.0))
    np.testing.assert_array_equal(low, high)


def test_equal_contexts_leave_room_for_new_ones():
    X = np.zeros((10 * BUCKET, 2))
    X[-1] = 1.0
    forest = forest_of(X)
    assert len(X) - 1 in found(forest, X[-1])
    assert len(found(forest, X[0])) >= BUCKET // 2


def test_a_context_can_take_the_place_of_another():
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    forest = forest_of(X)
    old, X[7] = X[7].copy(), [5.0, 5.0]
    forest.insert(X, np.array([7]))
    assert 7 in found(forest, X[7])
    assert 7 not in found(forest, old)
