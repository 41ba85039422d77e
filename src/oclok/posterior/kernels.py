"""scikit-learn's kernels, evaluated without redundant passes, copies and checks.

`_value` has scikit-learn's numbers for two kinds of pairs of contexts: all of X and Y, with what
depends on X alone done once (`_Against`), and all within each of many small blocks of contexts
(`_Blocks`). Each kind has

    product      x · y
    exponent     -|(x - y)/l|²/2 for the lengthscales l, shape () or (D,); `exactly` where it must
                 round no more than differences do, as for a kernel with a slope at x = y
    called       the value of a kernel that is not known here
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm, dgemv
from scipy.spatial.distance import cdist

from oclok.errors import ContextError, InputError
from oclok.persistence import Persistent
from oclok.typing import FloatArray, Kernel
from oclok.validation import check_kernel

#: Entries of a matrix of distances from which one product is quicker than a loop …
LEAST_FOR_PRODUCT = 5_000
#: … and half the sum of the squared distances of two contexts from the origin up to which the
#: product is right to 1e-13.
MOST_FOR_PRODUCT = 64.0
#: The same for blocks of contexts, as far as it takes for the product to be right to 1e-11.
MOST_FOR_BLOCKS = 1e4
#: A lengthscale that divides by nothing.
ONE = 1.0


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
        return self.to(X)(Y)

    def to(self, X: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return the function Y → k(X, Y), for X that stays as it is."""
        pairs = _Against(X)
        return lambda Y: _filled(_value(self.kernel, pairs, Y), len(X), len(Y))

    def of(self, X: FloatArray) -> FloatArray:
        """Return k(X, X), shape (M, M); a `WhiteKernel` adds to its diagonal only here."""
        if self._is_known:
            result = self.between(X, X)
            if result.size >= LEAST_FOR_PRODUCT:  # a product rounds k(x, x): ties would not tie
                np.einsum("ii->i", result)[...] = self.diagonal(X)
            return result
        result = _called(self.kernel, X)
        if result.shape != (len(X), len(X)):
            raise InputError(
                f"kernel must give one covariance per pair of contexts; got shape {result.shape}"
            )
        return result

    def of_blocks(self, X: FloatArray) -> FloatArray:
        """Return k(x, x), shape (B, n, n), of each of many small blocks x of X, (B, n, D).

        Right to 1e-11 where the contexts of a block are near each other.
        """
        return _filled(_value(self.kernel, _Blocks(), X), *X.shape[:2], X.shape[1])

    def variance(self, X: FloatArray) -> FloatArray | float:
        """Return the prior variances k(x, x), shape (M,), or the one that all contexts have."""
        return _called(self.kernel.diag, X) if self._variance is None else self._variance

    def diagonal(self, X: FloatArray) -> FloatArray:
        """Return the prior variances k(x, x), shape (M,)."""
        return _filled(np.asarray(self.variance(X)), len(X))

    def largest(self, X: FloatArray) -> float:
        """Return the largest prior variance at X."""
        return largest_of(self.variance(X))

    def reach(self, X: FloatArray) -> float:
        """Return the largest |x| / l, over all lengthscales l: rounding of x / l grows with it."""
        return float((np.abs(X) / self.length_scale).max()) if self._has_length_scale else 0.0

    def _state(self) -> dict[str, Any]:
        return {"kernel": self.kernel}

    def _restore(self, state: dict[str, Any]) -> None:
        self.kernel = state["kernel"]
        parts = _parts(self.kernel)
        self._is_known = all(type(part) in _known() for part in parts)
        self.is_stationary = bool(self.kernel.is_stationary())
        self._variance = None  # which differs between contexts
        if self._is_known and self.is_stationary:
            self._variance = float(self.diagonal(np.zeros((1, 1)))[0])
        scales = [np.squeeze(p.length_scale) for p in parts if hasattr(p, "length_scale")]
        self._has_length_scale = bool(scales)
        self.dimension = next((scale.size for scale in scales if scale.size > 1), None)
        shortest = np.min(np.broadcast_arrays(*scales) or [1.0], axis=0)
        self.length_scale: FloatArray = np.asarray(shortest, dtype=np.float64)


