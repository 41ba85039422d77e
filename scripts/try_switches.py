"""Run the paper's simulations with each switch of its scripts, and write what came out.

    python scripts/try_switches.py

Rows that src/oclok/bench/report/switches.csv has are not made again: delete it to start over, which
takes about an hour on two cores. A draw is a seed and a repeat, as `oclok run` has them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from joblib import Parallel, delayed

from oclok.bench.experiments import EXPERIMENTS, Run, play
from oclok.bench.experiments.backends import keep_to_one_thread
from oclok.bench.experiments.published import ONE_DRAW, as_published, in_scripts
from oclok.bench.labels import ACC, CC, OCLOK, soclok
from oclok.bench.report.switches import ALL

TARGET = Path(__file__).resolve().parents[1] / "src" / "oclok" / "report" / "switches.csv"
KEY = ("experiment", "switches", "variant", "policy", "repeat")
SUMS = ("expected_reward", "best_expected_reward")


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        policies: these, on each of the
        variants: of the experiment.
        draws: seed and repeat of each draw, for all switches of the scripts together.
        but: switches to leave out of all, one at a time.
        alone: switches to turn on alone, for the first draws.
        draws_alone: how many of them.
        with_all: further policies, for all switches together only.
    """

    policies: list[str]
    draws: list[tuple[int, int]]
    alone: list[str]
    variants: tuple[str, ...] = ("",)
    but: tuple[str, ...] = ()
    draws_alone: int = 5
    with_all: tuple[str, ...] = ()

    def rows(self, name: str) -> Iterator[tuple[str, ...]]:
        """Yield the keys of all rows."""
        sets = {ALL: len(self.draws)}
        sets |= {f"{ALL} but {switch}": len(self.draws) for switch in self.but}
        sets |= dict.fromkeys(self.alone, self.draws_alone)
        for switches, count in sets.items():
            policies = [*self.policies, *(self.with_all if switches == ALL else ())]
            for variant, policy, repeat in product(self.variants, policies, range(count)):
                yield name, switches, variant, policy, str(repeat)


PLANS = {
    "crowdsourcing": Plan(
        [soclok(20), soclok(10), ACC, CC],
        [(0, repeat) for repeat in range(5)],
        ["jitter", "max-arms", "half-width", "uniform-points"],
    ),
    "codependency": Plan(
        [OCLOK, soclok(100), soclok(50), soclok(20)],
        [(0, repeat) for repeat in range(20)],
        ["jitter", "max-arms"],
        variants=("l=0.5", "l=1"),
        draws_alone=2,
    ),
    "movies": Plan(
        [soclok(4), ACC],
        [(seed, 0) for seed in range(10, 15)],
        [name for name in in_scripts(EXPERIMENTS["movies"]) if name != ONE_DRAW],
        but=("most-genres",),
        draws_alone=3,
        with_all=(soclok(2),),
    ),
}


def main() -> None:
    """Make the rows that are missing."""
    known = _read()
    wanted = [key for name, plan in PLANS.items() for key in plan.rows(name)]
    missing = [key for key in wanted if key not in known]
    runs = Parallel(n_jobs=-1, return_as="generator")(delayed(_sums)(*key) for key in missing)
    for key, sums in zip(missing, runs, strict=True):
        known[key] = sums
        print(*key, *sums, flush=True)
        _write([(*key, *known[key]) for key in wanted if key in known])


def _sums(name: str, switches: str, variant: str, policy: str, repeat: str) -> tuple[str, ...]:
    """Return the sums over one run, in digits."""
    keep_to_one_thread()
    experiment = EXPERIMENTS[name]
    names = [each for each in in_scripts(experiment) if each != ONE_DRAW]
    if switches.startswith(ALL):
        left_out = switches.removeprefix(ALL).removeprefix(" but ")
        experiment = as_published(experiment, [each for each in names if each != left_out])
    else:
        experiment = as_published(experiment, [switches])
    seed, draw = PLANS[name].draws[int(repeat)]
    settings = experiment.settings(seed=seed)
    table = play(experiment, settings, Run(variant, policy, settings.rounds, draw))
    return tuple(f"{table[column].sum():.3f}" for column in SUMS)


def _read() -> dict[tuple[str, ...], tuple[str, ...]]:
    if not TARGET.exists():
        return {}
    with TARGET.open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {tuple(row[k] for k in KEY): tuple(row[s] for s in SUMS) for row in rows}


def _write(rows: list[tuple[str, ...]]) -> None:
    with TARGET.open("w", encoding="utf8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([(*KEY, *SUMS), *rows])


if __name__ == "__main__":
    main()
