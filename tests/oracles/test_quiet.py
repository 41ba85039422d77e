"""C code prints nothing to the user's terminal."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from oclok.oracles import Program
from oclok.oracles.quiet import silenced_printf


@pytest.fixture
def libc():
    library = ctypes.CDLL(None)
    if not hasattr(library, "printf"):
        pytest.skip("no C library by this name")
    return library


def test_printf_is_silent_inside_the_block_only(libc, capfd):
    libc.printf(b"before\n")
    with silenced_printf(), silenced_printf():
        libc.printf(b"inside\n")
        print("python")
    libc.printf(b"after\n")
    libc.fflush(None)
    lines = capfd.readouterr().out.split()
    assert sorted(lines) == ["after", "before", "python"]


def test_highs_prints_nothing(libc, capfd):
    # On this instance HiGHS writes a line of its own, whatever its options say.
    rng = np.random.default_rng(519)
    M, R = int(rng.integers(10, 40)), int(rng.integers(1, 5))
    A = rng.random((R, M))
    upper = A.sum(axis=1) * rng.uniform(0.2, 0.6)
    lower = np.where(rng.random(R) < 0.3, upper - A.max() * 0.5, -np.inf)
    Program(A, lower, upper, time_limit=20)(rng.random(M))
    libc.fflush(None)
    assert capfd.readouterr().out == ""
