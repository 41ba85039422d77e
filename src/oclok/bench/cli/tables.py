"""What the command line prints: results of an experiment, and what there is to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
from rich.table import Table

from oclok.bench.analysis import compare, show_time, summarise
from oclok.bench.experiments import Experiment


def summary_table(
    results: pd.DataFrame, title: str, policy_notes: Mapping[str, str] | None = None
) -> Table:
    """Return the summary of an experiment's table as a table to print.

    Args:
        results: one row per round of each run.
        title: stands above.
        policy_notes: what a reader should know of a policy, by label; stands below.
    """
    notes = policy_notes or {}
    caption = "\n".join(f"* {label}: {note}" for label, note in notes.items())
    headings = ("reward / benchmark", "cumulative regret", "time per round")
    rows = {
        (variant, policy): (
            policy + ("*" if policy in notes else ""),
            _spread(row, "reward", 3),
            _spread(row, "regret", 1),
            show_time(row["milliseconds"]),
        )
        for (variant, policy), row in _records(summarise(results))
    }
    return _table(title, headings, rows, caption)


def paired_table(results: pd.DataFrame, reference: str) -> Table | None:
    """Return the comparison of all policies with a `reference` as a table to print.

    None where there is nothing to compare: one repeat, or one policy.
    """
    compared = compare(results, reference)
    if compared["p_holm"].isna().all():
        return None
    rows = {
        (variant, policy): (
            policy,
            _interval(row, "ratio", 2),
            _interval(row, "difference", 1),
            "< 0.001" if row["p_holm"] < 0.001 else f"{row['p_holm']:.3f}",
        )
        for (variant, policy), row in _records(compared)
    }
    title = f"Regret against {reference} in the same repeats, with 95% intervals"
    caption = "p: paired t-test, Holm's correction for the number of policies"
    return _table(title, ("ratio", "difference", "p"), rows, caption)


def experiments_table(experiments: Iterable[Experiment]) -> Table:
    """Return what can be run as a table to print."""
    table = Table(box=None, pad_edge=False)
    for heading in ("experiment", "rounds", "repeats", "policies", "about"):
        table.add_column(heading, no_wrap=heading == "experiment")
    for experiment in experiments:
        counts = (experiment.rounds, experiment.repeats, len(experiment.policies))
        table.add_row(experiment.name, *map(str, counts), experiment.title)
    return table


def policies_table(experiment: Experiment) -> Table:
    """Return the policies of an experiment as a table to print."""
    title = f"Policies of {experiment.name}, for --policies"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("policy", "label", "parameters"):
        table.add_column(heading, overflow="fold")
    for spec in experiment.policies:
        words = (f"{name}={value}" for name, value in spec.parameters.items())
        table.add_row(spec.key, spec.label, ", ".join(words))
    return table


def _table(
    title: str,
    headings: Iterable[str],
    rows: Mapping[tuple[str, str], tuple[str, ...]],
    caption: str,
) -> Table:
    """Return a table whose rows, by variant and policy, are grouped by variant."""
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    has_variants = len({variant for variant, _ in rows}) > 1
    if has_variants:
        table.add_column("variant", overflow="fold")
    table.add_column("policy", overflow="fold")  # an ellipsis would hide what a sweep varies
    for heading in headings:
        table.add_column(heading, justify="right")
    before = None
    for (variant, _), cells in rows.items():
        if before not in (None, variant):
            table.add_section()
        table.add_row(*([variant if variant != before else ""] if has_variants else []), *cells)
        before = variant
    return table


def _records(table: pd.DataFrame) -> list[tuple[tuple[str, str], dict[str, float]]]:
    rows = table.to_dict("records")
    return [
        ((str(variant), str(policy)), {str(name): value for name, value in row.items()})
        for (variant, policy), row in zip(table.index, rows, strict=True)
    ]


def _spread(row: Mapping[str, float], name: str, digits: int) -> str:
    middle, std = row[name], row[f"{name}_std"]
    return "–" if middle != middle else f"{middle:,.{digits}f} ± {std:,.{digits}f}"


def _interval(row: Mapping[str, float], name: str, digits: int) -> str:
    middle, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    if middle != middle:
        return "–"
    return f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"