def compiled(kernel: Kernel | Covariance) -> Covariance:
    """Return a checked kernel as a `Covariance`; one that is compiled already as it is."""
    if isinstance(kernel, Covariance):
        return kernel
    check_kernel(kernel)
    return Covariance(kernel)


def largest_of(variance: FloatArray | float) -> float:
    """Return the largest of what `Covariance.variance` returns."""
    return float(variance.max() if isinstance(variance, np.ndarray) else variance)


def _filled(value: FloatArray, *shape: int) -> FloatArray:
    return value if value.ndim else np.full(shape, value)


def _parts(kernel: Any) -> list[Any]:
    """Return a kernel and all kernels that it is made of."""
    if hasattr(kernel, "k1"):
        return [kernel, *_parts(kernel.k1), *_parts(kernel.k2)]
    if type(kernel) is _kernels().RationalQuadratic and np.size(kernel.length_scale) > 1:
        raise InputError(f"RationalQuadratic takes one lengthscale; got {kernel.length_scale}")
    return [kernel]


@cache
def _kernels() -> Any:
    from sklearn.gaussian_process import kernels  # which `import oclok` need not load

    return kernels


@cache
def _known() -> tuple[type, ...]:
    """Return the kernels that `_value` computes; others are called."""
    k = _kernels()
    simple = k.ConstantKernel, k.DotProduct, k.RBF, k.Matern, k.RationalQuadratic
    return k.Sum, k.Product, *simple


def _called(function: Any, *contexts: FloatArray) -> FloatArray:
    """Return the value of `function`, which may write to its arguments, as an array of our own."""
    try:
        return np.array(function(*(X.copy() for X in contexts)), dtype=np.float64, order="C")
    except ValueError as reason:
        raise ContextError(f"the kernel does not take these contexts: {reason}") from None


def _value(kernel: Any, pairs: _Pairs, X: FloatArray) -> FloatArray:
    """Return k of all `pairs` of contexts X: a new array, of shape () where all are equal."""
    kernels, kind = _kernels(), type(kernel)
    if kind is kernels.Sum or kind is kernels.Product:
        a, b = _value(kernel.k1, pairs, X), _value(kernel.k2, pairs, X)
        operation = np.add if kind is kernels.Sum else np.multiply
        return np.asarray(operation(a, b, out=a if a.ndim else b))
    if kind is kernels.ConstantKernel:
        return np.array(kernel.constant_value, dtype=np.float64)
    if kind is kernels.DotProduct:
        k = pairs.product(X)
        k += kernel.sigma_0**2
        return k
    if kind is kernels.RBF or (kind is kernels.Matern and kernel.nu == math.inf):
        k = pairs.exponent(X, kernel.length_scale)
        return np.exp(k, out=k)
    if kind is kernels.RationalQuadratic:
        k = pairs.exponent(X, ONE, exactly=True)
        k /= -kernel.alpha * float(np.squeeze(kernel.length_scale)) ** 2
        k += 1.0
        return np.asarray(np.power(k, -kernel.alpha, out=k))
    if kind is kernels.Matern and kernel.nu in (0.5, 1.5, 2.5):
        d = pairs.exponent(X, kernel.length_scale, exactly=True)
        d *= -4.0 * kernel.nu
        np.negative(np.sqrt(d, out=d), out=d)  # -√(2ν)|x - y|/l
        decay = np.asarray(np.exp(d))
        if kernel.nu == 0.5:
            return decay
        k = np.asarray(1.0 - d)
        if kernel.nu == 2.5:
            d *= d
            d /= 3.0
            k += d
        k *= decay
        return k
    return pairs.called(kernel, X)


