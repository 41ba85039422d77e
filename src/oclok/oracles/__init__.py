"""Which super arms are feasible, what they are worth, and solvers that find the best one."""

from oclok.oracles.arguments import oracle_from_json
from oclok.oracles.base import Oracle, Solution, SumOracle
from oclok.oracles.coverage import Coverage
from oclok.oracles.influence import TIMPlus
from oclok.oracles.knapsack import Knapsack
from oclok.oracles.matching import Matching
from oclok.oracles.paths import Path
from oclok.oracles.program import Program
from oclok.oracles.subsets import Partition, TopK

__all__ = [
    "Coverage",
    "Knapsack",
    "Matching",
    "Oracle",
    "Partition",
    "Path",
    "Program",
    "Solution",
    "SumOracle",
    "TIMPlus",
    "TopK",
    "oracle_from_json",
]
