"""Delimited text files to NumPy arrays, in batches and with errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from oclok.errors import DataError

Columns: TypeAlias = dict[str, NDArray[Any]]


class Readable(Protocol):
    """A binary file that is open for reading, compressed or not."""

    def read(self, size: int = ..., /) -> bytes:
        """Return up to `size` bytes."""


def read_batches(
    file: Readable,
    types: Mapping[str, str],
    *,
    source: str,
    delimiter: str = ",",
    header: Sequence[str] | None = None,
    encoding: str = "utf8",
) -> Iterator[Columns]:
    """Yield the columns of a delimited text file, about a megabyte at a time.

    Args:
        file: where to read from.
        types: the columns to read, each with the name of its Arrow type.
        source: what an error calls the file.
        delimiter: what stands between two columns.
        header: names of all columns, where the first line does not have them.
        encoding: of the text.
    """
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        raise DataError(
            f"{source}: reading it needs pyarrow; pip install 'oclok[experiments]'"
        ) from None
    try:
        reader = csv.open_csv(
            file,
            csv.ReadOptions(column_names=header, encoding=encoding),
            # Without a header there is no quoting: a quote is part of the text it stands in.
            csv.ParseOptions(delimiter=delimiter, quote_char=False if header else '"'),
            csv.ConvertOptions(
                column_types={name: pa.type_for_alias(kind) for name, kind in types.items()},
                include_columns=list(types),
                null_values=[],
            ),
        )
        for batch in reader:
            yield {name: batch.column(name).to_numpy(zero_copy_only=False) for name in types}
    except (pa.ArrowException, UnicodeDecodeError, EOFError, OSError) as reason:
        seen = " ".join(str(reason).split())
        raise DataError(
            f"{source}: not a table with the columns {', '.join(types)}; get a fresh copy ({seen})"
        ) from None


def read_columns(file: Readable, types: Mapping[str, str], **how: Any) -> Columns:
    """Return whole columns of a delimited text file; see `read_batches`."""
    batches = list(read_batches(file, types, **how))
    if not batches:
        raise DataError(f"{how['source']}: has no rows; get a fresh copy")
    return {name: np.concatenate([batch[name] for batch in batches]) for name in types}
