from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from oclok.offline import Log, LoggedRound, model_opinion
from oclok.oracles import TopK
from oclok.posterior import DictionaryPosterior, ExactPosterior


@pytest.mark.parametrize("cls", [ExactPosterior, DictionaryPosterior])
def test_it_is_what_scikit_learns_gaussian_process_expects(world, cls):
    log = world.log(40, 0)
    opinion = model_opinion(world.Fixed(), log, cls(RBF(0.7), 0.4), level=0.9)
    judge = GaussianProcessRegressor(RBF(0.7), alpha=0.16, optimizer=None).fit(*log.observations)
    z = stats.norm.ppf(0.95)
    expected = np.zeros((40, 3))
    for t, current in enumerate(log):
        chosen = current.contexts[world.best(current.contexts)]
        mean, std = judge.predict(chosen, return_std=True)
        expected[t] = mean.sum(), (mean - z * std).sum(), (mean + z * std).sum()
    seen = (opinion.value, opinion.lower, opinion.upper)
    np.testing.assert_allclose(seen, expected.mean(axis=0), rtol=1e-6)


def test_it_covers_the_truth_at_least_as_often_as_it_says_where_the_model_is_right(world):
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(40):
        X = rng.random((30, 2))
        K = RBF(0.5)(X)
        f = np.linalg.cholesky(K + 1e-9 * np.eye(30)) @ rng.normal(size=30)
        rounds, truth = [], []
        for _ in range(20):
            arms = rng.choice(30, 5, replace=False)
            logged = np.sort(rng.choice(5, 2, replace=False))
            outcomes = f[arms][logged] + 0.3 * rng.normal(size=2)
            rounds.append(LoggedRound(X[arms], logged, outcomes, TopK(2)))
            truth.append(f[arms][np.argsort(X[arms, 0])[:2]].sum())
        opinion = model_opinion(
            world.Fixed(), Log(rounds), ExactPosterior(RBF(0.5), 0.3), level=0.8
        )
        covered.append(opinion.lower <= np.mean(truth) <= opinion.upper)
    assert np.mean(covered) >= 0.8


def test_it_says_that_it_is_an_opinion_and_changes_nothing(world):
    posterior = ExactPosterior(RBF(0.7), 0.4)
    opinion = model_opinion(world.Fixed(), world.log(30, 0), posterior)
    assert len(posterior) == 0
    assert "a model's opinion (ExactPosterior)" in repr(opinion)
    assert "this is no measurement" in repr(opinion)
    assert np.isnan(opinion.effective_sample_size)
    assert opinion.warnings == ()


def test_it_warns_where_the_model_has_seen_nothing_like_the_policys_arms(world):
    opinion = model_opinion(world.Fixed(), world.log(30, 0), ExactPosterior(RBF(0.001), 50.0))
    assert "next to nothing like 100%" in str(opinion.warnings[0])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_without_a_posterior_kernel_noise_and_scale_are_learned_from_the_log(world, scale):
    log = Log(
        LoggedRound(current.contexts, current.super_arm, scale * current.outcomes, TopK(2))
        for current in world.log(80, 0)
    )
    opinion = model_opinion(world.Fixed(), log)
    assert "a model's opinion (MixturePosterior)" in repr(opinion)
    assert opinion.value == pytest.approx(scale * world.true_value(), rel=0.1)
    assert opinion.lower < scale * world.true_value() < opinion.upper
    assert opinion.warnings == ()


def test_without_a_posterior_it_warns_of_arms_that_are_like_none_in_the_log(world):
    rng = np.random.default_rng(0)
    far = [0.0, 100.0]  # wanted by the policy, logged never
    rounds = []
    for _ in range(40):
        contexts = np.vstack([rng.uniform((1, 0), (2, 1), (3, 2)), far])
        outcomes = np.sin(6 * contexts[:2]).sum(axis=1)
        rounds.append(LoggedRound(contexts, [0, 1], outcomes, TopK(1)))
    (warning,) = model_opinion(world.Fixed(), Log(rounds)).warnings
    assert "next to nothing like 100%" in str(warning)
