from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok import Agent
from oclok.errors import FeedbackError, InputError, OclokError, OracleError
from oclok.oracles import TopK
from oclok.persistence import dumps
from oclok.policies import UCB, BayesUCB, OClokUCB, Random, ThompsonSampling
from oclok.service.learner import Learner

POOL = {f"w{i}": {"x": 0.1 * i, "y": float(i % 3), "city": "abc"[i % 3]} for i in range(12)}
FRAME = pd.DataFrame.from_dict(POOL, orient="index")


def new_agent(**settings: object) -> Agent:
    settings = {
        "oracle": TopK(2),
        "policy": BayesUCB(RBF(1.0), 0.1),
        "clock": lambda: 0.0,
        **settings,
    }
    return Agent(**settings)  # type: ignore[arg-type]


def some(seed: int, count: int = 6) -> dict:
    names = np.random.default_rng(seed).permutation(list(POOL))[:count]
    return {str(name): POOL[str(name)] for name in names}


def worth(arm: str) -> float:
    return float(np.sin(POOL[arm]["x"] * 3) + 0.2 * POOL[arm]["y"])


def taught(agent: Agent, rounds: int = 10) -> Agent:
    for t in range(rounds):
        decision = agent.decide(some(t), id=f"round {t}")
        agent.learn(decision.id, {arm: worth(arm) for arm in decision.chosen})
    return agent


def test_the_order_of_arms_and_of_features_does_not_matter() -> None:
    first, second = taught(new_agent()), taught(new_agent())
    for seed in range(20, 30):
        arms = some(seed)
        turned = {name: dict(reversed(arms[name].items())) for name in reversed(arms)}
        assert set(first.decide(arms).chosen) == set(second.decide(turned).chosen)


def test_a_frame_and_a_dict_of_dicts_decide_alike() -> None:
    first, second = new_agent(), new_agent()
    for t in range(10):
        frame = pd.DataFrame.from_dict(some(t), orient="index")
        one, two = first.decide(some(t)), second.decide(frame)
        assert (one.id, one.chosen) == (two.id, two.chosen)
        for agent in (first, second):
            agent.learn(one.id, {arm: worth(arm) for arm in one.chosen})


def test_integers_are_names_too() -> None:
    agent = new_agent()
    decision = agent.decide(pd.DataFrame({"x": [0.1, 0.5, 0.9]}, index=[30, 10, 20]))
    assert decision.chosen == [30, 10]
    assert agent.learn(decision.id, {10: 0.4, np.int64(30): 0.1}).learned == [10, 30]


def test_the_same_id_gives_the_same_decision_and_changes_nothing() -> None:
    agent = taught(new_agent())
    first = agent.decide(some(50), id="mine")
    before = dumps(agent)
    again = agent.decide(some(51), id="mine")
    assert (again.id, again.chosen, again.round) == ("mine", first.chosen, first.round)
    assert dumps(agent) == before


def test_an_agent_finds_what_is_best() -> None:
    agent = taught(new_agent(), rounds=40)
    decision = agent.decide(POOL)
    best = sorted(POOL, key=worth)[-2:]
    assert sum(map(worth, decision.chosen)) > 0.95 * sum(map(worth, best))


@pytest.mark.parametrize(
    "policy",
    [
        lambda: BayesUCB(RBF(1.0), 0.1),
        lambda: ThompsonSampling(RBF(1.0), 0.1, seed=3),
        lambda: Random(seed=3),
    ],
    ids=["BayesUCB", "Thompson", "Random"],
)
def test_a_loaded_agent_goes_on_as_the_saved_one(policy: object, tmp_path: Path) -> None:
    agent = taught(new_agent(policy=policy(), seed=5))  # type: ignore[operator]
    waiting = agent.decide(some(30))
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    for each in (agent, loaded):
        each.learn(waiting.id, {waiting.chosen[0]: 0.4})
    for seed in range(40, 45):
        one, two = agent.decide(some(seed)), loaded.decide(some(seed))
        assert one.chosen == two.chosen  # ids are digests, and tell the last bits apart
        pd.testing.assert_frame_equal(one.table(), two.table(), rtol=1e-9)
        outcomes = {arm: worth(arm) for arm in one.chosen}
        assert agent.learn(one.id, outcomes) == loaded.learn(two.id, outcomes)
    assert str(agent.explain("round 3")) == str(loaded.explain("round 3"))
    assert agent.schema == loaded.schema


