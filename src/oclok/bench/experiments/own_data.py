"""Your own data as an experiment: all policies on a table that has the outcome of every arm.

Each repeat plays the rounds of the table in an order of its own. Features are scaled to [0, 1].
Outcomes may have any scale: UCB learns it, with kernel and noise; the priors of the other
policies are given the mean and standard deviation of the column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import Ridge

from oclok.bench.experiments.base import Experiment
from oclok.bench.experiments.specs import PolicySpec, sweep
from oclok.bench.labels import ACC, CC, OCLOK, RANDOM
from oclok.bench.problems import Problem, Table
from oclok.errors import ExperimentError
from oclok.policies import (
    ACCUCB,
    C2UCB,
    CCMAB,
    UCB,
    BayesUCB,
    EpsilonGreedy,
    LinearThompson,
    OClokUCB,
    Random,
    ThompsonSampling,
)

#: What the features leave unexplained, as a share of the standard deviation of the outcomes.
NOISE_SHARE = 0.3
LENGTHSCALE = 0.3
REFIT_EVERY = 50
#: ACC-UCB splits a cell into 2^D: with more features than this it is left out.
MOST_SPLIT = 8


def table_experiment(
    data: str | Path | None,
    k: int | None,
    round_column: str,
    outcome_column: str,
    features: Sequence[str] = (),
) -> Experiment:
    """Return the experiment that compares all policies on a CSV or Parquet file.

    Args:
        data: the file; one row per arm and round.
        k: how many arms are picked in a round.
        round_column: says which round a row belongs to.
        outcome_column: has the outcomes.
        features: columns that are features; all others if there are none.
    """
    if data is None or k is None:
        raise ExperimentError("table needs a file and a number: --data my.csv --k 5")
    columns: dict[str, Any] = {"round": round_column, "outcome": outcome_column}
    if features:
        columns["features"] = tuple(features)
    problem = Table.from_file(data, k=k, **columns)
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
) -> Problem:
    return Table.from_file(data, **columns, k=k, rounds=rounds, seed=seed).scaled()


def _policies(problem: Table) -> list[PolicySpec]:
    means = np.concatenate([current.means for current in problem])
    scale = float(means.std()) or 1.0
    size = float(np.sqrt(np.mean(means**2))) or 1.0
    noise_std = NOISE_SHARE * scale
    kernel = ConstantKernel(size**2) + ConstantKernel(scale**2) * RBF(LENGTHSCALE)
    gp = {"kernel": kernel, "noise_std": noise_std}
    specs = [
        *sweep(UCB, label="UCB"),
        *sweep(OClokUCB, label=OCLOK, **gp),
        *sweep(BayesUCB, label="Bayes-UCB", **gp),
        *sweep(BayesUCB, label="Bayes-UCB refit", refit_every=REFIT_EVERY, **gp),
        *sweep(ThompsonSampling, label="Thompson", **gp),
        *sweep(C2UCB, label="C2UCB", width=scale),
        *sweep(LinearThompson, label="Linear Thompson", noise_std=noise_std, prior_std=size),
        *sweep(EpsilonGreedy, label="ε-greedy ridge", regressor=Ridge()),
        *sweep(CCMAB, label=CC),
        *sweep(Random, label=RANDOM),
    ]
    if problem.dimension <= MOST_SPLIT:
        specs[-2:-2] = sweep(ACCUCB, label=ACC)
    return specs
