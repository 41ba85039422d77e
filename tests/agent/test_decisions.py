from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import oclok.agent.decisions
from oclok.agent.decision import AgentDecision, Offer
from oclok.agent.decisions import Decisions, Status
from oclok.errors import FeedbackError
from oclok.persistence import dumps, loads

REMEMBERED = 5


def made(name: str, arms: list[str | int], contexts: np.ndarray) -> AgentDecision:
    """Return a decision that chose all of its arms."""
    places, none = np.arange(len(arms)), np.empty(0, dtype=np.intp)
    offer = Offer(arms, contexts, np.zeros(len(arms)), None, None, places, none, none)
    return AgentDecision(name, 0, arms, None, arms, offer)


class Kept(RuleBasedStateMachine):
    """A store that forgets early and reclaims often, against plain dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.least = oclok.agent.decisions.LEAST_TO_RECLAIM
        oclok.agent.decisions.LEAST_TO_RECLAIM = 2
        self.store = Decisions(REMEMBERED)
        self.model: dict[str, dict] = {}
        self.settled: list[str] = []
        self.time = 0

    def teardown(self) -> None:
        oclok.agent.decisions.LEAST_TO_RECLAIM = self.least

    @rule(count=st.integers(0, 4), wait=st.integers(0, 3))
    def add(self, count: int, wait: int) -> None:
        self.time += wait
        name = f"d{len(self.model) + len(self.settled)}-{self.time}"
        if name in self.model:
            return
        arms = [f"a{i}" if i % 2 else i for i in range(count)]
        contexts = np.random.default_rng(len(name)).random((count, 2))
        self.store.add(made(name, arms, contexts), self.time)
        self.model[name] = {
            "decided": self.time,
            "arms": arms,
            "contexts": contexts,
            "outcomes": [np.nan] * count,
            "status": [Status.WAITING] * count,
        }
        if not count:
            self.close(name)

    @precondition(lambda self: any(entry["arms"] for entry in self.model.values()))
    @rule(data=st.data(), status=st.sampled_from(list(Status)[1:]), outcome=st.floats(-9, 9))
    def settle(self, data: st.DataObject, status: Status, outcome: float) -> None:
        names = sorted(name for name, entry in self.model.items() if entry["arms"])
        name = data.draw(st.sampled_from(names))
        entry = self.model[name]
        place = data.draw(st.integers(0, len(entry["arms"]) - 1))
        was_open = Status.WAITING in entry["status"]
        self.store.settle(name, [place], status, [outcome], [outcome])
        entry["outcomes"][place], entry["status"][place] = outcome, status
        if was_open and Status.WAITING not in entry["status"]:
            self.close(name)

    @rule()
    def save_and_load(self) -> None:
        content = dumps(self.store)
        store = loads(content)
        assert isinstance(store, Decisions)
        assert dumps(store) == content
        self.store = store

    @invariant()
    def same(self) -> None:
        open_ones = [n for n, entry in self.model.items() if Status.WAITING in entry["status"]]
        assert len(self.store) == len(open_ones)
        history = self.store.history()
        assert history.ids == list(self.model)
        seen = [entry["status"] for entry in self.model.values()]
        assert [s for statuses in seen for s in statuses] == history.status.tolist()
        assert history.row.tolist() == [row for row, s in enumerate(seen) for _ in s]
        assert self.store.waiting == sum(
            entry["status"].count(Status.WAITING) for entry in self.model.values()
        )
        for name, entry in self.model.items():
            record = self.store.record(name)
            assert record.decided == entry["decided"]
            assert record.arms == entry["arms"]
            np.testing.assert_array_equal(record.contexts, entry["contexts"])
            np.testing.assert_array_equal(record.outcomes, entry["outcomes"])
            np.testing.assert_array_equal(record.status, entry["status"])
        for before in (self.time - 2, self.time):
            due = [n for n in open_ones if self.model[n]["decided"] <= before]
            assert sorted(self.store.due(before)) == sorted(due)
        quarantined = [
            (name, arm, outcome)
            for name, entry in self.model.items()
            for arm, outcome, status in zip(
                entry["arms"], entry["outcomes"], entry["status"], strict=True
            )
            if status == Status.QUARANTINED
        ]
        assert list(self.store.with_status(Status.QUARANTINED)) == quarantined

    def close(self, name: str) -> None:
        self.settled.append(name)
        kept = [n for n in self.settled if n in self.model]
        if len(kept) > REMEMBERED:
            del self.model[kept[0]]


TestKept = Kept.TestCase
TestKept.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)


def test_an_unknown_decision_is_an_error() -> None:
    with pytest.raises(FeedbackError, match="decision 'x' is unknown"):
        Decisions(5).record("x")


def test_evidence_is_what_was_learned_lately() -> None:
    store = Decisions(100)
    for i in range(4):
        store.add(made(f"d{i}", ["a", "b"], np.full((2, 1), float(i))), i)
        store.settle(f"d{i}", [0], Status.LEARNED, [i], [i])
    contexts, outcomes, names = store.latest_learned(3)
    assert contexts.tolist() == [[1.0], [2.0], [3.0]]
    assert outcomes.tolist() == [1.0, 2.0, 3.0]
    assert names == [("d1", "a"), ("d2", "a"), ("d3", "a")]


def test_dropped_decisions_do_not_pile_up() -> None:
    store = Decisions(10)
    for i in range(20_000):
        store.add(made(f"d{i}", ["a"], np.zeros((1, 3))), i)
        store.settle(f"d{i}", [0], Status.LEARNED, [1.0], [1.0])
    assert len(dumps(store)) < 200_000
