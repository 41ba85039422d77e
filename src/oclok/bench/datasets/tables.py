"""Delimited text files to tables, in batches and with errors that say what to do."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from oclok.errors import DataError
from oclok.extras import needs

if TYPE_CHECKING:
    import pandas as pd

#: Rows that are held at once.
ROWS = 1_000_000


def read_batches(
    file: IO[bytes] | Path, types: Mapping[str, Any], *, source: str, **how: Any
) -> Iterator[pd.DataFrame]:
    """Yield the columns `types` of a delimited text file, `ROWS` at a time.

    Errors call it `source`. `how` are further arguments of `pandas.read_csv`.
    """
    with needs("bench"):
        import pandas as pd
    rows = 0
    how = {"usecols": list(types), "dtype": types, "keep_default_na": False, **how}
    try:
        for batch in pd.read_csv(file, chunksize=ROWS, **how):
            rows += len(batch)
            yield batch
    except (ValueError, EOFError, OSError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as why:
        seen = " ".join(str(why).split())
        raise DataError(
            f"{source}: not a table with the columns {', '.join(types)}; get a fresh copy ({seen})"
        ) from None
    if not rows:
        raise DataError(f"{source}: has no rows; get a fresh copy")


def read_table(file: IO[bytes] | Path, types: Mapping[str, Any], **how: Any) -> pd.DataFrame:
    """Return whole columns of a delimited text file; see `read_batches`."""
    with needs("bench"):
        import pandas as pd
    return pd.concat(read_batches(file, types, **how))
