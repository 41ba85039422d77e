from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from oclok.errors import InputError, NumericalError, StorageError
from oclok.oracles import TopK
from oclok.persistence import digest_of, dumps, loads
from oclok.policies import EpsilonGreedy
from oclok.policies.epsilon_greedy import REFIT_GROWTH

REGRESSORS = {
    "ridge": Ridge(0.5),
    "forest": RandomForestRegressor(5),
    "neighbours": KNeighborsRegressor(2),
    "pipeline": make_pipeline(StandardScaler(), RandomForestRegressor(3)),
    "gaussian process": GaussianProcessRegressor(RBF(0.5), alpha=0.1),
}


def test_without_exploration_it_plays_what_the_regressor_predicts_to_be_best():
    rng = np.random.default_rng(0)
    policy = EpsilonGreedy(Ridge(0.5), 0.0, TopK(2), seed=0)
    X, y, fitted_on = rng.random((2, 2)), rng.random(2), 2
    policy.observe(X, y)
    for _ in range(40):
        contexts = rng.random((7, 2))
        decision = policy.select(contexts)
        judge = Ridge(0.5).fit(X[:fitted_on], y[:fitted_on]).predict(contexts)
        assert decision.super_arm.tolist() == sorted(np.argsort(-judge)[:2])
        np.testing.assert_allclose(decision.index, judge[decision.super_arm], rtol=1e-12)
        outcomes = rng.random(2)
        policy.update(decision, outcomes)
        X, y = np.vstack([X, decision.contexts]), np.append(y, outcomes)
        if y.size >= REFIT_GROWTH * fitted_on:
            fitted_on = y.size


def test_arms_are_chosen_with_the_propensities_that_it_states():
    epsilon, contexts = 0.4, np.linspace(0, 1, 8)[:, None]
    policy = EpsilonGreedy(LinearRegression(), epsilon, TopK(2), seed=0)
    policy.observe(contexts, contexts[:, 0])
    counts = np.zeros(8)
    for _ in range(3_000):
        counts[policy.select(contexts).super_arm] += 1
    expected = np.full(8, epsilon * 2 / 8)
    expected[-2:] += 1 - epsilon
    # Standard errors are at most 0.009.
    np.testing.assert_allclose(counts / 3_000, expected, atol=0.03)


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_loaded_policy_decides_as_the_saved_one_would_have(name):
    rng = np.random.default_rng(3)
    policy = EpsilonGreedy(REGRESSORS[name], 0.1, TopK(2), seed=1)
    policy.observe(rng.random((30, 2)), rng.random(30))
    policy.observe(rng.random((1, 2)), rng.random(1))  # too few to fit again
    loaded = loads(dumps(policy))
    assert isinstance(loaded, EpsilonGreedy)
    assert dumps(loaded) == dumps(policy)
    for _ in range(10):
        contexts, outcomes = rng.random((9, 2)), rng.random(2)
        np.testing.assert_allclose(loaded.index(contexts), policy.index(contexts), rtol=1e-9)
        decision = policy.select(contexts)
        assert loaded.select(contexts).super_arm.tolist() == decision.super_arm.tolist()
        policy.update(decision, outcomes)
        loaded.update(loaded.pending[0], outcomes)


class Own(RegressorMixin, BaseEstimator):
    """Fails to fit more than ten outcomes."""

    def fit(self, X, y):
        if len(y) > 10:
            raise RuntimeError("too many")
        self.mean_ = np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


def test_a_regressor_that_cannot_be_saved_safely_works_and_says_so():
    policy = EpsilonGreedy(Own(), 0.1, TopK(1), seed=0)
    policy.observe([[0.0], [1.0]], [1.0, 3.0])
    assert policy.select([[0.5]]).mean == [2.0]
    with pytest.raises(StorageError, match=r"Own: only scikit-learn's own"):
        dumps(policy)


def test_a_failed_fit_changes_nothing():
    policy = EpsilonGreedy(Own(), 0.0, TopK(1), seed=0)
    policy.observe([[0.0], [1.0]], [1.0, 3.0])
    with pytest.raises(NumericalError, match="Own cannot be fitted to 12 outcomes: too many"):
        policy.observe(np.zeros((10, 1)), np.zeros(10))
    assert policy.select([[0.5]]).mean == [2.0]
    policy.observe(np.zeros((8, 1)), np.zeros(8))
    assert policy.select([[0.5]]).mean == [0.4]


@pytest.mark.parametrize(
    ("module", "name"),
    [("os", "system"), ("sklearn.utils", "shuffle"), ("sklearn.linear_model", "Nothing")],
)
def test_a_file_cannot_name_anything_but_an_estimator(tmp_path, module, name):
    path = tmp_path / "policy.oclok"
    EpsilonGreedy(Ridge(), oracle=TopK(1), seed=0).save(path)
    with zipfile.ZipFile(path) as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    text = entries["state.json"].decode()
    tree = json.loads(text)
    old = tree["content"]["state"]["regressor"]
    text = text.replace(json.dumps(old), json.dumps({**old, "$estimator": f"{module}.{name}"}))
    with zipfile.ZipFile(path, "w") as archive:
        for entry, content in {**entries, "state.json": text.encode()}.items():
            if entry != "digest":
                archive.writestr(entry, content)
        archive.writestr("digest", digest_of(archive))
    with pytest.raises(StorageError, match=r"not a module of scikit-learn|has no estimator"):
        EpsilonGreedy.load(path)


def test_the_regressor_that_was_given_is_left_alone():
    forest = RandomForestRegressor(3)
    policy = EpsilonGreedy(forest, seed=0)
    policy.observe([[0.0], [1.0]], [1.0, 3.0])
    assert forest.random_state is None
    assert not hasattr(forest, "estimators_")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Ridge,), "instance"),
        (("ridge",), "instance"),
        ((Ridge(), 1.5), "epsilon"),
        ((Ridge(), -0.1), "epsilon"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        EpsilonGreedy(*arguments)
