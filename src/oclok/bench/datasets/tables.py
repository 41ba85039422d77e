"""Delimited text files to NumPy arrays, in batches and with errors that say what to do."""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oclok.errors import DataError
from oclok.extras import needs

#: Rows that are held at once.
ROWS = 1_000_000

Columns: TypeAlias = dict[str, NDArray[Any]]


def read_batches(
    file: IO[bytes] | Path, types: Mapping[str, str], *, source: str, **how: Any
) -> Iterator[Columns]:
    """Yield columns of a delimited text file, a million rows at a time.

    Args:
        file: may be compressed if it is a path.
        types: the columns to read, each with its dtype.
        source: the name of the file in errors.
        **how: further arguments of `pandas.read_csv`.
    """
    with needs("bench"):
        import pandas as pd
    dtypes = dict[str, Any](types)
    try:
        for chunk in pd.read_csv(
            file, usecols=list(types), dtype=dtypes, keep_default_na=False, chunksize=ROWS, **how
        ):
            yield {name: chunk[name].to_numpy() for name in types}
    except (ValueError, EOFError, OSError, lzma.LZMAError) as reason:
        seen = " ".join(str(reason).split())
        raise DataError(
            f"{source}: not a table with the columns {', '.join(types)}; get a fresh copy ({seen})"
        ) from None


def read_columns(
    file: IO[bytes] | Path, types: Mapping[str, str], *, source: str, **how: Any
) -> Columns:
    """Return whole columns of a delimited text file; see `read_batches`."""
    batches = list(read_batches(file, types, source=source, **how))
    columns = {name: np.concatenate([batch[name] for batch in batches]) for name in types}
    if not len(next(iter(columns.values()))):
        raise DataError(f"{source}: has no rows; get a fresh copy")
    return columns
