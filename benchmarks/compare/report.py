"""Lines of results → tables and a figure.

Regret is normalised by that of choosing at random on the same rounds. A peer is shown with
the one setting that has the least mean share over a suite, and with its best setting for each
problem, chosen after the fact; oclok has one setting for everything.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.compare.problems import PROBLEMS
from benchmarks.compare.tables import HELD_OUT, REDRAWN, TABLES

OURS = "oclok"
RANDOM = "random"
#: Players of oclok that are shown, but are no peers.
NO_PEERS = (RANDOM, "OClokUCB", "BayesUCB", OURS)

Line = dict[str, Any]
Runs = dict[int, Line]


class Results:
    """Results on a suite by player, setting and problem."""

    def __init__(self, lines: list[Line], problems: list[str]) -> None:
        self._runs: dict[tuple[str, str, str], Runs] = {}
        for line in lines:
            key = line["player"], line["setting"], line["problem"]
            self._runs.setdefault(key, {})[line["seed"]] = line
        played = {line["problem"] for line in lines}
        self.problems = [name for name in problems if name in played]
        players = dict.fromkeys(line["player"] for line in lines if line["problem"] in problems)
        self.players = sorted(players, key=lambda player: (player != OURS, player in NO_PEERS))

    def runs(self, player: str, setting: str, problem: str) -> Runs:
        """Return the runs by seed; empty if there are none."""
        return self._runs.get((player, setting, problem), {})

    def share(self, runs: Runs, problem: str, what: str = "regret") -> float:
        """Return the regret over random's on the same seeds; NaN if it was not played."""
        by_chance = self.runs(RANDOM, "", problem)
        seeds = [seed for seed in runs if seed in by_chance]
        if not seeds:
            return math.nan
        return _mean(runs, what, seeds) / _mean(by_chance, what, seeds)

    def settings(self, player: str) -> list[str]:
        """Return the settings of a player on this suite."""
        return list(
            dict.fromkeys(
                s for p, s, problem in self._runs if p == player and problem in self.problems
            )
        )

    def one_setting(self, player: str) -> str:
        """Return the setting with the least mean share over the problems."""

        def mean_share(setting: str) -> float:
            return float(
                np.mean([self.share(self.runs(player, setting, p), p) for p in self.problems])
            )

        settings = self.settings(player)
        whole = [s for s in settings if not math.isnan(mean_share(s))]
        return min(whole or settings, key=mean_share)

    def best(self, player: str, problem: str) -> tuple[str, Runs]:
        """Return the setting of the least share on a problem, and its runs."""
        played = [(s, r) for s in self.settings(player) if (r := self.runs(player, s, problem))]
        return min(played, key=lambda pair: self.share(pair[1], problem), default=("", {}))

    def best_peer(self, problem: str) -> tuple[str, str, Runs]:
        """Return peer, setting and runs of the least share on `problem`."""
        found = [(p, *self.best(p, problem)) for p in self.players if p not in NO_PEERS]
        return min((f for f in found if f[2]), key=lambda f: self.share(f[2], problem))


def write(lines: list[Line], folder: Path) -> None:
    """Write `results.md` and `results.svg` to `folder`."""
    text = ["# Regret over that of choosing at random\n"]
    redrawn = [name for name in TABLES if name.endswith(REDRAWN)]
    suites = {
        "Tables": [name for name in TABLES if name not in redrawn + HELD_OUT],
        "Tables whose regret nothing was chosen by": HELD_OUT,
        "Outcomes redrawn": redrawn,
        "Problems": list(PROBLEMS),
    }
    shown = {title: Results(lines, problems) for title, problems in suites.items()}
    for title, results in shown.items():
        if results.problems:
            by_chance = [results.runs(RANDOM, "", problem) for problem in results.problems]
            seeds = sorted(set().union(*by_chance))
            text += [
                f"## {title}\n",
                f"Seeds {', '.join(map(str, seeds))}.\n",
                *_shares(results),
                "",
                *_paired(results),
                "",
            ]
    (folder / "results.md").write_text("\n".join(text))
    print("\n".join(text))
    played = {title: results for title, results in shown.items() if results.problems}
    _draw(played, folder / "results.svg")


