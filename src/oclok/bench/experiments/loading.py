"""Experiments by name: those of oclok, those in a file, those in a module.

    crowdsourcing              one of oclok's own
    my_experiment.py           the only experiment in a file
    my_experiment.py:LARGE     the one that is called LARGE there
    package.module:LARGE       the same, in a module that can be imported

A file is run as a module of its own; what it imports from its folder is found.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from oclok.bench.experiments.base import Experiment
from oclok.errors import ExperimentError


def find_experiment(name: str, known: Mapping[str, Experiment]) -> Experiment:
    """Return the experiment that `name` stands for.

    Args:
        name: of one of oclok's own, `my_experiment.py`, `my_experiment.py:LARGE`, or
            `package.module:LARGE`.
        known: oclok's own experiments, by name.
    """
    if name in known:
        return known[name]
    place, _, variable = name.partition(":")
    if place.endswith(".py"):
        return _chosen(_module_in(Path(place)), place, variable)
    if variable:
        return _chosen(_module(place), place, variable)
    raise ExperimentError(
        f"there is no experiment {name!r}; there are {', '.join(known)}, and table, for your own "
        "data; or give a file such as my_experiment.py, or module:name"
    )


def _module_in(path: Path) -> ModuleType:
    """Run a file as a module of its own, whatever else is called like it."""
    if not path.is_file():
        raise ExperimentError(f"{path}: no such file")
    name = f"experiment_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    _add_to_path(path.resolve().parent)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as reason:
        raise ExperimentError(f"{path}: {_summary(reason, path)}") from reason
    _send_by_value(module)
    return module


def _send_by_value(module: ModuleType) -> None:
    """Have what `module` defines sent to workers, which cannot import it by its name.

    Joblib has a copy of cloudpickle of its own up to 1.5, and shares Dask's from then on.
    """
    for pickler in ("cloudpickle", "joblib.externals.cloudpickle"):
        if importlib.util.find_spec(pickler) is not None:
            importlib.import_module(pickler).register_pickle_by_value(module)


def _module(name: str) -> ModuleType:
    _add_to_path(Path.cwd())
    try:
        return importlib.import_module(name)
    except Exception as reason:
        raise ExperimentError(
            f"{name}: cannot be imported ({type(reason).__name__}: {reason})"
        ) from reason


def _chosen(module: ModuleType, place: str, variable: str) -> Experiment:
    found = {name: value for name, value in vars(module).items() if isinstance(value, Experiment)}
    if variable:
        if variable not in found:
            names = ", ".join(found) or "none"
            raise ExperimentError(f"{place}: has no experiment {variable!r}; it has {names}")
        return found[variable]
    if len(found) != 1:
        wanted = (
            f"one of {', '.join(f'{place}:{name}' for name in found)}"
            if found
            else ("one that declares an oclok.bench.experiments.Experiment")
        )
        raise ExperimentError(f"{place}: has {len(found)} experiments; give {wanted}")
    return next(iter(found.values()))


def _add_to_path(folder: Path) -> None:
    """Make modules in `folder` importable, as `python FILE` and `python -m` do."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _summary(reason: Exception, path: Path) -> str:
    """Return the error and the last line of the file at which it happened."""
    line, trace = None, reason.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == path.resolve():
            line = trace.tb_lineno
        trace = trace.tb_next
    where = "" if line is None else f"line {line}, "
    return f"{where}{type(reason).__name__}: {reason}"
