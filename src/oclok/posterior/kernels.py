"""The prior covariance of f between contexts: a scikit-learn kernel, and what follows from it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from oclok.errors import InputError
from oclok.persistence import Persistent
from oclok.posterior.compiled import (
    LEAST_FOR_PRODUCT,
    called,
    compile_kernel,
    is_compiled,
    length_scale_of,
)
from oclok.typing import FloatArray
from oclok.validation import check_kernel

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel


class Covariance(Persistent):
    """Prior covariance of f between contexts, by a scikit-learn kernel.

    Args:
        kernel: the kernel; changes made to it later do not matter.

    Attributes:
        dimension: D, where the kernel has a lengthscale for each column; None otherwise.
        length_scale: the shortest of its lengthscales, shape () or (D,); 1 if it has none.
        is_stationary: whether k(x, y) depends on x - y alone.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._restore({"kernel": copy.deepcopy(kernel)})

    def between(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Return k(X, Y), a new array of shape (N, M) in C order."""
        return self.to(Y)(X)

    def to(self, Y: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the function X → k(X, Y), for Y that stays as it is."""
        function = self._to(Y)

        def between(X: FloatArray) -> FloatArray:
            value = function(X)
            if not isinstance(value, np.ndarray):
                return np.full((len(X), len(Y)), float(value))
            return value

        return between

    def of(self, X: FloatArray) -> FloatArray:
        """Return k(X, X), shape (M, M); a `WhiteKernel` adds to its diagonal only here."""
        if self._is_compiled:
            result = self.between(X, X)
            if result.size >= LEAST_FOR_PRODUCT:  # a product rounds k(x, x): ties would not tie
                np.einsum("ii->i", result)[...] = self.diagonal(X)
            return result
        result = called(self.kernel, X.copy())
        if result.shape != (len(X), len(X)):
            raise InputError(f"kernel must give a matrix, one row per context; got {result.shape}")
        return result

    def of_blocks(self, X: FloatArray) -> FloatArray:
        """Return k(x, x), shape (B, n, n), of each of many small blocks x of X, (B, n, D).

        Right to 1e-11 where the contexts of a block are near each other.
        """
        value = self._of_blocks(X)
        if not isinstance(value, np.ndarray):
            return np.full((*X.shape[:2], X.shape[1]), float(value))
        return value

    def variance(self, X: FloatArray) -> FloatArray | float:
        """Return the prior variances k(x, x), shape (M,), or the one that all contexts have."""
        value: FloatArray | float = self._diagonal(X)
        return value

    def diagonal(self, X: FloatArray) -> FloatArray:
        """Return the prior variances k(x, x), shape (M,)."""
        value = self._diagonal(X)
        if not isinstance(value, np.ndarray):
            return np.full(len(X), float(value))
        return value

    def largest(self, X: FloatArray) -> float:
        """Return the largest prior variance at X."""
        return largest_of(self._diagonal(X))

    def reach(self, X: FloatArray) -> float:
        """Return the largest |x| / l, over all lengthscales l: rounding of x / l grows with it."""
        return float((np.abs(X) / self.length_scale).max()) if self._length_scales else 0.0

    def _state(self) -> dict[str, Any]:
        return {"kernel": self.kernel}

    def _restore(self, state: dict[str, Any]) -> None:
        self.kernel = state["kernel"]
        self._to, self._diagonal, self._of_blocks = compile_kernel(self.kernel)
        self._is_compiled = is_compiled(self.kernel)
        self.dimension = _dimension(self.kernel)
        self._length_scales = _length_scales(self.kernel)
        scales = np.broadcast_arrays(*self._length_scales) or [np.ones(())]
        self.length_scale: FloatArray = np.min(scales, axis=0)
        self.is_stationary = bool(self.kernel.is_stationary())


def compiled(kernel: Kernel | Covariance) -> Covariance:
    """Return a checked kernel as a `Covariance`; one that is compiled already as it is."""
    if isinstance(kernel, Covariance):
        return kernel
    check_kernel(kernel)
    return Covariance(kernel)


def largest_of(variance: FloatArray | float) -> float:
    """Return the largest of what `Covariance.variance` returns."""
    return float(variance.max() if isinstance(variance, np.ndarray) else variance)


def _length_scales(kernel: Any) -> list[FloatArray]:
    """Return the lengthscales, each of shape () or (D,), of all parts of a kernel."""
    if hasattr(kernel, "k1"):
        return _length_scales(kernel.k1) + _length_scales(kernel.k2)
    return [length_scale_of(kernel)] if hasattr(kernel, "length_scale") else []


def _dimension(kernel: Any) -> int | None:
    """Return the D that a kernel with a lengthscale per column asks for; None for any."""
    if hasattr(kernel, "k1"):
        return _dimension(kernel.k1) or _dimension(kernel.k2)
    size = np.size(getattr(kernel, "length_scale", 1.0))
    return size if size > 1 else None
