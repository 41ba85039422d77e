"""Tables on the command line: results of an experiment, experiments and policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from rich.table import Column, Table

from oclok.bench.analysis import compare, summarise
from oclok.bench.analysis.tables import records, show_number, show_probability, show_time
from oclok.bench.experiments import Experiment


def summary_table(
    results: pd.DataFrame, title: str, policy_notes: Mapping[str, str] | None = None
) -> Table:
    """Return the summary of an experiment; notes on policies, by label, stand below."""
    notes = policy_notes or {}
    rows = []
    for variant, policy, row in records(summarise(results)):
        name = policy + ("*" if policy in notes else "")
        cells = _spread(row, "reward", 3), _spread(row, "regret", 1), show_time(row["milliseconds"])
        rows.append((variant, name, *cells))
    caption = "\n".join(f"* {label}: {note}" for label, note in notes.items())
    headings = ("reward / benchmark", "cumulative regret", "time per round")
    return _table(title, headings, rows, caption)


def paired_table(results: pd.DataFrame, reference: str) -> Table | None:
    """Return the comparison of all policies with a `reference`.

    None where there is nothing to compare: one repeat, or one policy.
    """
    compared = compare(results, reference)
    if compared["p_holm"].isna().all():
        return None
    rows = []
    for variant, policy, row in records(compared):
        cells = _interval(row, "ratio", 2), _interval(row, "difference", 1)
        rows.append((variant, policy, *cells, show_probability(row["p_holm"])))
    title = f"Regret against {reference} in the same repeats, with 95% intervals"
    caption = "p: paired t-test, Holm's correction for the number of policies"
    return _table(title, ("ratio", "difference", "p"), rows, caption)


def experiments_table(experiments: Iterable[Experiment]) -> Table:
    """Return what can be run."""
    name, others = Column("experiment", no_wrap=True), ("rounds", "repeats", "policies", "about")
    table = Table(name, *others, box=None, pad_edge=False)
    for experiment in experiments:
        counts = (experiment.rounds, experiment.repeats, len(experiment.policies))
        table.add_row(experiment.name, *map(str, counts), experiment.title)
    return table


def policies_table(experiment: Experiment) -> Table:
    """Return the policies of an experiment."""
    title = f"Policies of {experiment.name}, for --policies"
    columns = [Column(name, overflow="fold") for name in ("policy", "label", "parameters")]
    table = Table(*columns, title=title, title_justify="left", box=None, pad_edge=False)
    for spec in experiment.policies:
        words = (f"{name}={value}" for name, value in spec.parameters.items())
        table.add_row(spec.key, spec.label, ", ".join(words))
    return table


def _table(
    title: str, headings: Iterable[str], rows: Sequence[tuple[str, ...]], caption: str
) -> Table:
    """Return a table of (variant, policy, …) with a section per variant."""
    first = 0 if len({variant for variant, *_ in rows}) > 1 else 1
    # An ellipsis would hide what a sweep varies.
    columns = [Column(name, overflow="fold") for name in ("variant", "policy")[first:]]
    columns += [Column(name, justify="right") for name in headings]
    left: Any = {"title_justify": "left", "caption_justify": "left"}
    table = Table(*columns, title=title, caption=caption, **left)
    before = ""
    for variant, *cells in rows:
        if before not in ("", variant):
            table.add_section()
        table.add_row(*(variant if variant != before else "", *cells)[first:])
        before = variant
    return table


def _spread(row: Mapping[str, float], name: str, digits: int) -> str:
    middle, std = (show_number(row[key], digits) for key in (name, f"{name}_std"))
    return middle if middle == "–" else f"{middle} ± {std}"


def _interval(row: Mapping[str, float], name: str, digits: int) -> str:
    middle, low, high = (show_number(row[f"{name}{end}"], digits) for end in ("", "_low", "_high"))
    return middle if middle == "–" else f"{middle} ({low} to {high})"
