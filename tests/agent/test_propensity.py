from __future__ import annotations

import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

from oclok import Agent
from oclok.oracles import TopK
from oclok.policies import BayesUCB, Random, ThompsonSampling

ARMS = {i: {"x": 3.0 * i} for i in range(4)}


def test_a_random_policys_propensities_are_k_of_m() -> None:
    agent = Agent(TopK(2), policy=Random(seed=0), seed=1)
    estimates = [agent.decide(ARMS).offer.propensity for _ in range(40)]
    np.testing.assert_allclose(np.mean(estimates, axis=0), 0.5, atol=0.04)
    assert np.std(estimates) < 0.1


def test_thompson_sampling_of_two_arms_is_a_normal_probability() -> None:
    policy = ThompsonSampling(RBF(0.5), 0.3, seed=0)
    agent = Agent(TopK(1), policy=policy, seed=1)
    two = {"a": {"x": 0.0}, "b": {"x": 1.0}}
    agent.observe({"p": {"x": 0.0}, "q": {"x": 0.0}, "r": {"x": 1.0}}, [0.2, 0.1, -0.1])
    estimates = []
    for _ in range(40):
        decision = agent.decide(two)
        estimates.append(decision.table().loc["a", "propensity"])
        assert decision.table().loc[decision.chosen[0], "propensity"] > 0
    mean, _ = policy.posterior.predict(decision.offer.contexts)
    C = policy.posterior.covariance(decision.offer.contexts)
    expected = norm.cdf((mean[0] - mean[1]) / np.sqrt(C[0, 0] + C[1, 1] - 2 * C[0, 1]))
    assert abs(np.mean(estimates) - expected) < 0.04


def test_propensities_are_the_same_for_the_same_seed() -> None:
    first, second = (
        Agent(TopK(2), policy=ThompsonSampling(RBF(0.5), 0.3, seed=3), seed=4).decide(ARMS)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.offer.propensity, second.offer.propensity)
    assert first.chosen == second.chosen


def test_a_policy_that_is_not_random_has_none() -> None:
    decision = Agent(TopK(2), policy=BayesUCB(RBF(0.5), 0.3)).decide(ARMS)
    assert decision.offer.propensity is None
    assert "propensity" not in decision.table()
    assert decision.to_dict()["chosen"][0].keys() == {"id", "mean", "std", "index"}
