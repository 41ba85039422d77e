from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from oclok import Agent
from oclok.errors import StorageError
from oclok.oracles import TopK
from oclok.policies import Policy

ARMS = {"a": {"x": 0.1}, "b": {"x": 0.7}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.oclok"


def new_agent() -> Agent:
    agent = Agent(oracle=TopK(1))
    agent.decide(ARMS, id="first")
    return agent


def test_one_writer_saves_again_and_again(path: Path) -> None:
    agent = new_agent()
    for outcome in (0.1, 0.2):
        agent.save(path)
        agent.learn("first", {"a": outcome}, correct=True)
    agent.save(path)
    loaded = Agent.load(path)
    loaded.decide(ARMS)
    loaded.save(path)


def test_a_writer_that_was_overtaken_is_refused(path: Path) -> None:
    agent = new_agent()
    agent.save(path)
    other = Agent.load(path)
    other.learn("first", {"a": 0.3})
    other.save(path)
    agent.learn("first", {"a": 0.4})
    content = path.read_bytes()
    with pytest.raises(StorageError, match="written by another process since"):
        agent.save(path)
    assert path.read_bytes() == content
    agent.save(path.with_name("mine.oclok"))
    other.save(path)


def test_an_existing_file_is_not_overwritten_by_a_new_agent(path: Path) -> None:
    path.write_text("precious")
    with pytest.raises(StorageError, match="or holds something else"):
        new_agent().save(path)
    assert path.read_text() == "precious"


def test_what_is_no_agent_is_refused(path: Path) -> None:
    with pytest.raises(StorageError, match="cannot read"):
        Agent.load(path)
    new_agent().policy.save(path)
    with pytest.raises(StorageError, match="and no Agent"):
        Agent.load(path)
    assert isinstance(Policy.load(path), Policy)
    path.write_bytes(b"nothing")
    with pytest.raises(StorageError):
        Agent.load(path)
    with pytest.raises(StorageError, match="cannot write"):
        new_agent().save(path / "no folder" / "agent.oclok")


def _add_a_decision(path: Path, name: str, barrier: object) -> None:
    agent = Agent.load(path)
    agent.decide(ARMS, id=name)
    barrier.wait()  # type: ignore[attr-defined]
    try:
        agent.save(path)
    except StorageError:
        raise SystemExit(3) from None


def test_of_processes_that_save_at_once_one_wins(path: Path) -> None:
    new_agent().save(path)
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(4)
    processes = [
        context.Process(target=_add_a_decision, args=(path, f"p{i}", barrier)) for i in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert sorted(process.exitcode for process in processes) == [0, 3, 3, 3]
    winner = next(i for i, process in enumerate(processes) if process.exitcode == 0)
    assert Agent.load(path).counts()["open_decisions"] == 2
    assert Agent.load(path).decide(ARMS, id=f"p{winner}").chosen
