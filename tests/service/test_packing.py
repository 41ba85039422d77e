"""What is packed comes back bit by bit, in a fraction of the bytes."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oclok.service.packing import pack, records, unpack

FLOATS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100)
DECIMALS = st.tuples(st.integers(-(10**7), 10**7), st.integers(0, 8)).map(
    lambda n: n[0] / 10 ** n[1]
)
SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False)
OTHERS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5) | FLOATS


def column(count: int) -> st.SearchStrategy:
    """Return values of one feature: all of one kind, of any, or vectors."""
    vectors = st.integers(1, 4).flatmap(
        lambda width: st.lists(st.lists(FLOATS, min_size=width, max_size=width), min_size=count)
    )
    kinds = [st.lists(values, min_size=count) for values in (FLOATS, DECIMALS, SINGLE, OTHERS)]
    return st.one_of(*kinds, vectors).map(lambda values: values[:count])


def bits(value: object) -> object:
    """Return a value so that equal ones are the same: 1 is not 1.0, and 0.0 is not -0.0."""
    if isinstance(value, list):
        return [bits(each) for each in value]
    return struct.pack("<d", value) if isinstance(value, float) else (type(value), value)


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.dictionaries(st.text(min_size=1, max_size=3), column(n), min_size=1).map(
            lambda columns: (n, columns)
        )
    )
)
def test_features_come_back_bit_by_bit(drawn):
    count, columns = drawn
    mean = np.linspace(0, 1, count, dtype=np.float32)
    body = {"ids": list(range(count)), "columns": columns, "mean": mean, "std": None, "k": [1, "x"]}
    again = unpack(pack(body))
    assert list(again["columns"]) == list(columns)
    for name, values in columns.items():
        assert bits(again["columns"][name]) == bits(values)
    np.testing.assert_array_equal(again["mean"], mean)
    assert (again["ids"], again["std"], again["k"]) == (body["ids"], None, [1, "x"])


@pytest.mark.parametrize("convert", [lambda x: round(x, 6), lambda x: float(np.float32(x))])
def test_a_decision_of_100_arms_and_8_features_takes_a_fifth_of_its_text(convert):
    rng = np.random.default_rng(0)
    columns = {f"x{d}": [convert(x) for x in rng.random(100).tolist()] for d in range(8)}
    beliefs = {name: rng.random(100) for name in ("mean", "std", "index")}
    body = {"ids": [f"a{n}" for n in range(100)], "columns": columns}
    text = json.dumps({"arms": records(body)} | {k: v.tolist() for k, v in beliefs.items()})
    packed = pack(body | {name: values.astype(np.float32) for name, values in beliefs.items()})
    assert len(packed) < len(text) / 4
    assert len(packed) < 5_500
