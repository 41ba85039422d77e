"""The calls of the HTTP interface, on a real server."""

from __future__ import annotations

import time

import numpy as np
import pytest

from oclok import Agent
from oclok.oracles import TopK
from oclok.service.router import BODILESS, REASONS


def test_put_is_201_then_200_and_409_if_it_differs(server, agent, settings):
    assert server.client.put(agent, json=settings).status_code == 200
    answer = server.client.put(agent, json=settings | {"deadline": 60.0})
    assert answer.status_code == 409
    assert "deadline" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"oracle": {"kind": "Top"}}, "kind must be one of"),
        ({"oracle": {"kind": "TopK", "k": 0}}, "k must be"),
        ({"oracle": {"kind": "TopK", "k": 1, "x": 1}}, "no field 'x'"),
        ({"outcome_range": [3, 1]}, "outcome_range"),
        ({"default_outcome": 1.0}, "deadline"),
        ({"features": {"a": "colour"}}, "feature 'a'"),
        ({"mode": "dead"}, "mode"),
        ({"more": 1}, "more"),
        ({"deadline": "60"}, "deadline"),
    ],
)
def test_settings_that_are_wrong_are_refused(server, settings, wrong, told):
    answer = server.client.put("/v1/agents/wrong", json=settings | wrong)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert told in answer.json()["detail"]
    assert server.client.get("/v1/agents/wrong").status_code == 404


def test_decide_learn_and_get(server, agent, make_arms):
    rng = np.random.default_rng(0)
    arms = make_arms(rng)
    answer = server.client.post(f"{agent}/decisions", json={"arms": arms, "id": "d1"})
    assert answer.status_code == 201
    decision = answer.json()
    assert decision["round"] == 1
    assert len(decision["chosen"]) == 2
    again = server.client.post(f"{agent}/decisions", json={"arms": make_arms(rng), "id": "d1"})
    assert again.status_code == 201
    assert again.json() == decision
    first, second = (arm["id"] for arm in decision["chosen"])
    told = [
        {"decision": "d1", "arm": first, "outcome": 1.5},
        {"decision": "d1", "arm": "nobody", "outcome": 1.5},
        {"decision": "d2", "arm": first, "outcome": 1.5},
        {"decision": "d1", "arm": second, "outcome": 1e6},
    ]
    answer = server.client.post(f"{agent}/outcomes", json=told).json()
    assert answer["learned"] == 1
    assert [item["arm"] for item in answer["rejected"]] == ["nobody", second, first]
    assert server.client.post(f"{agent}/outcomes", json=told[:1]).json()["repeated"] == 1
    other = [told[0] | {"outcome": 2.5}]
    assert (
        "before"
        in server.client.post(f"{agent}/outcomes", json=other).json()["rejected"][0]["reason"]
    )
    corrected = server.client.post(f"{agent}/outcomes", json=[other[0] | {"correct": True}])
    assert corrected.json()["corrected"] == 1
    details = server.client.get(f"{agent}/decisions/d1").json()
    assert details["chosen"] == decision["chosen"]
    assert details["outcomes"] == [
        {"arm": first, "status": "corrected", "outcome": 2.5},
        {"arm": second, "status": "waiting", "outcome": None},
    ]
    assert {arm["id"] for arm in details["arms"]} == {arm["id"] for arm in arms}
    assert details["arms"][0]["reason"]
    seen = server.client.get(agent).json()
    assert (seen["rounds"], seen["corrected"], seen["waiting"]) == (1, 1, 1)
    assert server.client.get(f"{agent}/decisions/d2").status_code == 404


def test_answers_are_those_of_an_agent_in_process(server, agent, make_arms):
    rng = np.random.default_rng(1)
    local = Agent(oracle=TopK(2), outcome_range=(-100, 100), seed=0)
    past = make_arms(rng, 20)
    outcomes = rng.random(20).tolist()
    body = [
        {"features": arm["features"], "outcome": y} for arm, y in zip(past, outcomes, strict=True)
    ]
    assert server.client.post(f"{agent}/observations", json=body).json() == {"learned": 20}
    server.settle(agent.rsplit("/", 1)[-1])
    local.observe({n: arm["features"] for n, arm in enumerate(past)}, outcomes)
    for _ in range(15):
        arms = make_arms(rng)
        request = {"arms": arms, "include": [arms[3]["id"]], "exclude": [arms[0]["id"]]}
        answer = server.client.post(f"{agent}/decisions", json=request).json()
        mine = local.decide(
            {arm["id"]: arm["features"] for arm in arms},
            include=request["include"],
            exclude=request["exclude"],
            id=answer["id"],
        ).to_dict()
        assert [arm["id"] for arm in answer["chosen"]] == [arm["id"] for arm in mine["chosen"]]
        for here, there in zip(mine["chosen"], answer["chosen"], strict=True):
            for name in ("mean", "std", "index"):
                assert there[name] == pytest.approx(here[name], abs=1e-9)
        told = {arm["id"]: float(rng.random()) for arm in answer["chosen"]}
        items = [{"decision": answer["id"], "arm": a, "outcome": y} for a, y in told.items()]
        assert server.client.post(f"{agent}/outcomes", json=items).json()["learned"] == 2
        server.settle(agent.rsplit("/", 1)[-1])
        local.learn(answer["id"], told)


