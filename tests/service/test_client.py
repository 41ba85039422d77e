"""The client, and the commands replay and export, on a real server."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from oclok import Client
from oclok.errors import FeedbackError, InputError, OclokError, OutcomeError
from oclok.oracles import TopK
from oclok.service import demo
from oclok.service.cli import _database
from oclok.service.client import PAUSES
from oclok.service.export import export
from oclok.service.packing import pack, unpack
from oclok.service.replay import replay


@pytest.fixture(scope="module")
def client(server):
    """A client of an agent that has decided a few times."""
    with Client(server.url, agent="client") as client:
        client.create(TopK(2), outcome_range=(0, 10))
        rng = np.random.default_rng(0)
        for n in range(12):
            decision = client.decide(frame(rng), id=f"d{n}")
            outcomes = {arm: float(rng.uniform(1, 2)) for arm in decision.chosen}
            assert sorted(client.learn(decision.id, outcomes).learned) == sorted(outcomes)
        client.told = outcomes
        yield client


def frame(rng: np.random.Generator, count: int = 6) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "size": np.where(rng.random(count) < 0.2, np.nan, rng.normal(10, 3, count)),
            "city": rng.choice(["Oslo", "Rome"], count),
            "since": pd.Timestamp("2026-03-01") + pd.to_timedelta(rng.integers(0, 900, count), "h"),
            "taste": [rng.random(3).tolist() for _ in range(count)],
            "open": rng.random(count) < 0.5,
        },
        index=[f"a{n}" for n in range(count)],
    )


def test_the_methods_of_an_agent(client):
    assert client.learn("d11", client.told).repeated == list(client.told)
    arm = next(iter(client.told))
    with pytest.raises(FeedbackError, match="before"):
        client.learn("d11", {arm: 9.0})
    assert client.learn("d11", {arm: 9.0}, correct=True).corrected == [arm]
    explanation = client.explain("d11")
    assert {entry.arm for entry in explanation.arms if entry.chosen} == set(client.told)
    assert {entry.outcome for entry in explanation.arms if entry.arm == arm} == {9.0}
    assert isinstance(client.health(), list)
    assert client.describe()["rounds"] == 12
    rng = np.random.default_rng(1)
    client.observe(frame(rng), rng.uniform(0, 3, 6))
    seen = client.describe()
    assert (seen["learned"], seen["corrected"], seen["observed"]) == (23, 1, 6)
    with pytest.raises(InputError, match="size"):
        client.decide({"x": {"colour": 1}})
    with pytest.raises(OclokError, match="no agent"):
        client["nobody"].health()


def test_calls_are_repeated_until_the_service_is_back(server, client, monkeypatch):
    answers = iter([503, None, 502])
    real = client.http.request

    def request(*arguments, **more):
        import httpx

        status = next(answers, 200)
        if status is None:
            real(*arguments, **more)  # it arrives, but the answer is lost
            raise httpx.ReadError("gone")
        return real(*arguments, **more) if status == 200 else httpx.Response(status)

    monkeypatch.setattr("oclok.service.client.time.sleep", lambda seconds: None)
    monkeypatch.setattr(client.http, "request", request)
    before = server.client.get("/v1/agents/client").json()["rounds"]
    decision = client.decide(frame(np.random.default_rng(2)))
    assert len(PAUSES) >= 3
    assert server.client.get("/v1/agents/client").json()["rounds"] == before + 1
    assert len(decision.chosen) == 2


def test_observations_are_repeated_and_count_once(server, client, monkeypatch):
    import httpx

    real, calls = client.http.request, []

    def request(*arguments, **more):
        calls.append(arguments)
        if len(calls) == 1:
            raise httpx.ConnectError("not there yet")
        answer = real(*arguments, **more)
        if len(calls) < 4:
            raise httpx.ReadError("the answer is lost")
        return answer

    monkeypatch.setattr("oclok.service.client.time.sleep", lambda seconds: None)
    before = client.describe()["observed"]
    with monkeypatch.context() as patch:
        patch.setattr(client.http, "request", request)
        client.observe(frame(np.random.default_rng(3)), [1.0] * 6)
    assert len(calls) == 4
    assert client.describe()["observed"] == before + 6


def test_replay_makes_every_decision_again(server, client):
    database = _database(server.storage)
    result = replay(database, "client")
    assert result.decisions >= 12
    assert result.differing == []
    with pytest.raises(InputError, match="no agent"):
        replay(database, "nobody")


def test_replay_sees_a_decision_that_was_altered(server, client, tmp_path):
    import sqlite3

    source = sqlite3.connect(server.storage.removeprefix("sqlite:///"))
    copy = sqlite3.connect(tmp_path / "copy.db")
    source.backup(copy)
    [body] = copy.execute("SELECT body FROM events WHERE decision = 'd5' AND round > 0").fetchone()
    content = unpack(body)
    altered = pack(content | {"exact_index": content["exact_index"] + 9.0})
    copy.execute("UPDATE events SET body = ? WHERE decision = 'd5' AND round > 0", (altered,))
    copy.commit()
    copy.close()
    assert replay(_database(f"sqlite:///{tmp_path / 'copy.db'}"), "client").differing == ["d5"]


def test_export_has_one_row_per_arm_offered(server, client, tmp_path):
    path = tmp_path / "log.parquet"
    count = export(_database(server.storage), "client", path)
    table = pd.read_parquet(path)
    assert len(table) == count
    decided = table[table["kind"] == "decision"]
    assert (decided.groupby("decision")["arm"].count() == 6).all()
    assert (decided.groupby("decision")["chosen"].sum() == 2).all()
    last = decided[(decided["decision"] == "d11") & decided["chosen"]].set_index("arm")["outcome"]
    assert set(last.index) == set(client.told)


def test_the_traffic_of_the_demo_is_taken(server):
    rng, late = np.random.default_rng(0), []
    with Client(server.url, agent=demo.AGENT) as client:
        client.create({"kind": "Partition", "groups": "city", "limits": 2}, outcome_range=(0, 5))
        for _ in range(3):
            demo.play(client, rng, late)
        assert client.describe()["rounds"] == 3


def test_context_is_joined_to_every_arm(server):
    with Client(server.url, agent="context") as client:
        client.create(TopK(1))
        arms = {"a": {"x": 1.0}, "b": {"x": 2.0}}
        decision = client.decide(arms, {"hour": 3.0, "country": "no"})
        details = client.http.get(f"/v1/agents/context/decisions/{decision.id}").json()
        assert [arm["features"]["hour"] for arm in details["arms"]] == [3.0, 3.0]
        with pytest.raises(InputError, match="context and arms both have 'x'"):
            client.decide(arms, {"x": 3.0})


def test_values_as_pandas_and_databases_give_them_are_taken(client):
    column = pd.Series([Decimal("0.5"), pd.NA], index=["a0", "a1"], dtype=object)
    arms = frame(np.random.default_rng(2), 2).assign(size=column)
    decision = client.decide(arms)
    first, second = decision.chosen
    told = {first: Decimal("1.5"), second: pd.NA}
    assert client.learn(decision.id, told).learned == [first]
    assert len(client.decide(arms.assign(size=pd.NA)).chosen) == 2


@pytest.mark.parametrize("wrong", [np.inf, 1j, b"x", [np.nan], ["x"], {}, pd.Timedelta("1h")])
def test_a_value_that_json_does_not_have_is_refused_by_name(client, wrong):
    arms = frame(np.random.default_rng(2), 2)
    arms["size"] = pd.Series([1.0, wrong], index=arms.index, dtype=object)
    with pytest.raises(InputError, match="feature 'size' of arm 'a1': expected a finite number"):
        client.decide(arms)
    with pytest.raises(InputError, match="feature 'hour' of the context: expected a finite"):
        client.decide(arms.drop(columns="size"), {"hour": wrong})


@pytest.mark.parametrize("wrong", ["1.0", [1.0], np.inf, 10**400, pd.Timestamp(0)])
def test_an_outcome_that_is_no_number_is_refused_by_arm(client, wrong):
    with pytest.raises(OutcomeError, match="the outcome of arm 'a0' must be"):
        client.learn("d11", {"a0": wrong})


def test_a_batch_is_decided_all_or_not_at_all(server):
    with Client(server.url, agent="batch") as client:
        client.create(TopK(1))
        arms = {"a": {"x": 1.0}, "b": {"x": 2.0}}
        client.decide(arms, id="first")
        decisions = client.decide_batch([{"arms": arms, "id": f"b{n}"} for n in range(5)])
        assert [decision.id for decision in decisions] == [f"b{n}" for n in range(5)]
        assert [decision.round for decision in decisions] == list(range(2, 7))
        again = client.decide_batch([{"arms": arms, "id": f"b{n}"} for n in range(6)])
        assert [decision.chosen for decision in again[:5]] == [d.chosen for d in decisions]
        with pytest.raises(InputError, match="distinct"):
            client.decide_batch([{"arms": arms, "id": "same"}, {"arms": arms, "id": "same"}])
        wrong = [{"arms": arms, "id": "c0"}, {"arms": {"a": {"y": 1.0}}, "id": "c1"}]
        with pytest.raises(InputError):
            client.decide_batch(wrong)
        assert client.describe()["rounds"] == 7


def test_outcomes_are_weighed(server):
    with Client(server.url, agent="weights") as client:
        client.create(TopK(1), outcome_weights={"click": 1.0, "sale": 10.0})
        decision = client.decide({"a": {"x": 1.0}, "b": {"x": 2.0}})
        arm = decision.chosen[0]
        client.learn(decision.id, {arm: {"click": 1, "sale": 0.5}})
        details = client.http.get(f"/v1/agents/weights/decisions/{decision.id}").json()
        assert details["outcomes"][0]["outcome"] == 6.0
        decision = client.decide({"a": {"x": 1.0}, "b": {"x": 2.0}})
        with pytest.raises(InputError, match="no weight for 'view'"):
            client.learn(decision.id, {decision.chosen[0]: {"view": 1}})


def test_an_idempotency_key_counts_once(server):
    with Client(server.url, agent="once") as client:
        client.create(TopK(1))
        items = [{"features": {"x": float(n)}, "outcome": float(n)} for n in range(3)]
        for key, learned in (("k1", 3), ("k1", 3), ("k2", 6)):
            url = "/v1/agents/once/observations"
            answer = client.http.post(url, json=items, headers={"Idempotency-Key": key})
            assert answer.json() == {"learned": 3}
            assert client.describe()["observed"] == learned
        body = {"arms": [{"id": "a", "features": {"x": 1.0}}]}
        url, headers = "/v1/agents/once/decisions", {"Idempotency-Key": "k1"}
        first = client.http.post(url, json=body, headers=headers).json()
        assert client.http.post(url, json=body, headers=headers).json() == first


@pytest.mark.parametrize("settings", [{"policy": "thompson"}, {"exploration": 0.5}])
def test_policies_are_settings(server, settings):
    with Client(server.url, agent=f"policy-{next(iter(settings))}") as client:
        client.create(TopK(1), forgetting={"window": 50}, **settings)
        for _ in range(3):
            decision = client.decide({"a": {"x": 1.0}, "b": {"x": 2.0}})
            client.learn(decision.id, {decision.chosen[0]: 1.0})
        assert client.describe()["settings"].items() >= settings.items()
        events = client.describe()["events"]
        client.change(forgetting={"window": 50})  # as it is: nothing happens
        assert client.describe()["events"] == events
        assert replay(_database(server.storage), client.agent).differing == []


def test_the_async_client_has_the_same_methods(server):
    import asyncio
    import inspect

    from oclok import AsyncClient

    def methods(cls):
        return {name for name in dir(cls) if not name.startswith("_")}

    assert methods(AsyncClient) == methods(Client)
    for name in methods(Client) - {"close"}:
        assert inspect.signature(getattr(AsyncClient, name)) == inspect.signature(
            getattr(Client, name)
        )
        assert getattr(AsyncClient, name).__doc__

    async def play():
        async with AsyncClient(server.url, agent="async") as client:
            await client.create(TopK(1))
            arms = {"a": {"x": 1.0}, "b": {"x": 2.0}}
            decisions = await asyncio.gather(*(client.decide(arms) for _ in range(5)))
            for decision in decisions:
                await client.learn(decision.id, {decision.chosen[0]: 1.0})
            assert (await client.describe())["learned"] == 5
            with pytest.raises(OclokError, match="there is no agent"):
                await client["nobody"].describe()

    asyncio.run(play())
