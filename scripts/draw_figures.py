"""Draw the figures of the README and the documentation into docs/figures.

    python scripts/draw_figures.py

One shows two decisions with their uncertainty, for light and for dark pages; the others are those
of docs/howto/figures.md, drawn by its own code.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.gaussian_process.kernels import RBF

from oclok import UCB
from oclok.oracles import TopK

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"
ROUNDS = (3, 15)
ARMS, CHOSEN, NOISE = 40, 3, 0.08


def f(x: np.ndarray) -> np.ndarray:
    """Return the truth that the policy does not know."""
    return 0.55 * np.exp(-60 * (x - 0.25) ** 2) + np.exp(-40 * (x - 0.72) ** 2)


def draw_decision(ink: str) -> Figure:
    """Draw what a policy believes and chooses early and late, in colours for one theme."""
    rng = np.random.default_rng(7)
    policy = UCB(0.3 * RBF(0.13), NOISE, TopK(CHOSEN), width=2.0)
    figure = Figure(figsize=(7, 3.4), layout="constrained", facecolor="none")
    panels = dict(zip(ROUNDS, figure.subplots(1, 2, sharey=True), strict=True))
    seen_x, seen_y = np.empty(0), np.empty(0)
    for t in range(1, max(ROUNDS) + 1):
        arms = rng.random((ARMS, 1))
        if t in panels:
            draw_belief(panels[t], policy, arms, (seen_x, seen_y), ink)
            title = f"Decision {t}: it explores" if t == min(ROUNDS) else f"Decision {t}: it knows"
            panels[t].set_title(title, color=ink, loc="left")
        decision = policy.select(arms)
        outcomes = f(decision.contexts[:, 0]) + NOISE * rng.normal(size=CHOSEN)
        policy.update(decision, outcomes)
        seen_x = np.append(seen_x, decision.contexts[:, 0])
        seen_y = np.append(seen_y, outcomes)
    handles, labels = panels[ROUNDS[0]].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3, frameon=False, labelcolor=ink
    )
    return figure


def draw_belief(
    axes: Axes, policy: UCB, arms: np.ndarray, seen: tuple[np.ndarray, np.ndarray], ink: str
) -> None:
    """Draw belief, outcomes so far, and the arms with those that are chosen next."""
    x = np.linspace(0, 1, 300)
    mean, std = policy.posterior.predict(x[:, None])
    axes.fill_between(
        x, mean - 2 * std, mean + 2 * std, color="#4C8BF5", alpha=0.22, lw=0, label="uncertainty"
    )
    axes.plot(x, mean, color="#4C8BF5", lw=2, label="expected outcome")
    axes.plot(x, f(x), color=ink, lw=1, ls=(0, (2, 3)), label="truth (unknown)")
    axes.plot(*seen, "x", color=ink, ms=5, label="outcomes so far")
    index = policy.index(arms)
    axes.plot(
        arms[:, 0], index, "o", mfc="none", mec="#8A8F98", ms=5, mew=0.9, label="arms on offer"
    )
    chosen = TopK(CHOSEN)(index)
    axes.plot(arms[chosen, 0], index[chosen], "o", color="#E8590C", ms=8, label="chosen next")
    axes.set_xlabel("features of an arm", color=ink)
    axes.set_yticks([])
    axes.set_xticks([])
    axes.set_ylim(-1.1, 1.6)
    axes.set_facecolor("none")
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(ink)


def draw_gallery() -> None:
    """Run the code of docs/howto/figures.md, and let it write into docs/figures."""
    page = (ROOT / "docs" / "howto" / "figures.md").read_text("utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page, re.S | re.M))
    exec(code.replace("Path(mkdtemp())", f"Path({str(FIGURES)!r})"), {})


def main() -> None:
    """Draw all of them."""
    with rc_context({"svg.hashsalt": "oclok", "font.size": 12, "svg.fonttype": "path"}):
        for name, ink in (("light", "#1f2328"), ("dark", "#e6edf3")):
            figure = draw_decision(ink)
            figure.savefig(
                FIGURES / f"decision-{name}.svg", metadata={"Date": None}, transparent=True
            )
    draw_gallery()


if __name__ == "__main__":
    main()
