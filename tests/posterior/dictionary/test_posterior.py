"""The dictionary posterior against the exact one, and its bounds against the truth."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    DotProduct,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from oclok import persistence
from oclok.bench import Crowdsourcing
from oclok.errors import OclokError
from oclok.oracles import Knapsack, Matching, Partition, TopK
from oclok.oracles.base import Oracle
from oclok.policies import OClokUCB
from oclok.posterior import DictionaryPosterior, ExactPosterior, Posterior, Prediction
from oclok.posterior.dictionary.posterior import AT_ONCE, FIRST_TRY

Pair = tuple[DictionaryPosterior, ExactPosterior]


def f(X: np.ndarray) -> np.ndarray:
    return np.asarray(np.sin(3 * X).sum(axis=1))


def both(kernel: Any, noise_std: float = 0.1, tolerance: float = 1e-8, max_rank: int = 512) -> Pair:
    ours = DictionaryPosterior(kernel, noise_std, tolerance, max_rank)
    return ours, ExactPosterior(kernel, noise_std)


def learn(posteriors: tuple[Posterior, ...], X: np.ndarray, rng: np.random.Generator) -> None:
    y = f(X) + posteriors[0].noise_std * rng.standard_normal(len(X))
    for posterior in posteriors:
        posterior.update(X, y)


def assert_close(one: Posterior, other: Posterior, x: np.ndarray, atol: float) -> None:
    for a, b in zip(one.predict(x), other.predict(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)


def assert_bounded(prediction: Prediction, exact: ExactPosterior, x: np.ndarray) -> None:
    mean, std = exact.predict(x)
    assert (np.abs(prediction.mean - mean) <= prediction.mean_error).all()
    assert (np.abs(prediction.std - std) <= prediction.std_error).all()


# On the paper's workload ---------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "rounds"), [(0, 250), (1, 250), (2, 250)])
def test_super_arms_of_simulation_1_are_those_of_the_exact_posterior(
    seed: int, rounds: int
) -> None:
    ours, exact = both(RBF(1.0))
    policy, judge = OClokUCB(posterior=ours), OClokUCB(posterior=exact)
    rng = np.random.default_rng(seed)
    certified = []
    for current in Crowdsourcing(rounds=rounds, seed=seed):
        decision = policy.select(current.contexts, oracle=current.oracle)
        expected = judge.select(current.contexts, oracle=current.oracle)
        np.testing.assert_array_equal(decision.super_arm, expected.super_arm)
        certified.append(decision.is_exact)
        outcomes = current.play(decision.super_arm, rng)
        policy.update(decision, outcomes)
        judge.update(expected, outcomes)
    assert ours.rank < 200 < len(ours)
    assert np.mean(certified[FIRST_TRY // 5 :]) >= 0.95  # before, it is exact anyway
    assert_close(ours, exact, rng.random((200, 3)), 1e-5)


# The bounds ----------------------------------------------------------------------------------

SMOOTH = {
    "RBF(1)": RBF(1.0),
    "RBF, a lengthscale per dimension": RBF([0.7, 1.5]),
    "RationalQuadratic": RationalQuadratic(1.0),
    "DotProduct": DotProduct(1.0),
    "sum": 0.5 * RBF(0.8) + DotProduct(0.5),
    "large": 50.0 * RBF(1.0),
}


@pytest.mark.parametrize("kernel", SMOOTH.values(), ids=SMOOTH)
@settings(max_examples=12, deadline=None)
@given(
    N=st.integers(FIRST_TRY + 10, 500),
    tolerance=st.sampled_from([1e-8, 1e-9, 1e-10]),
    noise_std=st.sampled_from([0.05, 0.1, 0.5]),
    reach=st.sampled_from([0.0, 0.5, 5.0]),
    seed=st.integers(0, 9_999),
)
def test_the_exact_prediction_is_within_the_bounds(
    kernel: Any, N: int, tolerance: float, noise_std: float, reach: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    ours, exact = both(kernel, noise_std, tolerance)
    X = rng.random((N, 2))
    learn((ours, exact), X[: FIRST_TRY + 5], rng)
    learn((ours, exact), X[FIRST_TRY + 5 :], rng)
    x = rng.uniform(-reach, 1 + reach, (40, 2))
    if ours.rank == N:  # simply exact, as the tolerance is near rounding error
        assert_close(ours, exact, x, 1e-8)
        return
    assert_bounded(ours.predict(x), exact, x)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("seed", range(4))
def test_the_bounds_hold_for_coarse_dictionaries(tolerance: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise_std = 40.0  # which lets tolerances up to 1.6e-3 pass
    ours, exact = both(RBF(0.5), noise_std, tolerance)
    assert ours.tolerance == tolerance
    X = rng.random((600, 2))
    y = 100 * f(X) + noise_std * rng.standard_normal(600)
    for posterior in (ours, exact):
        posterior.update(X, y)
    x = rng.uniform(-1, 2, (50, 2))
    prediction = ours.predict(x)
    assert_bounded(prediction, exact, x)
    assert np.abs(prediction.mean - exact.predict(x).mean).max() > 1e-8


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("drift", [0.002, 0.01, 0.05])
def test_the_bounds_hold_where_contexts_drift(drift: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ours, exact = both(RBF(1.0), 0.0128)
    for t in range(160):
        learn((ours, exact), rng.random((5, 2)) + np.array([drift * t, 0.0]), rng)
    assert ours.rank < len(ours)
    x = rng.random((100, 2)) * [1 + 160 * drift, 1.0]
    assert_bounded(ours.predict(x), exact, x)


@pytest.mark.parametrize("seed", range(4))
def test_the_bounds_hold_where_contexts_leave_their_old_range(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ours, exact = both(RBF(1.0), 0.0128)
    for scale, count in ((1.0, 300), (3.0, 100), (3.0, 100), (3.0, 100)):
        learn((ours, exact), scale * rng.random((count, 2)), rng)
    x = 3 * rng.random((200, 2))
    assert_bounded(ours.predict(x), exact, x)


@pytest.mark.parametrize("kernel", [RBF(1.0), DotProduct(1.0)], ids=str)
def test_the_bounds_hold_for_huge_outcomes(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    ours, exact = both(kernel)
    X = rng.random((400, 2))
    for posterior in (ours, exact):
        posterior.update(X, 1e12 * f(X))
    assert ours.rank < len(ours)
    x = rng.random((100, 2))
    assert_bounded(ours.predict(x), exact, x)


@pytest.mark.parametrize("kernel", [1e-10 * RBF(1.0), DotProduct(0.0)], ids=str)
def test_a_prior_of_next_to_nothing_needs_no_dictionary(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    ours, exact = both(kernel)
    X = np.zeros((FIRST_TRY + 50, 2))
    learn((ours, exact), X[:FIRST_TRY], rng)
    learn((ours, exact), X[FIRST_TRY:], rng)
    assert_close(ours, exact, rng.random((20, 2)), 1e-12)


def test_super_arms_are_the_exact_ones_despite_ties_after_growth() -> None:
    rng = np.random.default_rng(0)
    ours, exact = both(RBF(1.0))
    policy, judge = OClokUCB(posterior=ours, oracle=TopK(5)), OClokUCB(posterior=exact)
    for t in range(80):
        contexts = np.repeat((0.1 if t < 60 else 1.0) * rng.random((30, 2)), 2, axis=0)
        decision = policy.select(contexts)
        expected = judge.select(contexts, oracle=TopK(5))
        np.testing.assert_array_equal(decision.contexts, expected.contexts)
        outcomes = f(decision.contexts) + 0.1 * rng.standard_normal(5)
        policy.update(decision, outcomes)
        judge.update(expected, outcomes)


# Stable choices ------------------------------------------------------------------------------


def oracles(M: int, rng: np.random.Generator) -> dict[str, Oracle]:
    ends = rng.permutation(16)[:M]
    return {
        "TopK": TopK(3),
        "Partition": Partition(rng.integers(0, 3, M), limits=2),
        "Matching": Matching(ends // 4, ends % 4, k=2),
        "any Matching": Matching(ends // 4, ends % 4),
        "Knapsack": Knapsack(rng.uniform(0.1, 1.0, M), 1.5),
    }


@pytest.mark.parametrize("name", oracles(9, np.random.default_rng(0)))
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 99_999), size=st.sampled_from([1e-6, 1e-3, 0.03, 0.1]))
def test_a_stable_choice_survives_every_perturbation_within_the_error(
    name: str, seed: int, size: float
) -> None:
    rng = np.random.default_rng(seed)
    oracle = oracles(9, rng)[name]
    index = np.round(rng.uniform(-0.3, 1.0, 9), int(rng.integers(1, 5)))
    error = size * rng.random(9)
    super_arm = oracle(index)
    if not oracle.is_stable(index, super_arm, error):
        return
    for _ in range(20):
        corner = index + error * rng.choice([-1.0, -0.5, 0.0, 1.0], 9)
        np.testing.assert_array_equal(oracle(corner), super_arm)


@pytest.mark.parametrize("name", oracles(9, np.random.default_rng(0)))
def test_stable_choices_are_found_and_unstable_ones_are_not(name: str) -> None:
    rng = np.random.default_rng(1)
    found, wrong = 0, 0
    for _ in range(100):
        oracle = oracles(9, rng)[name]
        index = rng.uniform(-0.3, 1.0, 9)
        super_arm = oracle(index)
        found += oracle.is_stable(index, super_arm, np.full(9, 1e-4))
        wrong += oracle.is_stable(index, super_arm, np.full(9, 2.0))
    assert found >= 90
    assert wrong == 0


def test_a_tie_is_not_stable() -> None:
    index = np.array([0.5, 0.5, 0.1])
    assert not TopK(1).is_stable(index, TopK(1)(index), np.zeros(3))
    partition = Partition([0, 0, 1], limits=1)
    assert not partition.is_stable(index, partition(index), np.full(3, 1e-12))
    assert TopK(5).is_stable(index, TopK(5)(index), np.full(3, 1.0))


# Where it is simply exact --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "noise_std"),
    [
        (RBF(0.1), 0.1),
        (RBF(0.05), 0.1),
        (Matern(1.0, nu=1.5), 0.1),
        (RBF(1.0), 1e-4),
        (RBF(1.0) + WhiteKernel(0.01), 0.1),
    ],
    ids=str,
)
def test_rough_kernels_and_tiny_noise_are_exact(kernel: Any, noise_std: float) -> None:
    rng = np.random.default_rng(0)
    ours, exact = both(kernel, noise_std)
    for _ in range(4):
        contexts = rng.random((100, 3))
        ours.offer(contexts)
        learn((ours, exact), contexts, rng)
    x = rng.random((50, 3))
    assert ours.rank == len(ours) == 400
    assert_close(ours, exact, x, 1e-8)
    prediction = ours.predict(x)
    assert max(prediction.mean_error.max(), prediction.std_error.max()) < 1e-2
    assert ours.information_gain == pytest.approx(exact.information_gain, rel=1e-10)


def test_a_rough_kernel_is_exact_for_many_observations_at_once() -> None:
    rng = np.random.default_rng(0)
    ours, exact = both(Matern(1.0, nu=1.5), max_rank=2_100)
    learn((ours, exact), rng.random((2_100, 2)), rng)
    assert_close(ours, exact, rng.random((50, 2)), 1e-8)
    assert ours.rank == 2_100


def test_it_is_exact_again_where_the_dictionary_becomes_too_large() -> None:
    rng = np.random.default_rng(0)
    ours, exact = both(RBF(0.1), max_rank=2_000)
    learn((ours, exact), 0.01 * rng.random((FIRST_TRY + 10, 3)), rng)
    assert ours.rank < 50
    learn((ours, exact), rng.random((1_500, 3)), rng)
    assert ours.rank == FIRST_TRY + 1_510
    learn((ours, exact), rng.random((50, 3)), rng)
    assert_close(ours, exact, rng.random((50, 3)), 1e-8)


def test_a_dictionary_is_tried_again_where_it_was_too_large_at_first() -> None:
    rng = np.random.default_rng(0)
    ours, exact = both(RBF(0.5))
    for _ in range(30):
        learn((ours, exact), rng.random((40, 3)), rng)
        if len(ours) == 240:
            assert ours.rank == 240
    assert ours.rank < 700
    assert_close(ours, exact, rng.random((50, 3)), 1e-5)


# A dictionary for all contexts, in whatever order they come ----------------------------------


def interleaved(rng: np.random.Generator, N: int, period: int) -> np.ndarray:
    """Contexts every `period`-th of which is in another region."""
    X = rng.random((N, 2))
    X[1::period] += 5
    return X


@pytest.mark.parametrize("period", [2, 3])
def test_every_context_of_a_large_update_is_represented(period: int) -> None:
    rng = np.random.default_rng(0)
    ours, _ = both(RBF(1.0))
    X = interleaved(rng, 2_048 * period, period)
    learn((ours,), X, rng)
    assert ours.predict(X[:200]).mean_error.max() < 0.1
    np.testing.assert_allclose(ours.predict(X[:200]).mean, f(X[:200]), atol=0.1)


def test_every_context_of_a_large_update_to_a_dictionary_is_represented() -> None:
    rng = np.random.default_rng(0)
    ours, _ = both(RBF(1.0))
    learn((ours,), rng.random((300, 2)), rng)
    X = np.vstack([5 + rng.random((500, 2)), rng.random((2_100, 2)) - 5])
    learn((ours,), X, rng)
    assert ours.predict(X[:200]).mean_error.max() < 0.1
    np.testing.assert_allclose(ours.predict(X[:200]).mean, f(X[:200]), atol=0.1)


def test_many_observations_at_once() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((10_000, 3))
    at_once, in_parts = (DictionaryPosterior(RBF(1.0), 0.1) for _ in range(2))
    y = f(X) + 0.1 * rng.standard_normal(len(X))
    at_once.update(X, y)
    for part in np.array_split(np.arange(len(X)), 50):
        in_parts.update(X[part], y[part])
    assert at_once.rank < 200
    assert_close(at_once, in_parts, rng.random((100, 3)), 1e-5)


def test_a_hundred_thousand_observations_at_one_context() -> None:
    N = 100_000
    y = 1.0 + 0.1 * np.random.default_rng(0).standard_normal(N)
    posterior = DictionaryPosterior(RBF(1.0), 0.1)
    posterior.update(np.full((N, 2), 0.3), y)
    mean, std = posterior.predict([[0.3, 0.3]])
    assert posterior.rank == 1
    assert mean[0] == pytest.approx(y.sum() / (N + 0.01), abs=1e-9)
    assert std[0] == pytest.approx(np.sqrt(0.01 / (N + 0.01)), abs=1e-9)


def test_thousands_of_updates_do_not_drift() -> None:
    rng = np.random.default_rng(0)
    posterior, X = DictionaryPosterior(RBF(1.0), 0.1), rng.random((6_000, 2))
    y = f(X) + 0.1 * rng.standard_normal(6_000)
    for start in range(0, 6_000, 2):
        posterior.update(X[start : start + 2], y[start : start + 2])
    fresh = DictionaryPosterior(RBF(1.0), 0.1)
    fresh.update(X, y)
    assert_close(posterior, fresh, rng.random((100, 2)), 1e-6)


# Everything else a posterior promises --------------------------------------------------------


def test_memory_grows_with_the_raw_observations_only() -> None:
    rng = np.random.default_rng(0)
    posterior, sizes = DictionaryPosterior(RBF(1.0), 0.1), []
    for _ in range(2):
        learn((posterior,), rng.random((2_000, 2)), rng)
        sizes.append(len(persistence.dumps(posterior)))
    raw = 2_000 * (2 + 1 + 1) * 8  # contexts, outcome, weight
    assert sizes[1] - sizes[0] < 1.1 * raw


@pytest.mark.parametrize("before", [True, False])
def test_expecting_contexts_changes_no_answer(before: bool) -> None:
    rng = np.random.default_rng(0)
    ours, exact = both(RBF(1.0))
    wide = rng.uniform(-0.5, 1.5, (100, 2))
    if before:
        ours.offer(wide)
    learn((ours, exact), rng.random((300, 2)), rng)
    was, rank = ours.predict(wide), ours.rank
    ours.offer(wide)
    for a, b in zip(ours.predict(wide), was, strict=True):
        np.testing.assert_array_equal(a, b)
    learn((ours, exact), rng.random((5, 2)), rng)
    assert ours.rank == rank if before else ours.rank > rank
    assert_close(ours, exact, wide, 1e-5)
    assert ours.predict(wide).mean_error.max() < 1e-2


def test_expected_contexts_of_another_dimension_are_refused() -> None:
    posterior = DictionaryPosterior(RBF(1.0), 0.1)
    posterior.offer(np.zeros((3, 2)))
    with pytest.raises(OclokError):
        posterior.offer(np.zeros((3, 3)))


def grown(seed: int = 0) -> DictionaryPosterior:
    rng = np.random.default_rng(seed)
    posterior = DictionaryPosterior(RBF(1.0), 0.1)
    learn((posterior,), rng.random((300, 2)), rng)
    posterior.offer(rng.uniform(-1, 2, (20, 2)))
    return posterior


@pytest.mark.parametrize(
    ("contexts", "outcomes"),
    [
        ([[0.1, np.nan]], [0.0]),
        ([[0.1, 0.2, 0.3]], [0.0]),
        ([[0.1, 0.2]], [np.inf]),
        ([[0.1, 0.2]], [0.1, 0.2]),
    ],
)
def test_bad_input_changes_nothing(contexts: Any, outcomes: Any) -> None:
    posterior = grown()
    before = persistence.dumps(posterior)
    with pytest.raises(OclokError):
        posterior.update(contexts, outcomes)
    assert persistence.dumps(posterior) == before


@pytest.mark.parametrize("duplicate", [DictionaryPosterior.copy, lambda p: _reload(p)])
def test_a_copy_goes_on_to_the_bit_and_on_its_own(duplicate: Any) -> None:
    rng = np.random.default_rng(3)
    posterior, x = grown(), rng.uniform(-0.5, 1.5, (30, 2))
    other, bystander = duplicate(posterior), duplicate(posterior)
    was = bystander.predict(x)
    for _ in range(20):
        learn((posterior, other), rng.uniform(-0.2, 1.2, (5, 2)), np.random.default_rng(4))
        for a, b in zip(posterior.predict(x), other.predict(x), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(bystander.predict(x).mean, was.mean)


def _reload(thing: Any) -> Any:
    return persistence.loads(persistence.dumps(thing))


def test_a_policy_saved_between_select_and_update_goes_on() -> None:
    rng = np.random.default_rng(0)
    policy = OClokUCB(posterior=DictionaryPosterior(RBF(1.0), 0.1), oracle=TopK(5))
    for t in range(70):
        contexts = rng.random((30, 2))
        decision = policy.select(contexts)
        outcomes = f(decision.contexts) + 0.1 * rng.standard_normal(5)
        if t >= 30:
            other = _reload(policy)
            other.update(decision, outcomes)
            policy.update(decision, outcomes)
            probe = rng.random((20, 2))
            np.testing.assert_allclose(policy.index(probe), other.index(probe), atol=1e-9)
            policy = other
        else:
            policy.update(decision, outcomes)
    assert policy.posterior.rank < 60


def test_contexts_that_change_behind_a_read_only_view_are_seen() -> None:
    posterior, rng = grown(), np.random.default_rng(0)
    contexts = rng.random((4, 2))
    view = contexts.view()
    view.flags.writeable = False
    posterior.predict(view)
    contexts[:] = rng.random((4, 2))
    changed = posterior.copy().covariance(contexts.copy())
    np.testing.assert_array_equal(posterior.covariance(view), changed)


@pytest.mark.parametrize("kind", [ExactPosterior, DictionaryPosterior])
@pytest.mark.parametrize("kernel", [RBF(1.0), RBF(0.1), DotProduct(1.0)], ids=str)
def test_weighted_outcomes_are_those_of_a_dense_gp_with_unequal_noise(
    kind: Any, kernel: Any
) -> None:
    rng = np.random.default_rng(0)
    X, x = rng.random((300, 2)), rng.random((30, 2))
    y, weights = rng.standard_normal(300), rng.uniform(0.1, 4.0, 300)
    posterior = kind(kernel, 0.2)
    for part in (slice(0, 100), slice(100, 200), slice(200, 300)):
        posterior.update(X[part], y[part], weights[part])
    K, k = kernel(X) + np.diag(0.04 / weights), kernel(X, x)
    covariance = kernel(x) - k.T @ np.linalg.solve(K, k)
    mean, std = posterior.predict(x)
    np.testing.assert_allclose(mean, k.T @ np.linalg.solve(K, y), atol=1e-5)
    np.testing.assert_allclose(std, np.sqrt(np.diag(covariance)), atol=1e-6)
    np.testing.assert_allclose(posterior.covariance(x), covariance, atol=1e-6)
    gain = (np.linalg.slogdet(K)[1] - np.log(0.04 / weights).sum()) / 2
    assert posterior.information_gain == pytest.approx(gain, rel=1e-6)


def test_joint_covariance_and_samples_agree_with_the_exact_posterior() -> None:
    rng = np.random.default_rng(0)
    ours, exact = both(RBF(1.0), 0.5)
    learn((ours, exact), rng.random((400, 2)), rng)
    near, far = rng.random((4, 2)), rng.uniform(2, 3, (4, 2))
    for x in (near, far, np.vstack([near, far])):
        np.testing.assert_allclose(ours.covariance(x), exact.covariance(x), atol=2e-5)
        samples = np.array([ours.sample(x, rng) for _ in range(4_000)])
        mean, std = exact.predict(x)
        assert (np.abs(samples.mean(axis=0) - mean) < 5 * std / np.sqrt(4_000)).all()
        scale = np.outer(std, std)
        np.testing.assert_allclose(
            np.cov(samples.T) / scale, exact.covariance(x) / scale, atol=0.12
        )


def test_another_kernel_has_learned_the_same() -> None:
    rng = np.random.default_rng(0)
    ours, exact = both(RBF(1.0))
    learn((ours, exact), rng.random((400, 2)), rng)
    for kernel, noise_std in ((RBF(0.7), 0.2), (RBF(0.05), 0.1)):
        other, judge = ours.with_kernel(kernel, noise_std), exact.with_kernel(kernel, noise_std)
        assert len(other) == 400
        assert_close(other, judge, rng.random((50, 2)), 1e-5)


def test_a_linear_kernel_of_many_dimensions_is_covered():
    """Its variance falls slowly, and then at once: no reason to give up."""
    rng = np.random.default_rng(0)
    posterior = DictionaryPosterior(DotProduct(1.0), 0.1)
    X = rng.standard_normal((700, 64))
    for start in range(0, 700, 50):
        posterior.update(X[start : start + 50], rng.standard_normal(50))
    assert posterior.rank == 65
    assert np.isfinite(posterior.predict(rng.standard_normal((5, 64))).mean_error).all()


# Work in steps -------------------------------------------------------------------------------


def far(rng: np.random.Generator) -> DictionaryPosterior:
    """Return a posterior that has just met contexts far from its dictionary."""
    posterior = DictionaryPosterior(RBF(1.0), 0.1)
    learn((posterior,), rng.random((AT_ONCE + 500, 2)), rng)
    learn((posterior,), 1.5 + rng.random((5, 2)), rng)
    return posterior


def near(rng: np.random.Generator) -> DictionaryPosterior:
    """Return a posterior that has just met contexts that its dictionary covers all but well."""
    posterior = DictionaryPosterior(RBF(1.0), 0.1)
    learn((posterior,), rng.random((AT_ONCE + 500, 2)), rng)
    learn((posterior,), 1.0 + 0.2 * rng.random((5, 2)), rng)
    return posterior


def judge_of(posterior: Posterior) -> ExactPosterior:
    known, judge = posterior.observations, ExactPosterior(posterior.kernel, posterior.noise_std)
    judge.update(known.contexts.copy(), known.outcomes.copy(), known.weights.copy())
    return judge


def test_far_contexts_have_no_bounds_until_a_larger_dictionary_has_caught_up() -> None:
    rng = np.random.default_rng(0)
    posterior = far(rng)
    x = np.vstack([rng.random((10, 2)), 1.5 + rng.random((10, 2))])
    meanwhile, judge = posterior.predict(x), judge_of(posterior)
    assert np.isinf(meanwhile.mean_error).all()
    np.testing.assert_allclose(meanwhile.mean, judge.predict(x).mean, atol=0.05)
    for _ in range(20):
        contexts = 2.5 * rng.random((50, 2))
        posterior.offer(contexts)
        learn((posterior, judge), contexts[:5], rng)
    assert_bounded(posterior.predict(x), judge, x)
    assert posterior.predict(x).mean_error.max() < 0.1


def test_near_contexts_have_bounds_while_a_larger_dictionary_catches_up() -> None:
    rng = np.random.default_rng(0)
    posterior = near(rng)
    rank, judge = posterior.rank, judge_of(posterior)
    x = 1.1 * rng.random((30, 2))
    assert_bounded(posterior.predict(x), judge, x)
    posterior.maintain()
    assert posterior.rank > rank
    assert_bounded(posterior.predict(x), judge, x)
    assert_close(posterior, judge, x, 1e-5)


@pytest.mark.parametrize("count", [60, 1_000, 2_100])
def test_outcomes_that_come_while_a_larger_dictionary_catches_up_are_learned_once(
    count: int,
) -> None:
    rng = np.random.default_rng(0)
    for make in (near, far):
        posterior = make(rng)
        for _ in range(6):
            learn((posterior,), rng.random((5, 2)), rng)
        learn((posterior,), rng.random((count, 2)), rng)
        posterior.maintain()
        x, judge = rng.random((30, 2)), judge_of(posterior)
        assert_bounded(posterior.predict(x), judge, x)
        assert_close(posterior, judge, x, 1e-5)


def test_ever_farther_contexts_met_while_catching_up_are_covered_in_the_end() -> None:
    rng = np.random.default_rng(0)
    posterior = far(rng)
    for corner in ((3.0, 0.0), (0.0, 3.0), (4.0, 4.0)):
        learn((posterior,), np.array(corner) + rng.random((5, 2)), rng)
    posterior.maintain()
    x = 5.0 * rng.random((50, 2))
    assert_bounded(posterior.predict(x), judge_of(posterior), x)
    assert_close(posterior, judge_of(posterior), x, 1e-4)


def beyond(rng: np.random.Generator) -> DictionaryPosterior:
    posterior = DictionaryPosterior(Matern(0.3, nu=1.5), 0.1, max_rank=64)
    learn((posterior,), rng.random((300, 2)), rng)
    return posterior


PHASES = {
    "exact": lambda rng: DictionaryPosterior(RBF(1.0), 0.1),
    "dictionary": lambda rng: grown(),
    "growing": near,
    "growing, nearest outcomes meanwhile": far,
    "beyond the budget": beyond,
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda p: _reload(p)], ids=["copy", "load"])
def test_a_copy_decides_alike_from_every_phase_on(phase: str, duplicate: Any) -> None:
    rng = np.random.default_rng(0)
    policy = OClokUCB(posterior=PHASES[phase](rng), oracle=TopK(5))
    other = duplicate(policy)
    for _ in range(25):
        contexts = 1.2 * rng.random((40, 2))
        ours, theirs = policy.select(contexts), other.select(contexts)
        np.testing.assert_array_equal(ours.super_arm, theirs.super_arm)
        assert ours.is_exact == theirs.is_exact
        outcomes = f(ours.contexts) + 0.1 * rng.standard_normal(5)
        policy.update(ours, outcomes)
        other.update(theirs, outcomes)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("change", ["correct", "discount"])
def test_outcomes_can_be_changed_in_every_phase(phase: str, change: str) -> None:
    rng = np.random.default_rng(0)
    posterior = PHASES[phase](rng)
    learn((posterior,), rng.random((5, 2)), rng)
    if change == "discount":
        posterior.discount(0.5)
        assert (posterior.observations.weights == 0.5).all()
    else:
        known = posterior.observations
        X, before = known.contexts[-2:].copy(), known.outcomes[-2:].copy()
        posterior.correct(X, before, before + 1.0)
    judge = judge_of(posterior)
    for _ in range(25):
        learn((posterior, judge), rng.random((5, 2)), rng)
    posterior.maintain()
    tolerance = 0.2 if phase == "beyond the budget" else 1e-5
    assert_close(posterior, judge, rng.random((20, 2)), tolerance)


@pytest.mark.parametrize("kernel", [DotProduct(0.0), 1e-300 * RBF(1.0)], ids=str)
def test_a_prior_of_nothing_is_within_any_budget(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    posterior = DictionaryPosterior(kernel, 0.1, max_rank=16)
    for _ in range(8):
        posterior.update(np.zeros((30, 2)), rng.standard_normal(30))
    mean, std = posterior.predict(np.zeros((3, 2)))
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(std, 0.0, atol=1e-12)


@pytest.mark.parametrize("kernel", [RBF(0.3), Matern(0.3, nu=1.5), DotProduct(1.0)], ids=str)
def test_a_budget_of_one(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    posterior = DictionaryPosterior(kernel, 0.1, max_rank=1)
    for _ in range(30):
        learn((posterior,), rng.random((5, 1)), rng)
    assert posterior.rank == 1
    x = rng.random((20, 1))
    mean, std = posterior.predict(x)
    assert (std > 0).all()
    assert (std**2 <= kernel.diag(x) + 1e-12).all()
    np.testing.assert_allclose(mean, f(x), atol=0.5)
