from __future__ import annotations

import numpy as np
import pytest

from oclok.persistence import dumps, loads
from oclok.posterior.mixture.scaling import KEPT, ContextScale, ScaledRows
from oclok.posterior.observations import Observations


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


class TestScaledRows:
    """Contexts of a mixture with more outcomes than are kept scaled."""

    X = 10 * np.random.default_rng(0).random((KEPT + 452, 2))
    y = np.arange(float(len(X)))
    scale = ContextScale().refreshed(X)
    x = scale.apply(X)

    def rows(self):
        known = Observations()
        known.extend(self.X, self.y)
        return ScaledRows(known, self.scale)

    def test_members_see_what_they_have_learned_whoever_is_ahead(self):
        rows, x, y = self.rows(), self.x, self.y
        first, second = Observations(rows), Observations(rows)
        first.extend(x[:2300], y[:2300])
        for start in range(0, len(x), 500):
            part = slice(start, start + 500)
            second.extend(x[part], 2 * y[part])
            np.testing.assert_array_equal(second.contexts, x[: start + 500])
        np.testing.assert_array_equal(first.contexts, x[:2300])
        np.testing.assert_array_equal(first.outcomes, y[:2300])
        np.testing.assert_array_equal(second.outcomes, 2 * y)
        assert second.find(x[[7, 2400]], 2 * y[[7, 2400]]).tolist() == [7, 2400]

    def test_no_more_than_the_first_are_kept(self):
        rows = self.rows()
        member = Observations(rows)
        for part in np.array_split(self.x, 25):
            member.extend(part, np.zeros(len(part)))
        assert 0 < len(rows) <= KEPT

    def test_outcomes_dropped_by_one_leave_the_contexts_of_others(self):
        rows = self.rows()
        one, other = Observations(rows), Observations(rows)
        for observations in (one, other):
            observations.extend(self.x[:3], np.zeros(3))
        one.truncate(1)
        np.testing.assert_array_equal(one.contexts, self.x[:1])
        np.testing.assert_array_equal(other.contexts, self.x[:3])

    def test_contexts_are_there_after_loading_though_none_are_saved(self):
        rows = self.rows()
        loaded = loads(dumps(rows))
        for stop in (3, len(self.x)):
            np.testing.assert_array_equal(loaded.at(slice(stop)), self.x[:stop])
        assert len(dumps(rows)) < self.X.nbytes + 2 * self.y.nbytes + 4_000
