"""Clients of Personalizer find what they expect."""

from __future__ import annotations

import pytest


@pytest.fixture
def endpoint(server, request):
    name = "p-" + "".join(c if c.isalnum() else "-" for c in request.node.name)[:50]
    server.client.put(f"/v1/agents/{name}", json={"oracle": {"kind": "TopK", "k": 1}})
    return f"/v1/agents/{name}/personalizer/v1.0"


RANK = {
    "contextFeatures": [{"user": {"age": 30}}, {"day": "Monday"}],
    "actions": [
        {"id": "pasta", "features": [{"taste": "salty"}, {"price": {"level": 2}}]},
        {"id": "ice", "features": [{"taste": "sweet"}, {"price": {"level": 1}}]},
        {"id": "soup", "features": [{"taste": "salty"}, {"price": {"level": 1}}]},
    ],
    "excludedActions": ["soup"],
    "eventId": "e1",
    "deferActivation": False,
}


def test_rank_and_reward(server, endpoint):
    answer = server.client.post(f"{endpoint}/rank", json=RANK)
    assert answer.status_code == 201
    ranked = answer.json()
    assert ranked["eventId"] == "e1"
    assert ranked["ranking"][0]["id"] == ranked["rewardActionId"] in ("pasta", "ice")
    assert sorted(each["id"] for each in ranked["ranking"]) == ["ice", "pasta", "soup"]
    assert server.client.post(f"{endpoint}/rank", json=RANK).json() == ranked
    reward = f"{endpoint}/events/e1/reward"
    assert server.client.post(f"{endpoint}/events/e1/activate", json={}).status_code == 204
    assert server.client.post(reward, json={"value": 1.0}).status_code == 204
    agent = endpoint.split("/personalizer")[0]
    assert server.client.get(agent).json()["learned"] == 1
    details = server.client.get(f"{agent}/decisions/e1").json()
    assert details["arms"][0]["features"]["user.age"] == 30


def test_what_is_wrong_is_said(server, endpoint):
    assert server.client.post(f"{endpoint}/events/e9/reward", json={"value": 1}).status_code == 404
    assert server.client.post(f"{endpoint}/rank", json={"actions": []}).status_code == 422
    wrong = {**RANK, "actions": [{"id": "a", "features": [{"x": {"y": ["text"]}}]}]}
    assert server.client.post(f"{endpoint}/rank", json=wrong).status_code == 422