def _shares(results: Results) -> list[str]:
    head = ["", *results.problems, "mean", "geometric mean", "second half", "CPU ms per round"]
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for player in results.players:
        if player == RANDOM:
            continue
        setting = results.one_setting(player)
        chosen = [results.runs(player, setting, p) for p in results.problems]
        label = f"**{player}**" if player == OURS else f"{player}, {setting}"
        rows.append(_row(label, chosen, results))
        if len(results.settings(player)) > 1:
            chosen = [results.best(player, p)[1] for p in results.problems]
            rows.append(_row(f"{player}, best of each", chosen, results))
    return rows


def _row(label: str, chosen: list[Runs], results: Results) -> str:
    pairs = list(zip(chosen, results.problems, strict=True))
    shares = np.array([results.share(runs, problem) for runs, problem in pairs])
    late = np.array([results.share(runs, problem, "late") for runs, problem in pairs])
    times = [line["ms"] for runs in chosen for line in runs.values() if line["ms"] is not None]
    geometric = np.exp(np.log(np.maximum(shares, 1e-9)).mean())
    cells = [*shares, shares.mean(), geometric, late.mean()]
    shown = ["–" if math.isnan(cell) else f"{cell:.3f}" for cell in cells]
    cpu = f"{np.median(times):.2g}" if times else "–"
    return f"| {label} | {' | '.join(shown)} | {cpu} |"


def _paired(results: Results) -> list[str]:
    rows = [
        "| | seeds | oclok | best peer, with its best setting | its regret | ours less its, 95% "
        "| ours over its | second half | in 95% band | ms: median, first, max |",
        "|" + "---|" * 10,
    ]
    for problem in results.problems:
        ours = results.best(OURS, problem)[1]
        if not ours:
            continue
        peer, setting, runs = results.best_peer(problem)
        seeds = sorted(set(runs) & set(ours))
        difference = np.array([ours[s]["regret"] - runs[s]["regret"] for s in seeds])
        mine, its = (_mean(r, "regret", seeds) for r in (ours, runs))
        late = _mean(ours, "late", seeds) / max(_mean(runs, "late", seeds), 1e-9)
        bands = [line["coverage"] for line in ours.values() if "coverage" in line]
        times = [
            np.median([line.get(name) or math.nan for line in ours.values()])
            for name in ("ms", "ms_first", "ms_max")
        ]
        rows.append(
            f"| {problem} | {len(seeds)} | {_shown(mine)} | {peer}, {setting} | {_shown(its)} "
            f"| {difference.mean():+.3g} ± {_shown(_half_interval(difference), 2)} "
            f"| {mine / its:.2f} | {late:.2f} | {f'{np.mean(bands):.3f}' if bands else '–'} "
            f"| {', '.join(f'{ms:.2g}' for ms in times)} |"
        )
    return rows


def _half_interval(difference: np.ndarray) -> float:
    n = len(difference)
    if n < 2:
        return math.nan
    return float(student.ppf(0.975, n - 1) * difference.std(ddof=1) / math.sqrt(n))


def _draw(suites: dict[str, Results], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    heights = [len(results.problems) for results in suites.values()]
    figure, panels = plt.subplots(
        len(suites),
        figsize=(9, 1.2 + 0.3 * sum(heights)),
        layout="constrained",
        sharex=True,
        squeeze=False,
        gridspec_kw={"height_ratios": heights},
    )
    names = dict.fromkeys(name for results in suites.values() for name in results.players)
    players = [name for name in names if name != RANDOM]
    for axes, (title, results) in zip(panels.ravel(), suites.items(), strict=True):
        axes.set_title(title, loc="left", fontsize="medium")
        for number, player in enumerate(players):
            shares = [results.share(results.best(player, p)[1], p) for p in results.problems]
            style: dict[str, Any] = {"marker": "o", "markersize": 5, "alpha": 0.8}
            style["color"] = plt.colormaps["tab20"](number)
            if player == OURS:
                style = {"color": "black", "marker": "D", "zorder": 3, "markersize": 8}
            axes.plot(shares, range(len(shares)), linestyle="", label=player, **style)
        axes.set_yticks(range(len(results.problems)), results.problems)
        axes.set_ylim(len(results.problems) - 0.5, -0.5)
        axes.set_xscale("log")
        axes.grid(axis="y", alpha=0.3)
    axes.set_xlabel("regret over that of choosing at random (best setting of each peer)")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center", frameon=False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _shown(value: float, digits: int = 3) -> str:
    """Return a number with this many digits and no exponent."""
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def _mean(runs: Runs, what: str, seeds: list[int]) -> float:
    return float(np.mean([runs[seed][what] for seed in seeds]))
