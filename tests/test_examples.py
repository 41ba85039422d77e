"""The examples and the notebooks run, and say what they promise."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_dispatching_agent_learns_who_is_good() -> None:
    assert load("dispatch").main(rounds=50) > 0.9


def test_a_rule_of_ones_own_is_compared_with_others() -> None:
    result = load("own_rule").main(rounds=25, repeats=2)
    assert set(result.index.get_level_values("policy")) == {"Bayes-UCB", "Cooling"}


@pytest.mark.parametrize("name", ["researcher", "engineer"])
def test_a_notebook_runs_from_top_to_bottom(name: str) -> None:
    nbformat = pytest.importorskip("nbformat", reason="notebooks need nbformat and nbclient")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert outputs
    assert not any(output.output_type == "error" for output in outputs)
