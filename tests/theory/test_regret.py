"""Theorem 1 and Corollary 1 against the paper's formulas, and against simulated runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from oclok.errors import InputError
from oclok.theory import (
    information_gain,
    linear_rate,
    matern_rate,
    max_information_gain,
    rbf_rate,
    regret_bound,
)

KERNELS = [RBF(0.3), RBF(2.0), Matern(0.5, nu=1.5), DotProduct(0.1)]
HORIZONS = np.array([1e8, 1e16])


def covariance_given(kernel, X, past, noise_std):
    """Equation 2: the covariance of f at X given noisy outcomes at `past`."""
    A = kernel(past, past) + noise_std**2 * np.eye(len(past))
    return kernel(X) - kernel(X, past) @ np.linalg.solve(A, kernel(past, X))


def slope(rate):
    """The exponent of T, from values at HORIZONS."""
    return float(np.diff(np.log(rate))[0] / np.diff(np.log(HORIZONS))[0])


def test_the_bound_is_the_formula_of_theorem_1():
    C = 8 * 1.5**2 * (2.5 + 0.3**2)
    assert regret_bound(250, 5, 23.0, 64.0, 2.5, 0.3, 1.5) == pytest.approx(
        math.sqrt(C * 5 * 23.0 * 250 * 64.0), rel=1e-14
    )


def test_nothing_learned_and_nothing_to_learn_give_a_bound_of_zero():
    assert regret_bound(1, 1, 0.0, 1.0, 1.0, 0.1) == 0.0
    assert regret_bound(1, 1, 1.0, 0.0, 0.0, 0.1) == 0.0


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("noise_std", [0.05, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_information_bounds_the_variances_of_any_sequence_of_super_arms(kernel, noise_std, seed):
    """The paper's lemma of Section 4, on which Theorem 1 rests."""
    rng = np.random.default_rng(seed)
    super_arms = [rng.random((rng.integers(1, 6), 2)) for _ in range(15)]
    past, variances, eigenvalues = np.empty((0, 2)), 0.0, []
    for X in super_arms:
        covariance = covariance_given(kernel, X, past, noise_std)
        variances += np.trace(covariance)
        eigenvalues.append(np.linalg.eigvalsh(covariance)[-1])
        past = np.concatenate([past, X])
    factor = 2 * (max(eigenvalues) / noise_std**2 + 1)
    assert information_gain(kernel, past, noise_std) >= variances / noise_std**2 / factor


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_regret_stays_below_widths_and_widths_below_theorem_1(kernel, seed):
    rng = np.random.default_rng(seed)
    T, M, k, noise_std, delta = 30, 12, 3, 0.2, 0.05
    rounds = rng.random((T, M, 2))
    everything = rounds.reshape(-1, 2)
    f = rng.multivariate_normal(np.zeros(T * M), kernel(everything), method="eigh").reshape(T, M)
    betas = 2 * np.log(M * math.pi**2 * np.arange(1, T + 1) ** 2 / (3 * delta))

    past, outcomes, eigenvalues = np.empty((0, 2)), np.empty(0), []
    regret = widths = 0.0
    for X, means, beta in zip(rounds, f, betas, strict=True):
        A = kernel(past, past) + noise_std**2 * np.eye(len(past))
        std = np.sqrt(np.diag(covariance_given(kernel, X, past, noise_std)))
        index = kernel(X, past) @ np.linalg.solve(A, outcomes) + math.sqrt(beta) * std
        super_arm = np.argsort(-index)[:k]
        regret += np.sort(means)[-k:].sum() - means[super_arm].sum()
        widths += 2 * math.sqrt(beta) * std[super_arm].sum()
        chosen = covariance_given(kernel, X[super_arm], past, noise_std)
        eigenvalues.append(np.linalg.eigvalsh(chosen)[-1])
        past = np.concatenate([past, X[super_arm]])
        noise = noise_std * rng.standard_normal(k)
        outcomes = np.concatenate([outcomes, means[super_arm] + noise])

    realised = information_gain(kernel, past, noise_std)
    _, upper = max_information_gain(kernel, rounds, k, noise_std)
    bounds = [
        regret_bound(T, k, betas[-1], gain, max(eigenvalues), noise_std)
        for gain in (realised, upper)
    ]
    assert 0 < regret <= widths <= bounds[0] <= bounds[1]


def test_rates_are_the_formulas_of_corollary_1():
    np.testing.assert_allclose(linear_rate([9.0], 2, 3, 4.0), math.sqrt(4 * 3 * 2 * 9))
    np.testing.assert_allclose(rbf_rate([9.0], 2, 3, 4.0), math.sqrt(4 * 2 * 9 * math.log(9) ** 3))
    np.testing.assert_allclose(
        matern_rate([9.0], 2, 3, 1.5, 4.0), math.sqrt(4 * 2) * 9 ** (4.5 / 6)
    )


def test_rates_grow_with_the_exponents_of_corollary_1():
    assert slope(linear_rate(HORIZONS, 5, 3)) == pytest.approx(0.5)
    without_logs = rbf_rate(HORIZONS, 5, 3) / np.log(HORIZONS) ** 1.5
    assert slope(without_logs) == pytest.approx(0.5)
    for dimension, nu in [(1, 1.5), (3, 2.5), (4, 10.0)]:
        expected = (dimension + nu) / (dimension + 2 * nu)
        assert slope(matern_rate(HORIZONS, 5, dimension, nu)) == pytest.approx(expected)


def matern_3_2_rate(rounds, k, dimension, largest_eigenvalue=1.0):
    return matern_rate(rounds, k, dimension, 1.5, largest_eigenvalue)


@pytest.mark.parametrize("rate", [linear_rate, rbf_rate, matern_3_2_rate])
def test_rates_take_one_horizon_or_many_and_grow_with_the_root_of_k_and_eigenvalue(rate):
    T = np.arange(2, 100)
    many = rate(T, 3, 2)
    assert many.shape == T.shape
    assert rate(50, 3, 2) == many[48]
    np.testing.assert_allclose(rate(T, 12, 2), 2 * many)
    np.testing.assert_allclose(rate(T, 3, 2, 9.0), 3 * many)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rounds", 0),
        ("k", 2.5),
        ("beta", -1.0),
        ("information_gain", math.nan),
        ("largest_eigenvalue", -0.1),
        ("noise_std", 0.0),
        ("lipschitz", None),
    ],
)
def test_bad_input_of_the_bound_is_named(name, value):
    good = {
        "rounds": 10,
        "k": 2,
        "beta": 20.0,
        "information_gain": 5.0,
        "largest_eigenvalue": 1.0,
        "noise_std": 0.1,
        "lipschitz": 1.0,
    }
    regret_bound(**good)
    with pytest.raises(InputError, match=f"{name} must be .*{value!r}"):
        regret_bound(**{**good, name: value})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear_rate([10, 0], 2, 3), "rounds must be at least 1; got 0"),
        (lambda: linear_rate([[1, 2]], 2, 3), r"rounds must have shape .* \(1, 2\)"),
        (lambda: rbf_rate("many", 2, 3), "rounds"),
        (lambda: rbf_rate(10, 0, 3), "k must be"),
        (lambda: linear_rate(10, 2, 0), "dimension"),
        (lambda: matern_rate(10, 2, 3, 1.0), "nu must be above 1"),
        (lambda: matern_rate(10, 2, 3, 1.5, 0.0), "largest_eigenvalue"),
    ],
)
def test_bad_input_of_the_rates_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
