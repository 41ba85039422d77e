"""A posterior that passes questions on gives the answers of the one in use."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok.errors import OclokError
from oclok.persistence import dumps, loads
from oclok.posterior import (
    DictionaryPosterior,
    ExactPosterior,
    ForgettingPosterior,
    SparsePosterior,
)
from oclok.posterior.wrapping import learn_past


@pytest.mark.parametrize("count", [20, 300])
def test_answers_are_those_of_the_posterior_delegate(count):
    rng = np.random.default_rng(0)
    posterior = DictionaryPosterior(RBF(1.0), 0.1)
    posterior.update(rng.random((count, 2)), rng.standard_normal(count))
    wrapped, x = ForgettingPosterior(posterior, window=1_000), rng.random((10, 2))
    for outer in (posterior, wrapped):
        inner = outer.delegate
        assert outer.information_gain == inner.information_gain
        assert outer.rank == inner.rank
        np.testing.assert_array_equal(outer.predict(x).mean, inner.predict(x).mean)
        np.testing.assert_array_equal(outer.covariance(x), inner.covariance(x))
        for draw in ("sample", "sample_paths"):
            more = () if draw == "sample" else (3,)
            ours, theirs = (
                getattr(each, draw)(x, *more, np.random.default_rng(1)) for each in (outer, inner)
            )
            np.testing.assert_array_equal(ours, theirs)


def test_contexts_are_checked_before_they_are_passed_on():
    posterior = DictionaryPosterior(RBF(1.0), 0.1)
    posterior.offer(np.zeros((3, 2)))
    with pytest.raises(OclokError):
        posterior.predict(np.zeros((3, 3)))


def taught(posterior, count):
    X = np.random.default_rng(0).random((count, 2))
    posterior.update(X, np.sin(4 * X[:, 0]))
    return posterior


@pytest.mark.parametrize("start", [0, 7])
@pytest.mark.parametrize("most", [1, 8, 50])
def test_in_the_end_it_has_learned_all_but_the_oldest(start, most):
    known = taught(ExactPosterior(RBF(1.0), 0.1), 20)
    later, steps = known.empty(), 1
    while not learn_past(later, known.observations, most, start):
        assert len(later) == min(most * steps, 20 - start)
        steps += 1
    assert steps == -(-(20 - start) // most)
    expected = ExactPosterior(RBF(1.0), 0.1)
    expected.update(known.contexts[start:], known.outcomes[start:])
    x = np.random.default_rng(1).random((5, 2))
    np.testing.assert_allclose(later.predict(x).mean, expected.predict(x).mean, atol=1e-9)


def test_outcomes_that_come_meanwhile_are_learned_too():
    known = taught(DictionaryPosterior(RBF(1.0), 0.1), 30)
    later = SparsePosterior(RBF(1.0), 0.1, 5, seed=0)
    assert not learn_past(later, known.observations, 20)
    known.update([[0.5, 0.5]], [1.0])
    later = loads(dumps(later))
    assert learn_past(later, known.observations, 20)
    assert len(later) == 31
