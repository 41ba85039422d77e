from __future__ import annotations

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from oclok.errors import InputError
from oclok.oracles import TopK
from oclok.persistence import dumps, loads
from oclok.policies import C2UCB, NeuralLinear
from oclok.policies.neural_linear import train


def bowl(contexts: np.ndarray) -> np.ndarray:
    return 1 - 4 * ((contexts - 0.5) ** 2).sum(axis=1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_features_are_the_last_hidden_layer_of_the_network():
    rng = np.random.default_rng(0)
    X = rng.random((80, 2))
    y = bowl(X)
    network = train(X, y, (12, 7), seed=3)
    model = MLPRegressor(
        hidden_layer_sizes=(12, 7), solver="lbfgs", alpha=1e-3, max_iter=200, random_state=3
    ).fit((X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std())
    features = network.features(X)
    assert features.shape == (80, 8)
    assert (features**2).sum(axis=1).mean() == pytest.approx(1)
    hidden = features[:, :-1] / features[0, -1]  # the constant is 1 before normalising
    prediction = hidden @ model.coefs_[-1][:, 0] + model.intercepts_[-1]
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(prediction, model.predict(scaled), atol=1e-8)


def test_the_head_is_bayesian_regression_on_the_features_of_all_outcomes():
    rng = np.random.default_rng(1)
    X = rng.random((70, 2))
    y = bowl(X) + 0.1 * rng.normal(size=70)
    policy = NeuralLinear(0.1, TopK(2), hidden=(10,), train_every=50, seed=0)
    policy.observe(X[:50], y[:50])  # trains
    policy.observe(X[50:], y[50:])  # only the head learns
    network = policy.network
    assert network is not None
    new = rng.random((5, 2))
    F, G = network.features(X), network.features(new)
    inverse = np.linalg.inv(0.01 * np.eye(11) + F.T @ F)
    decision = policy.select(new, TopK(5))
    np.testing.assert_allclose(decision.mean, G @ inverse @ F.T @ y, rtol=1e-6)
    np.testing.assert_allclose(decision.std, 0.1 * np.sqrt(np.diag(G @ inverse @ G.T)), rtol=1e-6)


def total(policy, rounds: int = 120) -> float:
    rng = np.random.default_rng(5)
    reward = 0.0
    for t in range(rounds):
        contexts = rng.random((30, 2))
        decision = policy.select(contexts)
        means = bowl(decision.contexts)
        policy.update(decision, means + 0.1 * rng.normal(size=3))
        reward += means.sum() if t >= rounds // 2 else 0.0
    return reward


def test_it_learns_what_a_linear_policy_cannot():
    neural = total(NeuralLinear(0.1, TopK(3), hidden=(20,), train_every=60, seed=0))
    linear = total(C2UCB(TopK(3)))
    best = 60 * 3 * 1.0
    assert best - neural < (best - linear) / 2


def test_a_loaded_policy_has_the_same_network_and_goes_on_alike():
    rng = np.random.default_rng(2)
    policy = NeuralLinear(0.1, TopK(2), hidden=(6,), train_every=20, seed=4)
    policy.observe(rng.random((30, 2)), rng.random(30))
    loaded = loads(dumps(policy))
    assert isinstance(loaded, NeuralLinear)
    for _ in range(20):  # long enough to train again
        contexts, outcomes = rng.random((6, 2)), rng.random(2)
        decision = policy.select(contexts)
        assert loaded.select(contexts) == decision
        policy.update(decision, outcomes)
        loaded.update(decision, outcomes)


def test_constant_contexts_and_outcomes_train_a_network_all_the_same():
    policy = NeuralLinear(0.1, TopK(1), hidden=(4,), train_every=10, seed=0)
    policy.observe(np.ones((12, 2)), np.full(12, 3.0))
    assert policy.select([[1.0, 1.0]]).mean[0] == pytest.approx(3.0, rel=0.01)


@pytest.mark.parametrize("wrong", [{"hidden": (0,)}, {"train_every": 0}, {"prior_std": 0.0}])
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        NeuralLinear(0.1, **wrong)
