"""The picture: what 250 rounds of Simulation I take, with ours and other libraries."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from benchmarks.report import Result, shown


def draw(result: Result, folder: Path) -> None:
    """Write results.png and results.svg of the benchmark `simulation`."""
    rows = sorted(result.rows, key=lambda row: row["total, s"])
    names = [row["posterior"] for row in rows]
    last = [column for column in rows[0] if column.startswith("t = ")][-1]
    columns = {"total, s": "all rounds, seconds", last: f"one round at {last}"}
    mpl.rcParams["svg.hashsalt"] = "oclok"
    figure, axes = plt.subplots(1, 2, figsize=(10, 0.42 * len(rows) + 1.2), sharey=True)
    for ax, (column, label) in zip(axes, columns.items(), strict=True):
        values = [row[column] for row in rows]
        colors = ["#0b6e99" if name.startswith("oclok") else "#b8b8b8" for name in names]
        bars = ax.barh(names, values, color=colors)
        ax.bar_label(bars, [shown(value) for value in values], padding=3, fontsize=8)
        ax.set_xscale("log")
        ax.set_xlim(min(values) / 2, max(values) * 6)
        ax.set_xlabel(label)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].invert_yaxis()
    figure.suptitle(result.title, fontsize=11)
    figure.tight_layout()
    figure.savefig(folder / "results.png", dpi=150)
    figure.savefig(folder / "results.svg", metadata={"Date": None})
    plt.close(figure)