def test_the_log_of_calls_rebuilds_an_agent() -> None:
    now = [0.0]
    first, second = (
        new_agent(
            policy=ThompsonSampling(RBF(1.0), 0.1, seed=1),
            deadline=5,
            default_outcome=0.0,
            seed=2,
            clock=lambda: now[0],
        )
        for _ in range(2)
    )
    log = []
    for t in range(20):
        now[0] += 1.0
        decision = first.decide(some(t))
        log.append((now[0], "decide", some(t)))
        if t % 3:
            log.append((now[0], "learn", decision.id, {decision.chosen[0]: 0.1 * t}))
            first.learn(*log[-1][2:])
    for when, call, *arguments in log:
        now[0] = when
        getattr(second, call)(*arguments)
    assert dumps(first) == dumps(second)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda agent: agent.decide([[1.0]]), "arms must be a pandas DataFrame"),
        (lambda agent: agent.decide({"a": {"x": 1.0}}), "missing: 'y', 'city'"),
        (lambda agent: agent.decide(POOL, include=["nobody"]), "include must name arms"),
        (lambda agent: agent.decide(POOL, exclude=["nobody"]), "exclude must name arms"),
        (
            lambda agent: agent.decide(POOL, include=["w3"], exclude=["w1", "w3"]),
            "arm 'w3' is in both include and exclude",
        ),
        (lambda agent: agent.decide(POOL, oracle=5), "oracle must be"),
        (lambda agent: agent.decide(POOL, id=5), "id must be a string"),
        (lambda agent: agent.decide(POOL, id=""), "not empty"),
        (lambda agent: agent.observe(POOL, [1.0]), "outcomes must have shape"),
        (lambda agent: agent.observe(FRAME, FRAME["y"][::-1]), "in the order of arms"),
        (lambda agent: agent.observe({"a": {"x": 1.0}}, [1.0]), "missing: 'y', 'city'"),
    ],
)
def test_a_call_that_fails_changes_nothing(call: object, message: str) -> None:
    agent = taught(new_agent())
    before = dumps(agent)
    with pytest.raises(OclokError, match=message):
        call(agent)  # type: ignore[operator]
    assert dumps(agent) == before


def test_a_first_decision_that_fails_leaves_no_schema_behind() -> None:
    agent = new_agent(oracle=None)
    with pytest.raises(OracleError, match="no oracle"):
        agent.decide(POOL)
    assert agent.schema is None
    assert agent.decide({"a": {"z": 1.0}}, oracle=TopK(1)).chosen == ["a"]


@pytest.mark.parametrize(
    "settings",
    [{"oracle": 3}, {"policy": 3}, {"mode": "ghost"}, {"features": [1]}, {"explainable": -1}],
)
def test_settings_that_make_no_sense_are_refused(settings: dict) -> None:
    with pytest.raises((InputError, OracleError)):
        new_agent(**settings)


@pytest.mark.parametrize("seed", ["0", 1.5, -1])
def test_a_seed_is_a_number_from_zero(seed: object) -> None:
    with pytest.raises(InputError, match="seed must be an integer of at least 0"):
        Agent(oracle=TopK(1), seed=seed)  # type: ignore[arg-type]


def test_outcomes_of_the_past_may_have_an_index_of_their_own() -> None:
    series, values = new_agent(), new_agent()
    series.observe(FRAME, FRAME["y"].reset_index(drop=True))
    values.observe(FRAME, FRAME["y"].tolist())
    assert dumps(series) == dumps(values)


def test_features_can_be_given() -> None:
    agent = new_agent(features={"x": "number"})
    assert agent.schema is not None
    with pytest.raises(InputError, match="not in the schema: 'y'"):
        agent.decide({"a": {"x": 1.0, "y": 2.0}})
    agent.decide({"a": {"x": 1.0}, "b": {"x": 3.0}})
    assert agent.schema.to_json() == {
        "x": {"kind": "number", "missing": True, "mean": 2.0, "scale": 1.0}
    }


def test_threads_count_and_learn_as_one_thread_does() -> None:
    """Arms are few and all are chosen, so that the order of the calls does not matter."""
    threads, rounds = 8, 20
    by_many, by_one = (new_agent(oracle=TopK(3), explainable=10) for _ in range(2))
    start = threading.Barrier(threads)

    def play(agent: Agent, thread: int) -> None:
        for t in range(rounds):
            arms = some(1000 * thread + t, 3)
            decision = agent.decide(arms, id=f"{thread} {t}")
            agent.learn(decision.id, {arm: worth(arm) + 0.01 * t for arm in decision.chosen[:2]})
            agent.learn(decision.id, {decision.chosen[2]: worth(decision.chosen[2])})
            agent.health()

    def together(thread: int) -> None:
        start.wait()
        play(by_many, thread)

    by_one.decide(POOL, id="first")
    by_many.decide(POOL, id="first")
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(together, range(threads)))
    for thread in range(threads):
        play(by_one, thread)
    for agent in (by_one, by_many):
        assert agent.policy.round == threads * rounds + 1
        assert agent.counts()["open_decisions"] == 1
        assert len(agent.policy.posterior) == threads * rounds * 3
    X = by_one.decide(POOL, id="last").offer.contexts
    for one, many in zip(
        by_one.policy.posterior.predict(X), by_many.policy.posterior.predict(X), strict=True
    ):
        np.testing.assert_allclose(one, many, rtol=0, atol=1e-9)


