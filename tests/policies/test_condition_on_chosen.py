from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from oclok.errors import InputError, OclokError
from oclok.oracles import Coverage, Knapsack, Partition, TopK
from oclok.oracles.base import Oracle
from oclok.policies import UCB, OClokUCB
from oclok.policies.pending import Pending
from oclok.posterior import ExactPosterior, Posterior
from oclok.testing import check_policy

NOISE_STD = 0.1


class AtOnce(TopK):
    """A `TopK` that does not choose step by step."""

    is_sequential = False


def seen_at(posterior: Posterior, *contexts: np.ndarray) -> Posterior:
    """The posterior, given made-up outcomes at `contexts`."""
    other = posterior.copy()
    for X in contexts:
        if len(X):
            other.update(X, np.zeros(len(X)))
    return other


def information(posterior: Posterior, *contexts: np.ndarray) -> float:
    """I of outcomes at `contexts`, in nats: ½ log det(I + σ⁻²C)."""
    X = np.vstack(contexts)
    if len(X) == 0:
        return 0.0
    C = posterior.covariance(X) / posterior.noise_std**2
    return 0.5 * float(np.linalg.slogdet(np.eye(len(X)) + C)[1])


def experienced(oracle: Oracle, how: Any, pending: int = 0, seed: int = 0, **more: Any) -> OClokUCB:
    rng = np.random.default_rng(seed)
    policy = OClokUCB(RBF(0.4), NOISE_STD, oracle, condition_on_chosen=how, **more)
    X = rng.random((20, 2))
    policy.observe(X, np.sin(5 * X[:, 0]))
    for _ in range(pending):
        policy.select(rng.random((15, 2)))
    return policy


@pytest.mark.parametrize("how", [True, "guaranteed"])
def test_one_arm_and_nothing_pending_is_the_plain_policy(how: Any) -> None:
    rng = np.random.default_rng(0)
    ours = OClokUCB(RBF(0.4), NOISE_STD, TopK(1), condition_on_chosen=how)
    plain = OClokUCB(RBF(0.4), NOISE_STD, TopK(1))
    for _ in range(60):
        contexts = rng.random((20, 2))
        np.testing.assert_allclose(ours.index(contexts), plain.index(contexts), atol=1e-8)
        decision, theirs = ours.select(contexts), plain.select(contexts)
        assert decision.super_arm.tolist() == theirs.super_arm.tolist()
        np.testing.assert_allclose(decision.index, theirs.index, rtol=0, atol=1e-8)
        outcomes = np.sin(5 * decision.contexts[:, 0]) + 0.1 * rng.standard_normal(1)
        ours.update(decision, outcomes)
        plain.update(theirs, outcomes)


@pytest.mark.parametrize("oracle", [TopK(3), AtOnce(3)])
def test_arms_of_pending_decisions_count_as_seen(oracle: Oracle) -> None:
    policy = experienced(oracle, True, pending=4)
    assert len(policy.pending) == 4
    contexts = np.random.default_rng(1).random((15, 2))
    waiting = [decision.contexts for decision in policy.pending]
    mean = policy.posterior.predict(contexts).mean
    std = seen_at(policy.posterior, *waiting).predict(contexts).std
    expected = mean + math.sqrt(policy.beta(5, 15)) * std
    np.testing.assert_allclose(policy.index(contexts), expected, rtol=0, atol=1e-8)
    assert (std < policy.posterior.predict(contexts).std).all()


