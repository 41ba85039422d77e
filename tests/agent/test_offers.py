from __future__ import annotations

import numpy as np
import pytest

import oclok.agent.offers
from oclok.agent.decision import AgentDecision, Offer
from oclok.agent.offers import Offers
from oclok.errors import FeedbackError
from oclok.persistence import dumps, loads


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
    monkeypatch.setattr(oclok.agent.offers, "MOST_NUMBERS", 100)
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
