"""A few lines of linear algebra that every posterior needs."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dpotrf

from oclok.errors import NumericalError
from oclok.typing import FloatArray


def std_of(variance: FloatArray) -> FloatArray:
    """Return the square root of a variance whose rounding error may have made it negative."""
    return np.sqrt(np.maximum(variance, 0.0))


def factor(S: FloatArray, least: float) -> FloatArray:
    """Return the lower Cholesky factor of S, whose eigenvalues are ≥ `least` in exact arithmetic.

    Rounding in S = K - VᵀV + σ²I can outweigh σ², as with contexts of size 1e6 in a `DotProduct`.
    The eigenvalues that were computed too small are then raised to `least`.
    """
    C, failed = dpotrf(S, lower=1, clean=1)
    if failed:
        if not np.isfinite(S).all():
            raise NumericalError("covariances are not finite; are contexts too large?")
        eigenvalues, Q = np.linalg.eigh(S)
        C = np.linalg.qr((Q * np.sqrt(np.maximum(eigenvalues, least))).T)[1].T
        C = C * np.where(np.diag(C) < 0, -1.0, 1.0)
    return np.asarray(C)


def gram(V: FloatArray) -> FloatArray:
    """Return VᵀV by SciPy's BLAS; NumPy's own product would wake the threads of another one."""
    if V.flags.c_contiguous:  # BLAS takes columns that are contiguous; others it copies
        return np.asarray(dgemm(1.0, V.T, V.T, trans_b=1))
    return np.asarray(dgemm(1.0, V, V, trans_a=1))


def product(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return ABᵀ, by SciPy's BLAS, in C order."""
    if not A.shape[1]:
        return np.zeros((len(A), len(B)))
    return np.asarray(dgemm(1.0, B.T, A.T, trans_a=1).T)


def add_to_diagonal(matrix: FloatArray, value: FloatArray | float) -> None:
    """Add `value` to the diagonal of `matrix`, in place (diag_indices takes 20 times as long)."""
    if matrix.flags.forc:
        matrix.ravel(order="K")[:: len(matrix) + 1] += value
    else:
        np.einsum("ii->i", matrix)[...] += value
