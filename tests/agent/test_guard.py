"""The promise of the guard, on worlds drawn from the posterior's own prior."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

from oclok.agent.guard import Guard, is_sum
from oclok.errors import InputError
from oclok.oracles import Knapsack, TopK
from oclok.oracles.base import Oracle
from oclok.persistence import dumps, loads
from oclok.posterior import ExactPosterior

LEVEL, SPREAD, NOISE, ARMS = 4.0, 0.3, 0.5, 12
KERNEL = ConstantKernel(LEVEL**2) + ConstantKernel(SPREAD**2) * DotProduct(sigma_0=0.0)


def played(
    seed: int, baseline: str, oracle: Oracle, rounds: int, guarded: bool = True, delay: int = 0
) -> tuple[float, float, Guard]:
    """Return the least share of the baseline's reward so far, the regret, and the guard."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, SPREAD, 5)
    posterior, guard = ExactPosterior(KERNEL, NOISE), Guard(0.05)
    ours = theirs = regret = 0.0
    least, waiting = np.inf, []
    for _ in range(rounds):
        X = rng.uniform(-1, 1, (ARMS, 5))
        f = LEVEL + X @ theta
        good = {"best": f, "worst": -f, "random": rng.random(ARMS)}[baseline]
        old = oracle(good - good.min() + 0.1)
        mean, std = posterior.predict(X)
        chosen = oracle(np.maximum(mean + std, 0.01))
        if guarded:
            step = guard.consider(posterior, X, oracle, chosen, old)
            chosen = old if step.stepped_in else chosen
            guard.record(step, X, chosen)
        ours, theirs = ours + oracle.value(f, chosen), theirs + oracle.value(f, old)
        least = min(least, ours / theirs)
        regret += oracle.value(f, oracle(f)) - oracle.value(f, chosen)
        waiting.append((X[chosen], f[chosen] + rng.normal(0, NOISE, len(chosen))))
        if len(waiting) > delay:
            posterior.update(*waiting.pop(0))
    return least, regret, guard


@pytest.mark.parametrize("baseline", ["best", "random", "worst"])
def test_at_no_time_is_more_lost_than_promised(baseline: str) -> None:
    runs = [played(seed, baseline, TopK(3), 60)[0] for seed in range(20)]
    assert np.mean(np.array(runs) < 0.95) <= 0.05


def test_without_it_more_is_lost() -> None:
    runs = [played(seed, "best", TopK(3), 60, guarded=False)[0] for seed in range(10)]
    assert np.mean(np.array(runs) < 0.95) > 0.5


@pytest.mark.parametrize(
    "oracle", [Knapsack([1.0] * ARMS, 3.0), TopK(3, reward=np.log1p)], ids=["knapsack", "log"]
)
def test_every_oracle_and_late_feedback_will_do(oracle: Oracle) -> None:
    runs = [played(seed, "best", oracle, 40, delay=5) for seed in range(100)]
    assert np.mean([least < 0.95 for least, _, _ in runs]) <= 0.05
    assert all(0 < guard.stepped_in <= guard.decisions == 40 for _, _, guard in runs)


def test_the_first_decisions_are_the_baselines_and_later_ones_the_policys() -> None:
    _, _, guard = played(0, "random", TopK(3), 80)
    assert 3 <= guard.stepped_in < 40
    report = guard.report()
    assert report.stepped_in == guard.stepped_in
    assert report.reserve > 0
    assert [each.name for each in report.assumptions] == ["posterior", "baseline"]
    assert "at least 95% of the baseline's reward" in str(report)


def test_considering_changes_nothing_and_a_copy_goes_on_alike() -> None:
    posterior, guard = ExactPosterior(KERNEL, NOISE), Guard(0.05)
    rng = np.random.default_rng(0)
    for _ in range(30):
        X = rng.uniform(-1, 1, (ARMS, 5))
        before = dumps(guard)
        chosen, old = TopK(3)(posterior.predict(X).mean), TopK(3)(rng.random(ARMS))
        step = guard.consider(posterior, X, TopK(3), chosen, old)
        assert dumps(guard) == before
        guard = loads(before)  # type: ignore[assignment]
        guard.record(step, X, old if step.stepped_in else chosen)
        posterior.update(X[old], LEVEL + rng.normal(0, NOISE, 3))
    assert guard.decisions == 30


def test_a_reward_that_is_a_sum_is_known_as_one() -> None:
    X = np.zeros((4, 1))
    assert is_sum(TopK(2), X, np.array([0, 3]))
    assert not is_sum(TopK(2, reward=np.log1p), X, np.array([0, 3]))


@pytest.mark.parametrize("share", [0, 1, -0.1, "5%", True])
def test_the_share_is_between_0_and_1(share: object) -> None:
    with pytest.raises(InputError, match="guard must be"):
        Guard(share)  # type: ignore[arg-type]
