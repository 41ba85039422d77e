"""Every policy on every problem, on the same seeds: which to use when.

GP policies start with the paper's RBF(1). Those named "refit" learn lengthscale and noise as
they go; those named "right kernel" are told the one that f was drawn from, where there is one.
"""
# Tested in tests/bench/experiments/test_simulations.py: it is one of the experiments.

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from oclok.bench.experiments.base import Experiment
from oclok.bench.experiments.simulations import BERNOULLI_STD, acc_ucb, cc_mab, random
from oclok.bench.experiments.specs import PolicySpec
from oclok.bench.labels import ACC, CC, OCLOK, RANDOM
from oclok.bench.problems import Channels, Codependency, Crowdsourcing, Drift, Movies, Problem
from oclok.policies import (
    CUCB,
    BayesUCB,
    Discount,
    GPPolicy,
    OClokUCB,
    Policy,
    ThompsonSampling,
    Window,
)

REFIT_EVERY = 50


def gp_policy(
    problem: Problem,
    seed: np.random.SeedSequence,
    *,
    cls: type[GPPolicy],
    right_kernel: bool = False,
    **arguments: Any,
) -> Policy:
    """Make a GP policy of class `cls` with the noise of the problem."""
    from sklearn.gaussian_process.kernels import RBF

    noise_std = BERNOULLI_STD if isinstance(problem, Movies) else 0.1
    lengthscale = getattr(problem, "lengthscale", 1.0) if right_kernel else 1.0
    if cls is ThompsonSampling:
        arguments["seed"] = seed
    return cls(RBF(lengthscale), noise_std, **arguments)


def cucb(problem: Problem, seed: np.random.SeedSequence) -> Policy:
    """Make CUCB with as many cells a side as CC-MAB has at the paper's horizons."""
    return CUCB(problem.dimension, cells=3, seed=seed)


def movies(rounds: int, seed: np.random.SeedSequence) -> Movies:
    """Make Simulation III with the exact oracle."""
    return Movies(rounds, seed, oracle="exact")


def _gp(label: str, cls: type[GPPolicy], **arguments: Any) -> PolicySpec:
    return PolicySpec(label, partial(gp_policy, cls=cls, **arguments))


COMPARISON = Experiment(
    name="policies",
    title="Every policy on every problem",
    variants={
        "crowdsourcing": Crowdsourcing,
        **{f"l={x:g}": partial(Codependency, lengthscale=x) for x in (0.1, 0.5, 1)},
        "movies": movies,
        "channels": Channels,
    },
    policies=[
        _gp(OCLOK, OClokUCB),
        _gp(f"{OCLOK} conditioned", OClokUCB, condition_on_chosen=True),
        _gp("Bayes-UCB", BayesUCB),
        _gp("Bayes-UCB right kernel", BayesUCB, right_kernel=True),
        _gp("Bayes-UCB refit", BayesUCB, refit_every=REFIT_EVERY),
        _gp("Thompson", ThompsonSampling),
        _gp("Thompson right kernel", ThompsonSampling, right_kernel=True),
        _gp("Thompson refit", ThompsonSampling, refit_every=REFIT_EVERY),
        PolicySpec(ACC, acc_ucb, depends_on_horizon=True),
        PolicySpec(CC, cc_mab, depends_on_horizon=True),
        PolicySpec("CUCB", cucb),
        PolicySpec(RANDOM, random),
    ],
    rounds=300,
    repeats=10,
    shares_problem=True,
)

DRIFT = Experiment(
    name="drift",
    title="A world that moves: f is another sample from halfway on",
    variants={"": Drift},
    policies=[
        _gp(OCLOK, OClokUCB),
        _gp("Bayes-UCB", BayesUCB, right_kernel=True),
        _gp("Bayes-UCB discount", BayesUCB, right_kernel=True, forget=Discount(0.95)),
        _gp("Bayes-UCB window", BayesUCB, right_kernel=True, forget=Window(200)),
        _gp("Thompson discount", ThompsonSampling, right_kernel=True, forget=Discount(0.95)),
    ],
    rounds=200,
    shares_problem=True,
)