def test_oracles_by_column_name(server, make_arms):
    rng = np.random.default_rng(2)
    oracle = {"kind": "Knapsack", "costs": "price", "budget": 3.0}
    server.client.put("/v1/agents/knapsack", json={"oracle": oracle})
    arms = make_arms(rng)
    for arm in arms:
        arm["features"]["price"] = 1.0 + len(arm["id"]) / 2
    outcomes = [{"features": arm["features"], "outcome": 1.0 + rng.random()} for arm in arms]
    server.client.post("/v1/agents/knapsack/observations", json=outcomes)
    answer = server.client.post("/v1/agents/knapsack/decisions", json={"arms": arms}).json()
    assert len(answer["chosen"]) == 1
    own = {"arms": arms, "oracle": {"kind": "TopK", "k": 4}}
    answer = server.client.post("/v1/agents/knapsack/decisions", json=own).json()
    assert len(answer["chosen"]) == 4


def test_shadow_mode_learns_from_what_another_system_chose(server, settings, make_arms):
    server.client.put("/v1/agents/shadow", json=settings | {"mode": "shadow"})
    arms = make_arms(np.random.default_rng(3))
    answer = server.client.post("/v1/agents/shadow/decisions", json={"arms": arms})
    assert answer.status_code == 422
    request = {"arms": arms, "chosen": ["w4"], "id": "s"}
    answer = server.client.post("/v1/agents/shadow/decisions", json=request).json()
    assert [arm["id"] for arm in answer["chosen"]] == ["w4"]


def test_deadlines_pass_without_a_request(server, settings, make_arms):
    body = settings | {"deadline": 0.2, "default_outcome": 0.0}
    server.client.put("/v1/agents/deadline", json=body)
    request = {"arms": make_arms(np.random.default_rng(4)), "id": "d"}
    server.client.post("/v1/agents/deadline/decisions", json=request)
    for _ in range(300):
        outcomes = server.client.get("/v1/agents/deadline/decisions/d").json()["outcomes"]
        if all(told["status"] == "defaulted" for told in outcomes):
            break
        time.sleep(0.1)
    assert [told["outcome"] for told in outcomes] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("arms", "told"),
    [
        ([], "arms"),
        ([{"id": "a", "features": {}}], "features"),
        ([{"id": "a", "features": {"x": 1}}, {"id": "a", "features": {"x": 2}}], "'a' is there"),
        ([{"id": "a", "features": {"skill": 1}}], "city"),
        ([{"id": "a", "features": {"skill": "x", "city": "Oslo"}}], "skill"),
        ([{"id": "a", "features": {"skill": 1e300, "city": "Oslo"}}], "features"),
        ([{"id": "a" * 300, "features": {"skill": 1, "city": "Oslo"}}], "id"),
        ([{"id": 1.5, "features": {"skill": 1, "city": "Oslo"}}], "id"),
    ],
)
def test_arms_that_are_wrong_are_refused(server, settings, make_arms, arms, told):
    server.client.put("/v1/agents/arms", json=settings)
    first = {"arms": make_arms(np.random.default_rng(5)), "id": "first"}
    server.client.post("/v1/agents/arms/decisions", json=first)
    before = server.client.get("/v1/agents/arms").json()
    answer = server.client.post("/v1/agents/arms/decisions", json={"arms": arms})
    assert answer.status_code == 422
    assert told in answer.json()["detail"]
    assert server.client.get("/v1/agents/arms").json() == before


def test_limits_on_size_and_type(server, agent):
    headers = {"content-type": "application/json"}
    large = b"[" + b" " * 8_000_001 + b"]"
    answer = server.client.post(f"{agent}/outcomes", content=large, headers=headers)
    assert answer.status_code == 413
    pieces = (b" " * 1_000_000 for _ in range(9))
    answer = server.client.post(f"{agent}/outcomes", content=pieces, headers=headers)
    assert answer.status_code == 413
    answer = server.client.post(f"{agent}/outcomes", content=b"[]")
    assert answer.status_code == 415
    answer = server.client.get("/v1/agents", headers={"host": "evil.example"})
    assert answer.status_code == 403
    for name in ("..%2f..%2fetc", "a b", "x" * 65, "'; DROP TABLE agents; --"):
        answer = server.client.get(f"/v1/agents/{name}")
        assert answer.status_code in (404, 422)
        assert answer.headers["content-type"] == "application/problem+json"


def test_liveness_readiness_and_metrics(server, agent):
    assert server.client.get("/healthz").json() == {"status": "alive"}
    assert server.client.get("/readyz").json() == {"status": "ready"}
    for method in ("PROPFIND", "LOCK", "SEARCH"):
        assert server.client.request(method, agent).status_code == 405
    text = server.client.get("/metrics").text
    assert "oclok_request_seconds_bucket" in text
    assert "PROPFIND" not in text
    assert 'method="other"' in text
    assert "oclok_waiting{agent=" in text


def test_calls_describe_their_key_and_the_problems_they_may_have(server):
    for path, calls in server.client.get("/openapi.json").json()["paths"].items():
        if path in ("/healthz", "/readyz", "/v1/me"):
            continue
        for method, call in calls.items():
            expected = BODILESS if method in ("get", "delete") else REASONS
            assert {int(s) for s in call["responses"] if int(s) >= 400} == set(expected), path
            assert call["security"], path
