from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok.bench.problems.drift import Drift
from oclok.bench.simulation import simulate
from oclok.errors import InputError
from oclok.policies import BayesUCB, Discount


def at_contexts(rounds: list) -> dict[tuple[float, ...], float]:
    return {
        tuple(context): mean
        for current in rounds
        for context, mean in zip(current.contexts, current.means, strict=True)
    }


def test_halfway_all_means_are_others():
    rounds = list(Drift(rounds=40, points=300))
    first, second = at_contexts(rounds[:20]), at_contexts(rounds[20:])
    assert len(first) == len(second) == 300
    assert not first.keys() & second.keys()
    # Neighbours had nearly the same mean before; after the change they are independent of it.
    X, Y = np.array(list(first)), np.array(list(second))
    f, g = np.array(list(first.values())), np.array(list(second.values()))
    nearest = np.linalg.norm(Y[:, None] - X, axis=2).argmin(axis=1)
    assert np.abs(g - f[nearest]).mean() > 0.3


def test_it_changes_when_it_is_told_to():
    early, late = (
        list(Drift(rounds=12, points=200, change_after=after, seed=4)) for after in (5, 9)
    )
    same = [np.array_equal(a.means, b.means) for a, b in zip(early, late, strict=True)]
    assert same == [True] * 5 + [False] * 4 + [True] * 3


def test_it_says_when_it_changes():
    assert Drift(rounds=9, points=200).change_after == 4
    assert "after 4 rounds" in repr(Drift(rounds=9, points=200))


def test_iterating_twice_gives_the_same_rounds():
    problem = Drift(rounds=6, points=200, seed=2)
    for one, other in zip(problem, list(problem), strict=True):
        assert np.array_equal(one.contexts, other.contexts)
        assert np.array_equal(one.means, other.means)


def test_another_seed_gives_other_rounds():
    first, other = (next(iter(Drift(rounds=2, points=200, seed=seed))) for seed in (0, 1))
    assert not np.array_equal(first.contexts, other.contexts)


def test_with_a_fixed_change_a_shorter_problem_is_a_longer_one_truncated():
    short, long = (Drift(rounds=rounds, points=200, change_after=2) for rounds in (4, 8))
    for one, other in zip(short, list(long)[:4], strict=True):
        assert np.array_equal(one.means, other.means)


@pytest.mark.parametrize("how", [{"change_after": -1}, {"lengthscale": 0.0}, {"points": 5}])
def test_settings_that_mean_nothing_are_refused(how):
    with pytest.raises(InputError, match=next(iter(how))):
        Drift(**how)


def share_at_the_end(policy: BayesUCB, seed: int) -> tuple[float, pd.DataFrame]:
    """Return the share of the benchmark's reward in the last 40 of 200 rounds, and these."""
    table = simulate(policy, Drift(rounds=200, seed=seed, points=600), seed)[-40:]
    return table.expected_reward.sum() / table.best_expected_reward.sum(), table


def test_a_policy_that_forgets_is_back_at_nine_tenths_of_the_benchmark_and_others_are_not():
    ends = []
    for seed in range(6):
        forgetting = BayesUCB(RBF(0.5), 0.1, forget=Discount(0.95))
        assert share_at_the_end(forgetting, seed)[0] > 0.9
        ends.append(share_at_the_end(BayesUCB(RBF(0.5), 0.1), seed)[1])
    # Where the new means are large all over there is little to lose: all seeds are judged as one.
    end = pd.concat(ends)
    assert end.expected_reward.sum() / end.best_expected_reward.sum() < 0.85
