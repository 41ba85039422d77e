"""Values that are odd are taken, values that are wrong are refused with a reason."""

from __future__ import annotations

import copy
import json
import os
import random
import string

import numpy as np
import pytest

#: Malformed bodies that are tried.
MALFORMED = int(os.environ.get("OCLOK_MALFORMED", "400"))
JSON = {"content-type": "application/json"}
#: Not JSON, or not JSON that any call takes.
WORDS = ["NaN", "Infinity", "null", "[]", "{}", '"x"', "1e999", "-1e999", "[" * 50_000, "9" * 5_000]
#: Wrong in place of whatever has this name.
WRONG = {
    "arms": [None, {}, "a", 1, [], [[]], [None], ["a"]],
    "id": [1.5, True, [], {}, "", "a" * 300, 2**60, "\ud800"],
    "features": [None, [], {}, "a", 1, {"": 1}, {"\ud800": 1}],
    "skill": ["x", {}, [], [[1.0]], 1e300, -1e300, float("nan"), float("inf"), 10**400, "\udfff"],
    "city": [1.5, {}, [], [None], "x" * 1_001, "\ud800"],
    "include": [None, "w1", {}, ["nobody"], [1.5], [None]],
    "oracle": [[], "TopK", {}, {"kind": "Top"}, {"kind": "TopK", "k": 10**30}, {"kind": "\ud800"}],
    "decision": [None, 1, [], "", "a/b", "\u00e9", "a" * 129],
    "arm": [None, 1.5, [], {}, "", "a" * 300],
    "outcome": ["1", True, [], {}, 1e300, float("nan"), float("-inf"), 10**400],
}


def test_malformed_bodies_are_refused_with_a_reason_and_change_nothing(server, agent, make_arms):
    rng = random.Random(0)
    arms = make_arms(np.random.default_rng(6))
    server.client.post(f"{agent}/decisions", json={"arms": arms, "id": "d"})
    before = server.client.get(agent).json()
    oracle = {"kind": "TopK", "k": 1}
    good = {
        "decisions": {"arms": arms, "include": ["w1"], "oracle": oracle, "id": "e"},
        "outcomes": [{"decision": "d", "arm": "w1", "outcome": 1.0}],
        "observations": [{"features": arms[0]["features"], "outcome": 1.0}],
    }
    for n in range(MALFORMED):
        call = rng.choice(list(good))
        content = replaced(good[call], rng) if n % 2 else damaged(json.dumps(good[call]), rng)
        answer = server.client.post(f"{agent}/{call}", content=content, headers=JSON)
        assert answer.status_code in (400, 422), (content, answer.text)
        assert answer.json()["detail"]
    assert server.client.get(agent).json() == before


def test_a_value_that_may_be_of_several_types_is_refused_with_what_it_may_be(server, agent):
    item = {"decision": "d", "arm": "w1", "outcome": "good"}
    answer = server.client.post(f"{agent}/outcomes", json=[item])
    assert answer.status_code == 422
    assert answer.json()["detail"] == (
        "body/0/outcome: Expected a number up to 1e+100, an object of such numbers, or null"
    )
    settings = {"oracle": {"kind": "TopK", "k": 1}, "features": {"city": 3}}
    told = server.client.put("/v1/agents/kinds", json=settings).json()["detail"]
    assert told == "body/features/city: Expected a kind, or an object with a kind"


def replaced(body: object, rng: random.Random) -> bytes:
    """Return a body with a value that is wrong where it stands, or with one that is not known."""
    body = copy.deepcopy(body)
    places = [(parent, key) for parent, key in _members(body) if key in WRONG]
    parent, key = rng.choice(places)
    if rng.random() < 0.1:
        parent["more"] = parent[key]
    else:
        parent[key] = rng.choice(WRONG[key])
    return json.dumps(body).encode()


def _members(value: object) -> list:
    if isinstance(value, dict):
        own = [(value, key) for key in value]
        return own + [member for item in value.values() for member in _members(item)]
    return [m for item in value for m in _members(item)] if isinstance(value, list) else []


def damaged(text: str, rng: random.Random) -> bytes:
    """Return a body that is no JSON, or not in its form."""
    place = rng.randrange(len(text))
    way = rng.randrange(5)
    if way == 0:
        return text[:place].encode()
    if way == 1:
        return text.replace('"', rng.choice(["'", "", "\\"]), 1).encode()
    if way == 2:
        return (text + rng.choice(string.printable.strip())).encode()
    if way == 3:
        return rng.choice(WORDS).encode()
    return text.encode("utf-16")[: place + 2]


def test_ids_of_arms_may_be_any_text_or_number(server, agent):
    ids = [
        "\u00e9/\u00fc",
        "\u65e5\u672c",
        "\U0001f642",
        "../x",
        "<b>",
        "\0",
        "'; DROP TABLE agents",
        7,
        "7",
    ]
    arms = [{"id": each, "features": {"x": float(n)}} for n, each in enumerate(ids)]
    request = {"arms": arms, "id": "odd", "oracle": {"kind": "TopK", "k": len(ids)}}
    chosen = server.client.post(f"{agent}/decisions", json=request).json()["chosen"]
    assert [arm["id"] for arm in chosen] == ids
    items = [{"decision": "odd", "arm": each, "outcome": n} for n, each in enumerate(ids)]
    assert server.client.post(f"{agent}/outcomes", json=items).json()["learned"] == len(ids)
    told = server.client.get(f"{agent}/decisions/odd").json()["outcomes"]
    assert [(each["arm"], each["outcome"]) for each in told] == list(
        zip(ids, range(9), strict=True)
    )
    for path in ("", "/history", "/decisions"):
        assert server.client.get(f"{agent}{path}").status_code == 200


def test_numbers_up_to_the_limits_are_taken(server, agent):
    for n, x in enumerate([1e100, -1e100, 5e-324, 2**53, -0.0, 1e15]):
        arms = [{"id": "a", "features": {"x": x}}, {"id": "b", "features": {"x": 1.0}}]
        request = {"arms": arms, "id": f"d{n}"}
        assert server.client.post(f"{agent}/decisions", json=request).status_code == 201
        item = {"decision": f"d{n}", "arm": "b", "outcome": 5e-324}
        assert server.client.post(f"{agent}/outcomes", json=[item]).json()["learned"] == 1
    assert server.client.get(agent).status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        '{"oracle": {"kind": "Knapsack", "costs": "\\ud800", "budget": 1}}',
        '{"oracle": {"kind": "TopK", "k": 1}, "features": {"\\ud800": "number"}}',
        '{"oracle": {"kind": "Partition", "groups": "x", "limits": 1' + "0" * 30 + "}}",
        '{"oracle": {"kind": "TopK", "k": ' + "[" * 900 + "]" * 900 + "}}",
    ],
)
def test_settings_that_cannot_be_told_again_are_refused(server, wrong):
    answer = server.client.put("/v1/agents/untold", content=wrong, headers=JSON)
    assert answer.status_code == 422
    assert answer.json()["detail"]
    assert server.client.get("/v1/agents").status_code == 200
    assert server.client.get("/v1/agents/untold").status_code == 404
