"""An exploration rule of your own, compared with others on the paper's crowdsourcing problem.

Run it: python examples/own_rule.py
"""

from __future__ import annotations

import math

import pandas as pd
from sklearn.gaussian_process.kernels import RBF

from oclok import BayesUCB, OClokUCB
from oclok.bench.analysis import compare
from oclok.bench.problems import Crowdsourcing
from oclok.bench.simulation import simulate
from oclok.policies import UCBPolicy


class Cooling(UCBPolicy):
    """Add fewer standard deviations the longer it runs."""

    def width(self, t: int, arms: int) -> float:
        """Return 2 / √t, and half at least."""
        return max(2 / math.sqrt(t), 0.5)


def main(rounds: int = 60, repeats: int = 3) -> pd.DataFrame:
    """Return the paired comparison of three rules."""
    makers = {"O'CLOK-UCB": OClokUCB, "Bayes-UCB": BayesUCB, "Cooling": Cooling}
    table = pd.concat(
        simulate(make(RBF(1.0), 0.1), Crowdsourcing(rounds=rounds, seed=n), seed=n).assign(
            policy=label
        )
        for n in range(repeats)
        for label, make in makers.items()
    )
    result = compare(table, reference="O'CLOK-UCB")
    print(result.round(2).to_string())
    return result


if __name__ == "__main__":
    main()
