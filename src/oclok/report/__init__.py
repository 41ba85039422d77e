"""A results folder → one page that says what came out, and whether the paper's claims hold."""

from __future__ import annotations

import base64
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from oclok import figures
from oclok.analysis import measures
from oclok.analysis.results import Results, load
from oclok.analysis.summary import show_time, summarise
from oclok.labels import OCLOK
from oclok.report.captions import FIGURES
from oclok.report.claims import PAPER, check_claims

__all__ = ["write", "write_index"]


def write(folder: str | os.PathLike[str]) -> Path:
    """Draw the figures of a results folder, write its report.html and return the path of that.

    Args:
        folder: with `results.parquet` and `settings.json`, as experiments leave it. Figures go to
            its folder `figures`, as PNG and SVG; the page has them inside and needs no other file.
    """
    folder = Path(folder)
    results = load(folder)
    shown = []
    (folder / "figures").mkdir(exist_ok=True)
    for picture in FIGURES:
        if picture.is_in(results.rounds):
            path = folder / "figures" / picture.name
            figures.save(picture.draw(results.rounds), path)
            alt, source = picture.alt(results.rounds), _embed(path.with_suffix(".svg"))
            shown.append({"picture": picture, "alt": alt, "source": source})
    settings = {name: _plain(value) for name, value in results.settings.items()}
    groups = _by_variant(summarise(results.rounds))
    page = _render(
        "page.html",
        **_facts(results),
        pictures=shown,
        groups=groups,
        settings=settings,
        paired=_paired(results),
    )
    return _write(folder / "report.html", page)


def write_index(folder: str | os.PathLike[str], names: Sequence[str]) -> Path:
    """Write the index.html that links the reports of several experiments and return its path.

    Args:
        folder: has a results folder, with its report, for each of the `names`.
        names: of the experiments, in order.
    """
    folder = Path(folder)
    experiments = [{"name": name, **_facts(load(folder / name))} for name in names]
    return _write(folder / "index.html", _render("index.html", experiments=experiments))


def _facts(results: Results) -> dict[str, Any]:
    """Return what both pages say of an experiment."""
    verdicts = check_claims(results.rounds)
    return {
        "results": results,
        "verdicts": verdicts,
        "counts": Counter(verdict.word for verdict in verdicts),
        "paper": PAPER.get(results.experiment),
    }


def _paired(results: Results) -> dict[str, dict[str, tuple[str, str]]]:
    """Return regret relative to O'CLOK-UCB's, by policy and variant, where policies compete."""
    if results.experiment != "policies" or results.repeats < 2:
        return {}
    table = measures.paired_regret(results.rounds, OCLOK)
    rows: dict[str, dict[str, tuple[str, str]]] = {}
    for (variant, policy), row in zip(table.index, table.itertuples(), strict=True):
        interval = f"{row.low:.2f} to {row.high:.2f}"
        rows.setdefault(policy, {})[variant] = f"{row.middle:.2f}", interval
    return rows


def _by_variant(summary: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Return the rows of a summary by variant, then by policy."""
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for (variant, policy), row in zip(summary.index, summary.to_dict("records"), strict=True):
        groups.setdefault(variant, {})[policy] = {str(name): row[name] for name in row}
    return groups


def _plain(value: object) -> str:
    """Return a value of settings.json as people would write it."""
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_plain(part)}" for name, part in value.items()) or "–"
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or "–"
    return "–" if value in (None, "") else str(value)


def _embed(path: Path) -> str:
    """Return an SVG file as a URL that holds it: ids of several would clash inside one page."""
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def _render(template: str, **values: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("oclok", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["time"] = show_time
    return environment.get_template(template).render(**values)


def _write(path: Path, page: str) -> Path:
    path.write_text(page, encoding="utf8")
    return path
