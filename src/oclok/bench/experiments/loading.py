"""Experiments by name: those of oclok, those in a file, those in a module.

    crowdsourcing              one of oclok's own
    my_experiment.py           the only experiment in a file
    my_experiment.py:LARGE     the one that is called LARGE there
    package.module:LARGE       the same, in a module that can be imported

A file is run as a module of its own, and can import from its folder.
"""

from __future__ import annotations

import importlib
import runpy
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oclok.bench.experiments.base import Experiment
from oclok.errors import ExperimentError


def find_experiment(name: str, known: Mapping[str, Experiment]) -> Experiment:
    """Return the experiment called `name`: one of the `known` ones, in a file or in a module."""
    if name in known:
        return known[name]
    place, _, variable = name.partition(":")
    if not (place.endswith(".py") or variable):
        raise ExperimentError(
            f"there is no experiment {name!r}; there are {', '.join(known)}, and table, for your "
            "own data; or give a file such as my_experiment.py, or module:name"
        )
    defined = _run(Path(place)) if place.endswith(".py") else _import(place)
    found = {name: value for name, value in defined.items() if isinstance(value, Experiment)}
    if variable and variable not in found:
        names = ", ".join(found) or "none"
        raise ExperimentError(f"{place}: has no experiment {variable!r}; it has {names}")
    if not variable and len(found) != 1:
        wanted = "one that declares an oclok.bench.experiments.Experiment"
        if found:
            wanted = f"one of {', '.join(f'{place}:{name}' for name in found)}"
        raise ExperimentError(f"{place}: has {len(found)} experiments; give {wanted}")
    return found[variable or next(iter(found))]


def _run(path: Path) -> dict[str, Any]:
    """Run a file as a module of its own and return its names.

    The module is not kept in `sys.modules`, so that workers get its classes by value.
    """
    if not path.is_file():
        raise ExperimentError(f"{path}: no such file")
    file = path.resolve()
    _add_to_path(file.parent)
    try:
        return runpy.run_path(str(file), run_name=f"experiment_{path.stem}")
    except Exception as reason:
        frames = traceback.extract_tb(reason.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(file)]
        where = f"line {lines[-1]}, " if lines else ""
        raise ExperimentError(f"{path}: {where}{type(reason).__name__}: {reason}") from reason


def _import(name: str) -> dict[str, Any]:
    _add_to_path(Path.cwd())
    try:
        return vars(importlib.import_module(name))
    except Exception as reason:
        why = f"{type(reason).__name__}: {reason}"
        raise ExperimentError(f"{name}: cannot be imported ({why})") from reason


def _add_to_path(folder: Path) -> None:
    """Make modules in `folder` importable, as `python FILE` and `python -m` do."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
