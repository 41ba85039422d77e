from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.gaussian_process.kernels import RBF

from oclok.bench.problems.codependency import Codependency
from oclok.errors import InputError


def sample(problem: Codependency) -> tuple[np.ndarray, np.ndarray]:
    rounds = list(problem)
    return (
        np.concatenate([current.contexts for current in rounds]),
        np.concatenate([current.means for current in rounds]),
    )


def test_there_are_about_a_hundred_arms_a_round():
    counts = [len(current.means) for current in Codependency(rounds=300, points=1000)]
    assert np.mean(counts) == pytest.approx(100, abs=2.5)


def test_a_round_has_no_arm_twice():
    for current in Codependency(rounds=20, points=400):
        assert len(np.unique(current.contexts, axis=0)) == len(current.contexts)


def test_contexts_come_from_one_uniform_set_that_has_one_mean_each():
    contexts, means = sample(Codependency(rounds=100, points=500))
    distinct, first = np.unique(contexts, axis=0, return_index=True)
    assert len(distinct) == 500
    assert len(np.unique(np.column_stack([contexts, means]), axis=0)) == 500
    assert kstest(distinct.ravel(), "uniform").pvalue > 1e-3
    assert first.size == 500


def test_contexts_do_not_depend_on_the_lengthscale():
    short = next(iter(Codependency(lengthscale=0.1, points=300)))
    long = next(iter(Codependency(lengthscale=1.0, points=300)))
    assert np.array_equal(short.contexts, long.contexts)
    assert not np.array_equal(short.means, long.means)


@pytest.mark.parametrize("lengthscale", [0.01, 0.05, 0.1, 0.5, 1.0])
def test_means_are_a_sample_of_the_gaussian_process(lengthscale):
    # f ~ N(0, K) exactly if the whitened values L⁻¹ f are standard normal.
    whitened = []
    for seed in range(4):
        X, f = sample(Codependency(rounds=60, lengthscale=lengthscale, seed=seed, points=250))
        X, first = np.unique(X, axis=0, return_index=True)
        # Conditioning needs few points that tell much of each other: 1e-6 is far above the jitter.
        order = np.random.default_rng(seed).permutation(len(X))[:60]
        K = RBF(lengthscale)(X[order]) + 1e-6 * np.eye(order.size)
        noisy = f[first][order] + 1e-3 * np.random.default_rng(seed).standard_normal(order.size)
        whitened.append(np.linalg.solve(np.linalg.cholesky(K), noisy))
    assert kstest(np.concatenate(whitened), "norm").pvalue > 1e-3


@pytest.mark.parametrize("lengthscale", [0.5, 1.0])
def test_long_lengthscales_give_smooth_finite_means_where_the_kernel_is_singular(lengthscale):
    X, f = sample(Codependency(rounds=100, lengthscale=lengthscale, points=1500))
    assert np.isfinite(f).all()
    near = np.argsort(np.linalg.norm(X - X[0], axis=1))
    distances = np.linalg.norm(X[near] - X[0], axis=1)
    first = near[np.argmax(distances > 0)]
    step = np.linalg.norm(X[first] - X[0])
    assert abs(f[first] - f[0]) < 6 * step / lengthscale


def test_few_points_are_all_there_is():
    problem = Codependency(rounds=5, points=50)
    assert all(len(current.means) == 50 for current in problem)


def test_a_lengthscale_of_zero_is_refused():
    with pytest.raises(InputError, match="lengthscale"):
        Codependency(lengthscale=0.0)


def test_fewer_points_than_k_are_refused():
    with pytest.raises(InputError, match="points"):
        Codependency(points=5)
