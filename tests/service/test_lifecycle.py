"""Agents change, pause, start over, are cloned, erased from, and deleted, in all processes."""

from __future__ import annotations

import time

import numpy as np
import pytest

from oclok.errors import InputError
from oclok.service.database import Database
from oclok.service.lifecycle import Lifecycle
from oclok.service.log import Log
from oclok.service.problems import ConflictError, NotFoundError
from oclok.service.replay import check, replay
from oclok.service.replica import Replica
from oclok.service.service import Service


def ask(service, name="a", decision=None, arms=None, seed=0):
    rng = np.random.default_rng(seed)
    arms = arms or [{"id": n, "features": {"x": rng.random(), "y": rng.random()}} for n in range(6)]
    request = {"arms": arms, "oracle": None, "include": [], "exclude": [], "chosen": None}
    return service.decide(name, request | {"id": decision})


def play(service, rounds=10, name="a", start=0):
    for n in range(start, start + rounds):
        answer = ask(service, name, f"d{n}", seed=n)
        items = [
            {"decision": f"d{n}", "arm": arm["id"], "outcome": arm["id"] / 6}
            | {"correct": False, "accept": False}
            for arm in answer["chosen"]
        ]
        service.learn(name, items)


@pytest.fixture(params=["sqlite", "postgresql"])
def service(request, tmp_path):
    url = f"sqlite:///{tmp_path / 'oclok.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").fresh()
    database = Database(url)
    database.migrate()
    made = Service(database)
    made.put_agent("a", {"oracle": {"kind": "TopK", "k": 2}})
    play(made)
    yield made
    database.close()


@pytest.fixture
def lifecycle(service):
    return Lifecycle(service.log, "tester")


def rebuilt(service, name="a"):
    """Return the model as another process would build it."""
    replica = Replica(service.log.agent(name), Log(service.database), use_snapshot=False)
    replica.build()
    return replica


def means(replica):
    replica.learner.catch_up()
    arms = {n: {"x": 0.1 * n, "y": 0.5} for n in range(6)}
    return replica.learner.posterior.predict(replica.agent.encode(arms)).mean


def agree(service, name="a"):
    """Check that this process, a fresh one, `check` and `replay` agree."""
    here, fresh = service.read_changes(name), rebuilt(service, name)
    assert here.settings == fresh.settings
    np.testing.assert_allclose(means(here), means(fresh), atol=1e-9)
    assert here.agent.counts() == fresh.agent.counts()
    assert not any(check(service.database).values())
    assert replay(service.database, name).differing == []
    return here


def test_settings_change_from_an_event_on(service, lifecycle):
    lifecycle.change("a", {"deadline": 60.0, "oracle": {"kind": "TopK", "k": 1}})
    replica = agree(service)
    assert replica.settings["deadline"] == 60.0
    assert len(ask(service)["chosen"]) == 1
    play(service, 3, start=20)
    assert replay(service.database, "a").decisions == 14
    agree(service)
    with pytest.raises(InputError, match="deadline"):
        lifecycle.change("a", {"default_outcome": 1.0, "deadline": None})
    assert service.read_changes("a").settings["deadline"] == 60.0


@pytest.mark.parametrize(
    "change", [{"policy": "thompson"}, {"exploration": 2.0}, {"forgetting": {"window": 5}}]
)
def test_a_new_policy_learns_the_past_anew(service, lifecycle, change):
    before = service.replica("a").agent.counts()
    lifecycle.change("a", change)
    replica = agree(service)
    assert replica.agent.counts() == before
    play(service, 3, start=20)
    agree(service)


def test_a_snapshot_from_before_a_change_is_followed_by_it(service, lifecycle):
    replica = service.replica("a")
    service.log.save_snapshot(replica.id, *replica.dumped())
    lifecycle.change("a", {"exploration": 0.5, "deadline": 9.0})
    other = Replica(service.log.agent("a"), service.log)
    assert other.seq == 20
    assert other.settings["deadline"] is None  # as it was then
    other.build()
    assert other.settings["deadline"] == 9.0
    np.testing.assert_allclose(means(other), means(rebuilt(service)), atol=1e-9)


