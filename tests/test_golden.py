"""Files in tests/data, written by scripts/write_golden.py, load and answer what they did."""

from __future__ import annotations

import importlib.util
import inspect
import io
import json
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oclok.agent
import oclok.oracles
import oclok.policies
import oclok.posterior
from oclok import Decision, persistence
from oclok.persistence import Persistent, StorageError

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
EXPECTED: dict[str, dict[str, Any]] = json.loads((DATA / "expected.json").read_text("utf-8"))


def script() -> Any:
    spec = importlib.util.spec_from_file_location("golden", ROOT / "scripts" / "write_golden.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GOLDEN = script()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_of_this_version_loads_and_answers_what_it_did(name: str) -> None:
    thing = persistence.load(DATA / f"{name}.oclok")
    expected = dict(EXPECTED[name])
    assert type(thing).__name__ == expected.pop("class")
    answers = GOLDEN.answers(thing)
    assert answers.keys() == expected.keys()
    assert answers.pop("chosen", None) == expected.pop("chosen", None)
    for key, value in expected.items():
        np.testing.assert_allclose(answers[key], value, rtol=0, atol=1e-9, err_msg=key)


def test_a_decision_in_json_is_read_as_it_was_written() -> None:
    text = (DATA / "decision.json").read_text("utf-8")
    written = json.loads(text)
    decision = Decision.from_json(text)
    assert decision.id == written["id"]
    assert decision.super_arm.tolist() == written["super_arm"]
    np.testing.assert_array_equal(decision.contexts, written["contexts"])
    np.testing.assert_array_equal(decision.std, written["std"])
    page = (ROOT / "docs/reference/file-format.md").read_text("utf-8")
    table = page.split("\n## A decision in JSON")[1]
    assert set(re.findall(r"^\| `(\w+)`", table, re.M)) == set(written)


def public_classes() -> set[str]:
    return {
        name
        for package in (oclok.agent, oclok.oracles, oclok.policies, oclok.posterior)
        for name in package.__all__
        if isinstance(cls := getattr(package, name), type)
        and issubclass(cls, Persistent)
        and not inspect.isabstract(cls)
        and not cls.__name__.endswith("Policy")
    }


def test_every_class_that_can_be_saved_has_a_file() -> None:
    missing = public_classes() - saved_names().keys()
    assert not missing, f"add {missing} to scripts/write_golden.py, and run it"


def saved_names(archives: Iterable[bytes] = ()) -> dict[str, set[str]]:
    """Return the names in the states of each class, in all files or in these `archives`."""
    names: dict[str, set[str]] = {}

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            if "$object" in value:
                names.setdefault(value["$object"], set()).update(value["state"])
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                collect(item)

    for content in archives or (path.read_bytes() for path in DATA.glob("*.oclok")):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            collect(json.loads(archive.read("state.json")))
    return names


def test_what_is_loaded_is_saved_under_the_same_names() -> None:
    """Whoever renames an attribute must write a migration; here is where they notice."""
    again = [persistence.dumps(persistence.load(path)) for path in DATA.glob("*.oclok")]
    assert saved_names(again) == saved_names()


def test_files_are_small() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 600_000


def test_migrations_lead_from_an_old_version_to_this_one(monkeypatch: Any) -> None:
    """Two steps, as a file two versions old would take them."""
    current = persistence.VERSION
    content = (DATA / "ucb.oclok").read_bytes()
    steps: list[int] = []

    def first(tree: dict[str, Any]) -> dict[str, Any]:
        steps.append(tree["version"])
        state = dict(tree["content"]["state"])
        state["breadth"] = state.pop("_width")
        return {**tree, "content": {**tree["content"], "state": state}}

    def second(tree: dict[str, Any]) -> dict[str, Any]:
        steps.append(tree["version"])
        tree["content"]["state"]["_width"] = 10 * tree["content"]["state"].pop("breadth")
        return tree

    monkeypatch.setattr(persistence, "VERSION", current + 2)
    monkeypatch.setattr(persistence, "MIGRATIONS", {current: first, current + 1: second})
    migrated = persistence.loads(content)
    assert steps == [current, current]
    assert isinstance(migrated, oclok.policies.UCB)
    assert migrated.width(1, 1) == 20.0


def test_a_version_without_a_migration_is_refused(monkeypatch: Any) -> None:
    monkeypatch.setattr(persistence, "VERSION", persistence.VERSION + 1)
    monkeypatch.setattr(persistence, "MIGRATIONS", {})
    with pytest.raises(StorageError):
        persistence.load(DATA / "ucb.oclok")
