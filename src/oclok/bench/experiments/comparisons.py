"""Which policy to use when: every policy on every problem, in a world that moves, on your own data.

GP policies start with the paper's RBF(1). Those named "refit" learn lengthscale and noise as they
go; those named "right kernel" have the one that f was drawn from, where there is one.

On your own data, each repeat plays the rounds of the table in an order of its own. Features are
scaled to [0, 1]. Outcomes may have any scale: UCB learns it, with kernel and noise; the priors of
the other policies have the mean and standard deviation of the column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from oclok import bench, policies
from oclok.bench.experiments.base import Experiment
from oclok.bench.experiments.simulations import BERNOULLI_STD
from oclok.bench.experiments.specs import PolicySpec, sweep
from oclok.bench.labels import ACC, CC, OCLOK, RANDOM
from oclok.errors import ExperimentError
from oclok.policies import BayesUCB, GPPolicy, OClokUCB, Policy, ThompsonSampling

REFIT_EVERY = 50
DISCOUNT = policies.Discount(0.95)
#: What the features leave unexplained, as a share of the standard deviation of the outcomes.
NOISE_SHARE = 0.3
LENGTHSCALE = 0.3
#: ACC-UCB splits a cell into 2^D: with more features than this it is left out.
MOST_SPLIT = 8


def gp_policy(
    problem: bench.Problem,
    seed: np.random.SeedSequence,
    *,
    cls: type[GPPolicy],
    right_kernel: bool = False,
    **arguments: Any,
) -> Policy:
    """Make a GP policy of class `cls` with the noise of the problem."""
    from sklearn.gaussian_process.kernels import RBF

    noise_std = BERNOULLI_STD if isinstance(problem, bench.Movies) else 0.1
    lengthscale = getattr(problem, "lengthscale", 1.0) if right_kernel else 1.0
    if cls is ThompsonSampling:
        arguments["seed"] = seed
    return cls(RBF(lengthscale), noise_std, **arguments)


def _gp(label: str, cls: type[GPPolicy], **arguments: Any) -> PolicySpec:
    return PolicySpec(label, partial(gp_policy, cls=cls, **arguments))


COMPARISON = Experiment(
    name="policies",
    title="Every policy on every problem",
    variants={
        "crowdsourcing": bench.Crowdsourcing,
        **{f"l={x:g}": partial(bench.Codependency, lengthscale=x) for x in (0.1, 0.5, 1)},
        "movies": partial(bench.Movies, oracle="exact"),
        "channels": bench.Channels,
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
        *sweep(policies.ACCUCB, label=ACC),
        *sweep(policies.CCMAB, label=CC),
        *sweep(policies.CUCB, label="CUCB", cells=3),  # CC-MAB has as many a side
        *sweep(policies.Random, label=RANDOM),
    ],
    rounds=300,
    repeats=10,
    shares_problem=True,
)

DRIFT = Experiment(
    name="drift",
    title="A world that moves: f is another sample from halfway on",
    variants={"": bench.Drift},
    policies=[
        _gp(OCLOK, OClokUCB),
        _gp("Bayes-UCB", BayesUCB, right_kernel=True),
        _gp("Bayes-UCB discount", BayesUCB, right_kernel=True, forget=DISCOUNT),
        _gp("Bayes-UCB window", BayesUCB, right_kernel=True, forget=policies.Window(200)),
        _gp("Thompson discount", ThompsonSampling, right_kernel=True, forget=DISCOUNT),
    ],
    rounds=200,
    shares_problem=True,
)


def table_experiment(
    data: str | Path | None,
    k: int | None,
    round_column: str,
    outcome_column: str,
    features: Sequence[str] = (),
) -> Experiment:
    """Return the experiment that compares all policies on a CSV or Parquet file.

    It has one row per arm and round; `k` arms are picked in each. `features` are the columns that
    are features; all but the other two if there are none.
    """
    if data is None or k is None:
        raise ExperimentError("table needs a file and a number: --data my.csv --k 5")
    columns: dict[str, Any] = {"round": round_column, "outcome": outcome_column}
    if features:
        columns["features"] = tuple(features)
    problem = bench.Table.from_file(data, k=k, **columns)
    return Experiment(
        name="table",
        title=f"Policies on {Path(data).name}",
        variants={"": partial(_table, k=k, columns=columns)},
        policies=_policies(problem),
        rounds=len(problem),
        options={"data": str(Path(data).resolve())},
    )


def _table(
    rounds: int, seed: np.random.SeedSequence, data: str, k: int, columns: Mapping[str, Any]
) -> bench.Problem:
    return bench.Table.from_file(data, **columns, k=k, rounds=rounds, seed=seed).scaled()


def _policies(problem: bench.Table) -> list[PolicySpec]:
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    from sklearn.linear_model import Ridge

    means = np.concatenate([current.means for current in problem])
    scale = float(means.std()) or 1.0
    size = float(np.sqrt(np.mean(means**2))) or 1.0
    noise_std = NOISE_SHARE * scale
    kernel = ConstantKernel(size**2) + ConstantKernel(scale**2) * RBF(LENGTHSCALE)
    gp = {"kernel": kernel, "noise_std": noise_std}
    linear: dict[str, Any] = {"noise_std": noise_std, "prior_std": size}
    return [
        *sweep(policies.UCB, label="UCB"),
        *sweep(OClokUCB, label=OCLOK, **gp),
        *sweep(BayesUCB, label="Bayes-UCB", **gp),
        *sweep(BayesUCB, label="Bayes-UCB refit", refit_every=REFIT_EVERY, **gp),
        *sweep(ThompsonSampling, label="Thompson", **gp),
        *sweep(policies.C2UCB, label="C2UCB", width=scale),
        *sweep(policies.LinearThompson, label="Linear Thompson", **linear),
        *sweep(policies.EpsilonGreedy, label="ε-greedy ridge", regressor=Ridge()),
        *(sweep(policies.ACCUCB, label=ACC) if problem.dimension <= MOST_SPLIT else []),
        *sweep(policies.CCMAB, label=CC),
        *sweep(policies.Random, label=RANDOM),
    ]