class _Blocks:
    """All contexts of each block of X (B, n, D) with each other, by one product per block."""

    def product(self, X: FloatArray) -> FloatArray:
        # NumPy's `matmul` would wake the threads of another BLAS.
        products = np.empty((*X.shape[:2], X.shape[1]))
        for block, product in zip(X, products, strict=True):
            product[:] = dgemm(1.0, block.T, block.T, trans_a=1)
        return products

    def exponent(self, X: FloatArray, length_scale: Any, exactly: bool = False) -> FloatArray:
        x = X / length_scale
        d = self.product(x - np.add.reduce(x, axis=1, keepdims=True) / x.shape[1])
        half = 0.5 * np.einsum("bii->bi", d)
        if not half.max(initial=0.0) < MOST_FOR_BLOCKS:
            return np.array([cdist(block, block, "sqeuclidean") for block in x]) * -0.5
        d -= half[:, :, None]
        d -= half[:, None]
        return np.minimum(d, 0.0, out=d)

    def called(self, kernel: Any, X: FloatArray) -> FloatArray:
        return np.array([_called(kernel, block) for block in X])


class _Against:
    """Contexts X (N, D), which stay as they are, with Y (M, D); in C order.

    Where there are many, the exponents of a smooth kernel are one product,
    [x, -|x|²/2, -1/2] · [y, 1, |y|²], with the mean of x as origin, as long as contexts are near
    enough to it for that to be right to 1e-13. At 1,250 × 100 it takes a third of the time.
    """

    def __init__(self, X: FloatArray) -> None:
        self.X = X
        self._ones = np.ones(X.shape[1])
        self._scaled: dict[int, FloatArray] = {}
        self._extended: dict[int, tuple[FloatArray, FloatArray, float]] = {}

    def product(self, Y: FloatArray) -> FloatArray:
        if len(Y) == 1:  # a pivot
            return np.asarray(dgemv(1.0, self.X.T, Y[0], trans=1)[:, None])
        return np.asarray(dgemm(1.0, Y.T, self.X.T, trans_a=1)).T

    def exponent(self, Y: FloatArray, length_scale: Any, exactly: bool = False) -> FloatArray:
        key = id(length_scale)  # which lives as long as the kernel
        if key not in self._scaled:
            D, count = self.X.shape[1], np.size(length_scale)
            if count not in (1, D):
                raise ContextError(
                    f"the kernel has {count} lengthscales; got contexts of {D} columns"
                )
            self._scaled[key] = self.X / length_scale
        x, y = self._scaled[key], Y / length_scale
        if not exactly and len(x) * len(y) >= LEAST_FOR_PRODUCT:
            if key not in self._extended:
                origin = np.add.reduce(x) / len(x)
                left = _extended(x, origin, self._ones)
                left[:, -2:] = -0.5 * left[:, :-3:-1]
                self._extended[key] = left, origin, -float(left[:, -2].min())
            left, origin, farthest = self._extended[key]
            right = _extended(y, origin, self._ones)
            squares = right[:, -1]
            if 0.5 * squares[squares.argmax()] + farthest < MOST_FOR_PRODUCT:
                return np.asarray(dgemm(1.0, right, left, trans_b=1)).T
        d: FloatArray = cdist(x, y, "sqeuclidean")
        d *= -0.5
        return d

    def called(self, kernel: Any, Y: FloatArray) -> FloatArray:
        return _called(kernel, self.X, Y)


def _extended(x: FloatArray, origin: FloatArray, ones: FloatArray) -> FloatArray:
    """Return [x, 1, |x|²] with x seen from `origin`, shape (N, D + 2)."""
    D = x.shape[1]
    result = np.empty((len(x), D + 2), order="F")
    x = np.subtract(x, origin, out=result[:, :D])
    result[:, D] = 1.0
    result[:, D + 1] = dgemv(1.0, x * x, ones)  # which is quicker than `einsum`
    return result


_Pairs = _Against | _Blocks
