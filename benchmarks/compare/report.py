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
        self._lines = lines
        self.problems = list(dict.fromkeys(line["problem"] for line in lines))
        self.players = list(dict.fromkeys(line["player"] for line in lines))
        self.players.sort(key=lambda player: (player != OURS, player in NO_PEERS))

    def best(self, player: str, problem: str) -> tuple[str, dict[int, Line]] | None:
        """Return the setting of the least share of random's regret, with its line for each seed.

        Settings may have played different seeds: those that were far behind are not continued.
        """
        settings = self._settings(player, problem)
        if not settings:
            return None
        return min(settings.items(), key=lambda item: self._share(item[1], problem))

    def share(self, player: str, problem: str) -> float:
        """Return the regret over random's on the same seeds; NaN if it was not played."""
        played = self.best(player, problem)
        return math.nan if played is None else self._share(played[1], problem)

    def _settings(self, player: str, problem: str) -> dict[str, dict[int, Line]]:
        found: dict[str, dict[int, Line]] = {}
        for line in self._lines:
            if line["player"] == player and line["problem"] == problem:
                found.setdefault(line["setting"], {})[line["seed"]] = line
        return found

    def _share(self, runs: dict[int, Line], problem: str) -> float:
        by_chance = self._settings(RANDOM, problem)[""]
        return _mean(runs) / _mean({seed: by_chance[seed] for seed in runs})

    def most_seeds(self, problem: str) -> int:
        """Return how many seeds were played by whoever played the most."""
        return len({line["seed"] for line in self._lines if line["problem"] == problem})

    def normalised(self, player: str) -> float:
        """Return the mean of the share over problems; NaN if one is missing."""
        return float(np.mean([self.share(player, problem) for problem in self.problems]))

    def best_peer(self, problem: str) -> tuple[str, str, dict[int, Line]]:
        """Return peer, setting and runs of the least share on `problem`."""
        peers = [p for p in self.players if p not in NO_PEERS and self.best(p, problem)]
        peer = min(peers, key=lambda p: self.share(p, problem))
        found = self.best(peer, problem)
        assert found is not None
        return peer, *found


def write(lines: list[Line], folder: Path) -> None:
    """Write `results.md` and `results.svg` to `folder`."""
    results = Results(lines)
    text = "\n".join([*_table(results), "", *_paired(results), ""])
    (folder / "results.md").write_text(text)
    print(text)
    _draw(results, folder / "results.svg")


def _table(results: Results) -> list[str]:
    head = ["", *results.problems, "mean share of random's", "CPU ms a round"]
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for player in results.players:
        cells, times = [], []
        for problem in results.problems:
            played = results.best(player, problem)
            cells.append("–" if played is None else _cell(played[1], results.most_seeds(problem)))
            if played is not None:
                times += [line["ms"] for line in played[1].values() if line["ms"] is not None]
        share = results.normalised(player)
        cells.append("–" if math.isnan(share) else f"{share:.4f}")
        cells.append(f"{np.median(times):.2g}" if times else "–")
        rows.append(f"| {player} | {' | '.join(cells)} |")
    return rows


def _cell(runs: dict[int, Line], seeds: int) -> str:
    """Return the mean regret, with the number of seeds where these are fewer than others have."""
    return _shown(_mean(runs)) + (f" ({len(runs)})" if len(runs) < seeds else "")


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
        mine, its = (_mean({seed: r[seed] for seed in seeds}) for r in (ours[1], runs))
        rows.append(
            f"| {problem} | {len(seeds)} | {_shown(mine)} | {peer}, {setting} "
            f"| {_shown(its)} | {difference.mean():+.3g} ± {_shown(half, 2)} | {mine / its:.2f} |"
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
        shares = [results.share(player, problem) for problem in results.problems]
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


def _shown(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, and no exponent."""
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def _mean(runs: dict[int, Line]) -> float:
    return float(np.mean([line["regret"] for line in runs.values()]))
