from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_triangular

from oclok.persistence import dumps, loads
from oclok.posterior import cholesky
from oclok.posterior.cholesky import GrowingCholesky


@pytest.fixture(autouse=True, scope="module")
def small_panels() -> object:
    """Panels of 5 rows, so that few rows cross many borders."""
    before, cholesky.PANEL = cholesky.PANEL, 5
    yield
    cholesky.PANEL = before


def lower(size: int, seed: int = 0) -> np.ndarray:
    L = np.tril(np.random.default_rng(seed).standard_normal((size, size)))
    L[np.diag_indices(size)] = 2 + np.abs(np.diag(L))
    return L


def grow(factor: GrowingCholesky, L: np.ndarray, batches: list[int]) -> None:
    for batch in batches:
        n = len(factor)
        stop = min(n + batch, len(L))
        if stop > n:
            factor.append(L[n:stop, :n], L[n:stop, n:stop])


@settings(deadline=None, max_examples=50)
@given(batches=st.lists(st.integers(1, 13), min_size=1, max_size=8), columns=st.integers(1, 7))
def test_it_solves_as_the_whole_factor_does(batches: list[int], columns: int) -> None:
    L = lower(40)
    factor = GrowingCholesky()
    grow(factor, L, batches)
    size = min(sum(batches), 40)
    assert len(factor) == size
    V = np.random.default_rng(1).standard_normal((size, columns))
    expected = solve_triangular(L[:size, :size], V, lower=True)
    returned = factor.solve(V)
    assert returned is V
    np.testing.assert_allclose(V, expected, rtol=1e-10, atol=1e-12)


@settings(deadline=None, max_examples=50)
@given(
    before=st.lists(st.integers(1, 13), min_size=1, max_size=4),
    keep=st.integers(0, 40),
    after=st.lists(st.integers(1, 13), max_size=4),
)
def test_rows_forgotten_leave_no_trace(before: list[int], keep: int, after: list[int]) -> None:
    L = lower(40)
    factor, never = GrowingCholesky(), GrowingCholesky()
    grow(factor, lower(40, seed=9), before)
    keep = min(keep, len(factor))
    grow(never, lower(40, seed=9), [keep])
    factor.truncate(keep)
    assert dumps(factor) == dumps(never)
    mixed = L.copy()
    mixed[:keep, :keep] = lower(40, seed=9)[:keep, :keep]
    grow(factor, mixed, after)
    size = len(factor)
    V = np.eye(max(size, 1))[:size]
    np.testing.assert_allclose(
        factor.solve(V.copy()),
        solve_triangular(mixed[:size, :size], V, lower=True) if size else V,
        rtol=1e-9,
        atol=1e-11,
    )


@given(batches=st.lists(st.integers(1, 13), max_size=5))
@settings(deadline=None, max_examples=30)
def test_it_comes_back_from_its_file_and_grows_on(batches: list[int]) -> None:
    L = lower(80)
    factor = GrowingCholesky()
    grow(factor, L, batches)
    loaded = loads(dumps(factor))
    assert isinstance(loaded, GrowingCholesky)
    for one in (factor, loaded):
        grow(one, L, [9])
    V = np.random.default_rng(0).random((len(factor), 3))
    np.testing.assert_array_equal(factor.solve(V.copy()), loaded.solve(V.copy()))


def test_a_file_may_have_been_written_with_panels_of_another_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    L, factor = lower(40), GrowingCholesky()
    grow(factor, L, [7, 20, 13])
    data = dumps(factor)
    monkeypatch.setattr(cholesky, "PANEL", 8)
    V = np.random.default_rng(0).random((40, 3))
    expected = solve_triangular(L, V, lower=True)
    np.testing.assert_allclose(loads(data).solve(V), expected, rtol=1e-10)
