from __future__ import annotations

import numpy as np
import pytest

from oclok.errors import InputError, OutcomeError
from oclok.policies.group_checks import as_groups, as_pairs, as_thresholds


def test_labels_are_numbered() -> None:
    labels, group = as_groups(["b", "a", "b"], 3)
    assert [labels[g] for g in group] == ["b", "a", "b"]


@pytest.mark.parametrize("wrong", [["a"], [[1, 2, 3]], [0.5, 1.0, 2.0], [[1], [2, 3], 4]])
def test_labels_of_a_wrong_shape_or_kind_are_refused(wrong: object) -> None:
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        as_groups(wrong, 3)  # type: ignore[arg-type]


def test_thresholds_are_one_for_all_or_one_each() -> None:
    assert as_thresholds(0.5, ["a", "b"]).tolist() == [0.5, 0.5]
    assert as_thresholds({"b": 2.0, "a": 1.0}, ["a", "b"]).tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match="'b' is missing"):
        as_thresholds({"a": 1.0}, ["a", "b"])
    with pytest.raises(InputError, match="need a threshold"):
        as_thresholds(None, ["a"])


def test_pairs_are_seen_together_or_not_at_all() -> None:
    nan = np.nan
    assert as_pairs([[1, 2], [nan, nan]], 2, allow_nan=True).shape == (2, 2)
    with pytest.raises(OutcomeError, match="row 1"):
        as_pairs([[1, 2], [nan, 3]], 2, allow_nan=True)
    with pytest.raises(OutcomeError):
        as_pairs([[1, 2], [nan, nan]], 2, allow_nan=False)
    with pytest.raises(OutcomeError, match=r"\(2, 2\)"):
        as_pairs([1, 2], 2, allow_nan=True)
