"""What a benchmark gives back, and how it is written: Markdown for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """A number that was aimed at, and what it came to."""

    name: str
    limit: float
    measured: float
    at_most: bool = False

    @property
    def holds(self) -> bool:
        """Whether the target was reached; not if nothing could be measured."""
        if math.isnan(self.measured):
            return False
        return self.measured <= self.limit if self.at_most else self.measured >= self.limit

    def row(self) -> Row:
        """Return the line of the table of targets."""
        sign = "≤" if self.at_most else "≥"
        return {
            "target": f"{self.name} {sign} {self.limit:,g}",
            "measured": shown(self.measured),
            "holds": "yes" if self.holds else "NO",
        }


@dataclass(frozen=True)
class Result:
    """The table of one benchmark: rows with the same columns, targets, and what to know of it."""

    title: str
    rows: list[Row]
    targets: list[Target] = field(default_factory=list)
    notes: str = ""

    def markdown(self) -> str:
        """Return title, table and notes as Markdown."""
        parts = [f"## {self.title}", table(self.rows)]
        return "\n\n".join([*parts, self.notes] if self.notes else parts)


def table(rows: list[Row]) -> str:
    """Return `rows` as a Markdown table."""
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns)]
    lines += [[shown(row[column]) for column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def shown(value: Any) -> str:
    """Return a number with three digits that matter, anything else as text."""
    if isinstance(value, bool) or not isinstance(value, float | int):
        return str(value)
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    if 100 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def say(text: str) -> None:
    """Report progress, on stderr so that stdout stays a document."""
    print(f"[{time.perf_counter() - _START:6.1f} s] {text}", file=sys.stderr, flush=True)


_START = time.perf_counter()


def document(environment: Row, results: dict[str, Result]) -> str:
    """Return all tables as one Markdown document, the targets first."""
    facts = "\n".join(f"- {name}: {value}" for name, value in environment.items())
    targets = [target.row() for result in results.values() for target in result.targets]
    parts = ["# Benchmarks", facts]
    if targets:
        parts += ["## Targets", table(targets)]
    return "\n\n".join([*parts, *(result.markdown() for result in results.values())]) + "\n"


def write(folder: Path, environment: Row, results: dict[str, Result]) -> None:
    """Write results.md and results.json into `folder`."""
    (folder / "results.md").write_text(document(environment, results), encoding="utf-8")
    content = {
        "environment": environment,
        "results": {
            name: {
                **dataclasses.asdict(result),
                "targets": [
                    {**dataclasses.asdict(target), "holds": target.holds}
                    for target in result.targets
                ],
            }
            for name, result in results.items()
        },
    }
    text = json.dumps(content, indent=1, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
