from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

from oclok import UCB
from oclok.errors import InputError
from oclok.oracles import TopK
from oclok.policies.rehearsal import WIDTHS, values
from oclok.testing import check_policy


def test_exploring_does_not_pay_where_nothing_is_learned_about_other_arms() -> None:
    rng = np.random.default_rng(0)
    mean, C = rng.normal(size=80), np.diag(rng.uniform(0.1, 2.0, size=80))
    value = values(mean, C, 0.01, 10, 2, math.inf, np.random.default_rng(1), 1_000)
    assert np.argmax(value) == 0


def test_exploring_pays_where_greedy_choices_would_never_try_what_may_be_better() -> None:
    # Each round offers a sure arm and one whose value, the same in all rounds, is not known.
    mean = np.tile([0.0, -0.2], 8)
    C = np.kron(np.ones((8, 8)), np.diag([0.0, 1.0]))
    value = values(mean, C, 0.01, 2, 1, math.inf, np.random.default_rng(0), 100)
    # Greedy earns 0. Exploring loses 4 · 0.2, then earns max(μ', 0) per round, μ' ~ N(-0.2, 1).
    right = -0.8 + 100 * (norm.pdf(0.2) - 0.2 * norm.cdf(-0.2))
    assert value[WIDTHS.index(0.0)] == pytest.approx(0.0)
    assert value[WIDTHS.index(1.0)] == pytest.approx(right, rel=0.1)


def test_exploring_does_not_pay_where_the_sure_arm_is_as_good_as_can_be() -> None:
    mean = np.tile([1.0, 0.8], 8)
    C = np.kron(np.ones((8, 8)), np.diag([0.0, 1.0]))
    value = values(mean, C, 0.01, 2, 1, 1.0, np.random.default_rng(0), 100)
    assert np.argmax(value) == 0


def test_ties_at_the_ceiling_go_by_the_mean() -> None:
    policy = UCB(RBF(0.1), 0.1, TopK(1), outcome_range=(0.0, 0.1))
    policy.observe([[0.0]], [0.1])
    near, far = policy.index([[0.0], [9.0]])
    assert far < near <= 0.1


def test_a_corrected_outcome_is_no_ceiling() -> None:
    X = np.arange(10.0)[:, None]
    policy = UCB(oracle=TopK(1))
    policy.observe(X, [0.0] * 5 + [1.0] * 5)
    mean, std = policy.posterior.predict([[99.0]])
    assert policy.index([[99.0]])[0] <= 1.0 < mean[0] + std[0]
    policy.correct(X[9:], [1.0], [3.0])
    mean, std = policy.posterior.predict([[99.0]])
    assert policy.index([[99.0]]) == pytest.approx(mean + std)


def test_a_wrong_range_is_refused() -> None:
    with pytest.raises(InputError, match="outcome_range"):
        UCB(outcome_range=(1.0, 0.0))


def test_a_loaded_policy_explores_as_the_saved_one_would(tmp_path: Path) -> None:
    def play(policy: UCB, rounds: range) -> list[float]:
        widths = []
        for t in rounds:
            rng = np.random.default_rng(t)
            decision = policy.select(rng.random((12, 2)))
            policy.update(decision, np.sin(9 * decision.contexts[:, 0]) + 0.1 * rng.normal(size=2))
            widths.append(policy.width(t, 12))
        return widths

    policy = UCB(RBF(0.2), 0.1, TopK(2))
    play(policy, range(105))
    policy.save(tmp_path / "policy")
    loaded = UCB.load(tmp_path / "policy")
    widths = play(policy, range(105, 140))
    assert play(loaded, range(105, 140)) == widths
    assert min(widths) < 1


def test_a_policy_that_learns_its_width_conforms() -> None:
    check_policy(lambda: UCB(RBF(0.5), 0.1, TopK(3)))
