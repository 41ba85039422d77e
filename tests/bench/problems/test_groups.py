from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok.bench.problems.groups import GroupRound, Groups
from oclok.bench.simulation import simulate
from oclok.errors import InputError
from oclok.policies import OClokUCB, Random
from oclok.policies.tcgp_ucb import TCGPUCB


def test_arms_of_a_group_are_alike():
    for current in Groups(rounds=10):
        for group in np.unique(current.groups):
            members = current.contexts[current.groups == group]
            assert np.ptp(members, axis=0).max() < 0.5
    assert np.ptp(current.contexts, axis=0).min() > 0.5


def test_rounds_have_the_shapes_that_they_promise():
    for current in Groups(rounds=10, seed=3):
        arms = len(current.means)
        assert current.contexts.shape == (arms, 2)
        assert current.groups.shape == current.group_means.shape == (arms,)
        assert np.array_equal(np.unique(current.groups), np.arange(current.groups.max() + 1))


def test_about_half_of_the_groups_are_good_and_there_is_always_one():
    shares = [current.is_good.mean() for current in Groups(rounds=100, seed=1)]
    assert 0.4 < np.mean(shares) < 0.6
    rare = Groups(rounds=60, seed=1, mean_groups=2)
    assert min(current.is_good.sum() for current in rare) == 1


def test_iterating_twice_gives_the_same_rounds_and_another_seed_others():
    problem = Groups(rounds=4, seed=3)
    for one, again in zip(problem, list(problem), strict=True):
        assert np.array_equal(one.contexts, again.contexts)
        assert np.array_equal(one.group_means, again.group_means)
    other = next(iter(Groups(rounds=1, seed=4)))
    assert not np.array_equal(other.contexts[:2], next(iter(problem)).contexts[:2])


def small_round() -> GroupRound:
    problem = Groups(rounds=1)
    template = next(iter(problem))
    return GroupRound(
        contexts=np.arange(10.0).reshape(5, 2),
        means=np.array([0.9, 0.8, 0.7, 0.6, 0.5]),
        oracle=template.oracle,
        noise=template.noise,
        groups=np.array([0, 0, 1, 1, 2]),
        group_means=np.array([0.9, 0.0, 0.5, 0.5, 0.4]),
        threshold=0.46,
    )


def test_violations_are_chosen_groups_whose_mean_is_below_the_threshold():
    current = small_round()
    assert current.is_good.tolist() == [False, True, False]
    for super_arm, count in [([], 0), ([0], 1), ([0, 1], 1), ([1, 2, 4], 2)]:
        assert current.columns(super_arm)["group_violations"] == count
    assert current.best().tolist() == [2, 3]


def test_both_outcomes_have_their_means_and_rewards_are_those_of_play():
    current = small_round()
    played = current.play_both([1, 3], np.random.default_rng(0))
    assert played.shape == (2, 2)
    alone = current.play([1, 3], np.random.default_rng(0))
    np.testing.assert_array_equal(played[:, 0], alone)
    rng = np.random.default_rng(1)
    mean = np.mean([current.play_both([1, 3], rng) for _ in range(2000)], axis=0)
    np.testing.assert_allclose(mean, [[0.8, 0.0], [0.6, 0.5]], atol=0.015)


def test_the_table_says_what_happened():
    table = simulate(TCGPUCB(RBF(0.5), 0.1), Groups(rounds=12), seed=0)
    assert table["round"].tolist() == list(range(1, 13))
    assert (table.regret == table.best_expected_reward - table.expected_reward).all()
    assert (table.group_violations <= table.groups_chosen).all()
    assert (table.groups_chosen <= table.chosen).all()
    assert table.attrs["problem"] == "groups"


def test_policies_that_know_nothing_of_groups_are_measured_against_the_same_benchmark():
    problem = Groups(rounds=15)
    table = simulate(OClokUCB(RBF(0.5), 0.1), problem, seed=0)
    best = [current.means[current.best()].sum() for current in problem]
    np.testing.assert_allclose(table["best_expected_reward"], best)
    free = [np.sort(current.means)[-5:].sum() for current in problem]
    assert not np.allclose(best, free)
    assert table["group_violations"].sum() > 0


def violations(table: pd.DataFrame) -> float:
    return float(table.group_violations.sum() / table.groups_chosen.sum())


def test_violations_fall_with_the_rounds_and_below_those_of_policies_that_do_not_care():
    tables = {"early": [], "late": [], "careless": [], "random": []}
    for seed in range(4):
        problem = Groups(rounds=100, seed=seed)
        table = simulate(TCGPUCB(RBF(0.5), 0.1, zeta=0.7), problem, seed)
        tables["early"].append(table[:25])
        tables["late"].append(table[-25:])
        tables["careless"].append(simulate(OClokUCB(RBF(0.5), 0.1), problem, seed)[-25:])
        tables["random"].append(simulate(Random(seed=0), problem, seed)[-25:])
    share = {name: violations(pd.concat(parts)) for name, parts in tables.items()}
    assert share["late"] < 0.6 * share["early"]
    assert share["late"] < 0.6 * share["careless"]
    assert share["late"] < 0.6 * share["random"]


@pytest.mark.parametrize("how", [{"lengthscale": 0.0}, {"points": 5}, {"rounds": 0}])
def test_settings_that_mean_nothing_are_refused(how):
    with pytest.raises(InputError, match=next(iter(how))):
        Groups(**how)