def test_every_outcome_is_counted_under_the_one_status_it_has() -> None:
    now = [0.0]
    agent = new_agent(deadline=10.0, clock=lambda: now[0], oracle=TopK(3))
    first, second, third = (agent.decide(some(t), id=f"d{t}") for t in range(3))
    agent.learn(first.id, dict.fromkeys(first.chosen, 0.5))
    agent.learn(first.id, {first.chosen[0]: 0.75}, correct=True)
    now[0] = 11.0
    agent.expire()
    fourth = agent.decide(some(3), id="d3")
    agent.learn(third.id, {third.chosen[0]: 0.25}, correct=True)
    statuses = [
        status
        for decision in (first, second, third, fourth)
        for status, _ in agent.outcomes_of(decision.id).values()
    ]
    counted = {word: n for word, n in agent.counts().items() if word in set(statuses)}
    assert counted == {"corrected": 2, "learned": 2, "never_came": 5, "waiting": 3}
    assert {word: statuses.count(word) for word in counted} == counted


def test_a_decision_keeps_what_was_expected_of_it_when_it_was_made() -> None:
    agent = taught(new_agent(), 5)
    decision = agent.decide(some(9), id="then")
    expected = decision.table().loc[decision.chosen]
    taught(agent, 0)
    agent.learn(decision.id, dict.fromkeys(decision.chosen, 3.0))
    history = agent.history()
    at = history.row == history.ids.index("then")
    assert np.allclose(history.mean[at], expected["mean"])
    assert np.allclose(history.std[at], expected["std"])
    assert history.noise[history.ids.index("then")] == pytest.approx(0.1)


GRID = {f"{i}{j}": {"x": i / 4, "y": j / 4} for i in range(5) for j in range(5)}


def spread(agent: Agent, rounds: int = 4) -> float:
    """How many different arms are chosen in rounds whose feedback is outstanding."""
    chosen = {arm for _ in range(rounds) for arm in agent.decide(GRID).chosen}
    return len(chosen)


@pytest.mark.parametrize("wrap", [lambda policy: policy, Learner], ids=["agent", "service"])
def test_sets_are_more_diverse_while_feedback_is_outstanding(wrap) -> None:
    def agent(**settings) -> Agent:
        return new_agent(policy=wrap(UCB(RBF(0.5), 0.1, width=2.0, **settings)), oracle=TopK(3))

    assert spread(agent()) == 3  # the same arms each time, as nothing was learned
    assert spread(agent(condition_on_chosen=True)) >= 9


def test_a_decision_with_all_its_outcomes_conditions_nothing() -> None:
    agent = new_agent(policy=UCB(RBF(0.5), 0.1, condition_on_chosen=True))
    twin = UCB(RBF(0.5), 0.1, condition_on_chosen=True)
    decision = agent.decide(GRID)
    twin.observe(decision.offer.contexts[decision.offer.chosen], [0.4, 0.6])
    agent.learn(decision.id, dict(zip(decision.chosen, [0.4, 0.6], strict=True)))
    proposal = agent.propose(GRID)
    expected = twin.propose(decision.offer.contexts, TopK(2))
    np.testing.assert_allclose(proposal.decision.offer.index, expected.belief.index, atol=1e-8)


def test_the_certificate_knows_which_outcomes_of_an_agent_are_missing() -> None:
    agent = new_agent(policy=OClokUCB(RBF(1.0), 0.1))

    def arrival() -> tuple[str, str]:
        found = {each.name: each for each in agent.policy.certificate().assumptions}["arrival"]
        return found.verdict, found.reason

    decision = agent.decide(POOL)
    assert arrival() == ("unchecked", "2 outcomes are missing, 0 were given up")
    agent.learn(decision.id, dict.fromkeys(decision.chosen, 0.5))
    assert arrival()[0] == "holds"


def test_a_random_policys_propensities_are_in_the_decision() -> None:
    decision = new_agent(policy=ThompsonSampling(RBF(0.5), 0.3, seed=0)).decide(POOL)
    table = decision.table()
    assert (table.loc[decision.chosen, "propensity"] > 0).all()
    plain = new_agent(policy=BayesUCB(RBF(0.5), 0.3)).decide(POOL)
    assert plain.offer.propensity is None
    assert "propensity" not in plain.table()
    assert plain.to_dict()["chosen"][0].keys() == {"id", "mean", "std", "index"}


def test_a_decision_in_the_place_of_its_id_is_an_error_that_says_so():
    agent = new_agent()
    decision = agent.decide(some(0))
    with pytest.raises(FeedbackError, match=r"decision\.id"):
        agent.learn(decision, dict.fromkeys(decision.chosen, 1.0))
    assert repr(agent).startswith("<Agent: oracle=")


def test_context_is_a_feature_of_every_arm():
    agent = Agent(oracle=TopK(1))
    decision = agent.decide({"a": {"x": 0.0}, "b": {"x": 1.0}}, {"hour": 3.0})
    assert len(decision.chosen) == 1
    assert set(agent.schema.to_json()) == {"x", "hour"}
    with pytest.raises(InputError, match="context and arms both have 'x'"):
        agent.decide({"a": {"x": 0.0}}, {"x": 1.0})
