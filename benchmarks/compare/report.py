"""Lines of results → a table, a figure and a summary.

Regret is normalised by that of choosing at random on the same rounds. A peer is shown with its
best setting for each problem, chosen after the fact; oclok has one setting for all of them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

OURS = "oclok"
RANDOM = "random"
#: Players of oclok that are shown, but are no peers.
NO_PEERS = (RANDOM, "OClokUCB", "BayesUCB", OURS, "oclok, Thompson")

Line = dict[str, Any]


class Results:
    """Results by player and problem."""

    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines = _complete(lines)
        self.problems = list(dict.fromkeys(line["problem"] for line in lines))
        self.players = list(dict.fromkeys(line["player"] for line in lines))
        self.players.sort(key=lambda player: (player != OURS, player in NO_PEERS))

    def best(self, player: str, problem: str) -> tuple[str, dict[int, Line]] | None:
        """Return the setting of least mean regret, with its line for each seed."""
        settings: dict[str, dict[int, Line]] = {}
        for line in self._lines:
            if line["player"] == player and line["problem"] == problem:
                settings.setdefault(line["setting"], {})[line["seed"]] = line
        if not settings:
            return None
        most = max(map(len, settings.values()))
        complete = {name: runs for name, runs in settings.items() if len(runs) == most}
        return min(complete.items(), key=lambda item: _mean(item[1]))

    def normalised(self, player: str) -> float:
        """Return the mean over problems of regret over random's; NaN if one is missing."""
        shares = []
        for problem in self.problems:
            played, by_chance = self.best(player, problem), self.best(RANDOM, problem)
            if played is None or by_chance is None:
                return math.nan
            shares.append(_mean(played[1]) / _mean(by_chance[1]))
        return float(np.mean(shares))

    def best_peer(self, problem: str) -> tuple[str, str, dict[int, Line]]:
        """Return peer, setting and runs of least regret on `problem`."""
        found = [(p, self.best(p, problem)) for p in self.players if p not in NO_PEERS]
        peer, (setting, runs) = min(
            ((p, best) for p, best in found if best is not None), key=lambda item: _mean(item[1][1])
        )
        return peer, setting, runs


def write(lines: list[Line], folder: Path) -> None:
    """Write `results.md` and `results.svg` to `folder`."""
    results = Results(lines)
    text = "\n".join([*_table(results), "", *_paired(results), ""])
    (folder / "results.md").write_text(text)
    print(text)
    _draw(results, folder / "results.svg")


def _complete(lines: list[Line]) -> list[Line]:
    """Return the lines of seeds that everybody has played, problem by problem."""
    kept: list[Line] = []
    for problem in dict.fromkeys(line["problem"] for line in lines):
        seeds: dict[tuple[str, str], set[int]] = {}
        mine = [line for line in lines if line["problem"] == problem]
        for line in mine:
            seeds.setdefault((line["player"], line["setting"]), set()).add(line["seed"])
        common = set.intersection(*seeds.values())
        kept += [line for line in mine if line["seed"] in common]
    return kept


def _table(results: Results) -> list[str]:
    head = ["", *results.problems, "mean share of random's", "ms a round"]
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for player in results.players:
        cells, times = [], []
        for problem in results.problems:
            played = results.best(player, problem)
            cells.append("–" if played is None else f"{_mean(played[1]):.3g}")
            if played is not None:
                times.append(np.median([line["ms"] for line in played[1].values()]))
        share = results.normalised(player)
        cells.append("–" if math.isnan(share) else f"{share:.4f}")
        rows.append(f"| {player} | {' | '.join(cells)} | {np.median(times):.2g} |")
    return rows


def _paired(results: Results) -> list[str]:
    rows = [
        "| problem | seeds | oclok | best peer, with its best setting | its regret "
        "| ours less its, 95% | ours over its |",
        "|---|---|---|---|---|---|---|",
    ]
    for problem in results.problems:
        ours = results.best(OURS, problem)
        if ours is None:
            continue
        peer, setting, runs = results.best_peer(problem)
        seeds = sorted(set(runs) & set(ours[1]))
        difference = np.array([ours[1][s]["regret"] - runs[s]["regret"] for s in seeds])
        half = _half_interval(difference)
        rows.append(
            f"| {problem} | {len(seeds)} | {_mean(ours[1]):.3g} | {peer}, {setting} "
            f"| {_mean(runs):.3g} | {difference.mean():+.3g} ± {half:.2g} "
            f"| {_mean(ours[1]) / _mean(runs):.2f} |"
        )
    return rows


def _half_interval(difference: np.ndarray) -> float:
    n = len(difference)
    if n < 2:
        return math.nan
    return float(student.ppf(0.975, n - 1) * difference.std(ddof=1) / math.sqrt(n))


def _draw(results: Results, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    styles = {OURS: {"color": "black", "marker": "D", "zorder": 3, "markersize": 8}}
    for player in results.players:
        if player == RANDOM:
            continue
        shares = []
        for problem in results.problems:
            played, by_chance = results.best(player, problem), results.best(RANDOM, problem)
            missing = played is None or by_chance is None
            shares.append(math.nan if missing else _mean(played[1]) / _mean(by_chance[1]))
        style = styles.get(player, {"marker": "o", "markersize": 5, "alpha": 0.8})
        axes.plot(shares, range(len(shares)), linestyle="", label=player, **style)
    axes.set_yticks(range(len(results.problems)), results.problems)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("regret over that of choosing at random (best setting of each peer)")
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside right center", frameon=False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _mean(runs: dict[int, Line]) -> float:
    return float(np.mean([line["regret"] for line in runs.values()]))
