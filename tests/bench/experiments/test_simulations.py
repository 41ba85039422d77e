from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok.bench.experiments import EXPERIMENTS
from oclok.bench.experiments.base import seeds
from oclok.bench.experiments.simulations import PAPER


def labels(*inducing):
    return [f"SO'CLOK-UCB {s}" for s in inducing]


def policy_of(name, label):
    experiment = EXPERIMENTS[name]
    settings = experiment.settings()
    variant = next(iter(experiment.variants))
    problem = experiment.problem(settings, variant, settings.rounds, repeat=0)
    return experiment.policy(label).make(problem, seeds(settings, 0)[2])


@pytest.mark.parametrize(
    ("name", "rounds", "policies"),
    [
        ("crowdsourcing", 250, ["O'CLOK-UCB", *labels(100, 50, 20, 10), "ACC-UCB", "CC-MAB"]),
        ("codependency", 300, ["O'CLOK-UCB", *labels(100, 50, 20), "ACC-UCB", "CC-MAB"]),
        ("movies", 400, ["O'CLOK-UCB", *labels(4, 2, 1), "ACC-UCB"]),
    ],
)
def test_rounds_repeats_and_policies_are_those_of_the_paper(name, rounds, policies):
    settings = EXPERIMENTS[name].settings()
    assert (settings.rounds, settings.repeats) == (rounds, 5)
    assert list(settings.policies) == policies


def test_horizons_are_those_of_the_paper():
    def horizons(name):
        experiment = EXPERIMENTS[name]
        return experiment.horizons_of(experiment.policy("ACC-UCB"), experiment.settings())

    assert horizons("crowdsourcing") == np.linspace(10, 250, 20).round().astype(int).tolist()
    assert horizons("codependency") == list(range(10, 301, 10))
    assert horizons("movies") == [400]


def test_codependency_has_the_lengthscales_of_the_paper():
    experiment = EXPERIMENTS["codependency"]
    problems = [make(rounds=1, seed=0) for make in experiment.variants.values()]
    assert [problem.lengthscale for problem in problems] == [0.01, 0.05, 0.1, 0.5, 1]
    assert list(experiment.variants) == ["l=0.01", "l=0.05", "l=0.1", "l=0.5", "l=1"]


@pytest.mark.parametrize(
    ("name", "v1", "children"), [("channels", math.sqrt(3), 8), ("movies", 1, 2)]
)
def test_acc_ucb_has_the_constants_of_the_paper(name, v1, children):
    policy = policy_of(name, "ACC-UCB")
    assert (policy.v1, policy.v2, policy.rho, policy.children) == (v1, 1, 0.5, children)
    assert policy.horizon == EXPERIMENTS[name].rounds


def test_cc_mab_has_three_cells_a_side():
    assert policy_of("crowdsourcing", "CC-MAB").cells == 3


@pytest.mark.parametrize(
    ("name", "label", "noise_std"),
    [
        ("crowdsourcing", "O'CLOK-UCB", 0.1),
        ("crowdsourcing", "SO'CLOK-UCB 10", 0.1),
        ("movies", "SO'CLOK-UCB 2", 0.5),
    ],
)
def test_gaussian_processes_are_those_of_the_paper(name, label, noise_std):
    policy = policy_of(name, label)
    assert policy.posterior.kernel == RBF(1.0)
    assert policy.posterior.noise_std == noise_std
    assert policy.delta == 0.05


def test_what_is_not_in_the_paper_says_so():
    experiment = EXPERIMENTS["movies"]
    assert "not in the paper" in experiment.notes(experiment.settings())["O'CLOK-UCB"]
    assert experiment.notes(experiment.settings(policies=["acc-ucb"])) == {}


def test_movies_are_solved_exactly_unless_asked_otherwise():
    experiment = EXPERIMENTS["movies"]
    for chosen, alpha in [(None, 1.0), ("tim+", 1 - 1 / math.e - 0.1)]:
        problem = experiment.problem(experiment.settings(oracle=chosen), "", 1, 0)
        assert next(iter(problem)).oracle.alpha == pytest.approx(alpha)


def test_every_simulation_of_the_paper_can_be_run_by_its_name():
    assert {each.name for each in PAPER} <= set(EXPERIMENTS)
