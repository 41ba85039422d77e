"""How columns are mapped: dead ones, two values, long tails; and back."""

from __future__ import annotations

import numpy as np

from oclok.persistence import dumps, loads
from oclok.posterior.mixture.columns import OFFERED, ColumnMap, Offered


def reference(seed=0, n=400):
    rng = np.random.default_rng(seed)
    even, tail = rng.random(n), np.exp(2 * rng.standard_normal(n))
    return np.column_stack([even, np.full(n, 7.0), tail, rng.random(n) < 0.2])


def test_columns_that_never_vary_are_left_out():
    columns = ColumnMap(reference())
    assert columns.active.tolist() == [0, 2, 3]
    X = reference(1, 5)
    moved = X + np.array([0.0, 3.0, 0.0, 0.0])
    np.testing.assert_array_equal(columns.apply(X), columns.apply(moved))


def test_even_columns_stay_even_and_two_values_stay_two():
    X = reference(1)
    U = ColumnMap(reference()).apply(X)
    np.testing.assert_allclose(U[:, 0], X[:, 0] - 0.5, atol=0.06)
    assert set(U[:, 2]) == {-0.5, 0.5}


def test_a_long_tail_does_not_hide_the_bulk():
    """By range, nine tenths of the values would be within a hundredth of it."""
    X = reference(1)
    U = ColumnMap(reference()).apply(X)[:, 1]
    assert np.quantile(U, 0.75) - np.quantile(U, 0.25) > 0.2
    assert U.max() - U.min() < 2.5
    order = np.argsort(X[:, 2])
    assert (np.diff(U[order]) >= 0).all()


def test_what_is_far_from_all_that_was_seen_is_told_apart():
    columns = ColumnMap(reference())
    X = np.zeros((4, 4))
    X[:, 0] = [1.0, 1.5, 3.0, 50.0]
    U = columns.apply(X)[:, 0]
    assert (np.diff(U) > 0.1).all()
    assert U[-1] < 2.0


def test_units_do_not_matter():
    X = reference()
    changed = X * [1e6, 1.0, 1e-6, 5.0] + [3.0, 0.0, -1.0, 2.0]
    np.testing.assert_allclose(ColumnMap(X).apply(X), ColumnMap(changed).apply(changed), atol=1e-7)


def test_what_is_mapped_can_be_mapped_back():
    X = reference()
    columns = ColumnMap(X)
    U = columns.apply(X)
    for place, column in enumerate(columns.active):
        back = columns.undo(np.full(len(X), place), U[:, place])
        np.testing.assert_allclose(back, X[:, column], rtol=1e-6, atol=1e-9)


def test_no_column_and_one_row_are_maps_of_nothing():
    for X in (np.ones((1, 3)), np.ones((5, 2))):
        assert ColumnMap(X).apply(X).shape == (len(X), 0)


def test_a_loaded_map_is_the_same():
    columns = ColumnMap(reference())
    X = reference(1)
    np.testing.assert_array_equal(loads(dumps(columns)).apply(X), columns.apply(X))


def test_a_limited_number_of_contexts_is_kept_and_all_are_as_likely():
    kept = np.zeros(4 * OFFERED)
    for seed in range(40):
        offered = Offered(seed)
        for start in range(0, len(kept), 60):
            offered.see(np.arange(start, min(start + 60, len(kept)))[:, None].astype(float))
        assert len(offered.contexts) == OFFERED
        kept[offered.contexts[:, 0].astype(int)] += 1
    quarters = kept.reshape(4, -1).sum(axis=1)
    np.testing.assert_allclose(quarters / quarters.sum(), 0.25, atol=0.015)
