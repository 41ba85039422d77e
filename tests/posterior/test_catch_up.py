from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok.persistence import dumps, loads
from oclok.posterior import DictionaryPosterior, ExactPosterior, Posterior, SparsePosterior
from oclok.posterior.catch_up import CatchUp


def taught(posterior: Posterior, count: int) -> Posterior:
    rng = np.random.default_rng(0)
    X = rng.random((count, 2))
    posterior.update(X, np.sin(4 * X[:, 0]))
    return posterior


@pytest.mark.parametrize("start", [0, 7])
@pytest.mark.parametrize("most", [1, 8, 50])
def test_in_the_end_it_has_learned_all_but_the_oldest(start: int, most: int) -> None:
    known = taught(ExactPosterior(RBF(1.0), 0.1), 20)
    catching_up = CatchUp(known.empty(), start)
    steps = 1
    while not catching_up.advance(known.observations, most):
        steps += 1
        assert len(catching_up.posterior) == min(most * (steps - 1), 20 - start)
    assert steps == -(-(20 - start) // most)
    expected = ExactPosterior(RBF(1.0), 0.1)
    expected.update(known.contexts[start:], known.outcomes[start:])
    x = np.random.default_rng(1).random((5, 2))
    np.testing.assert_allclose(
        catching_up.posterior.predict(x).mean, expected.predict(x).mean, atol=1e-9
    )


def test_outcomes_that_come_meanwhile_are_learned_too() -> None:
    known = taught(DictionaryPosterior(RBF(1.0), 0.1), 30)
    catching_up = CatchUp(SparsePosterior(RBF(1.0), 0.1, 5, seed=0))
    assert not catching_up.advance(known.observations, 20)
    known.update([[0.5, 0.5]], [1.0])
    catching_up = loads(dumps(catching_up))
    assert isinstance(catching_up, CatchUp)
    assert catching_up.advance(known.observations, 20)
    assert len(catching_up.posterior) == 31
