from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest

from oclok.bench import Channels
from oclok.bench.experiments import EXPERIMENTS, Experiment, PolicySpec
from oclok.bench.experiments.base import seeds
from oclok.errors import ExperimentError, InputError
from oclok.policies import Random


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


def experiment(**changed):
    right = {"name": "mine", "variants": {"": Channels}, "rounds": 5}
    return Experiment(**(right | {"policies": [PolicySpec("Random", Random)]} | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"policies": []}, "mine: has no policies"),
        ({"policies": [Random(seed=0)]}, "policies must be PolicySpec objects"),
        ({"variants": {}}, "variants must map names to problem factories"),
        ({"variants": Channels}, "variants must map names to problem factories"),
        ({"variants": {"": Channels()}}, "must be a problem class or factory"),
        ({"variants": {"a b": Channels, "a-b": Channels}}, "got 'a b' and 'a-b'"),
    ],
)
def test_a_wrong_declaration_is_an_error_that_says_what_is_wrong(changed, message):
    with pytest.raises(ExperimentError, match=message):
        experiment(**changed)


@pytest.mark.parametrize("labels", [("UCB", "UCB"), ("C2 UCB", "C2-UCB"), ("c2ucb", "C2UCB")])
def test_labels_that_are_easily_taken_for_each_other_are_an_error(labels):
    with pytest.raises(ExperimentError, match=f"got '{labels[0]}' and '{labels[1]}'"):
        experiment(policies=[PolicySpec(label, Random) for label in labels])


def test_a_factory_that_makes_no_problem_is_an_error():
    odd = experiment(variants={"": lambda rounds, seed: None})
    with pytest.raises(ExperimentError, match=r"must return an oclok\.bench\.Problem; got None"):
        odd.problem(odd.settings(), "", 5, 0)


def test_the_identity_of_a_run_follows_what_its_table_depends_on_and_nothing_else():
    def identities(policy=Random, k=2, **how):
        declared = experiment(
            variants={"": partial(Channels, k=k)}, policies=[PolicySpec("P", policy)]
        )
        return {run.identity for run in declared.runs(declared.settings(**how))}

    same = identities(repeats=1)
    assert identities(repeats=1) == same
    assert identities(repeats=2) > same
    for other in [{"k": 3}, {"seed": 1}, {"rounds": 6}, {"policy": lambda p, s: Random(seed=1)}]:
        assert identities(**{"repeats": 1} | other).isdisjoint(same)


def test_data_that_were_changed_make_another_run(tmp_path):
    path = tmp_path / "venues.csv"
    crowdsourcing = EXPERIMENTS["crowdsourcing"]

    def identity():
        settings = crowdsourcing.settings(repeats=1, policies=["cc-mab"], data=str(path))
        return crowdsourcing.runs(settings)[0].identity

    path.write_text("latitude,longitude,checkins\n35.5,139.5,3\n")
    before = identity()
    assert identity() == before
    path.write_text("latitude,longitude,checkins\n35.5,139.5,30\n")
    assert identity() != before
