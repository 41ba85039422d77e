"""Delimited text files to NumPy arrays, in batches and with errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oclok.errors import DataError
from oclok.extras import needs

#: Rows that are held at once.
ROWS = 1_000_000

Columns: TypeAlias = dict[str, NDArray[Any]]


def read_batches(
    file: IO[bytes],
    types: Mapping[str, str],
    *,
    source: str,
    delimiter: str = ",",
    header: Sequence[str] | None = None,
    encoding: str = "utf8",
) -> Iterator[Columns]:
    """Yield columns of a delimited text file, a million rows at a time.

    Args:
        file: where to read from.
        types: the columns to read, each with its dtype.
        source: the name of the file in errors.
        delimiter: between two columns.
        header: names of all columns, where the first line does not have them.
        encoding: of the text.
    """
    with needs("bench"):
        import pandas as pd
    try:
        chunks = pd.read_csv(
            file,
            sep=delimiter,
            names=list(header) if header else None,
            header=None if header else 0,
            usecols=list(types),
            dtype=dict[str, Any](types),
            keep_default_na=False,
            encoding=encoding,
            # Without a header nothing is quoted (csv.QUOTE_NONE): a quote is part of the text.
            quoting=3 if header else 0,
            chunksize=ROWS,
        )
        for chunk in chunks:
            yield {name: chunk[name].to_numpy() for name in types}
    except (ValueError, EOFError, OSError) as reason:
        seen = " ".join(str(reason).split())
        raise DataError(
            f"{source}: not a table with the columns {', '.join(types)}; get a fresh copy ({seen})"
        ) from None


def read_columns(file: IO[bytes], types: Mapping[str, str], **how: Any) -> Columns:
    """Return whole columns of a delimited text file; see `read_batches`."""
    batches = list(read_batches(file, types, **how))
    if not sum(len(next(iter(batch.values()))) for batch in batches):
        raise DataError(f"{how['source']}: has no rows; get a fresh copy")
    return {name: np.concatenate([batch[name] for batch in batches]) for name in types}
