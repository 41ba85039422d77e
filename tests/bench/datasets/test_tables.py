from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest

from oclok.bench.datasets.tables import read_batches, read_table
from oclok.errors import DataError


def test_columns_are_read_with_the_types_asked_for():
    text = b"b,a,c\n1.5,7,x\n2.5,8,y\n"
    columns = read_table(io.BytesIO(text), {"a": "int32", "b": "float64"}, source="it")
    assert columns["a"].dtype == np.int32
    assert columns["a"].tolist() == [7, 8]
    assert columns["b"].tolist() == [1.5, 2.5]
    assert set(columns) == {"a", "b"}


def test_a_large_file_comes_in_batches():
    text = b"a\n" + b"1234567\n" * 1_500_000
    sizes = [len(batch["a"]) for batch in read_batches(io.BytesIO(text), {"a": "int32"}, source="")]
    assert len(sizes) > 1
    assert sum(sizes) == 1_500_000


def test_an_error_names_the_source_and_the_columns():
    with pytest.raises(DataError, match=r"it: not a table with the columns a, z"):
        read_table(io.BytesIO(b"a,b\n1,2\n"), {"a": "int32", "z": "int32"}, source="it")


def test_problems_can_be_imported_without_pandas_or_pyarrow():
    code = "import sys, oclok, oclok.bench; print({'pandas', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
