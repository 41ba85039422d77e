from __future__ import annotations

import numpy as np

from oclok.decision import Decision
from oclok.persistence import dumps, loads
from oclok.policies.pending import Pending


def decision(t: int, size: int, known: bool = True) -> Decision:
    x = np.arange(2.0 * size).reshape(size, 2) + t
    some = np.arange(size) / 7.0 if known else None
    return Decision(t, np.arange(size), x, np.arange(size) + 0.5, some, some, is_exact=known)


def test_a_decision_is_kept_as_long_as_something_is_missing() -> None:
    pending = Pending()
    first, second = decision(1, 2), decision(2, 3)
    pending.add(first)
    pending.add(second)
    assert [kept for kept, _ in pending] == [first, second]
    pending.settle(first, np.array([True, False]))
    assert pending.missing(first, 2).tolist() == [False, True]
    pending.settle(first, np.array([False, True]))
    assert 1 not in pending
    assert 2 in pending
    pending.settle(second)
    assert len(pending) == 0


def test_decisions_of_several_sizes_come_back_from_a_file_one_by_one() -> None:
    pending = Pending()
    made = [decision(1, 3), decision(4, 1, known=False), decision(9, 2)]
    masks = [np.array([True, False, True]), np.array([True]), np.array([False, True])]
    for each, mask in zip(made, masks, strict=True):
        pending.add(each)
        pending.settle(each, ~mask)
    loaded = loads(dumps(pending))
    assert isinstance(loaded, Pending)
    for (kept, mask), expected, missing in zip(loaded, made, masks, strict=True):
        assert kept == expected
        assert kept.id == expected.id
        np.testing.assert_array_equal(mask, missing)


def test_an_empty_one_comes_back_empty() -> None:
    loaded = loads(dumps(Pending()))
    assert isinstance(loaded, Pending)
    assert len(loaded) == 0
