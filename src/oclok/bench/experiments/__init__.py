"""Experiments: the paper's simulations, declared, and what runs them.

Needs `oclok[bench]`; nothing that decides super arms imports it.
"""

from __future__ import annotations

from oclok.extras import needs

with needs("bench"):
    from oclok.bench.experiments.base import Experiment, Run, Settings
    from oclok.bench.experiments.comparisons import COMPARISON, DRIFT, table_experiment
    from oclok.bench.experiments.folder import ResultsFolder
    from oclok.bench.experiments.loading import find_experiment
    from oclok.bench.experiments.runner import Progress, play, run
    from oclok.bench.experiments.simulations import PAPER
    from oclok.bench.experiments.specs import PolicySpec, sweep

__all__ = [
    "EXPERIMENTS",
    "PAPER",
    "Experiment",
    "PolicySpec",
    "Progress",
    "ResultsFolder",
    "Run",
    "Settings",
    "find_experiment",
    "play",
    "run",
    "sweep",
    "table_experiment",
]

#: All experiments, by name. Another one is another `Experiment` here.
EXPERIMENTS = {experiment.name: experiment for experiment in (*PAPER, COMPARISON, DRIFT)}
