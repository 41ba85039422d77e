"""Trees against scikit-learn's, and what they learn between."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from oclok.persistence import dumps, loads
from oclok.posterior.mixture.columns import ColumnMap
from oclok.posterior.mixture.trees import LEAF, TREES, ExtraTrees


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4)) * [1.0, 100.0, 1e-3, 1.0]
    return X, np.where(X[:, 0] > 0.5, X[:, 1], 0.0) + rng.standard_normal(n)


def forest(X, y, trees=TREES):
    grown, columns = ExtraTrees(0), ColumnMap(X)
    for _ in range(trees):
        assert grown.grow(columns, X, y, np.ones(len(y)))
    return grown


def repeated(n):
    """Data in which every row fills a leaf."""
    X, y = data(n)
    return np.repeat(X, LEAF, axis=0), np.repeat(y, LEAF)


def test_as_good_as_scikit_learns():
    ours, theirs = 0.0, 0.0
    for seed in range(8):  # one alone is anything from 0.7 to 1.6 times as good
        X, y = data(300, seed)
        x, f = data(300, 100 + seed)
        judge = ExtraTreesRegressor(TREES, min_samples_leaf=LEAF, random_state=0).fit(X, y)
        ours += np.mean((forest(X, y).predict(x) - f) ** 2)
        theirs += np.mean((judge.predict(x) - f) ** 2)
    assert ours < 1.2 * theirs


def test_full_grown_trees_know_what_they_were_grown_on():
    X, y = repeated(100)
    np.testing.assert_allclose(forest(X, y).predict(X), y, atol=1e-9)


def test_the_oldest_tree_makes_place():
    X, y = repeated(50)
    grown = forest(X, y)
    columns = ColumnMap(X)
    for _ in range(TREES):
        grown.grow(columns, X, y + 1000, np.ones(len(y)))
    assert len(grown) == TREES
    np.testing.assert_allclose(grown.predict(X), y + 1000, atol=1e-6)


def test_outcomes_move_their_leaves_and_can_be_corrected():
    X, y = repeated(100)
    grown = forest(X, y)
    weight = np.array([float(LEAF)])  # as much as the leaf has
    grown.learn(X[:1], y[:1] + 6.0, weight)
    assert grown.predict(X[:1])[0] == pytest.approx(y[0] + 3.0)
    grown.correct(X[:1], np.array([-6.0]), weight)
    assert grown.predict(X[:1])[0] == pytest.approx(y[0])
    grown.discount(0.5)  # the leaf has its first weight again
    grown.learn(X[:1], y[:1] + 6.0, weight)
    assert grown.predict(X[:1])[0] == pytest.approx(y[0] + 3.0)


def test_nothing_to_split_by_is_no_tree():
    X = np.ones((5, 2))
    grown = ExtraTrees(0)
    assert not grown.grow(ColumnMap(X), X, np.arange(5.0), np.ones(5))
    assert len(grown) == 0


def test_a_loaded_forest_goes_on_the_same():
    X, y = data(80)
    one = forest(X, y, 3)
    other = loads(dumps(one))
    for each in (one, other):
        each.learn(X[:4], y[:4] + 1, np.ones(4))
        each.grow(ColumnMap(X), X, y, np.ones(80))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_trees_of_growing_data_are_those_of_the_data_at_once():
    X, y = data(80)
    columns = ColumnMap(X)
    again, at_once = ExtraTrees(0), ExtraTrees(0)
    again.grow(columns, X[:50], y[:50], np.ones(50))
    at_once.grow(columns, X[:50], y[:50], np.ones(50))
    at_once = loads(dumps(at_once))  # which keeps nothing that was mapped
    for trees in (again, at_once):
        trees.grow(columns, X, y, np.ones(80))
    np.testing.assert_array_equal(again.predict(X), at_once.predict(X))
