"""Experiments: the paper's simulations, declared, and what runs them.

Needs `oclok[experiments]`; nothing that decides super arms imports it.
"""

from __future__ import annotations

from oclok.experiments.base import Experiment, PolicySpec, Run, Settings
from oclok.experiments.comparison import COMPARISON, DRIFT
from oclok.experiments.folder import ResultsFolder
from oclok.experiments.runner import Progress, play, run
from oclok.experiments.simulations import PAPER

__all__ = [
    "EXPERIMENTS",
    "PAPER",
    "Experiment",
    "PolicySpec",
    "Progress",
    "ResultsFolder",
    "Run",
    "Settings",
    "play",
    "run",
]

#: All experiments, by name. Another one is another `Experiment` here.
EXPERIMENTS = {experiment.name: experiment for experiment in (*PAPER, COMPARISON, DRIFT)}