def test_an_outcome_that_came_or_is_not_awaited_any_more_does_not_count_as_pending() -> None:
    policy = experienced(AtOnce(3), True)
    contexts = np.random.default_rng(1).random((15, 2))
    first, second = policy.select(contexts[:6]), policy.select(contexts[6:])
    policy.update(first, [0.5, np.nan, 0.5])
    policy.discard(second)
    std = seen_at(policy.posterior, first.contexts[1:2]).predict(contexts).std
    expected = policy.posterior.predict(contexts).mean + math.sqrt(policy.beta(3, 15)) * std
    np.testing.assert_allclose(policy.index(contexts), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("how", [True, "guaranteed"])
@pytest.mark.parametrize("pending", [0, 3])
def test_the_super_arm_is_built_as_on_paper(how: Any, pending: int) -> None:
    policy = experienced(TopK(4), how, pending)
    rng = np.random.default_rng(2)
    for t in range(pending + 1, pending + 6):
        contexts = rng.random((15, 2))
        seen = [decision.contexts for decision in policy.pending]
        mean, posterior_std = policy.posterior.predict(contexts)
        chosen: list[int] = []
        index_when_taken = {}
        for _ in range(4):
            width = math.sqrt(policy.beta(t, 15))
            if how == "guaranteed":
                width *= math.exp(information(policy.posterior, np.empty((0, 2)), *seen))
            index = mean + width * seen_at(policy.posterior, *seen).predict(contexts).std
            index[chosen] = -np.inf
            best = int(np.argmax(index))
            chosen.append(best)
            index_when_taken[best] = index[best]
            seen.append(contexts[best : best + 1])
        decision = policy.select(contexts)
        assert decision.super_arm.tolist() == sorted(chosen)
        expected = [index_when_taken[arm] for arm in sorted(chosen)]
        np.testing.assert_allclose(decision.index, expected, rtol=1e-7)
        np.testing.assert_allclose(decision.std, posterior_std[decision.super_arm], atol=1e-10)


def test_a_cover_is_built_with_each_node_at_the_index_it_was_taken_for() -> None:
    rng = np.random.default_rng(4)
    policy = OClokUCB(0.005 * RBF(0.4), NOISE_STD, condition_on_chosen=True)
    for t in range(1, 21):
        contexts = rng.random((30, 2))
        oracle = Coverage(np.arange(30) // 5, rng.permutation(30) % 5, k=3, solver="greedy")
        mean = policy.posterior.predict(contexts).mean
        chosen, index = np.empty(0, dtype=np.intp), np.empty(30)
        for _ in range(3):
            others = np.setdiff1d(np.arange(30), chosen)
            std = seen_at(policy.posterior, contexts[chosen]).predict(contexts).std
            index[others] = (mean + math.sqrt(policy.beta(t, 30)) * std)[others]
            nodes = [np.flatnonzero(oracle.left == node) for node in np.unique(oracle.left[others])]
            worth = [oracle.value(index, np.append(chosen, edges)) for edges in nodes]
            chosen = np.append(chosen, nodes[int(np.argmax(worth))])
        decision = policy.select(contexts, oracle)
        np.testing.assert_array_equal(decision.super_arm, np.sort(chosen))
        np.testing.assert_allclose(decision.index, index[np.sort(chosen)], rtol=0, atol=1e-6)
        policy.update(decision, 0.2 + NOISE_STD * rng.standard_normal(len(decision)))


def test_of_two_arms_that_are_nearly_one_only_one_is_taken() -> None:
    contexts = [[0.0], [0.001], [9.0]]
    settings: dict[str, Any] = {"kernel": RBF(1.0), "noise_std": NOISE_STD, "oracle": TopK(2)}
    plain, ours = OClokUCB(**settings), OClokUCB(**settings, condition_on_chosen=True)
    for policy in (plain, ours):
        policy.observe([[0.0005]] * 2, [0.02] * 2)
        policy.observe([[9.0]] * 2, [0.0] * 2)
    assert plain.select(contexts).super_arm.tolist() == [0, 1]
    assert ours.select(contexts).super_arm.tolist() in ([0, 2], [1, 2])


@pytest.mark.parametrize("pending", [0, 1, 5])
def test_the_guaranteed_band_contains_the_plain_one(pending: int) -> None:
    policy = experienced(AtOnce(3), "guaranteed", pending)
    contexts = np.random.default_rng(1).random((15, 2))
    mean, std = policy.posterior.predict(contexts)
    plain = math.sqrt(policy.beta(pending + 1, 15)) * std
    assert (policy.index(contexts) - mean >= plain - 1e-9).all()
    waiting = [np.empty((0, 2)), *(decision.contexts for decision in policy.pending)]
    shrunk = seen_at(policy.posterior, *waiting).predict(contexts).std
    inflated = math.sqrt(policy.beta(pending + 1, 15)) * shrunk
    inflated = inflated * math.exp(information(policy.posterior, *waiting))
    np.testing.assert_allclose(policy.index(contexts) - mean, inflated, rtol=1e-7, atol=1e-9)


def test_the_guaranteed_band_contains_f_as_often_as_promised() -> None:
    delta, seeds, missed = 0.3, 60, 0
    prior = ExactPosterior(Matern(0.3, nu=2.5), NOISE_STD)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.random((40, 2))
        f = prior.sample(X, rng)
        policy = OClokUCB(
            prior.kernel, NOISE_STD, TopK(2), delta=delta, condition_on_chosen="guaranteed"
        )
        is_missed = False
        for t in range(8):
            mean = policy.posterior.predict(X).mean
            is_missed |= bool((np.abs(f - mean) > policy.index(X) - mean).any())
            policy.select(X)
            if t % 4 == 3:
                for decision in policy.pending:
                    noise = NOISE_STD * rng.standard_normal(2)
                    policy.update(decision, f[decision.super_arm] + noise)
        missed += is_missed
    assert missed <= delta * seeds


def regrets(how: Any, seed: int) -> tuple[float, Any]:
    rng = np.random.default_rng(seed)
    X = rng.random((60, 2))
    f = ExactPosterior(RBF(0.4), NOISE_STD).sample(X, rng)
    policy = OClokUCB(RBF(0.4), NOISE_STD, TopK(3), condition_on_chosen=how)
    regret = 0.0
    for _ in range(40):
        arms = rng.choice(60, 20, replace=False)
        decision = policy.select(X[arms])
        chosen = f[arms][decision.super_arm]
        regret += np.sort(f[arms])[-3:].sum() - chosen.sum()
        policy.update(decision, chosen + NOISE_STD * rng.standard_normal(3))
    return regret, policy.certificate()


@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_of_the_guaranteed_one_bounds_its_regret(seed: int) -> None:
    regret, certificate = regrets("guaranteed", seed)
    assert regret <= certificate.from_widths < math.inf
    assert certificate.from_widths <= certificate.from_information * (1 + 1e-9) < math.inf


def test_without_guarantee_there_is_no_certificate() -> None:
    _, certificate = regrets(True, 0)
    assert certificate.from_widths == certificate.from_information == math.inf


def test_there_is_no_certificate_where_the_steps_have_no_guarantee() -> None:
    rng = np.random.default_rng(0)
    oracle = Knapsack(rng.random(20) + 0.1, 1.5)
    policy = experienced(oracle, "guaranteed")
    policy.select(rng.random((20, 2)))
    assert policy.certificate().from_widths == math.inf


@pytest.mark.parametrize("how", [True, "guaranteed"])
def test_large_super_arms_with_much_to_tell_are_chosen_or_refused_in_words(how: Any) -> None:
    policy = OClokUCB(Matern(0.02, nu=0.5), 0.01, TopK(200), condition_on_chosen=how)
    try:
        decision = policy.select(np.random.default_rng(0).random((300, 2)))
    except OclokError:
        assert policy.round == 0
    else:
        assert np.isfinite(decision.index).all()


@pytest.mark.parametrize("how", ["yes", None, 2, np.array([1, 2])])
def test_ways_to_condition_that_mean_nothing_are_refused(how: Any) -> None:
    with pytest.raises(InputError, match="condition_on_chosen"):
        OClokUCB(RBF(1.0), 0.1, condition_on_chosen=how)


@pytest.mark.parametrize("how", [1, np.True_])
def test_what_equals_true_is_as_true_or_refused(how: Any) -> None:
    try:
        policy = OClokUCB(RBF(1.0), 0.1, TopK(2), condition_on_chosen=how)
    except InputError:
        return
    policy.select(np.random.default_rng(0).random((9, 2)))
    assert policy.certificate().from_widths == math.inf


ORACLES: dict[str, Callable[[np.random.Generator], Oracle]] = {
    "TopK": lambda rng: TopK(3),
    "TopK, all": lambda rng: TopK(20),
    "Partition": lambda rng: Partition(rng.integers(0, 3, 10), limits=2),
    "Knapsack": lambda rng: Knapsack(rng.random(10), budget=1.5),
    "Knapsack, free arms": lambda rng: Knapsack(rng.integers(0, 3, 10), budget=4),
    "Coverage": lambda rng: Coverage(
        rng.integers(0, 5, 10), rng.integers(0, 5, 10), k=2, solver="greedy"
    ),
}


def steps(oracle: Oracle, index_at: Callable[[int], np.ndarray]) -> np.ndarray:
    """Take steps until there is none; every one must take base arms that are not taken yet."""
    chosen = np.empty(0, dtype=np.intp)
    for step in range(20):
        new = oracle.choose_next(index_at(step), chosen)
        if new.size == 0:
            return np.sort(chosen)
        assert not np.isin(new, chosen).any()
        chosen = np.append(chosen, new)
    raise AssertionError("no end")


@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), ties=st.booleans())
def test_steps_end_in_a_feasible_super_arm(name: str, seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    oracle = ORACLES[name](rng)
    assert oracle.is_sequential
    draw = (lambda: rng.integers(-1, 3, 10) / 2.0) if ties else (lambda: rng.standard_normal(10))
    assert oracle.is_feasible(steps(oracle, lambda step: draw()))


@pytest.mark.parametrize("name", ["TopK", "TopK, all", "Partition", "Coverage"])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), ties=st.booleans())
def test_steps_with_one_index_are_what_the_oracle_chooses(name: str, seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    oracle = ORACLES[name](rng)
    index = rng.integers(-1, 3, 10) / 2.0 if ties else rng.standard_normal(10)
    super_arm = steps(oracle, lambda step: index)
    if name == "Coverage" and ties:  # nodes of equal gain, and rounding, may differ
        best = max(
            oracle.value(index, np.flatnonzero(np.isin(oracle.left, nodes)))
            for nodes in combinations(range(5), 2)
        )
        assert oracle.value(index, super_arm) >= oracle.alpha * best - 1e-12
    else:
        np.testing.assert_array_equal(super_arm, oracle(index))


@pytest.mark.parametrize("name", ["Knapsack", "Knapsack, free arms"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_steps_fill_a_knapsack(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    oracle = ORACLES[name](rng)
    index = rng.standard_normal(10)
    super_arm = steps(oracle, lambda step: index)
    assert (index[super_arm] > 0).all()
    for other in np.setdiff1d(np.flatnonzero(index > 0), super_arm):
        assert not oracle.is_feasible(np.append(super_arm, other))


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("how", [True, "guaranteed"])
def test_policies_choose_feasible_super_arms_with_every_such_oracle(name: str, how: Any) -> None:
    rng = np.random.default_rng(3)
    policy = experienced(TopK(1), how)
    for _ in range(10):
        oracle = ORACLES[name](rng)
        decision = policy.select(rng.random((10, 2)), oracle)
        assert oracle.is_feasible(decision.super_arm)
        assert np.isfinite(decision.index).all()
        if rng.random() < 0.7:
            policy.update(decision, rng.standard_normal(len(decision)))


@pytest.mark.parametrize("oracle", [TopK(3), AtOnce(3)], ids=["step by step", "at once"])
@pytest.mark.parametrize("how", [True, "guaranteed"])
def test_it_conforms(how: Any, oracle: Oracle) -> None:
    check_policy(lambda: OClokUCB(RBF(0.5), 0.1, oracle, condition_on_chosen=how))


@pytest.mark.parametrize("how", [False, True, "guaranteed"])
@pytest.mark.parametrize("oracle", [TopK(2), AtOnce(2)], ids=["step by step", "at once"])
def test_nothing_is_proven_exact_through_a_dictionary_with_conditions(
    how: Any, oracle: Oracle
) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    settings = {"oracle": oracle, "condition_on_chosen": how}
    ours = OClokUCB(RBF(1.0), NOISE_STD, **settings)
    exact = OClokUCB(posterior=ExactPosterior(RBF(1.0), NOISE_STD), **settings)
    for policy in (ours, exact):
        policy.observe(X, np.sin(5 * X[:, 0]))
    assert ours.posterior.rank < len(ours.posterior)
    x = rng.random((15, 2))
    assert ours.select(x).is_exact == (how is False)
    assert exact.select(x).is_exact == (how is False and oracle.is_stable is not Oracle.is_stable)


def test_only_the_latest_pending_arms_are_conditioned_on() -> None:
    rng = np.random.default_rng(0)
    policy = UCB(RBF(0.5), 0.1, TopK(4), condition_on_chosen=True)
    contexts = [policy.select(rng.random((8, 2))).contexts for _ in range(5)]
    pending = Pending()
    for decision in policy.pending:
        pending.add(decision)
    np.testing.assert_array_equal(pending.contexts(10), np.vstack(contexts)[-10:])
    np.testing.assert_array_equal(pending.contexts(100), np.vstack(contexts))
