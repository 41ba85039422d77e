from __future__ import annotations

import json

import numpy as np
import pytest

from oclok.agent.decision import AgentDecision, Offer
from oclok.errors import FeedbackError

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
