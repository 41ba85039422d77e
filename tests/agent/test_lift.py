"""Claims about the lift: rarely wrong however often one looks, and stable per unit."""

from __future__ import annotations

import numpy as np
import pytest

from oclok.agent.lift import BUCKETS, LEAST_DECISIONS, TIGHT, LiftTally, assign, variances
from oclok.confidence import boundary
from oclok.errors import InputError
from oclok.persistence import dumps, loads


def filled(values: np.ndarray, is_agent: np.ndarray, per_unit: int = 1) -> LiftTally:
    tally = LiftTally()
    for i, (value, group) in enumerate(zip(values, is_agent, strict=True)):
        tally.add(int(group), assign(str(i // per_unit), 0.0).bucket, 30.0 * i, float(value))
    return tally


def test_a_unit_stays_in_its_group_and_moves_only_to_the_agent() -> None:
    keys = [f"user {i}" for i in range(20_000)]
    tenth = {key for key in keys if assign(key, 0.1).is_holdout}
    half = {key for key in keys if assign(key, 0.5).is_holdout}
    assert tenth < half
    # Four standard errors of a share of 20,000.
    assert abs(len(tenth) / 20_000 - 0.1) < 4 * np.sqrt(0.09 / 20_000)
    assert abs(len(half) / 20_000 - 0.5) < 4 * np.sqrt(0.25 / 20_000)
    assert not any(assign(key, 0.0).is_holdout for key in keys)
    buckets = np.array([assign(key, 0.1).bucket for key in tenth])
    assert len(np.unique(buckets)) > 0.8 * BUCKETS * (1 - np.exp(-len(tenth) / BUCKETS))


def test_nothing_is_said_before_both_groups_have_enough() -> None:
    y, group = np.ones(LEAST_DECISIONS + 500), np.ones(LEAST_DECISIONS + 500, dtype=bool)
    group[: LEAST_DECISIONS - 1] = False
    lift = filled(y, group).lift()
    assert lift.verdict == "too early"
    assert np.isnan(lift.lower)
    assert str(lift) == "too early: 49 of 50 decisions in the smaller group"


def test_the_interval_shrinks_around_the_truth() -> None:
    rng = np.random.default_rng(0)
    group = rng.random(20_000) >= 0.3
    lift = filled(1 + 0.2 * group + rng.normal(0, 0.5, 20_000), group).lift()
    assert lift.verdict == "better"
    assert 0 < lift.lower < 0.2 < lift.upper < 0.24
    assert 1 < lift.ratio_lower < 1.2 < lift.ratio_upper < 1.25
    assert lift.agent.decisions + lift.baseline.decisions == 20_000
    assert "+20" in str(lift) or "+19" in str(lift)
    assert sum(p.agent.decisions for p in lift.periods) == lift.agent.decisions
    assert all(np.diff([p.start for p in lift.periods]) > 0)


def test_the_ratio_says_what_the_difference_says() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        group = rng.random(400) >= 0.5
        lift = filled(1 + rng.normal(0, 0.3) * group + rng.normal(0, 1, 400), group).lift()
        assert (lift.lower <= 0 <= lift.upper) == (lift.ratio_lower <= 1 <= lift.ratio_upper)


def test_what_was_added_can_be_taken_out() -> None:
    rng = np.random.default_rng(2)
    group = rng.random(300) >= 0.5
    y = rng.normal(1, 1, 300)
    tally = filled(y, group)
    before = tally.lift()
    tally.add(1, 7, 10.0, 99.0)
    tally.add(1, 7, 10.0, 99.0, -1)
    after = loads(dumps(tally)).lift()  # type: ignore[attr-defined]
    assert after.agent.decisions == before.agent.decisions
    assert after.lower == pytest.approx(before.lower)


def test_outcomes_of_one_unit_that_are_alike_widen_the_interval() -> None:
    rng = np.random.default_rng(3)
    units = rng.normal(0, 1, 300)
    y = np.repeat(units, 10) + rng.normal(0, 0.1, 3_000)
    group = np.repeat(rng.random(300) >= 0.5, 10)
    wide, narrow = filled(y, group, per_unit=10).lift(), filled(y, group).lift()
    # Ten outcomes that are nearly equal are worth one: √10 times as wide.
    assert 2.7 < (wide.upper - wide.lower) / (narrow.upper - narrow.lower) < 3.5


def looks(y: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the verdict after each decision: 1 better, -1 worse, 0 nothing."""
    g = np.stack([~group, group]).astype(float)
    n = np.cumsum(g, axis=1)
    with np.errstate(all="ignore"):
        mean = np.cumsum(g * y, axis=1) / n
        residuals = np.cumsum(g * y**2, axis=1) - n * mean**2
        v = variances(n, residuals).sum(axis=0)
        c = boundary(n[0] * n[1] / n.sum(axis=0), 0.05, TIGHT)
        z = (mean[1] - mean[0]) / np.sqrt(v) / c
    z[n.min(axis=0) < LEAST_DECISIONS] = 0
    return np.sign(z) * (np.abs(np.nan_to_num(z)) > 1)


def test_one_look_is_the_last_of_all_looks() -> None:
    rng = np.random.default_rng(4)
    for lift in (0.0, 0.5, -0.5):
        group = rng.random(500) >= 0.5
        y = lift * group + rng.normal(0, 1, 500)
        verdict = {1: "better", -1: "worse", 0: "undecided"}[int(looks(y, group)[-1])]
        assert filled(y, group).lift().verdict == verdict


@pytest.mark.parametrize("kind", ["normal", "clicks", "counts", "skewed"])
def test_without_a_lift_few_ever_claim_one(kind: str) -> None:
    """200 agents of 5,000 decisions each, looked at after every one of them."""
    claims = found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        group = rng.random(5_000) >= 0.1
        draws = {
            "normal": lambda m, r=rng: r.normal(m, 0.5),
            "clicks": lambda m, r=rng: (r.random(5_000) < 0.05 * m).astype(float),
            "counts": lambda m, r=rng: r.poisson(2 * m).astype(float),
            "skewed": lambda m, r=rng: m * r.lognormal(0, 1, 5_000),
        }
        claims += bool(looks(draws[kind](np.ones(5_000)), group).any())
        found += bool((looks(draws[kind](1 + 0.1 * group), group) > 0).any())
    assert claims <= 0.05 * 200
    if kind == "normal":
        assert found >= 0.8 * 200


def test_a_level_must_be_a_probability() -> None:
    with pytest.raises(InputError, match="level"):
        LiftTally().lift(95)
