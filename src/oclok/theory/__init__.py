"""What the paper proves, as numbers: information gain, regret bounds and their rates."""

from __future__ import annotations

from oclok.theory.information import information_gain, max_information_gain
from oclok.theory.regret import linear_rate, matern_rate, rbf_rate, regret_bound

__all__ = [
    "information_gain",
    "linear_rate",
    "matern_rate",
    "max_information_gain",
    "rbf_rate",
    "regret_bound",
]
