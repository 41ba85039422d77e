"""A Cholesky factor that grows by rows, in place, and is never computed again.

    L    lower triangular factor, (N, N), kept as panels of `PANEL` rows:

             panel p  =  [ left (r, p·PANEL) | corner (r, r) ]        r ≤ PANEL rows so far

    V    right-hand sides, (N, M) in C order; `solve` turns V into L⁻¹V in place

Each panel is an array of its own, so that nothing is ever copied to make room, memory is half
of a square, and every block is contiguous, as SciPy's BLAS wants it. NumPy's C-ordered blocks
are BLAS' transposed ones: L⁻¹V is solved as Vᵀ L⁻ᵀ from the right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm, dtrsm

from oclok.persistence import Persistent
from oclok.typing import FloatArray

#: Rows of a panel: OpenBLAS' `dtrsm` takes a third longer over all rows at once than in panels.
PANEL = 48


class GrowingCholesky(Persistent):
    """Lower triangular factor L of a growing positive definite matrix."""

    _is_finite = True

    def __init__(self) -> None:
        self._left: list[FloatArray] = []
        self._corner: list[FloatArray] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def solve(self, V: FloatArray) -> FloatArray:
        """Turn V (N, M), C-contiguous, into L⁻¹V, in place."""
        for p, corner in enumerate(self._corner):
            start, stop = p * PANEL, p * PANEL + len(corner)
            block = V[start:stop].T
            if start:
                left = self._left[p][: len(corner)].T
                dgemm(-1.0, V[:start].T, left, beta=1.0, c=block, overwrite_c=1)
            dtrsm(1.0, corner.T, block, side=1, lower=0, overwrite_b=1)
        return V

    def append(self, left: FloatArray, corner: FloatArray) -> None:
        """Add the rows [left | corner], of shapes (k, N) and (k, k), to the factor."""
        rows = np.hstack([left, corner])
        while len(rows):
            p, filled = divmod(self._size, PANEL)
            start = p * PANEL
            if filled == 0:
                self._left.append(np.empty((PANEL, start)))
                self._corner.append(np.empty((0, 0)))
            new, rows = rows[: PANEL - filled], rows[PANEL - filled :]
            self._size += len(new)
            size = filled + len(new)
            self._left[p][filled:size] = new[:, :start]
            grown = np.empty((size, size))  # BLAS reads the triangle alone
            grown[:filled, :filled] = self._corner[p]
            grown[filled:] = new[:, start : start + size]
            self._corner[p] = grown

    def truncate(self, size: int) -> None:
        """Forget all rows from `size` on."""
        panels, filled = divmod(size, PANEL)
        keep = panels + (filled > 0)
        del self._left[keep:], self._corner[keep:]
        if filled:
            self._corner[panels] = self._corner[panels][:filled, :filled].copy()
        self._size = size

    def _state(self) -> dict[str, Any]:
        rows = [left[: len(corner)] for left, corner in zip(self._left, self._corner, strict=True)]
        return {"left": rows, "corner": [np.tril(corner) for corner in self._corner]}

    def _restore(self, state: dict[str, Any]) -> None:
        """Append the saved rows, in panels of the current size."""
        GrowingCholesky.__init__(self)
        for left, corner in zip(state["left"], state["corner"], strict=True):
            self.append(left, corner)
