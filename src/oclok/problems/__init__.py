"""Problems: seeded sequences of simulated rounds. One problem a file."""

from __future__ import annotations

from oclok.problems.base import Problem, Round
from oclok.problems.channels import Channels
from oclok.problems.codependency import Codependency
from oclok.problems.crowdsourcing import Crowdsourcing
from oclok.problems.drift import Drift
from oclok.problems.groups import Groups
from oclok.problems.movies import Movies
from oclok.problems.table import Table

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
]
