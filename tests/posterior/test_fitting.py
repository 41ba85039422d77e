"""Fitted kernels against the kernels that made the data, and against scikit-learn's own fit."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from oclok.errors import ContextError, InputError, OutcomeError
from oclok.posterior.fitting import _log_likelihood_and_gradient, fit_kernel

KERNELS = {
    "RBF": RBF(0.4),
    "RBF, a lengthscale per dimension": RBF([0.3, 0.8]),
    "Matérn 1/2": Matern(0.5, nu=0.5),
    "Matérn 3/2, a lengthscale per dimension": Matern([0.4, 0.9], nu=1.5),
    "Matérn 5/2": Matern(0.5, nu=2.5),
    "sum": ConstantKernel(0.5) * RBF(0.3) + DotProduct(0.7) + WhiteKernel(0.02),
    "product": 2.0 * Matern(0.9, nu=2.5) * RationalQuadratic(0.7, alpha=1.3),
    "power": (DotProduct(0.6) + ExpSineSquared(0.8, 1.5)) ** 2,
    "partly fixed": ConstantKernel(1.5, "fixed") * RBF([0.3, 0.8]),
    "fixed": RBF(0.4, "fixed"),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


def draw(kernel, count, dimension, seed, noise_std=0.1):
    """Contexts, uniform in [0, 1]^D, and noisy outcomes of an f drawn from the kernel."""
    rng = np.random.default_rng(seed)
    X = rng.random((count, dimension))
    L = np.linalg.cholesky(kernel(X) + 1e-10 * np.eye(count))
    return X, L @ rng.standard_normal(count) + noise_std * rng.standard_normal(count)


def judged(kernel, X, y, noise_std):
    """The log marginal likelihood, by scikit-learn."""
    model = GaussianProcessRegressor(kernel, alpha=noise_std**2, optimizer=None).fit(X, y)
    return model.log_marginal_likelihood_value_


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("factor", "noise_std"), [(10.0, 0.01), (0.1, 1.0)])
@pytest.mark.parametrize("true", [RBF(0.3), Matern(0.3, nu=2.5)], ids=str)
def test_lengthscale_and_noise_are_found_from_starts_wrong_by_a_factor_of_10(
    true, factor, noise_std, seed
):
    X, y = draw(true, 500, 3, seed)
    start = true.clone_with_theta(true.theta + math.log(factor))
    fit = fit_kernel(start, X, y, noise_std, seed=seed)
    assert fit.improved
    assert fit.count == 500
    assert fit.kernel.length_scale == pytest.approx(0.3, rel=0.2)
    assert fit.noise_std == pytest.approx(0.1, rel=0.2)


@pytest.mark.parametrize("factor", [10.0, 0.1])
def test_a_lengthscale_per_dimension_and_the_amplitude_are_found(factor):
    true = ConstantKernel(4.0) * RBF([0.2, 0.6])
    X, y = draw(true, 250, 2, seed=2)
    start = true.clone_with_theta(true.theta + math.log(factor))
    fit = fit_kernel(start, X, y, noise_std=1.0, seed=0)
    assert fit.kernel.k2.length_scale == pytest.approx([0.2, 0.6], rel=0.2)
    assert fit.kernel.k1.constant_value == pytest.approx(4.0, rel=0.8)
    assert fit.noise_std == pytest.approx(0.1, rel=0.2)


def test_restarts_find_what_the_given_start_misses():
    X, y = draw(RBF(0.3), 200, 3, seed=0)
    alone = fit_kernel(RBF(3.0), X, y, noise_std=0.01, prior=False, restarts=0)
    fit = fit_kernel(RBF(3.0), X, y, noise_std=0.01, prior=False, seed=0)
    assert alone.improved
    assert fit.log_likelihood > alone.log_likelihood + 10


@every_kernel
def test_the_likelihood_is_that_of_scikit_learn(kernel):
    X, y = draw(KERNELS["RBF"], 60, 2, seed=1)
    fit = fit_kernel(kernel, X, y, noise_std=0.2, restarts=1, seed=0)
    assert fit.start_log_likelihood == pytest.approx(judged(kernel, X, y, 0.2), rel=1e-8)
    assert fit.log_likelihood == pytest.approx(judged(fit.kernel, X, y, fit.noise_std), rel=1e-8)


@every_kernel
def test_the_gradient_is_that_of_finite_differences(kernel):
    X, y = draw(KERNELS["RBF"], 40, 2, seed=1)
    point, step = np.append(kernel.theta, math.log(0.2)), 1e-5

    def value(shift):
        moved = point + shift
        return judged(kernel.clone_with_theta(moved[:-1]), X, y, math.exp(moved[-1]))

    shifts = step * np.eye(point.size)
    slopes = [(value(shift) - value(-shift)) / (2 * step) for shift in shifts]
    _, gradient = _log_likelihood_and_gradient(kernel, 0.2, X, y)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("true", [1.0 * RBF(0.3), 2.0 * Matern(0.5, nu=1.5)], ids=str)
def test_the_maximum_is_as_high_as_that_of_scikit_learn_from_the_truth(true):
    X, y = draw(true, 120, 2, seed=4)
    peer = GaussianProcessRegressor(true + WhiteKernel(0.01), alpha=0.0).fit(X, y)
    start = true.clone_with_theta(true.theta - math.log(10))
    fit = fit_kernel(start, X, y, noise_std=1.0, prior=False, seed=0)
    assert fit.log_likelihood >= peer.log_marginal_likelihood_value_ - 1e-4


def test_a_second_fit_stays_where_the_first_one_ended():
    X, y = draw(RBF(0.3), 150, 2, seed=5)
    first = fit_kernel(RBF(1.0), X, y, seed=0)
    second = fit_kernel(first.kernel, X, y, first.noise_std, seed=1)
    assert second.start_log_likelihood == first.log_likelihood
    assert second.log_likelihood == pytest.approx(first.log_likelihood, abs=1e-4)
    assert second.kernel.theta == pytest.approx(first.kernel.theta, abs=1e-2)


def test_fixed_hyperparameters_stay():
    X, y = draw(RBF(0.3), 100, 2, seed=6)
    kernel = ConstantKernel(2.0, "fixed") * RBF(1.0) + Matern(0.7, "fixed", nu=1.5)
    fit = fit_kernel(kernel, X, y, seed=0)
    assert fit.improved
    assert fit.kernel.k1.k1.constant_value == 2.0
    assert fit.kernel.k2 == kernel.k2
    assert fit.kernel.k1.k2.length_scale != 1.0


def test_noise_that_is_not_fitted_stays():
    X, y = draw(RBF(0.3), 100, 2, seed=6)
    fit = fit_kernel(RBF(1.0), X, y, 0.17, fit_noise=False, seed=0)
    assert fit.improved
    assert fit.noise_std == 0.17


def test_noise_alone_can_be_fitted():
    kernel = RBF(0.3, "fixed")
    X, y = draw(kernel, 300, 2, seed=7)
    fit = fit_kernel(kernel, X, y, noise_std=3.0, seed=0)
    assert fit.noise_std == pytest.approx(0.1, rel=0.2)
    assert fit.kernel == kernel


def test_with_nothing_to_fit_the_given_kernel_comes_back():
    kernel = 2.0 * RBF(0.3)
    for hyperparameter in kernel.hyperparameters:
        kernel.set_params(**{f"{hyperparameter.name}_bounds": "fixed"})
    X, y = draw(kernel, 20, 2, seed=7)
    fit = fit_kernel(kernel, X, y, fit_noise=False)
    assert fit.kernel is kernel
    assert not fit.improved
    assert fit.log_likelihood == fit.start_log_likelihood
    assert fit.log_likelihood == pytest.approx(judged(kernel, X, y, 0.1), rel=1e-8)
    assert "nothing to fit" in fit.message


def test_hyperparameters_stay_within_their_bounds_and_the_message_names_those_at_them():
    X, y = draw(RBF(0.3), 100, 2, seed=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = fit_kernel(RBF([0.9, 0.9], [(0.8, 1.0), (0.1, 1.0)]), X, y, seed=0)
    assert fit.kernel.length_scale[0] == pytest.approx(0.8)
    assert "length_scale[0] is at its lower bound, 0.8" in fit.message
    assert "length_scale[1]" not in fit.message


def test_noise_stays_within_a_thousandth_and_ten_times_the_outcomes_scale():
    X = np.linspace(0, 1, 30)[:, None]
    y = 5.0 * np.sin(4 * X[:, 0])
    fit = fit_kernel(20.0 * RBF(0.5), X, y, prior=False, seed=0)
    assert fit.noise_std == pytest.approx(1e-3 * np.sqrt(np.mean(y**2)))
    assert "noise_std is at its lower bound" in fit.message


def test_bounds_without_end_are_searched():
    X, y = draw(RBF(0.3), 150, 2, seed=9)
    fit = fit_kernel(RBF(3.0, (0.0, np.inf)), X, y, seed=0)
    assert fit.kernel.length_scale == pytest.approx(0.3, rel=0.3)


def test_what_was_given_comes_back_when_all_else_is_worse():
    X, y = draw(RBF(0.3), 100, 2, seed=10)
    kernel = RBF(0.3, (10.0, 100.0))
    fit = fit_kernel(kernel, X, y, fit_noise=False, seed=0)
    assert fit.kernel is kernel
    assert not fit.improved
    assert fit.log_likelihood == fit.start_log_likelihood
    assert "nothing better" in fit.message


def test_a_start_without_likelihood_is_left_for_one_that_has_one():
    X = np.repeat(np.random.default_rng(0).random((20, 2)), 3, axis=0)
    y = np.sin(3 * X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(60)
    fit = fit_kernel(RBF(1.0), X, y, noise_std=1e-12, seed=0)
    assert fit.start_log_likelihood == -math.inf
    assert fit.improved
    assert fit.noise_std == pytest.approx(0.1, rel=0.3)


def test_a_fit_that_fails_changes_nothing():
    kernel = RBF(1.0)
    fit = fit_kernel(kernel, np.ones((5, 1)), np.arange(5.0), 1e-12, fit_noise=False, seed=0)
    assert fit.kernel is kernel
    assert fit.noise_std == 1e-12
    assert not fit.improved
    assert fit.log_likelihood == fit.start_log_likelihood == -math.inf
    assert "failed" in fit.message


@settings(max_examples=40, deadline=None)
@given(
    kernel=st.sampled_from(list(KERNELS.values())),
    count=st.integers(1, 12),
    noise_std=st.sampled_from([1e-8, 0.01, 0.3, 1e4]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    fit_noise=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@example(KERNELS["sum"], 12, 1e-8, 1e6, False, 0)
def test_a_fit_is_never_worse_than_its_start(kernel, count, noise_std, scale, fit_noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (count, 2)) / 4
    y = scale * rng.standard_normal(count)
    fit = fit_kernel(
        kernel, X, y, noise_std, fit_noise=fit_noise, prior=False, restarts=1, seed=seed
    )
    assert fit.log_likelihood >= fit.start_log_likelihood
    assert fit.improved == (fit.log_likelihood > fit.start_log_likelihood)
    assert fit.improved or (fit.kernel is kernel and fit.noise_std == noise_std)
    assert fit.noise_std > 0
    if fit.log_likelihood > -math.inf:
        assert fit.log_likelihood == pytest.approx(
            judged(fit.kernel, X, y, fit.noise_std), rel=1e-8, abs=1e-8
        )


def test_few_data_cannot_give_absurd_lengthscales():
    """Without a prior, five outcomes are likeliest under lengthscales at their bounds."""
    rng = np.random.default_rng(3)
    X, y = rng.random((5, 4)), rng.standard_normal(5)
    kernel = 1.0 * RBF(np.ones(4))
    absurd = fit_kernel(kernel, X, y, prior=False, seed=0).kernel.k2.length_scale
    assert np.max(np.abs(np.log(absurd))) > math.log(300)
    fitted = fit_kernel(kernel, X, y, seed=0).kernel.k2.length_scale
    assert (fitted > 0.02).all()
    assert (fitted < 100).all()


def test_features_in_other_units_and_outcomes_on_another_scale_give_the_same_fit():
    X, y = draw(RBF([0.3, 0.8]), 60, 2, seed=13)
    units = np.array([1e3, 1e-2])
    plain = fit_kernel(1.0 * RBF([1.0, 1.0]), X, y, 0.1, restarts=0)
    scaled = fit_kernel(2500.0 * RBF(units), X * units, 50 * y, 5.0, restarts=0)
    assert scaled.kernel.k2.length_scale / units == pytest.approx(
        plain.kernel.k2.length_scale, rel=1e-2
    )
    assert scaled.noise_std == pytest.approx(50 * plain.noise_std, rel=1e-2)


DEGENERATE = {
    "all outcomes 0": (np.arange(10.0)[:, None], np.zeros(10)),
    "all outcomes equal": (np.arange(10.0)[:, None], np.full(10, 3.0)),
    "one observation": ([[0.3]], [0.7]),
    "one observation of 0": ([[0.3]], [0.0]),
    "one context, all outcomes equal": (np.full((10, 1), 0.5), np.ones(10)),
    "one context": (np.full((10, 1), 0.5), np.arange(10.0)),
    "duplicates": (np.repeat(np.arange(5.0), 2)[:, None], np.arange(10.0)),
    "large outcomes": (np.arange(10.0)[:, None], np.linspace(-1e100, 1e100, 10)),
    "tiny outcomes": (np.arange(10.0)[:, None], np.full(10, 1e-310)),
    "large contexts": (1e99 * np.arange(10.0)[:, None], np.arange(10.0)),
}


@pytest.mark.parametrize("data", DEGENERATE.values(), ids=DEGENERATE.keys())
@pytest.mark.parametrize("noise_std", [1e-150, 1e-3, 1e150])
@pytest.mark.parametrize("prior", [True, False])
def test_degenerate_data_raise_nothing_and_warn_of_nothing(data, noise_std, prior):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = fit_kernel(1.0 * RBF(1.0), *data, noise_std, prior=prior, restarts=2, seed=0)
    assert fit.count == len(data[1])
    assert prior or fit.log_likelihood >= fit.start_log_likelihood
    assert np.isfinite(fit.kernel.theta).all()
    assert 0 < fit.noise_std < math.inf


def test_the_same_seed_gives_the_same_fit_and_the_given_kernel_is_left_alone():
    X, y = draw(RBF(0.3), 120, 2, seed=11)
    kernel = 2.0 * RBF(1.0)
    fits = [fit_kernel(kernel, X, y, most=60, seed=3) for _ in range(2)]
    assert fits[0] == fits[1]
    assert kernel == 2.0 * RBF(1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        fits[0].noise_std = 1.0


def test_out_of_many_observations_as_many_as_asked_for_are_used():
    X, y = draw(RBF(0.3), 200, 2, seed=12)
    parts = [fit_kernel(RBF(1.0), X, y, most=50, restarts=0, seed=seed) for seed in range(3)]
    assert [part.count for part in parts] == [50, 50, 50]
    assert len({part.start_log_likelihood for part in parts}) == 3
    whole = fit_kernel(RBF(1.0), X, y, most=200, restarts=0)
    assert whole.count == 200
    assert whole.start_log_likelihood == pytest.approx(judged(RBF(1.0), X, y, 0.1), rel=1e-8)


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"kernel": RBF}, InputError, "kernel must be an instance"),
        ({"kernel": "RBF"}, InputError, "kernel must be an instance"),
        (
            {"kernel": RBF([1.0, 2.0, 3.0])},
            ContextError,
            "3 lengthscales; got contexts of 2 columns",
        ),
        ({"kernel": CompoundKernel([RBF(1.0), RBF(2.0)])}, InputError, "one covariance"),
        ({"kernel": RBF(1.0, (10.0, 0.1))}, InputError, "bounds in order"),
        ({"kernel": RBF(-1.0)}, InputError, "above 0"),
        ({"contexts": [0.0, 1.0]}, ContextError, r"shape \(M, D\)"),
        ({"contexts": [[0.0, np.nan], [1.0, 1.0]]}, ContextError, "finite"),
        ({"contexts": np.empty((0, 2)), "outcomes": []}, ContextError, "no rows"),
        ({"outcomes": [1.0]}, OutcomeError, r"shape \(2,\)"),
        ({"outcomes": [1.0, np.nan]}, OutcomeError, "finite"),
        ({"noise_std": 0.0}, InputError, "noise_std"),
        ({"restarts": -1}, InputError, "restarts"),
        ({"most": 0}, InputError, "most"),
    ],
)
def test_bad_input_is_named(changes, error, match):
    given = {"kernel": RBF(1.0), "contexts": [[0.0, 0.0], [1.0, 1.0]], "outcomes": [0.0, 1.0]}
    with pytest.raises(error, match=match):
        fit_kernel(**{**given, **changes})
