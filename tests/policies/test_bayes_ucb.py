from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

from oclok.oracles import TopK
from oclok.policies import BayesUCB, Discount, Policy, Window
from oclok.posterior import SparsePosterior
from oclok.testing import check_policy


def test_the_index_is_the_quantile_of_the_posterior() -> None:
    policy = BayesUCB(RBF(0.5), 0.1, TopK(3))
    rng = np.random.default_rng(0)
    for t in range(1, 80):
        contexts = rng.random((12, 2))
        mean, std = policy.posterior.predict(contexts)
        expected = norm.ppf(1 - 1 / (t + 1), loc=mean, scale=std)
        np.testing.assert_allclose(policy.index(contexts), expected, rtol=0, atol=1e-12)
        decision = policy.select(contexts)
        np.testing.assert_array_equal(decision.super_arm, TopK(3)(expected))
        np.testing.assert_array_equal(decision.mean, mean[decision.super_arm])
        np.testing.assert_array_equal(decision.std, std[decision.super_arm])
        policy.update(decision, rng.standard_normal(3))


def test_the_first_round_goes_by_the_mean() -> None:
    policy = BayesUCB(RBF(0.5), 0.1, TopK(1))
    policy.observe([[0.0]], [0.2])
    np.testing.assert_allclose(policy.index([[9.0]]), [0.0], atol=1e-12)
    assert policy.select([[9.0], [0.0]]).super_arm.tolist() == [1]


def test_an_arm_that_is_known_loses_to_one_that_is_not_in_the_end() -> None:
    policy = BayesUCB(RBF(0.5), 0.1, TopK(1))
    policy.observe([[0.0]] * 20, [1.0] * 20)
    played = []
    for _ in range(40):
        decision = policy.select([[0.0], [9.0]])
        played.append(int(decision.super_arm[0]))
        policy.update(decision, [1.0 if played[-1] == 0 else -1.0])
    first = played.index(1)
    # The quantile of the unknown arm, N(0, 1), passes 1 when 1 - 1/(t+1) passes Φ(1) = 0.841.
    assert first + 1 == 6
    assert played.count(1) == 1  # its outcome, -1, is enough


POLICIES: dict[str, Callable[[], Policy]] = {
    "default": lambda: BayesUCB(RBF(0.5), 0.1, TopK(3)),
    "sparse": lambda: BayesUCB(
        posterior=SparsePosterior(RBF(0.5), 0.1, 10, seed=1), oracle=TopK(3)
    ),
    "window": lambda: BayesUCB(RBF(0.5), 0.1, TopK(3), forget=Window(30)),
    "discount": lambda: BayesUCB(RBF(0.5), 0.1, TopK(3), forget=Discount(0.9)),
}


@pytest.mark.parametrize("name", POLICIES)
def test_it_conforms(name: str) -> None:
    check_policy(POLICIES[name])
