"""Columns of a pandas DataFrame to NumPy arrays, with errors that name the column and the row."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oclok.errors import DataError, InputError
from oclok.extras import needs
from oclok.typing import BoolArray, FloatArray, IntArray
from oclok.validation import LARGEST_CONTEXT

if TYPE_CHECKING:
    import pandas as pd


def read_frame(path: str | PathLike[str]) -> pd.DataFrame:
    """Read a table from a CSV (plain or compressed) or Parquet file."""
    with needs("bench"):
        import pandas as pd
    file = Path(path)
    suffixes = {suffix.lower() for suffix in file.suffixes}
    if not suffixes & {".csv", ".parquet"}:
        raise DataError(f"{path}: expected a file whose name ends in .csv, .csv.gz or .parquet")
    if not file.exists():
        raise DataError(f"{path}: there is no such file")
    try:
        return pd.read_parquet(file) if ".parquet" in suffixes else pd.read_csv(file)
    except (OSError, ValueError, ImportError) as reason:  # parser and Arrow errors are ValueErrors
        raise DataError(f"{path}: cannot be read as a table: {reason}") from None


def feature_columns(
    frame: pd.DataFrame, others: Sequence[str], features: Sequence[str] | None
) -> list[str]:
    """Return the names of the feature columns of `frame`, all but `others` if none are named."""
    if not hasattr(frame, "columns"):
        raise InputError(f"expected a pandas DataFrame; got {type(frame).__name__}")
    if isinstance(features, str):
        raise InputError(f"features must be a list of column names; got the string {features!r}")
    chosen = [n for n in frame.columns if n not in others] if features is None else list(features)
    check_columns(frame, [*others, *chosen])
    for name in chosen:
        if name in others:
            raise InputError(f"column {name!r} cannot be a feature: it is the round or an outcome")
    if not chosen:
        raise DataError("no feature columns: a policy needs at least one to tell arms apart")
    if len(frame) == 0:
        raise DataError("the table has no rows")
    return chosen


def check_columns(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Raise a `DataError` unless `frame` has each of the columns `names` exactly once."""
    for name in names:
        count = list(frame.columns).count(name)
        if count != 1:
            seen = ", ".join(map(repr, frame.columns))
            how_often = "no column" if count == 0 else f"{count} columns"
            raise DataError(
                f"the table has {how_often} {name!r}; its columns are {seen}: say which are yours "
                "(round=, outcome=, features=; --round-column, --outcome-column, --features)"
            )


def numeric_columns(
    frame: pd.DataFrame, names: Sequence[str], *, where: BoolArray | None = None
) -> FloatArray:
    """Return columns as floats, shape (rows, columns); finite, at least `where` that is True."""
    result = np.empty((len(frame), len(names)))
    for position, name in enumerate(names):
        column = frame[name]
        if column.dtype.kind not in "biuf":
            sample = next((repr(value)[:40] for value in column if isinstance(value, str)), None)
            raise DataError(
                f"column {name!r} must be numeric; it is {column.dtype}"
                + (f" with values such as {sample}" if sample else "")
                + ": name the features without it (features=, --features), one-hot encode it "
                "(pandas.get_dummies), or use an Agent, which encodes columns itself"
            )
        result[:, position] = column.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = ~(np.abs(result) <= LARGEST_CONTEXT)
    if where is not None:
        wrong &= where[:, None]
    if wrong.any():
        row, position = np.argwhere(wrong)[0]
        raise DataError(
            f"column {names[position]!r} must be finite; {np.count_nonzero(wrong[:, position])} "
            f"values are not, the first is {result[row, position]} in row {row}"
        )
    return result


def rows_by_round(frame: pd.DataFrame, name: str) -> tuple[list[IntArray], list[Any]]:
    """Return the positions of the rows of each round, and the names of the rounds."""
    check_columns(frame, [name])
    if frame[name].isna().any():
        row = int(np.argmax(frame[name].isna()))
        raise DataError(f"column {name!r} says which round a row belongs to; row {row} is missing")
    codes, labels = frame[name].factorize()
    order = np.argsort(codes, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    return rows, labels.tolist()
