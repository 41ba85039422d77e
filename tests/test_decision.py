from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oclok.decision import Decision
from oclok.errors import InputError
from oclok.persistence import dumps, loads

finite = st.floats(-1e100, 1e100)


@st.composite
def decisions(draw: st.DrawFn) -> Decision:
    count = draw(st.integers(0, 4))
    positions = draw(st.sets(st.integers(0, 1000), min_size=count, max_size=count))
    vector = arrays(np.float64, count, elements=finite)
    return Decision(
        draw(st.integers(1, 10**9)),
        sorted(positions),
        draw(arrays(np.float64, (count, draw(st.integers(1, 3))), elements=finite)),
        draw(vector),
        draw(st.none() | vector),
        draw(st.none() | vector),
        draw(st.booleans()),
    )


@given(decision=decisions())
def test_a_decision_survives_json_and_a_file_bit_for_bit(decision: Decision) -> None:
    for read in (Decision.from_json(decision.to_json()), loads(dumps(decision))):
        assert isinstance(read, Decision)
        assert read == decision
        assert read.id == decision.id
        assert hash(read) == hash(decision)
        assert len(read) == len(decision)
        np.testing.assert_array_equal(read.contexts.ravel(), decision.contexts.ravel())
        assert not read.super_arm.flags.writeable


def example() -> Decision:
    return Decision(3, [1, 4], [[0.1, 0.2], [0.3, 0.4]], [1.0, 2.0], [0.5, 0.6], [0.1, 0.2])


def test_a_decision_is_frozen() -> None:
    decision = example()
    with pytest.raises(FrozenInstanceError):
        decision.round = 4  # type: ignore[misc]
    for name in ("super_arm", "contexts", "index", "mean", "std"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(decision, name)[0] = 0


def test_a_decision_keeps_no_view_of_what_it_was_given() -> None:
    super_arm, contexts, index = np.array([1, 4]), np.ones((2, 2)), np.ones(2)
    decision = Decision(1, super_arm, contexts, index)
    for array in (super_arm, contexts, index):
        array[:] = 7
    assert decision.super_arm.tolist() == [1, 4]
    assert decision.contexts.tolist() == [[1, 1], [1, 1]]
    assert decision.index.tolist() == [1, 1]


def test_positions_out_of_order_keep_their_contexts_or_are_refused() -> None:
    try:
        decision = Decision(1, [4, 1], [[0.4], [0.1]], [4.0, 1.0])
    except InputError:
        return
    by_position = dict(zip(decision.super_arm.tolist(), decision.contexts[:, 0], strict=True))
    assert by_position == {4: 0.4, 1: 0.1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"round": 0},
        {"round": 1.5},
        {"super_arm": [1]},
        {"super_arm": [1, 1]},
        {"super_arm": [-1, 4]},
        {"super_arm": [0.5, 4]},
        {"contexts": [[0.1, 0.2]]},
        {"contexts": [[0.1, np.nan], [0.3, 0.4]]},
        {"index": [1.0]},
        {"index": [1.0, np.inf]},
        {"mean": [1.0, "a"]},
        {"std": [[1.0, 2.0]]},
    ],
    ids=str,
)
def test_what_makes_no_decision_is_refused(wrong: dict[str, Any]) -> None:
    good = {
        "round": 3,
        "super_arm": [1, 4],
        "contexts": [[0.1, 0.2], [0.3, 0.4]],
        "index": [1.0, 2.0],
    }
    Decision(**good)
    with pytest.raises(InputError):
        Decision(**{**good, **wrong})


@pytest.mark.parametrize(
    "change",
    [
        {"round": 4},
        {"super_arm": [1, 5]},
        {"contexts": [[0.1, 0.2], [0.3, 0.5]]},
        {"index": [1.0, 2.5]},
        {"mean": None},
        {"std": [0.1, 0.3]},
        {"is_exact": True},
        {"id": "3-0"},
    ],
    ids=str,
)
def test_json_that_was_altered_is_refused(change: dict[str, Any]) -> None:
    fields = {**json.loads(example().to_json()), **change}
    with pytest.raises(InputError):
        Decision.from_json(json.dumps(fields))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "3",
        '"text"',
        "{}",
        '{"id": "1-0"}',
        '{"id": "1-0", "round": 1, "super_arm": [], "contexts": [], "index": [], "more": 1}',
        example().to_json()[:-1],
        b"\xff\xfe",
        None,
        "[" * 100_000,
    ],
    ids=lambda text: str(text)[:20],
)
def test_text_that_is_no_decision_is_refused(text: Any) -> None:
    with pytest.raises(InputError, match="not a decision"):
        Decision.from_json(text)


def test_decisions_differ_when_anything_differs() -> None:
    changes = [
        {"round": 4},
        {"super_arm": [1, 5]},
        {"contexts": [[0.1, 0.2], [0.3, 0.5]]},
        {"index": [1.0, 2.5]},
        {"mean": None},
        {"is_exact": True},
    ]
    one = example()
    fields = {k: v for k, v in json.loads(one.to_json()).items() if k != "id"}
    for change in changes:
        other = Decision(**{**fields, **change})
        assert other != one
        assert other.id != one.id, change
    assert one != "3"
