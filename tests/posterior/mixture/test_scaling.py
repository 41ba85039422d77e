from __future__ import annotations

import numpy as np
import pytest

from oclok.posterior.mixture.scaling import ContextScale


def test_contexts_offered_are_scaled_to_the_unit_cube_and_back():
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1e6, 1.0, 1e-6]
    scale = ContextScale()
    scale.see(X[:30])
    scale = scale.refreshed(X[30:])
    x = scale.apply(X)
    assert np.allclose(x.min(axis=0), 0)
    assert np.allclose(x.max(axis=0), 1)
    np.testing.assert_allclose(scale.undo(x), X, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_column_that_was_constant_is_scaled_by_its_range_once_it_varies(unit):
    scale = ContextScale().refreshed(unit * np.full((4, 1), 7.0))
    assert scale.apply(unit * np.array([[7.0]])).tolist() == [[0.0]]
    later = unit * np.array([[7.0], [6.5], [7.5]])
    np.testing.assert_allclose(scale.apply(later), [[0.0], [-0.5], [0.5]], atol=1e-9)
    scale.see(later)
    np.testing.assert_allclose(scale.apply(later), [[0.0], [-0.5], [0.5]], atol=1e-9)
    np.testing.assert_allclose(scale.undo(scale.apply(later)), later)


def test_a_scale_is_outgrown_by_contexts_well_outside_of_it():
    X = np.random.default_rng(0).random((100, 2))
    scale = ContextScale().refreshed(X)
    scale.see(1.02 * X)
    assert not scale.is_outgrown(10)
    before = scale.apply(X)
    scale.see(1.5 * X)
    assert scale.is_outgrown(10)
    assert scale.is_outgrown(10, doubled=False)
    assert not scale.is_outgrown(500, doubled=False)
    assert not scale.is_outgrown(10_000)  # not worth learning so many outcomes anew
    scale.see(3 * X)
    assert scale.is_outgrown(10_000)
    np.testing.assert_array_equal(scale.apply(X), before)
    assert not scale.refreshed().is_outgrown(10)


def test_contexts_far_out_of_range_are_as_far_as_its_span():
    scale = ContextScale().refreshed(np.array([[0.0], [4.0]]))
    assert scale.apply(np.array([[-400.0], [-2.0], [6.0], [400.0]])).tolist() == [
        [-1.0],
        [-0.5],
        [1.5],
        [2.0],
    ]


def test_a_fixed_scale_leaves_contexts_as_they_are():
    X = np.random.default_rng(0).normal(size=(5, 2))
    scale = ContextScale(is_fixed=True).refreshed(X)
    scale.see(100 * X)
    assert not scale.is_outgrown(10)
    np.testing.assert_array_equal(scale.apply(100 * X), 100 * X)
    np.testing.assert_array_equal(scale.undo(scale.apply(X)), X)
