"""What the switches of the published scripts do to a claim, told from runs that are kept.

`scripts/try_switches.py` makes the runs and writes `switches.csv`, with one row per run:

| column                                   | meaning                                          |
|------------------------------------------|--------------------------------------------------|
| experiment, variant, policy              | as in all results                                |
| switches                                 | what was on: one, or "all" in the scripts        |
| repeat                                   | which draw of the rounds                         |
| expected_reward, best_expected_reward    | of the policy and of the benchmark, over a run   |
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import pandas as pd

from oclok.bench.analysis.scores import Scores
from oclok.bench.report.verdicts import Claim, judge

#: What the column `switches` says of those that are in the scripts, all on.
ALL = "all"


def tried(claim: Claim, experiment: str) -> str:
    """Return with which switches the claim held, did not, or could not be told; empty if none."""
    found: dict[str, list[str]] = {}
    for switches, scores in _runs(experiment).items():
        verdict = judge(claim, scores)
        if verdict.is_measured:
            name = "all of the scripts together" if switches == ALL else switches
            draws = f"{scores.draws} draw{'s' if scores.draws > 1 else ''}"
            found.setdefault(verdict.word, []).append(f"{name} ({draws})")
    parts = [f"{word} with {', '.join(names)}" for word, names in sorted(found.items())]
    return f"Switches that were tried: {'; '.join(parts)}." if parts else ""


@lru_cache
def _runs(experiment: str) -> dict[str, Scores]:
    """Return the runs of an experiment by what was on, in the order of the file."""
    runs = _table()
    runs = runs[runs["experiment"] == experiment]
    return {str(name): Scores(part) for name, part in runs.groupby("switches", sort=False)}


@lru_cache
def _table() -> pd.DataFrame:
    """Return all runs as a table in which each has a single round."""
    with (files("oclok.bench.report") / "switches.csv").open(encoding="utf8") as file:
        runs = pd.read_csv(file, keep_default_na=False)
    regret = runs["best_expected_reward"] - runs["expected_reward"]
    return runs.assign(regret=regret, horizon=1, round=1)
