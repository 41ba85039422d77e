"""scikit-learn's kernels, evaluated without redundant passes, copies and checks.

A kernel is compiled once into functions that return scikit-learn's numbers. Unknown kernels are
called as they are.

    X, Y    contexts (N, D), (M, D)
    d       scaled distances ‖(x - y) / l‖, shape (N, M)

There is a function Y → (X → k(X, Y)), so that what depends on Y alone is done once; the diagonal;
and a batched Gram function of small blocks of contexts, (B, n, D) → (B, n, n).
"""
# Tested in tests/posterior/test_kernels.py: through `Covariance`, against scikit-learn.

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm, dgemv
from scipy.spatial.distance import cdist

from oclok.errors import ContextError, InputError
from oclok.typing import FloatArray

#: Entries of a matrix of distances from which one product is quicker than a loop …
LEAST_FOR_PRODUCT = 5_000
#: … and half the sum of the squared distances of two contexts from the origin up to which the
#: product is right to 1e-13.
MOST_FOR_PRODUCT = 64.0
#: The same for blocks of contexts, as far as it takes for the product to be right to 1e-11.
MOST_FOR_BLOCKS = 1e4

_Between = Callable[[FloatArray], FloatArray]
_Function = Callable[[FloatArray], Callable[[FloatArray], Any]]
_Diagonal = Callable[[FloatArray], Any]
_Compiled = tuple[_Function, _Diagonal, Callable[[FloatArray], Any]]


def is_compiled(kernel: Any) -> bool:
    """Return whether all of a kernel is compiled, and nothing called as it is."""
    if hasattr(kernel, "k1"):
        return type(kernel) in _compilers() and is_compiled(kernel.k1) and is_compiled(kernel.k2)
    return type(kernel) in _compilers()


def compile_kernel(kernel: Any) -> _Compiled:
    """Return Y → (X → k(X, Y)), X → k(x, x) and, for blocks X of contexts, X → k(X, X).

    Scalars broadcast.
    """
    return _compilers().get(type(kernel), _as_it_is)(kernel)


@cache
def _compilers() -> dict[type, Callable[[Any], _Compiled]]:
    from sklearn.gaussian_process import kernels

    return {
        kernels.Sum: _sum,
        kernels.Product: _product,
        kernels.ConstantKernel: _constant,
        kernels.DotProduct: _dot_product,
        kernels.RBF: _rbf,
        kernels.Matern: _matern,
        kernels.RationalQuadratic: _rational_quadratic,
    }


def _as_it_is(kernel: Any) -> _Compiled:
    return (
        lambda Y: lambda X: called(kernel, X.copy(), Y.copy()),
        lambda X: called(kernel.diag, X.copy()),
        lambda X: np.array([called(kernel, block.copy()) for block in X]),
    )


def called(function: Any, *contexts: FloatArray) -> FloatArray:
    """Return what `function` says of contexts that it may write to, as an array of our own."""
    try:
        return np.array(function(*contexts), dtype=np.float64, order="C")
    except ValueError as reason:
        raise ContextError(f"the kernel does not take these contexts: {reason}") from None


def _constant(kernel: Any) -> _Compiled:
    value = float(kernel.constant_value)
    return lambda Y: lambda X: value, lambda X: value, lambda X: value


def _dot_product(kernel: Any) -> _Compiled:
    offset = float(kernel.sigma_0) ** 2

    def product(X: FloatArray, Y: FloatArray) -> FloatArray:
        if len(X) == 1:  # a pivot
            result: FloatArray = dgemv(1.0, Y.T, X[0], trans=1)[None]
        else:
            result = dgemm(1.0, Y.T, X.T, trans_a=1).T  # in C order
        result += offset
        return result

    return (
        lambda Y: lambda X: product(X, Y),
        lambda X: np.einsum("nd,nd->n", X, X) + offset,
        lambda X: _products_of_blocks(X) + offset,
    )


def _sum(kernel: Any) -> _Compiled:
    return _combine(kernel, np.add, lambda a, b: a + b)


def _product(kernel: Any) -> _Compiled:
    return _combine(kernel, np.multiply, lambda a, b: a * b)


def _combine(kernel: Any, in_place: np.ufunc, plain: Callable[[Any, Any], Any]) -> _Compiled:
    to_1, diagonal_1, blocks_1 = compile_kernel(kernel.k1)
    to_2, diagonal_2, blocks_2 = compile_kernel(kernel.k2)

    def join(a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray):
            return in_place(a, b, out=a)
        if isinstance(b, np.ndarray):
            return in_place(a, b, out=b)
        return plain(a, b)

    def to(Y: FloatArray) -> Callable[[FloatArray], Any]:
        between_1, between_2 = to_1(Y), to_2(Y)
        return lambda X: join(between_1(X), between_2(X))

    return (
        to,
        lambda X: join(diagonal_1(X), diagonal_2(X)),
        lambda X: join(blocks_1(X), blocks_2(X)),
    )


def _rbf(kernel: Any) -> _Compiled:
    length_scale = length_scale_of(kernel)

    def to(Y: FloatArray) -> _Between:
        exponents = _Exponents(Y, length_scale)

        def between(X: FloatArray) -> FloatArray:
            d = exponents(X)
            return np.exp(d, out=d)

        return between

    def blocks(X: FloatArray) -> FloatArray:
        d = _exponents_of_blocks(X, length_scale)
        return np.exp(d, out=d)

    return to, lambda X: 1.0, blocks


