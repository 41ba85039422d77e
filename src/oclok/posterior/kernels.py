"""scikit-learn's kernels, evaluated without redundant passes, copies and checks.

`Covariance` walks a kernel once and compiles it into functions that give scikit-learn's
numbers. Kernels it does not know are called as they are.

    X, Y    contexts (N, D), (M, D)
    d       scaled distances ‖(x - y) / l‖, shape (N, M)

It is compiled into functions of Y that return functions of X, so that what depends on Y alone
is done once for all X.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg.blas import dgemm
from scipy.spatial.distance import cdist

from oclok.errors import ContextError, InputError
from oclok.persistence import Persistent
from oclok.typing import FloatArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Entries of a matrix of distances from which one product is quicker than a loop …
LEAST_FOR_PRODUCT = 5_000
#: … and half the sum of the squared distances of two contexts from the origin up to which the
#: product is right to 1e-13.
MOST_FOR_PRODUCT = 64.0

_Between = Callable[[FloatArray], FloatArray]
_Function = Callable[[FloatArray], Callable[[FloatArray], Any]]
_Diagonal = Callable[[FloatArray], Any]


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

    def to(self, Y: FloatArray) -> _Between:
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
        result = _called(self.kernel, X.copy())
        if result.shape != (len(X), len(X)):
            raise InputError(f"kernel must give a matrix, one row per context; got {result.shape}")
        return result

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
        self._to, self._diagonal = _compile(self.kernel)
        self._is_compiled = _is_compiled(self.kernel)
        self.dimension = _dimension(self.kernel)
        self._length_scales = _length_scales(self.kernel)
        scales = np.broadcast_arrays(*self._length_scales) or [np.ones(())]
        self.length_scale: FloatArray = np.min(scales, axis=0)
        self.is_stationary = bool(self.kernel.is_stationary())


def largest_of(variance: FloatArray | float) -> float:
    """Return the largest of what `Covariance.variance` returns."""
    return float(variance.max() if isinstance(variance, np.ndarray) else variance)


def _length_scales(kernel: Any) -> list[FloatArray]:
    """Return the lengthscales, each of shape () or (D,), of all parts of a kernel."""
    if hasattr(kernel, "k1"):
        return _length_scales(kernel.k1) + _length_scales(kernel.k2)
    return [_length_scale(kernel)] if hasattr(kernel, "length_scale") else []


def _dimension(kernel: Any) -> int | None:
    """Return the D that a kernel with a lengthscale per column asks for; None for any."""
    if hasattr(kernel, "k1"):
        return _dimension(kernel.k1) or _dimension(kernel.k2)
    size = np.size(getattr(kernel, "length_scale", 1.0))
    return size if size > 1 else None


def _is_compiled(kernel: Any) -> bool:
    """Return whether all of a kernel is compiled, and nothing called as it is."""
    if hasattr(kernel, "k1"):
        return type(kernel) in _compilers() and _is_compiled(kernel.k1) and _is_compiled(kernel.k2)
    return type(kernel) in _compilers()


def _compile(kernel: Any) -> tuple[_Function, _Diagonal]:
    return _compilers().get(type(kernel), _as_it_is)(kernel)


@cache
def _compilers() -> dict[type, Callable[[Any], tuple[_Function, _Diagonal]]]:
    from sklearn.gaussian_process import kernels

    return {
        kernels.Sum: _sum,
        kernels.Product: _product,
        kernels.ConstantKernel: _constant,
        kernels.RBF: _rbf,
        kernels.Matern: _matern,
        kernels.RationalQuadratic: _rational_quadratic,
    }


def _as_it_is(kernel: Any) -> tuple[_Function, _Diagonal]:
    return (
        lambda Y: lambda X: _called(kernel, X.copy(), Y.copy()),
        lambda X: _called(kernel.diag, X.copy()),
    )


def _called(function: Any, *contexts: FloatArray) -> FloatArray:
    """Return what `function` says of contexts that it may write to, as an array of our own."""
    try:
        return np.array(function(*contexts), dtype=np.float64, order="C")
    except ValueError as reason:
        raise ContextError(f"the kernel does not take these contexts: {reason}") from None


def _constant(kernel: Any) -> tuple[_Function, _Diagonal]:
    value = float(kernel.constant_value)
    return lambda Y: lambda X: value, lambda X: value


def _sum(kernel: Any) -> tuple[_Function, _Diagonal]:
    return _combine(kernel, np.add, lambda a, b: a + b)


def _product(kernel: Any) -> tuple[_Function, _Diagonal]:
    return _combine(kernel, np.multiply, lambda a, b: a * b)


def _combine(
    kernel: Any, in_place: np.ufunc, plain: Callable[[Any, Any], Any]
) -> tuple[_Function, _Diagonal]:
    to_1, diagonal_1 = _compile(kernel.k1)
    to_2, diagonal_2 = _compile(kernel.k2)

    def join(a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray):
            return in_place(a, b, out=a)
        if isinstance(b, np.ndarray):
            return in_place(a, b, out=b)
        return plain(a, b)

    def to(Y: FloatArray) -> Callable[[FloatArray], Any]:
        between_1, between_2 = to_1(Y), to_2(Y)
        return lambda X: join(between_1(X), between_2(X))

    return to, lambda X: join(diagonal_1(X), diagonal_2(X))


def _rbf(kernel: Any) -> tuple[_Function, _Diagonal]:
    length_scale = _length_scale(kernel)

    def to(Y: FloatArray) -> _Between:
        exponents = _Exponents(Y, length_scale)

        def between(X: FloatArray) -> FloatArray:
            d = exponents(X)
            return np.exp(d, out=d)

        return between

    return to, lambda X: 1.0


def _matern(kernel: Any) -> tuple[_Function, _Diagonal]:
    nu = kernel.nu
    if nu == math.inf:
        return _rbf(kernel)
    if nu not in (0.5, 1.5, 2.5):
        return _as_it_is(kernel)
    length_scale = _length_scale(kernel)
    scale = math.sqrt(2 * nu)

    def to(Y: FloatArray) -> _Between:
        y = _scaled(Y, length_scale)

        def between(X: FloatArray) -> FloatArray:
            d: FloatArray = cdist(X / length_scale, y)
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

        return between

    return to, lambda X: 1.0


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


def _rational_quadratic(kernel: Any) -> tuple[_Function, _Diagonal]:
    if np.size(kernel.length_scale) > 1:
        raise InputError(f"RationalQuadratic takes one lengthscale; got {kernel.length_scale}")
    alpha = float(kernel.alpha)
    scale = 2 * alpha * float(np.squeeze(kernel.length_scale)) ** 2

    def to(Y: FloatArray) -> _Between:
        def between(X: FloatArray) -> FloatArray:
            d: FloatArray = cdist(X, Y, "sqeuclidean")
            d /= scale
            d += 1.0
            return np.power(d, -alpha, out=d)

        return between

    return to, lambda X: 1.0


def _length_scale(kernel: Any) -> FloatArray:
    """Return the lengthscale, shape () or (D,)."""
    return np.squeeze(np.asarray(kernel.length_scale, dtype=np.float64))


def _scaled(Y: FloatArray, length_scale: FloatArray) -> FloatArray:
    """Return Y / l, if the lengthscales are as many as its columns."""
    if length_scale.ndim and length_scale.size != Y.shape[1]:
        raise ContextError(
            f"the kernel has {length_scale.size} lengthscales; got contexts of {Y.shape[1]} columns"
        )
    return Y / length_scale
