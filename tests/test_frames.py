from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oclok.errors import DataError
from oclok.frames import feature_columns, numeric_columns, read_frame, rows_by_round


def test_rows_by_round_are_those_of_groupby():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"t": rng.choice(list("dacb"), 50), "x": rng.random(50)})
    rows, labels = rows_by_round(frame, "t")
    groups = frame.groupby("t", sort=False).indices
    assert labels == frame["t"].unique().tolist()
    for label, at in zip(labels, rows, strict=True):
        np.testing.assert_array_equal(at, groups[label])


def test_values_matter_only_where_they_are_asked_for():
    frame = pd.DataFrame({"x": [1.0, np.nan, 3.0]})
    values = numeric_columns(frame, ["x"], where=np.array([True, False, True]))
    np.testing.assert_array_equal(values[:, 0], [1.0, np.nan, 3.0])
    with pytest.raises(DataError, match="row 1"):
        numeric_columns(frame, ["x"])


def test_features_are_all_columns_without_another_role():
    frame = pd.DataFrame({"t": [1], "b": [2], "y": [3], "a": [4]})
    assert feature_columns(frame, ["t", "y"], None) == ["b", "a"]
    assert feature_columns(frame, ["t", "y"], ["a"]) == ["a"]


def test_files_are_read_as_pandas_reads_them(tmp_path):
    frame = pd.DataFrame({"t": [1, 1], "x": [0.5, 2.5]})
    frame.to_csv(tmp_path / "a.CSV", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.CSV", "a.parquet"):
        pd.testing.assert_frame_equal(read_frame(tmp_path / name), frame)