def test_paused_and_archived_agents_take_no_decisions(service, lifecycle):
    lifecycle.change("a", {"state": "paused"})
    service.refresh()
    with pytest.raises(ConflictError, match="paused"):
        ask(service)
    item = {"decision": "d0", "arm": 0, "outcome": None, "correct": False, "accept": False}
    service.learn("a", [item])
    lifecycle.change("a", {"state": "archived"})
    service.refresh()
    with pytest.raises(ConflictError, match="archived"):
        service.learn("a", [item])
    lifecycle.change("a", {"state": "active"})
    service.refresh()
    assert ask(service)["round"] == 11
    agree(service)


def test_reset_starts_over(service, lifecycle):
    lifecycle.reset("a")
    replica = agree_after_reset(service)
    assert replica.agent.counts()["learned"] == 0
    arms = [{"id": n, "features": {"z": float(n)}} for n in range(4)]  # other features
    assert len(ask(service, arms=arms)["chosen"]) == 2
    lifecycle.change("a", {"exploration": 1.0})
    assert agree_after_reset(service).agent.counts()["learned"] == 0


def agree_after_reset(service):
    here, fresh = service.read_changes("a"), rebuilt(service)
    assert here.agent.counts() == fresh.agent.counts()
    assert replay(service.database, "a").differing == []
    return here


@pytest.mark.parametrize("learned", [True, False])
def test_clones_go_their_own_way(service, lifecycle, learned):
    lifecycle.clone("a", "b", learned)
    expected = 20 if learned else 0
    assert service.replica("b").agent.counts()["learned"] == expected
    assert service.replica("b").settings == service.replica("a").settings
    if learned:
        np.testing.assert_allclose(means(service.replica("a")), means(service.replica("b")))
    play(service, 2, "b", start=50)
    assert service.read_changes("a").agent.counts()["learned"] == 20
    agree(service, "b")
    with pytest.raises(ConflictError, match="there is an agent 'b'"):
        lifecycle.clone("a", "b")


def test_deleted_agents_are_gone(service, lifecycle):
    replica = service.replica("a")
    service.log.save_snapshot(replica.id, *replica.dumped())
    lifecycle.delete("a")
    with pytest.raises(NotFoundError):
        ask(service)
    service.refresh()
    with pytest.raises(NotFoundError):
        service.replica("a")
    service.log.save_snapshot(replica.id, *replica.dumped())  # by a process that does not know
    assert service.log.snapshot(replica.id) is None
    service.put_agent("a", {"oracle": {"kind": "TopK", "k": 1}})
    assert service.replica("a").agent.counts()["learned"] == 0
    assert ask(service, decision="d0")["round"] == 1


def test_an_erased_arm_is_in_neither_log_nor_model(service, lifecycle):
    arm = next(iter(service.replica("a").agent.outcomes_of("d0")))
    chosen = sum(arm in service.replica("a").agent.outcomes_of(f"d{n}") for n in range(10))
    replica = service.replica("a")
    service.log.save_snapshot(replica.id, *replica.dumped())
    assert lifecycle.erase("a", arm=arm) == 10 + chosen
    assert service.log.snapshot(replica.id) is None
    replica = agree(service)
    assert replica.agent.counts()["learned"] == 20 - chosen
    for event in service.log.after(replica.id, 0):
        if event.kind == "decision":
            assert arm not in ids(event)
        elif event.kind == "outcomes":
            assert f"[{arm},".encode() not in event.body
    play(service, 3, start=30)
    agree(service)
    assert lifecycle.erase("a", arm="nobody") == 0


def ids(event):
    from oclok.service.packing import unpack

    return unpack(event.body)["ids"]


def test_a_model_is_built_from_its_latest_restart_on(service, lifecycle):
    for start in (20, 30):
        lifecycle.erase("a", arm=5)
        restart = service.read_changes("a").seq
        play(service, 3, start=start)
    row = service.log.agent("a")
    other = Replica(row, service.log)
    assert other.seq == restart - 1
    other.build()
    here = agree(service)
    assert (other.seq, other.epoch, other.agent.counts()) == (
        here.seq,
        restart,
        here.agent.counts(),
    )
    np.testing.assert_allclose(means(other), means(here), atol=1e-9)
    assert replay(service.database, "a").decisions == 3  # what came before is not all there


def test_an_erased_decision_is_gone_even_if_it_was_the_first(service, lifecycle):
    assert lifecycle.erase("a", decision="d0") == 2
    replica = agree(service)
    assert replica.agent.counts()["learned"] == 18
    assert service.log.decision(replica.id, "d0") is None
    assert replica.agent.schema is not None
    with pytest.raises(InputError, match="one of them"):
        lifecycle.erase("a")


