from __future__ import annotations

import json

import numpy as np
import pytest

import oclok.agent.decision
from oclok.agent.decision import AgentDecision, Offer, Offers
from oclok.errors import FeedbackError
from oclok.persistence import dumps, loads

NONE = np.zeros(0, dtype=np.intp)
OFFER = Offer(
    ["a", 7, "c"],
    np.zeros((3, 1)),
    np.array([0.5, 0.9, 0.1]),
    np.array([0.4, 0.2, 0.1]),
    np.array([0.1, 0.7, 0.0]),
    np.array([0, 1]),
    NONE,
    NONE,
)
DECISION = AgentDecision("5-x", 5, ["a", 7], False, ["a", 7], OFFER)


def test_the_table_has_every_arm_best_first() -> None:
    table = DECISION.table()
    assert table.index.tolist() == [7, "a", "c"]
    assert table["chosen"].tolist() == [True, True, False]
    assert table["std"].tolist() == [0.7, 0.1, 0.0]


def test_a_decision_becomes_json() -> None:
    told = json.loads(json.dumps(DECISION.to_dict()))
    assert told == {
        "id": "5-x",
        "round": 5,
        "chosen": [
            {"id": "a", "mean": 0.4, "std": 0.1, "index": 0.5},
            {"id": 7, "mean": 0.2, "std": 0.7, "index": 0.9},
        ],
        "is_exact": False,
    }


def test_without_its_arms_a_decision_still_says_what_was_chosen() -> None:
    bare = AgentDecision("5-x", 5, ["a", 7], False, ["a", 7], None)
    assert bare.to_dict()["chosen"] == [{"id": "a"}, {"id": 7}]
    with pytest.raises(FeedbackError, match="too long ago"):
        bare.table()


def decision(name: str, arms: int = 3) -> AgentDecision:
    none = np.zeros(0, dtype=np.intp)
    ids = [f"a{i}" for i in range(arms)]
    X = np.arange(2.0 * arms).reshape(arms, 2)
    offer = Offer(ids, X, X[:, 0], X[:, 1], None, np.array([1]), none, none)  # type: ignore[arg-type]
    return AgentDecision(name, 4, ["a1"], True, ["a1"], offer)


def test_the_latest_are_kept() -> None:
    offers = Offers(2)
    for name in "abc":
        offers.add(decision(name))
    assert offers.get("a") is None
    assert offers["c"].id == "c"
    with pytest.raises(FeedbackError, match="'a' cannot be explained"):
        offers["a"]


def test_fewer_are_kept_where_they_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oclok.agent.decision, "MOST_NUMBERS", 100)
    offers = Offers(1_000)
    for i in range(30):
        offers.add(decision(str(i), arms=10))
    assert [str(i) for i in range(30) if offers.get(str(i))] == ["25", "26", "27", "28", "29"]
    offers.add(decision("huge", arms=60))
    assert offers.get("huge") is None


def test_they_come_back_from_a_file() -> None:
    offers = Offers(2)
    offers.add(decision("a"))
    back = loads(dumps(offers))
    assert isinstance(back, Offers)
    assert back["a"].table().equals(offers["a"].table())
    assert back["a"].to_dict() == offers["a"].to_dict()
    assert dumps(back) == dumps(offers)
