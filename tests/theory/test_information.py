"""Information gain against determinants; its maximum against all choices and a plain greedy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from oclok.errors import ContextError, InputError, NumericalError
from oclok.theory import information_gain, max_information_gain

KERNELS = [
    RBF(1.0),
    RBF(0.1),
    RBF([0.2, 2.0]),
    Matern(0.5, nu=1.5),
    DotProduct(0.5),
    ConstantKernel(0.3) * RBF(0.4) + WhiteKernel(0.05),
]
#: Without RBF(0.1), for which far contexts tie to the last digits and rounding decides.
TIELESS = [RBF(0.3), *(kernel for kernel in KERNELS if kernel != RBF(0.1))]
NOISES = [0.03, 0.1, 1.0]


def gain_of(K, noise_std):
    """½ log det(I + σ⁻²K), for one matrix or a stack of them."""
    return 0.5 * np.linalg.slogdet(np.eye(K.shape[-1]) + K / noise_std**2)[1]


def variances_given(K, chosen, noise_std):
    """Variances of f at all rows of K given noisy outcomes at `chosen`, from the formula."""
    A = K[np.ix_(chosen, chosen)] + noise_std**2 * np.eye(len(chosen))
    return np.diag(K) - np.sum(K[:, chosen] * np.linalg.solve(A, K[:, chosen].T).T, axis=1)


def draw_rounds(rng, sizes, how):
    """Contexts in [0, 1]², new in each round, repeated across rounds or nearly repeated."""
    if how == "new":
        return [rng.random((size, 2)) for size in sizes]
    pool = rng.random((max(sizes), 2))
    rounds = [pool[rng.permutation(len(pool))[:size]] for size in sizes]
    if how == "nearly repeated":
        return [X + 1e-9 * rng.standard_normal(X.shape) for X in rounds]
    return rounds


def plain_greedy(kernel, rounds, k, noise_std):
    """The greedy rule, every variance from scratch; of equal contexts the first is chosen."""
    X = np.concatenate(rounds)
    K = kernel(X)
    round_of = np.repeat(np.arange(len(rounds)), [len(X) for X in rounds])
    chosen, value = [], 0.0
    while True:
        counts = np.bincount(round_of[chosen], minlength=len(rounds))
        is_open = counts[round_of] < k
        is_open[chosen] = False
        if not is_open.any():
            return value
        variances = np.where(is_open, variances_given(K, chosen, noise_std), -1.0)
        best = int(np.argmax(is_open & (X[np.argmax(variances)] == X).all(axis=1)))
        value += 0.5 * math.log1p(variances[best] / noise_std**2)
        chosen.append(best)


@given(
    kernel=st.sampled_from(KERNELS),
    noise_std=st.sampled_from(NOISES),
    count=st.integers(1, 40),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_information_gain_is_half_the_log_determinant_and_the_sum_of_its_steps(
    kernel, noise_std, count, seed
):
    X = np.random.default_rng(seed).random((count, 2))
    X[count // 2 :] = X[: count - count // 2]
    gain = information_gain(kernel, X, noise_std)
    K = kernel(X)
    steps = [variances_given(K, list(range(n)), noise_std)[n] for n in range(count)]
    assert gain == pytest.approx(gain_of(K, noise_std), rel=1e-8)
    assert gain == pytest.approx(0.5 * np.sum(np.log1p(np.array(steps) / noise_std**2)), rel=1e-8)


def test_a_context_seen_n_times_counts_as_n_observations_of_one_number():
    gain = information_gain(RBF(1.0), np.zeros((7, 3)), 0.5)
    assert gain == pytest.approx(0.5 * math.log(1 + 7 / 0.25), rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("how", ["new", "repeated", "nearly repeated"])
def test_the_true_maximum_lies_between_the_bounds(kernel, how):
    rng = np.random.default_rng(len(how))
    for k, noise_std, _ in itertools.product([1, 2], NOISES, range(3)):
        sizes = rng.integers(1, 5, size=3)
        rounds = draw_rounds(rng, sizes, how)
        offsets = np.cumsum(sizes) - sizes
        per_round = [
            [np.array(c, dtype=int) + o for c in itertools.combinations(range(size), min(k, size))]
            for size, o in zip(sizes, offsets, strict=True)
        ]
        choices = np.array([np.concatenate(c) for c in itertools.product(*per_round)])
        K = kernel(np.concatenate(rounds))
        true = gain_of(K[choices[:, :, None], choices[:, None, :]], noise_std).max()
        lower, upper = max_information_gain(kernel, rounds, k, noise_std)
        assert lower <= true * (1 + 1e-9)
        assert true <= upper * (1 + 1e-9)
        assert lower <= upper <= 2 * lower


@pytest.mark.parametrize("kernel", TIELESS, ids=str)
@pytest.mark.parametrize("how", ["new", "repeated"])
@pytest.mark.parametrize(("count", "k"), [(4, 1), (9, 3), (40, 4)])
def test_the_lower_bound_is_what_a_plain_greedy_reaches(kernel, how, count, k):
    rng = np.random.default_rng(count)
    rounds = draw_rounds(rng, rng.integers(2, 12, size=count), how)
    lower, _ = max_information_gain(kernel, rounds, k, 0.1)
    assert lower == pytest.approx(plain_greedy(kernel, rounds, k, 0.1), rel=1e-9)


def test_the_bounds_meet_where_all_base_arms_can_be_chosen():
    rounds = draw_rounds(np.random.default_rng(0), [3, 1, 4], "repeated")
    lower, upper = max_information_gain(RBF(0.3), rounds, 4, 0.1)
    everything = information_gain(RBF(0.3), np.concatenate(rounds), 0.1)
    assert lower == pytest.approx(everything, rel=1e-12)
    assert upper == pytest.approx(everything, rel=1e-12)


def test_the_bounds_meet_where_outcomes_say_nothing_of_each_other():
    rounds = np.random.default_rng(0).random((30, 10, 3))
    lower, upper = max_information_gain(RBF(1e-4), rounds, 3, 0.1)
    assert lower == pytest.approx(90 * 0.5 * math.log(101), rel=1e-12)
    assert upper == pytest.approx(lower, rel=1e-12)


def test_the_bounds_are_within_a_percent_where_outcomes_are_plenty_for_the_kernel():
    rounds = np.random.default_rng(0).random((100, 20, 2))
    lower, upper = max_information_gain(RBF(1.0), rounds, 3, 0.1)
    assert upper <= 1.01 * lower


@pytest.mark.parametrize("spread", [0.0, 1e-15, 1e-12, 1e-9])
@pytest.mark.parametrize("noise_std", [1e-4, 0.1])
def test_near_duplicates_do_no_harm(spread, noise_std):
    rounds = 0.5 + spread * np.random.default_rng(0).standard_normal((25, 6, 2))
    lower, upper = max_information_gain(RBF(1.0), rounds, 4, noise_std)
    expected = 0.5 * math.log(1 + 100 / noise_std**2)
    assert lower == pytest.approx(expected, rel=1e-6)
    assert upper == pytest.approx(expected, rel=1e-6)


def test_noise_below_rounding_error_is_an_error_and_not_a_wrong_number():
    rounds = np.random.default_rng(0).random((20, 10, 1))
    with pytest.raises(NumericalError, match="larger noise_std"):
        information_gain(RBF(1.0), np.concatenate(rounds), 1e-10)
    with pytest.raises(NumericalError, match="larger noise_std"):
        max_information_gain(RBF(1.0), rounds, 3, 1e-10)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((RBF, [[[0.0]]], 1, 0.1), InputError, "kernel"),
        (("rbf", [[[0.0]]], 1, 0.1), InputError, "'rbf'"),
        ((RBF(1.0), [], 1, 0.1), InputError, "at least one round"),
        ((RBF(1.0), [[[0.0]], [[0.0, 1.0]]], 1, 0.1), ContextError, "round 2: .* 1 columns"),
        ((RBF(1.0), [[[0.0]], [[math.nan]]], 1, 0.1), ContextError, "round 2: .* finite"),
        ((RBF(1.0), np.zeros((3, 2)), 1, 0.1), ContextError, r"round 1: .* shape \(2,\)"),
        ((RBF(1.0), [[[0.0]]], 0, 0.1), InputError, "k must be .* at least 1; got 0"),
        ((RBF(1.0), [[[0.0]]], 1, 0.0), InputError, "noise_std"),
        ((RBF(1.0), [[[0.0]]], 1, 1e-200), InputError, "noise_std"),
    ],
)
def test_bad_input_of_the_maximum_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        max_information_gain(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((RBF, [[0.0]], 0.1), InputError, "kernel"),
        ((RBF(1.0), [0.0], 0.1), ContextError, "shape"),
        ((RBF(1.0), [[0.0]], -1.0), InputError, "noise_std"),
    ],
)
def test_bad_input_of_information_gain_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        information_gain(*arguments)
