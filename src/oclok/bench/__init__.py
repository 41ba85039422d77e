"""Problems, simulation, experiments, figures and the paper: an extra beside the core."""

from oclok.bench.problems.base import Problem, Round
from oclok.bench.problems.channels import Channels
from oclok.bench.problems.codependency import Codependency
from oclok.bench.problems.crowdsourcing import Crowdsourcing
from oclok.bench.problems.drift import Drift
from oclok.bench.problems.groups import Groups
from oclok.bench.problems.movies import Movies
from oclok.bench.problems.table import Table
from oclok.bench.simulation import simulate

__all__ = [
    "Channels",
    "Codependency",
    "Crowdsourcing",
    "Drift",
    "Groups",
    "Movies",
    "Problem",
    "Round",
    "Table",
    "simulate",
]
