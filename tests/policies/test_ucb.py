from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from oclok import UCB, Agent
from oclok.errors import InputError
from oclok.oracles import TopK
from oclok.testing import check_policy

RNG = np.random.default_rng(0)
X, x = RNG.random((15, 2)), RNG.random((8, 2))
Y = np.sin(5 * X[:, 0])


@pytest.mark.parametrize("width", [0.0, 1.0, 2.5])
def test_the_index_is_mean_plus_width_times_std(width: float) -> None:
    policy = UCB(RBF(0.5), 0.1, TopK(2), width)
    policy.observe(X, Y)
    judge = GaussianProcessRegressor(RBF(0.5), alpha=0.01, optimizer=None).fit(X, Y)
    mean, std = judge.predict(x, return_std=True)
    np.testing.assert_allclose(policy.index(x), mean + width * std, atol=1e-9)


def test_a_width_of_zero_is_greedy() -> None:
    policy = UCB(RBF(0.5), 0.1, TopK(2), width=0.0)
    policy.observe(X, Y)
    decision = policy.select(x)
    assert set(decision.super_arm) == set(np.argsort(-policy.posterior.predict(x).mean)[:2])


def test_pending_arms_make_their_neighbours_less_interesting() -> None:
    policy = UCB(RBF(0.5), 0.1, TopK(1), width=2.0, condition_on_chosen=True)
    first = policy.select(x)
    assert set(policy.select(x).super_arm) != set(first.super_arm)


@pytest.mark.parametrize("wrong", [-1.0, np.nan, "wide"])
def test_a_width_that_is_none_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="width"):
        UCB(RBF(0.5), 0.1, TopK(2), wrong)  # type: ignore[arg-type]


def test_it_conforms() -> None:
    check_policy(lambda: UCB(RBF(0.5), 0.1, TopK(3), condition_on_chosen="guaranteed"))


def test_an_oracle_in_the_place_of_the_kernel_is_an_error_that_says_where_it_goes():
    with pytest.raises(InputError, match=r"UCB\(oracle=TopK"):
        UCB(TopK(2))


def test_where_nothing_can_be_proven_a_decision_says_nothing_of_exactness() -> None:
    assert UCB(oracle=TopK(2)).select(x).is_exact is None
    arms = {str(n): {"x": row[0], "y": row[1]} for n, row in enumerate(x)}
    assert "is_exact" not in Agent(TopK(2)).decide(arms).to_dict()
    assert UCB(RBF(0.5), 0.1, TopK(2)).select(x).is_exact
