from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from oclok.bench import Channels
from oclok.bench.experiments import PolicySpec, sweep
from oclok.bench.experiments.specs import as_key, show
from oclok.errors import ExperimentError
from oclok.policies import ACCUCB, CCMAB, OClokUCB, Random
from oclok.posterior import SparsePosterior

SEED = np.random.SeedSequence(3)


def test_a_sweep_has_a_policy_for_every_combination():
    specs = sweep(
        OClokUCB, label="O'CLOK", kernel=[RBF(0.5), Matern(1.0)], delta=[0.1, 0.2], noise_std=0.1
    )
    assert len(specs) == len({spec.label for spec in specs}) == 4
    assert specs[1].label == "O'CLOK kernel=RBF(length_scale=0.5) delta=0.2"
    made = [spec.policy(Channels(rounds=5), SEED) for spec in specs]
    assert [policy.delta for policy in made] == [0.1, 0.2, 0.1, 0.2]
    assert [type(policy.posterior.kernel) for policy in made] == [RBF, RBF, Matern, Matern]
    assert specs[1].parameters == {"noise_std": 0.1, "kernel": RBF(0.5), "delta": 0.2}


def test_without_lists_a_sweep_is_one_policy_named_after_its_class():
    (spec,) = sweep(Random)
    assert spec.label == "Random"
    assert isinstance(spec.policy(Channels(rounds=5), SEED), Random)


@pytest.mark.parametrize("cls", [ACCUCB, CCMAB])
def test_a_class_that_needs_horizon_and_dimension_gets_those_of_the_problem(cls):
    for spec in (*sweep(cls), PolicySpec("P", cls)):
        assert spec.depends_on_horizon
        policy = spec.policy(Channels(rounds=37), SEED)
        assert policy.horizon == 37
    (told,) = sweep(cls, horizon=10)
    assert not told.depends_on_horizon
    assert told.policy(Channels(rounds=37), SEED).horizon == 10


def test_policies_of_a_sweep_share_no_posterior():
    (spec,) = sweep(OClokUCB, posterior=SparsePosterior(RBF(1.0), 0.1, 5, seed=0))
    first, second = (spec.policy(Channels(rounds=5), SEED) for _ in range(2))
    first.observe([[0.5, 0.5, 0.5]], [1.0])
    assert len(second.posterior) == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"width": [1, 2]}, "no parameter 'width'"), ({"delta": []}, "list of delta is empty")],
)
def test_a_wrong_sweep_is_an_error(wrong, message):
    with pytest.raises(ExperimentError, match=message):
        sweep(OClokUCB, **wrong)


@pytest.mark.parametrize("make", [Random(seed=0), 7, lambda problem: None, Channels(rounds=1)])
def test_what_makes_no_policy_is_refused_at_once(make):
    with pytest.raises(ExperimentError, match=r"'P': make must be a policy class or a function of"):
        PolicySpec("P", make)


def test_keys_are_easy_to_type():
    assert as_key("SO'CLOK-UCB 10") == "soclok-ucb-10"
    assert as_key(" UCB (δ=0.05)") == "ucb-δ=0.05"


def test_parameters_are_shown_as_plain_values_or_text():
    assert [show(value) for value in (1, 0.5, None, True, "a", np.float64(2.0), Random)] == [
        *(1, 0.5, None, True, "a", 2.0, "Random")
    ]
    assert show(RBF(0.5)) == "RBF(length_scale=0.5)"


def test_a_parameter_that_is_passed_on_to_a_base_class_can_be_swept() -> None:
    specs = sweep(OClokUCB, condition_on_chosen=[False, True])
    assert [spec.label for spec in specs] == [
        "OClokUCB condition_on_chosen=False",
        "OClokUCB condition_on_chosen=True",
    ]
