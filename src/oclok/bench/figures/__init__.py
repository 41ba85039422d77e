"""Tables of rounds → figures: those of the paper, of any experiment, of any simulation."""

from oclok.extras import needs

with needs("bench"):
    from oclok.bench.figures.curves import (
        average_reward,
        calibration,
        coverage,
        cumulative_regret,
        paired_regret,
        regret_and_bounds,
        time_per_round,
    )
    from oclok.bench.figures.panels import save

__all__ = [
    "average_reward",
    "calibration",
    "coverage",
    "cumulative_regret",
    "paired_regret",
    "regret_and_bounds",
    "save",
    "time_per_round",
]
