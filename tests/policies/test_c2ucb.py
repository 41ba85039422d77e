from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from oclok.errors import InputError
from oclok.oracles import TopK
from oclok.policies import C2UCB


def test_every_index_is_that_of_the_paper_from_closed_form_ridge_regression():
    rng = np.random.default_rng(0)
    width, penalty = 0.8, 2.0
    policy = C2UCB(TopK(3), width=width, penalty=penalty)
    X, y = np.empty((0, 3)), np.empty(0)
    for _ in range(60):
        contexts = rng.normal(size=(9, 2))
        features = np.column_stack([contexts, np.ones(9)])
        inverse = np.linalg.inv(penalty * np.eye(3) + X.T @ X)
        bonus = width * np.sqrt(np.diag(features @ inverse @ features.T))
        mean = np.zeros(9)
        if len(y):
            mean = Ridge(alpha=penalty, fit_intercept=False).fit(X, y).predict(features)
        np.testing.assert_allclose(policy.index(contexts), mean + bonus, rtol=1e-9, atol=1e-12)
        decision = policy.select(contexts)
        assert decision.super_arm.tolist() == sorted(np.argsort(-(mean + bonus))[:3])
        outcomes = decision.contexts @ [1.0, -2.0] + 0.5 + 0.1 * rng.normal(size=3)
        policy.update(decision, outcomes)
        X, y = np.vstack([X, features[decision.super_arm]]), np.append(y, outcomes)


def test_it_finds_the_best_arms_of_a_linear_world():
    rng = np.random.default_rng(1)
    policy = C2UCB(TopK(5))
    for t in range(150):
        contexts = rng.random((40, 3))
        means = contexts @ [1.0, -1.0, 0.5]
        decision = policy.select(contexts)
        policy.update(decision, means[decision.super_arm] + 0.1 * rng.normal(size=5))
        regret = np.sort(means)[-5:].sum() - means[decision.super_arm].sum()
        if t >= 120:
            assert regret < 0.3


@pytest.mark.parametrize("wrong", [{"width": 0.0}, {"penalty": -1.0}, {"width": "wide"}])
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        C2UCB(**wrong)