def _matern(kernel: Any) -> _Compiled:
    nu = kernel.nu
    if nu == math.inf:
        return _rbf(kernel)
    if nu not in (0.5, 1.5, 2.5):
        return _as_it_is(kernel)
    length_scale = length_scale_of(kernel)
    scale = math.sqrt(2 * nu)

    def of(d: FloatArray) -> FloatArray:
        d *= -scale
        decay = np.exp(d)
        if nu == 0.5:
            return decay
        polynomial = 1.0 - d
        if nu == 2.5:
            d *= d
            d /= 3.0
            polynomial += d
        polynomial *= decay
        return polynomial

    def to(Y: FloatArray) -> _Between:
        y = _scaled(Y, length_scale)
        return lambda X: of(cdist(X / length_scale, y))

    def blocks(X: FloatArray) -> FloatArray:
        d = _exponents_of_blocks(X, length_scale)
        d *= -2.0
        return of(np.sqrt(d, out=d))

    return to, lambda X: 1.0, blocks


class _Exponents:
    """-d²/2 of any X to Y.

    Where there are many, it is one product, [x, -|x|²/2, 1] · [y, 1, -|y|²/2], with the mean of
    y as origin, as long as contexts are near enough to it for that to be right to 1e-13. At
    1,250 × 100 it takes a third of the time.
    """

    def __init__(self, Y: FloatArray, length_scale: FloatArray) -> None:
        self._y = _scaled(Y, length_scale)
        self._length_scale = length_scale

    def __call__(self, X: FloatArray) -> FloatArray:
        x = X / self._length_scale
        if len(x) * len(self._y) >= LEAST_FOR_PRODUCT:
            right, origin, farthest = self._prepared
            left = self._extended(x, origin, one=1, square=0)
            if left[:, -2].min() + farthest > -MOST_FOR_PRODUCT:
                return np.asarray(dgemm(1.0, right, left, trans_b=1)).T
        d: FloatArray = cdist(x, self._y, "sqeuclidean")
        d *= -0.5
        return d

    @cached_property
    def _prepared(self) -> tuple[FloatArray, FloatArray, float]:
        """Y extended, its mean, and the smallest -|y|²/2."""
        origin = np.add.reduce(self._y) / len(self._y)
        right = self._extended(self._y, origin, one=0, square=1)
        return right, origin, float(right[:, -1].min())

    @staticmethod
    def _extended(x: FloatArray, origin: FloatArray, one: int, square: int) -> FloatArray:
        D = x.shape[1]
        result = np.empty((len(x), D + 2), order="F")
        x = np.subtract(x, origin, out=result[:, :D])
        np.einsum("nd,nd->n", x, x, out=result[:, D + square])
        result[:, D + square] *= -0.5
        result[:, D + one] = 1.0
        return result


def _products_of_blocks(X: FloatArray) -> FloatArray:
    """Return XXᵀ of each block; NumPy's `matmul` would wake the threads of another BLAS."""
    products = np.empty((*X.shape[:2], X.shape[1]))
    for block, product in zip(X, products, strict=True):
        product[:] = dgemm(1.0, block.T, block.T, trans_a=1)
    return products


def _exponents_of_blocks(X: FloatArray, length_scale: FloatArray) -> FloatArray:
    """Return -d²/2 between the contexts of each block, (B, n, n), as one product per block."""
    x = X / length_scale
    y = x - np.add.reduce(x, axis=1, keepdims=True) / x.shape[1]
    d = _products_of_blocks(y)
    half = 0.5 * np.einsum("bii->bi", d)
    if not half.max(initial=0.0) < MOST_FOR_BLOCKS:
        return np.array([cdist(block, block, "sqeuclidean") for block in x]) * -0.5
    d -= half[:, :, None]
    d -= half[:, None]
    return np.minimum(d, 0.0, out=d)


def _rational_quadratic(kernel: Any) -> _Compiled:
    if np.size(kernel.length_scale) > 1:
        raise InputError(f"RationalQuadratic takes one lengthscale; got {kernel.length_scale}")
    alpha = float(kernel.alpha)
    scale = 2 * alpha * float(np.squeeze(kernel.length_scale)) ** 2

    def of(d: FloatArray) -> FloatArray:
        d /= scale
        d += 1.0
        return np.power(d, -alpha, out=d)

    def to(Y: FloatArray) -> _Between:
        return lambda X: of(cdist(X, Y, "sqeuclidean"))

    def blocks(X: FloatArray) -> FloatArray:
        d = _exponents_of_blocks(X, np.ones(()))
        d *= -2.0
        return of(d)

    return to, lambda X: 1.0, blocks


def length_scale_of(kernel: Any) -> FloatArray:
    """Return the lengthscale, shape () or (D,)."""
    return np.squeeze(np.asarray(kernel.length_scale, dtype=np.float64))


def _scaled(Y: FloatArray, length_scale: FloatArray) -> FloatArray:
    """Return Y / l, if the lengthscales are as many as its columns."""
    if length_scale.ndim and length_scale.size != Y.shape[1]:
        raise ContextError(
            f"the kernel has {length_scale.size} lengthscales; got contexts of {Y.shape[1]} columns"
        )
    return Y / length_scale
