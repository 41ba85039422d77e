"""What a quick call reads, FastAPI would read as well, with the same values."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from oclok.service.requests import DecisionRequest, OutcomeItems

TEXTS = st.text(max_size=4) | st.sampled_from(["a", "d\n", "x" * 129, "x" * 257, "x" * 1_001])
NUMBERS = (
    st.integers(-(2**54), 2**54)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([2**53, 2**53 + 1, 2**64, 10**30, -0.0, 1e300])
)
ODD = TEXTS | NUMBERS | st.none() | st.booleans() | st.lists(NUMBERS, max_size=3)
FEATURES = st.dictionaries(TEXTS, ODD, max_size=3)
ARMS = st.lists(st.fixed_dictionaries({"id": TEXTS | NUMBERS, "features": FEATURES}), max_size=3)
DECISIONS = st.fixed_dictionaries(
    {"arms": ARMS},
    optional={
        "id": ODD,
        "include": ODD,
        "chosen": ODD,
        "oracle": ODD,
        "more": ODD,
        "unit": ODD,
        "context": FEATURES,
    },
)
ITEM = st.fixed_dictionaries(
    {"decision": TEXTS, "arm": TEXTS | NUMBERS},
    optional={"outcome": ODD, "correct": ODD, "accept": ODD, "more": ODD},
)
PLAIN = {"arms": [{"id": "a", "features": {"x": 0.5, "c": "red", "v": [1, 2.5], "n": None}}]}


def plain(value: object) -> object:
    """Return a value so that 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else (type(value), value)


def check(form, body: bytes) -> None:
    usual = TypeAdapter(form)
    try:
        taken = usual.validate_json(body)
    except ValidationError:
        return
    assert plain(usual.dump_python(taken)) == plain(
        usual.dump_python(usual.validate_python(json.loads(body)))
    )


@given(DECISIONS)
@example(PLAIN | {"id": "d\n"})
@example({"arms": [{"id": "a", "features": {"x": 1e400}}]})
def test_decisions(body):
    check(DecisionRequest, json.dumps(body).encode())


@given(st.lists(ITEM, max_size=2))
def test_outcomes(items):
    check(OutcomeItems, json.dumps(items).encode())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 50_000,
        b"\xff\xfe",
        b'{"arms": [{"id": "\\ud800", "features": {"x": 1}}]}',
        b'{"arms": [{"id": "a", "features": {"x": NaN}}]}',
        b'{"arms": [{"id": "a", "features": {"x": 1e999}}]}',
        b'{"arms": [{"id": "a", "id": "b", "features": {"x": 1, "x": 2}}]}',
    ],
)
def test_odd_bytes(body):
    check(DecisionRequest, body)


def test_endpoints_get_plain_values():
    taken = vars(TypeAdapter(DecisionRequest).validate_python(PLAIN))
    assert taken["arms"][0]["features"] == {"x": 0.5, "c": "red", "v": [1.0, 2.5], "n": None}
    assert set(taken) == set(DecisionRequest.model_fields)
