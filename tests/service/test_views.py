"""What the API answers about agents, where it is decided."""

from __future__ import annotations

import numpy as np
import pytest

from oclok.agent.health import Finding
from oclok.policies.calibration import calibrate
from oclok.service import learned, views
from oclok.service.database import Database
from oclok.service.lifecycle import Lifecycle
from oclok.service.metrics import LEVELS, Metrics
from oclok.service.service import Service

ASKED = {"oracle": None, "include": [], "exclude": [], "id": None, "chosen": None}
CALM = calibrate(np.random.default_rng(0).standard_normal(200), np.ones(200))


def test_the_worst_finding_decides_and_says_what_to_do_in_terms_of_the_api():
    findings = [Finding("lost", "warning", "60% of outcomes are lost"), Finding("late", "info", "")]
    seen = views.verdict(findings, CALM)
    assert (seen.level, seen.kind) == ("amber", "lost")
    assert seen.summary == "60% of outcomes are lost."
    assert "`default_outcome`" in seen.action
    assert views.verdict([Finding("lost", "error", "x")], CALM).level == "red"


def test_a_few_outcomes_are_too_early_unless_something_is_wrong():
    few = calibrate(np.zeros(3), np.ones(3))
    assert views.verdict([], few).level == "grey"
    assert "3 of 50 outcomes were foreseen" in views.verdict([], few).summary
    assert views.verdict([Finding("constant", "info", "")], CALM).level == "green"
    assert views.verdict([Finding("quarantine", "warning", "x")], few).level == "amber"


def test_health_page_and_metrics_agree_and_show_no_regret_of_a_contradicted_model(
    storage, make_arms, monkeypatch
):
    Database(storage).migrate()
    service = Service(Database(storage))
    service.put_agent("a", {"oracle": {"kind": "TopK", "k": 1}})
    replica, arms = service.replica("a"), make_arms(np.random.default_rng(0))
    [chosen] = service.decide("a", ASKED | {"arms": arms, "id": "d"})["chosen"]
    outcome = {"decision": "d", "arm": chosen["id"], "outcome": 1.0}
    service.learn("a", [outcome | {"correct": False, "accept": False}])
    replica.learner.catch_up()
    assert replica.learner.regret().rounds == 1  # while nothing contradicts the model
    assert views.agent(replica).regret is not None
    off = calibrate(5 * np.random.default_rng(0).standard_normal(200), np.ones(200))
    monkeypatch.setattr(replica.learner, "calibration", lambda: off)
    [found] = [found for found in replica.agent.health() if found.severity != "info"]
    seen = views.agent(replica)
    assert found.kind == seen.verdict.kind == "calibration"
    assert seen.verdict == views.row(replica).verdict
    assert seen.calibration.verdict == "overconfident"
    assert seen.regret is None
    metrics = Metrics(service).text().decode()
    assert f'oclok_health{{agent="a"}} {LEVELS[seen.verdict.level]:.1f}' in metrics


def test_actions_speak_of_the_api_not_of_python():
    for action in views.ADVICE.values():
        assert "=" not in action
        assert "()" not in action


def test_nothing_is_computed_for_explanations_where_they_are_off(storage, make_arms, monkeypatch):
    Database(storage).migrate()
    service = Service(Database(storage))
    service.put_agent("a", {"oracle": {"kind": "TopK", "k": 1}, "explain": False})
    replica = service.replica("a")
    arms = make_arms(np.random.default_rng(0))
    [chosen] = service.decide("a", ASKED | {"arms": arms, "id": "d"})["chosen"]
    service.learn(
        "a",
        [{"decision": "d", "arm": chosen["id"], "outcome": 1.0, "correct": False, "accept": False}],
    )
    with monkeypatch.context() as patch:
        patch.setattr(replica.agent, "explain", None)
        seen = views.decision(service, replica, "d")
    assert len(seen.arms) == len(arms)
    assert not any(arm.reason or arm.evidence for arm in seen.arms)
    assert learned.learned(service, replica).kernels == []
    Lifecycle(service.log, "me").change("a", {"explain": True})
    replica = service.read_changes("a")
    assert all(arm.reason for arm in views.decision(service, replica, "d").arms)
    assert learned.learned(service, replica).kernels != []


@pytest.mark.parametrize("default", [None, 0.5])
def test_statuses_are_those_of_the_log_once_an_agent_has_forgotten(storage, make_arms, default):
    Database(storage).migrate()
    service = Service(Database(storage))
    deadline = None if default is None else 1e9
    service.put_agent(
        "a",
        {
            "oracle": {"kind": "TopK", "k": 3},
            "outcome_range": [0, 9],
            "deadline": deadline,
            "default_outcome": default,
        },
    )
    answer = service.decide("a", ASKED | {"arms": make_arms(np.random.default_rng(0)), "id": "d"})
    first, second, third = (arm["id"] for arm in answer["chosen"])
    told = {"decision": "d", "correct": False, "accept": False}
    service.learn(
        "a", [told | {"arm": first, "outcome": 1.0}, told | {"arm": second, "outcome": 2.0}]
    )
    service.learn("a", [told | {"arm": second, "outcome": 3.0, "correct": True}])
    replica = service.replica("a")
    before = {o.arm: (o.status, o.outcome) for o in views.decision(service, replica, "d").outcomes}
    assert before[third] == ("waiting", None)
    replica.agent = type(replica.agent)(replica.agent.oracle, policy=replica.learner)  # forgets
    after = {o.arm: (o.status, o.outcome) for o in views.decision(service, replica, "d").outcomes}
    unseen = ("never_came", None) if default is None else ("defaulted", default)
    assert after == {first: ("learned", 1.0), second: ("corrected", 3.0), third: unseen}
