"""A results folder → one page with tables, figures and verdicts on the paper's claims."""
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
    from oclok.bench.analysis import Results, compare, load, summarise
    from oclok.bench.analysis.measures import knows, policies
    from oclok.bench.analysis.paired import choose_reference
    from oclok.bench.analysis.tables import show_number, show_probability, show_time
    from oclok.bench.report.captions import FIGURES, paired_figure
    from oclok.bench.report.claims import PAPER, check_claims
    from oclok.bench.report.scores import Scores

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
    summary, compared = summarise(rounds), pd.DataFrame()
    drawn = [figure for figure in FIGURES if not figure.needs or knows(rounds, *figure.needs)]
    if results.repeats > 1 and len(policies(rounds)) > 1:
        compared = compare(rounds, reference)
        drawn.insert(2, paired_figure(compared, reference))
    shown = []
    (folder / "figures").mkdir(exist_ok=True)
    for number, figure in enumerate(drawn, start=1):
        progress(f"Drawing figure {number} of {len(drawn)}: {figure.title}")
        path = folder / "figures" / figure.name
        figures.save(figure.draw(rounds), path)
        # A URL that holds the picture: ids of several would clash inside one page.
        code = base64.b64encode(path.with_suffix(".svg").read_bytes()).decode("ascii")
        source = f"data:image/svg+xml;base64,{code}"
        shown.append({"figure": figure, "alt": figure.alt(summary), "source": source})
    return _render(
        "page.html",
        folder / "report.html",
        **_facts(results),
        figures=shown,
        groups=_by_variant(summary),
        reference=reference,
        compared=_by_variant(compared),
        settings={name: _plain(value) for name, value in results.settings.items()},
    )


def write_index(folder: str | os.PathLike[str], names: Sequence[str]) -> Path:
    """Write the index.html that sums up the reports of several experiments and return its path.

    `folder` has a results folder, with its report, for each of the `names`; and perhaps others
    with the quirks of the paper's scripts, in its folder `as-published`.
    """
    folder = Path(folder)
    experiments = []
    for name in names:
        published = folder / "as-published" / name
        other = _facts(load(published)) if published.exists() else None
        experiments.append({"name": name, **_facts(load(folder / name)), "published": other})
    return _render("index.html", folder / "index.html", experiments=experiments)


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


def _by_variant(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    if table.empty:
        return {}
    return {name: table.loc[name].to_dict("index") for name in table.index.unique("variant")}


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


def _render(template: str, path: Path, **values: Any) -> Path:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("oclok.bench", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"time": show_time, "probability": show_probability}
    environment.filters["decimals"] = lambda *given: show_number(*given).replace("-", "−")
    path.write_text(environment.get_template(template).render(**values), encoding="utf8")
    return path
