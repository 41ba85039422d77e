from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import DotProduct

from oclok.errors import InputError
from oclok.oracles import TopK
from oclok.policies import LinearThompson
from oclok.posterior import ExactPosterior


def test_belief_is_that_of_a_gaussian_process_with_a_linear_kernel():
    rng = np.random.default_rng(0)
    policy = LinearThompson(0.2, TopK(3), seed=0)
    judge = ExactPosterior(DotProduct(sigma_0=1.0), 0.2)
    for _ in range(40):
        contexts = rng.normal(size=(8, 3))
        decision = policy.select(contexts)
        mean, std = judge.predict(decision.contexts)
        np.testing.assert_allclose(decision.mean, mean, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(decision.std, std, rtol=1e-6)
        outcomes = rng.normal(size=3)
        policy.update(decision, outcomes)
        judge.update(decision.contexts, outcomes)


def test_indices_are_joint_samples_of_the_posterior():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(10, 2)), rng.normal(size=10)
    contexts = rng.normal(size=(5, 2))
    policy = LinearThompson(0.5, TopK(5), prior_std=2.0, seed=0)
    policy.observe(X, y)
    drawn = np.array([policy.select(contexts).index for _ in range(4_000)])
    judge = ExactPosterior(4.0 * DotProduct(sigma_0=1.0), 0.5)
    judge.update(X, y)
    mean, _ = judge.predict(contexts)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(drawn.T), judge.covariance(contexts), atol=0.03)


def test_samples_of_one_round_share_their_weights():
    policy = LinearThompson(0.5, TopK(1), seed=3)
    index = policy.index([[0.0], [1.0], [2.0], [3.0]])
    np.testing.assert_allclose(np.diff(index, 2), 0, atol=1e-12)


@pytest.mark.parametrize("wrong", [{"noise_std": 0.0}, {"noise_std": 0.1, "prior_std": -1}])
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(InputError, match=list(wrong)[-1]):
        LinearThompson(**wrong)
