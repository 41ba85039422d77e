"""An agent's log, by export or straight from the database, is what the agent saw and did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from oclok.errors import DataError, InputError
from oclok.offline import OverlapWarning, evaluate, read_log
from oclok.service.database import Database
from oclok.service.export import export
from oclok.service.service import Service

SETTINGS = {"oracle": {"kind": "TopK", "k": 2}, "holdout": 0.5, "baseline": "uniform"}


def filled(folder: Path, decisions: int = 60, told: int = 60) -> tuple[Service, str]:
    storage = f"sqlite:///{folder / 'oclok.db'}"
    database = Database(storage)
    database.migrate()
    service = Service(database)
    service.put_agent("a", SETTINGS)
    rng = np.random.default_rng(0)
    for n in range(decisions):
        arms = [{"id": f"w{i}", "features": {"x": rng.random()}} for i in range(5)]
        request = {"arms": arms, "oracle": None, "include": [], "exclude": [], "chosen": None}
        if n == 3:
            request |= {"include": ["w1"], "exclude": ["w0"]}
        answer = service.decide("a", {**request, "id": f"d{n}"})
        x = {arm["id"]: arm["features"]["x"] for arm in arms}
        items = [
            {"decision": f"d{n}", "arm": arm["id"], "outcome": x[arm["id"]] + rng.normal(0, 0.1)}
            | {"correct": False, "accept": False}
            for arm in answer["chosen"]
        ]
        if n < told:
            service.learn("a", items)
    return service, storage


def test_the_export_and_the_database_say_what_was_decided(tmp_path: Path) -> None:
    service, storage = filled(tmp_path)
    export(service.log.database, "a", tmp_path / "a.parquet")
    log, same = read_log(tmp_path / "a.parquet"), read_log(storage, "a")
    assert len(log) == len(same) == 60
    for current, other in zip(log, same, strict=True):
        np.testing.assert_array_equal(current.contexts, other.contexts)
        np.testing.assert_array_equal(current.super_arm, other.super_arm)
        assert current.propensities is not None
        assert current.super_arm_propensity is not None
        # Half of the decisions are uniform: 2 of 5 arms, 1 of 10 sets.
        is_fixed = current is log[3]
        least, rest = (1 / 6, 1 / 6) if is_fixed else (0.2, 0.2)
        ours = current.propensities > 0.5
        if not is_fixed:
            np.testing.assert_allclose(current.propensities[~ours], rest, rtol=1e-6)
            np.testing.assert_allclose(current.propensities[ours], 0.5 + least, rtol=1e-6)
            assert min(abs(current.super_arm_propensity - p) for p in (0.05, 0.55)) < 1e-6
        else:
            assert current.propensities[0] == 0
            assert current.propensities[1] == 1
            assert current.oracle.is_feasible([1, 2])
            assert not current.oracle.is_feasible([0, 1])
    logged, robust, replayed = evaluate(log, "greedy")
    assert robust.value > logged.value - 0.2
    assert robust.lower < robust.value < robust.upper
    assert not robust.warnings or robust.effective_sample_size < 30
    assert replayed.rounds == logged.rounds == 30


def test_decisions_without_outcomes_are_left_out_and_counted(tmp_path: Path) -> None:
    _, storage = filled(tmp_path, decisions=30, told=20)
    with pytest.warns(OverlapWarning, match="10 of 30 decisions lack outcomes"):
        assert len(read_log(storage, "a")) == 20


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    _, storage = filled(tmp_path, decisions=12, told=12)
    with pytest.raises(InputError, match="give agent="):
        read_log(storage)
    with pytest.raises(InputError, match="no agent 'b'"):
        read_log(storage, "b")
    with pytest.raises(DataError, match="cannot read"):
        read_log(tmp_path / "nothing.parquet")
    with pytest.raises(InputError, match="at least 20 complete decisions"):
        evaluate(read_log(storage, "a"))


def test_the_command_line_prints_the_estimates(tmp_path: Path) -> None:
    service, storage = filled(tmp_path)
    service.log.database.close()
    command = [sys.executable, "-m", "oclok", "evaluate", "--storage", storage, "--agent"]
    done = subprocess.run([*command, "a", "--policy", "random"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = evaluate(read_log(storage, "a"), "random")
    assert done.stdout == "".join(f"{estimate}\n" for estimate in expected)
    for wrong, message in (("b", "no agent 'b'"), ("a --policy best", "policy must be one of")):
        done = subprocess.run([*command, *wrong.split()], capture_output=True, text=True)
        assert done.returncode == 2
        assert message in done.stderr
