"""A results folder → one page that says what came out, and whether the paper's claims hold."""
# Tested in tests/bench/report/test_report.py: it writes the report.

from __future__ import annotations

import base64
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from oclok.extras import needs

with needs("bench"):
    import jinja2
    import pandas as pd

    from oclok.bench import figures
    from oclok.bench.analysis import Results, compare, load, show_time, summarise
    from oclok.bench.analysis.measures import policies
    from oclok.bench.analysis.paired import choose_reference
    from oclok.bench.analysis.scores import Scores
    from oclok.bench.report.captions import FIGURES, paired_figure
    from oclok.bench.report.claims import PAPER, check_claims

__all__ = ["write", "write_index"]


def write(
    folder: str | os.PathLike[str],
    reference: str | None = None,
    *,
    progress: Callable[[str], object] = lambda _: None,
) -> Path:
    """Draw the figures of a results folder, write its report.html and return the path of that.

    Args:
        folder: with `results.csv.gz` and `settings.json`, as experiments leave it. Figures go to
            its folder `figures`, as PDF, SVG and PNG; the page has them inside and needs no other
            file.
        reference: label of the policy that others are compared with; the first one if left out.
        progress: called with a line of text before each figure is drawn.
    """
    folder = Path(folder)
    results = load(folder)
    rounds = results.rounds
    reference = choose_reference(rounds, reference)
    compared = _compared(results, reference)
    drawn = [figure for figure in FIGURES if figure.is_in(rounds)]
    if len(compared):
        drawn.insert(2, paired_figure(compared, reference))
    shown = []
    (folder / "figures").mkdir(exist_ok=True)
    for number, figure in enumerate(drawn, start=1):
        progress(f"Drawing figure {number} of {len(drawn)}: {figure.title}")
        path = folder / "figures" / figure.name
        figures.save(figure.draw(rounds), path)
        source = _embed(path.with_suffix(".svg"))
        shown.append({"figure": figure, "alt": figure.alt(rounds), "source": source})
    page = _render(
        "page.html",
        **_facts(results),
        figures=shown,
        groups=_by_variant(summarise(rounds)),
        reference=reference,
        compared=_by_variant(compared),
        settings={name: _plain(value) for name, value in results.settings.items()},
    )
    return _write(folder / "report.html", page)


def write_index(folder: str | os.PathLike[str], names: Sequence[str]) -> Path:
    """Write the index.html that links the reports of several experiments and return its path.

    Args:
        folder: has a results folder, with its report, for each of the `names`; and perhaps
            others with the quirks of the paper's scripts, in its folder `as-published`.
        names: of the experiments, in order.
    """
    folder = Path(folder)
    experiments = [
        {"name": name, **_facts(load(folder / name)), **_published(folder / "as-published" / name)}
        for name in names
    ]
    return _write(folder / "index.html", _render("index.html", experiments=experiments))


def _facts(results: Results) -> dict[str, Any]:
    """Return what both pages say of an experiment; claims only of the paper's own."""
    verdicts = check_claims(results.rounds) if results.is_from_paper else []
    return {
        "results": results,
        "verdicts": verdicts,
        "counts": Counter(verdict.word for verdict in verdicts),
        "draws": Scores(results.rounds).draws,
        "paper": PAPER.get(results.experiment),
    }


def _published(folder: Path) -> dict[str, Any]:
    """Return what the index says of an experiment with the quirks of the paper's scripts."""
    results = load(folder) if folder.exists() else None
    verdicts = check_claims(results.rounds) if results else None
    draws = Scores(results.rounds).draws if results else None
    return {"published": results, "published_verdicts": verdicts, "published_draws": draws}


def _compared(results: Results, reference: str) -> pd.DataFrame:
    """Return the paired comparison, empty where there is nothing to pair."""
    if results.repeats < 2 or len(policies(results.rounds)) < 2:
        return pd.DataFrame()
    return compare(results.rounds, reference)


def _by_variant(summary: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Return the rows of a summary by variant, then by policy."""
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for (variant, policy), row in zip(summary.index, summary.to_dict("records"), strict=True):
        groups.setdefault(variant, {})[policy] = {str(name): row[name] for name in row}
    return groups


def _plain(value: object) -> str:
    """Return a value of settings.json as people would write it."""
    if isinstance(value, dict):
        return "; ".join(_named(name, part) for name, part in value.items()) or "–"
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "–" if value in (None, "") else str(value)


def _named(name: str, value: Any) -> str:
    if not isinstance(value, dict):
        return f"{name}: {_plain(value)}"
    inside = ", ".join(f"{key} {_plain(part)}".lstrip() for key, part in value.items())
    return f"{name} ({inside})" if inside else name


def _decimals(value: float, digits: int) -> str:
    return "–" if value != value else f"{value:.{digits}f}".replace("-", "−")


def _probability(value: float) -> str:
    return "–" if value != value else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _embed(path: Path) -> str:
    """Return an SVG file as a URL that holds it: ids of several would clash inside one page."""
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def _render(template: str, **values: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("oclok.bench", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"time": show_time, "decimals": _decimals, "probability": _probability}
    return environment.get_template(template).render(**values)


def _write(path: Path, page: str) -> Path:
    path.write_text(page, encoding="utf8")
    return path
