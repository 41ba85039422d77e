import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oclok.oracles.labels import has_repeats, number_labels

labels = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(labels, max_size=20))
def test_nodes_are_numbered_by_first_appearance(nodes):
    numbers, count = number_labels(np.array(nodes, dtype=np.int64))
    seen = list(dict.fromkeys(nodes))
    assert numbers.tolist() == [seen.index(node) for node in nodes]
    assert count == len(seen)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64])
def test_nodes_of_any_integer_type_are_numbered(dtype):
    info = np.iinfo(dtype)
    numbers, count = number_labels(np.array([info.max, info.min, info.max], dtype=dtype))
    assert numbers.tolist() == [0, 1, 0]
    assert count == 2


@given(st.lists(st.integers(0, 99), max_size=12), st.integers(0, 2000))
def test_repeats_are_found_whatever_the_bound(keys, more):
    found = has_repeats(np.array(keys, dtype=np.intp), 100 + more)
    assert found == (len(set(keys)) < len(keys))
