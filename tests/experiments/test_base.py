from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from oclok.errors import ExperimentError, InputError
from oclok.experiments import EXPERIMENTS
from oclok.experiments.base import seeds


def test_only_policies_that_are_told_the_horizon_run_once_for_each(small):
    runs = small.runs(small.settings())
    horizons = {
        policy: sorted({run.horizon for run in runs if run.policy == policy})
        for policy in ("SO'CLOK-UCB 4", "ACC-UCB", "Random")
    }
    assert horizons == {"SO'CLOK-UCB 4": [20], "ACC-UCB": [10, 15, 20], "Random": [20]}
    assert len(runs) == 2 * (1 + 3 + 1) * 2


def test_no_two_runs_share_a_file():
    for experiment in EXPERIMENTS.values():
        runs = experiment.runs(experiment.settings())
        assert len({run.file_name for run in runs}) == len(runs)


@pytest.mark.parametrize("rounds", [1, 5, 10, 11, 37])
def test_the_last_horizon_is_the_number_of_rounds(small, rounds):
    horizons = small.horizons_of(small.policy("ACC-UCB"), small.settings(rounds=rounds))
    assert horizons[-1] == rounds
    assert horizons == sorted(set(horizons))


def test_policies_can_be_named_by_label_or_key_and_keep_their_order(small):
    assert small.settings(policies=["random", "SO'CLOK-UCB 4"]).policies == (
        "SO'CLOK-UCB 4",
        "Random",
    )
    assert small.settings(policies=["soclok-ucb-4"]).policies == ("SO'CLOK-UCB 4",)


def test_an_unknown_policy_is_an_error_that_lists_the_known_ones(small):
    with pytest.raises(ExperimentError, match=r"'ucb'; it has soclok-ucb-4, acc-ucb, random"):
        small.settings(policies=["ucb"])


def test_an_option_that_the_problem_does_not_have_is_an_error(small):
    with pytest.raises(ExperimentError, match="small takes no --data"):
        small.settings(data="checkins.txt")


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"repeats": 0}, {"seed": -1}])
def test_numbers_that_make_no_sense_are_errors(small, wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        small.settings(**wrong)


def test_quick_is_small_and_gives_way_to_what_is_asked_for():
    experiment = EXPERIMENTS["codependency"]
    quick = experiment.settings(quick=True)
    assert quick.rounds < experiment.rounds
    assert quick.repeats < experiment.repeats
    assert experiment.settings(quick=True, rounds=70).rounds == 70


def test_a_repeat_has_the_same_problem_for_every_horizon_and_another_in_other_repeats(small):
    settings = small.settings()
    first, short, other = (
        next(iter(small.problem(settings, "k=2", horizon, repeat))).contexts
        for horizon, repeat in [(20, 0), (10, 0), (20, 1)]
    )
    assert np.array_equal(first, short)
    assert not np.array_equal(first, other)


def test_problem_noise_and_policy_have_seeds_of_their_own(small):
    settings = small.settings(seed=3)
    other = dataclasses.replace(settings, seed=4)
    states = [
        tuple(seed.generate_state(2))
        for chosen in (settings, other)
        for repeat in (0, 1)
        for seed in seeds(chosen, repeat)
    ]
    assert len(set(states)) == 12
