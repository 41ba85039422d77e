"""Pivoted Cholesky: contexts taken one at a time, each where the variance left is largest.

X    contexts (N, D)        F    features, (rank, N): FᵀF ≈ K(X, X), exact at the pivots
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import dgemv
from scipy.linalg.lapack import dpstrf

from oclok.posterior.kernels import Covariance
from oclok.threads import blas_threads
from oclok.typing import FloatArray, IntArray

#: Conditional variances below this fraction of the prior's are rounding error.
LEAST_PIVOT = 1e-13
#: Up to this many contexts, LAPACK's pivoted Cholesky of the whole covariance is faster.
FACTORED_AT_ONCE = 450


def pivoted_cholesky(
    covariance: Covariance, X: FloatArray, rank: int, tolerance: float, *, give_up: bool = False
) -> tuple[IntArray, FloatArray, float]:
    """Return positions of pivots among X (N, D), in order, the features F and the variance left.

    Stops at `rank` features, or when no conditional variance is above `tolerance`; with `give_up`
    also when the variance falls too slowly to get there. The columns of F at the pivots are the
    transposed Cholesky factor of their own covariance.
    """
    F = np.empty((min(rank, len(X)), len(X)))
    variance = covariance.diagonal(X)
    k_X = covariance.to(X)
    pivots: list[int] = []
    path: list[float] = []
    with blas_threads(0.0):
        for j in range(len(F)):
            pivot = int(np.argmax(variance))
            left = float(variance[pivot])
            path.append(left)
            if not left > tolerance or (give_up and _is_hopeless(path, tolerance, rank)):
                break
            row = k_X(X[pivot : pivot + 1])[:, 0]
            if j:
                row = dgemv(-1.0, F[:j].T, F[:j, pivot], beta=1.0, y=row, overwrite_y=1)
            row /= math.sqrt(left)
            row[pivot] = math.sqrt(left)  # a `WhiteKernel` has its variance on the diagonal only
            F[j] = row
            row *= row
            variance -= row
            variance[pivot] = -math.inf
            pivots.append(pivot)
    F = F[: len(pivots)]
    F[:, pivots] = np.triu(F[:, pivots])  # below is rounding error
    return np.array(pivots, dtype=np.intp), F, max(float(variance.max()), 0.0)


def pivots_among(
    covariance: Covariance, X: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    """Return pivots (rank, D) that leave no variance above `tolerance`, and their lower factor."""
    if len(X) > FACTORED_AT_ONCE:
        pivots, F, _ = pivoted_cholesky(covariance, X, len(X), tolerance)
        return X[pivots], F[:, pivots].T
    with blas_threads(0.0):
        C, order, rank, _ = dpstrf(covariance.of(X), tol=tolerance, lower=1)
    return X[order[:rank] - 1], np.tril(C[:rank, :rank])


def _is_hopeless(path: list[float], tolerance: float, rank: int) -> bool:
    """Return whether the variance, at its present rate of decay, would take too many pivots.

    `path` has the largest variance left before each step. For smooth kernels the log rate only
    slows down, so this never gives up too early.
    """
    j = len(path) - 1
    if j < 16 or j & (j - 1):
        return False
    rate = math.log(path[j // 2] / path[j]) / (j - j // 2)
    return rate <= 0 or j + math.log(path[j] / tolerance) / rate > rank
