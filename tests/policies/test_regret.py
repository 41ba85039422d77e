"""The regret that a policy believes in, against the true one of problems drawn from its prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.gaussian_process.kernels import RBF

from oclok.errors import InputError
from oclok.oracles import Partition, TopK
from oclok.persistence import dumps
from oclok.policies import BayesUCB, OClokUCB, ThompsonSampling, regret
from oclok.policies.base import Policy
from oclok.posterior import ExactPosterior, SparsePosterior
from oclok.testing.assertions import check_alike

KERNEL, NOISE_STD, K = RBF(0.5), 0.1, 3


def play(policy: Any, seed: int, rounds: int = 40) -> float:
    """Play on a sample of the prior, and return the true regret."""
    rng = np.random.default_rng(seed)
    X = rng.random((150, 2))
    f = np.linalg.cholesky(KERNEL(X) + 1e-9 * np.eye(150)) @ rng.standard_normal(150)
    total = 0.0
    for _ in range(rounds):
        arms = rng.choice(150, 25, replace=False)
        decision = policy.select(X[arms])
        chosen = arms[decision.super_arm]
        total += np.sort(f[arms])[-K:].sum() - f[chosen].sum()
        policy.update(decision, f[chosen] + NOISE_STD * rng.standard_normal(len(chosen)))
    return total


def test_intervals_cover_the_true_regret_as_often_as_they_say() -> None:
    covered = []
    for seed in range(120):
        policy = BayesUCB(KERNEL, NOISE_STD, TopK(K))
        true = play(policy, seed)
        believed = policy.regret(level=0.9)
        assert believed.lower <= believed.median <= believed.upper
        covered.append(believed.lower <= true <= believed.upper)
    assert binomtest(sum(covered), len(covered), 0.9).pvalue > 0.01


@pytest.mark.parametrize(
    "make",
    [
        lambda: OClokUCB(KERNEL, NOISE_STD, TopK(K)),
        lambda: ThompsonSampling(KERNEL, NOISE_STD, TopK(K), seed=1),
        lambda: OClokUCB(posterior=ExactPosterior(KERNEL, NOISE_STD), oracle=TopK(K)),
        lambda: OClokUCB(posterior=SparsePosterior(KERNEL, NOISE_STD, 40, seed=0), oracle=TopK(K)),
    ],
    ids=["dictionary", "thompson", "exact", "sparse"],
)
def test_every_policy_with_a_posterior_has_one(make: Any) -> None:
    policy: Any = make()
    true = play(policy, 3, rounds=90)
    believed = policy.regret()
    assert believed.rounds == believed.sampled == 90
    assert believed.lower <= true <= believed.upper
    assert "not a proof" in str(believed)


def test_it_is_far_below_the_certificate() -> None:
    policy = OClokUCB(KERNEL, NOISE_STD, TopK(K))
    play(policy, 0, rounds=60)
    assert policy.regret().upper < policy.certificate().from_widths / 5


def test_rounds_that_were_not_kept_widen_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    widths = []
    for most in (128, 40):
        monkeypatch.setattr(regret, "MOST_ROUNDS", most)
        policy = BayesUCB(KERNEL, NOISE_STD, TopK(K))
        true = play(policy, 5, rounds=60)
        believed = policy.regret(0.99)
        assert min(60, most // 2) <= believed.sampled <= most
        assert believed.lower <= true <= believed.upper
        widths.append(believed.upper - believed.lower)
    assert widths[1] > widths[0]


def test_what_is_kept_of_past_rounds_is_bounded() -> None:
    kept = regret.KeptRounds()
    for n in range(400):
        kept.add(np.zeros((50 + n, 20)), np.arange(2), TopK(2))
    assert len(kept) <= regret.MOST_ROUNDS
    assert len(dumps(kept)) < 8 * regret.MOST_ENTRIES + 1_000 * regret.MOST_ROUNDS


def test_of_rounds_with_many_arms_fewer_are_kept() -> None:
    kept = regret.KeptRounds()
    for _ in range(400):
        kept.add(np.zeros((1500, 1)), np.arange(2), TopK(2))
    assert 8 <= len(kept) <= regret.MOST_ENTRIES // (1500 * regret.LEAST_DIMENSION)


@pytest.mark.parametrize("rounds", [9, 17, 40])
def test_every_round_is_kept_with_the_same_probability(rounds: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(regret, "MOST_ROUNDS", 8)
    counts = np.zeros(rounds)
    for seed in range(600):
        kept = regret.KeptRounds(seed)
        for _ in range(rounds):
            kept.add(np.zeros((1, 1)), np.arange(1), TopK(1))
        counts[np.array(kept.numbers) - 1] += 1
    p = counts.sum() / counts.size / 600
    assert 4 / rounds <= p <= 8 / rounds
    assert np.abs(counts / 600 - p).max() < 4 * (p * (1 - p) / 600) ** 0.5


def test_asking_changes_nothing_and_a_loaded_policy_says_the_same(tmp_path: Any) -> None:
    policy = BayesUCB(KERNEL, NOISE_STD, Partition(np.arange(25) % 5, limits=1))
    play(policy, 1, rounds=10)
    before = dumps(policy)
    believed = policy.regret()
    assert dumps(policy) == before
    policy.save(tmp_path / "policy")
    loaded = Policy.load(tmp_path / "policy")
    check_alike(loaded, policy, "a loaded policy")
    assert isinstance(loaded, BayesUCB)
    assert loaded.regret().median == pytest.approx(believed.median, rel=1e-6)


def test_in_between_it_is_extrapolated() -> None:
    policy = BayesUCB(KERNEL, NOISE_STD, TopK(K))
    play(policy, 2, rounds=20)
    first = policy.regret()
    play(policy, 2, rounds=5)
    later = policy.regret()
    assert later.rounds == 25
    assert later.median == pytest.approx(first.median + 5 * first.per_round, rel=0.2)


def test_without_rounds_there_is_no_regret() -> None:
    believed = BayesUCB(KERNEL, NOISE_STD, TopK(K)).regret()
    assert (believed.median, believed.lower, believed.upper, believed.rounds) == (0.0, 0.0, 0.0, 0)


@pytest.mark.parametrize("level", [0.0, 1.0, -1, "high", None])
def test_levels_that_are_no_probability_are_refused(level: Any) -> None:
    with pytest.raises(InputError, match="level"):
        BayesUCB(KERNEL, NOISE_STD, TopK(K)).regret(level)
