"""A posterior that passes questions on gives the answers of the one in use."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok.errors import OclokError
from oclok.posterior import DictionaryPosterior, ForgettingPosterior


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