def test_old_decisions_are_reduced_to_what_learning_needs(service, lifecycle, tmp_path):
    replica, row = service.replica("a"), service.log.agent("a")
    assert lifecycle.keep(row, time.time() + 1) == 0  # no snapshot knows them
    replica.learner.catch_up()
    service.log.save_snapshot(replica.id, *replica.dumped())
    assert lifecycle.keep(row, time.time() - 3600) == 0
    assert lifecycle.keep(row, time.time() + 1) == 10
    assert lifecycle.keep(row, time.time() + 1) == 0
    for event in service.log.after(row.id, 0):
        if event.kind == "decision":
            assert len(ids(event)) == 2
    fresh = rebuilt(service)
    assert fresh.agent.counts() == replica.agent.counts()
    assert len(fresh.learner.posterior) == 20
    np.testing.assert_array_equal(
        fresh.learner.posterior.outcomes, replica.learner.posterior.outcomes
    )
    play(service, 2, start=40)
    replayed = replay(service.database, "a")
    assert (replayed.decisions, replayed.differing) == (2, [])
    from oclok.service.export import export

    assert export(service.database, "a", tmp_path / "a.parquet") == 10 * 2 + 2 * 6


def test_the_trail_names_who_did_what(service, lifecycle):
    lifecycle.change("a", {"state": "paused"})
    Lifecycle(service.log, "other").delete("a")
    trail = lifecycle.trail("a")
    assert [(entry["who"], entry["action"]) for entry in trail] == [
        ("other", "delete"),
        ("tester", "state"),
    ]
    assert trail[1]["detail"] == {"state": "paused"}
    assert lifecycle.trail(before=trail[1]["id"]) == []


def test_every_change_over_http_and_by_the_client(server, agent, make_arms):
    from oclok import Client
    from oclok.errors import OclokError

    name = agent.rsplit("/", 1)[-1]
    client = Client(server.url, agent=name)
    decision = client.decide(
        {arm["id"]: arm["features"] for arm in make_arms(np.random.default_rng())}
    )
    client.learn(decision.id, dict.fromkeys(decision.chosen, 1.0))
    assert client.change(deadline=60.0)["settings"]["deadline"] == 60.0
    client.change(state="paused")
    with pytest.raises(OclokError, match="paused"):
        client.decide({"a": {"skill": 1.0, "city": "Oslo"}})
    client.change(state="active")
    client.clone(f"{name}-2")
    other = client[f"{name}-2"]
    assert other.describe()["learned"] == 2
    assert other.erase(arm=decision.chosen[0]) == 2
    assert other.describe()["learned"] == 1
    other.reset()
    assert other.describe()["learned"] == 0
    other.delete()
    with pytest.raises(OclokError, match="there is no agent"):
        other.describe()
    trail = server.client.get("/v1/audit", params={"name": f"{name}-2"}).json()
    assert [entry["action"] for entry in trail] == ["delete", "reset", "erase", "clone"]
    assert server.client.patch(agent, json={"state": "gone"}).status_code == 422
    assert server.client.patch(agent, json={"features": {}}).status_code == 422
    assert server.client.delete("/v1/agents/nobody").status_code == 404


def test_every_change_from_the_command_line(tmp_path):
    import os
    import subprocess
    import sys

    url = f"sqlite:///{tmp_path / 'oclok.db'}"
    database = Database(url)
    database.migrate()
    service = Service(database)
    service.put_agent("a", {"oracle": {"kind": "TopK", "k": 2}})
    play(service, 2)
    database.close()

    def run(*words):
        command = [sys.executable, "-m", "oclok", *words]
        environment = {**os.environ, "OCLOK_STORAGE": url}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        return done.returncode, done.stdout + done.stderr

    assert run("agents", "set", "a", "deadline=60", "state=paused") == (0, "")
    assert run("agents", "clone", "a", "b", "--no-learned") == (0, "")
    assert "paused" in run("agents", "list")[1]
    assert "events had it" in run("agents", "erase", "a", "--arm", "1")[1]
    assert run("agents", "reset", "a") == (0, "")
    assert run("agents", "delete", "b") == (0, "")
    assert "delete" in run("agents", "audit", "b")[1]
    assert run("check") == (0, "a: complete\n")
    code, text = run("agents", "set", "a", "mode=dead")
    assert code == 2
    assert "mode" in text
