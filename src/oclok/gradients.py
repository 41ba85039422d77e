"""Σ_ij G_ij ∂K_ij/∂θ of scikit-learn's kernels, without the (N, N, P) array of ∂K/∂θ.

    X, K    contexts (N, D) and k(X, X), (N, N)
    θ       logarithms of the kernel's free hyperparameters, (P,), in scikit-learn's order
    G       symmetric weights, (N, N)
    z       X / l, the contexts in lengthscales; d = ‖z - z'‖

`differentiate` returns K and a function that maps G to the P sums (reverse mode): a product
passes G ∘ K₂ on to its first factor. A lengthscale per feature needs no distance per feature:

    Σ_ij H_ij (z_ip - z_jp)² = 2 (Σ_i h_i z_ip² - z_pᵀ H z_p),    h = H 1

K and G are symmetric matrices in BLAS' sense: in Fortran order, and what is above the diagonal is
finite but means nothing. Exponentials of half the entries, and one inverse, are most of the cost.
Kernels that are not known here are differentiated by scikit-learn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg.blas import dgemm, dsymm, dsymv
from scipy.spatial.distance import cdist

from oclok.typing import FloatArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: ‖z‖² up to which distances are computed from a product: its rounding is 1e-16 of ‖z‖².
LARGEST_NORM = 500.0
#: Columns whose lower part is exponentiated at a time.
COLUMNS = 64

Backward = Callable[[FloatArray], FloatArray]


def differentiate(kernel: Kernel, X: FloatArray) -> tuple[FloatArray, Backward]:
    """Return k(X, X), shape (N, N), and the function G ↦ Σ_ij G_ij ∂K_ij/∂θ, shape (P,).

    Of K, and of G, the lower triangle counts.
    """
    return _rules().get(type(kernel), _by_scikit_learn)(kernel, X)


@cache
def _rules() -> dict[type, Callable[[Any, FloatArray], tuple[FloatArray, Backward]]]:
    from sklearn.gaussian_process import kernels

    return {
        kernels.Sum: _sum,
        kernels.Product: _product,
        kernels.Exponentiation: _power,
        kernels.ConstantKernel: _constant,
        kernels.WhiteKernel: _white,
        kernels.DotProduct: _dot_product,
        kernels.RBF: _rbf,
        kernels.Matern: _matern,
    }


def _by_scikit_learn(kernel: Any, X: FloatArray) -> tuple[FloatArray, Backward]:
    K, K_gradient = kernel(X, eval_gradient=True)

    def backward(G: FloatArray) -> FloatArray:
        # Not a BLAS call: NumPy's library and SciPy's would wake their threads in turns.
        sums: FloatArray = np.einsum("ij,ijp->p", np.tril(G) + np.tril(G, -1).T, K_gradient)
        return sums

    return np.asfortranarray(K), backward


def _sum(kernel: Any, X: FloatArray) -> tuple[FloatArray, Backward]:
    K_1, backward_1 = differentiate(kernel.k1, X)
    K_2, backward_2 = differentiate(kernel.k2, X)
    return K_1 + K_2, lambda G: np.concatenate([backward_1(G), backward_2(G)])


def _product(kernel: Any, X: FloatArray) -> tuple[FloatArray, Backward]:
    if _rules().get(type(kernel.k1)) is _constant:
        return _multiple(kernel.k1, kernel.k2, X)
    K_1, backward_1 = differentiate(kernel.k1, X)
    K_2, backward_2 = differentiate(kernel.k2, X)
    return K_1 * K_2, lambda G: np.concatenate([backward_1(G * K_2), backward_2(G * K_1)])


def _multiple(constant: Any, kernel: Any, X: FloatArray) -> tuple[FloatArray, Backward]:
    """Return what `_product` would, without passing over (N, N) arrays for the constant."""
    value = float(constant.constant_value)
    K, inner = differentiate(kernel, X)
    own = _free(constant.hyperparameter_constant_value, lambda G: np.array([_sum_of(G * K)]))
    return value * K, lambda G: value * np.concatenate([own(G), inner(G)])


def _power(kernel: Any, X: FloatArray) -> tuple[FloatArray, Backward]:
    K, backward = differentiate(kernel.kernel, X)
    p = kernel.exponent
    return K**p, lambda G: backward(G * (p * K ** (p - 1)))


def _constant(kernel: Any, X: FloatArray) -> tuple[FloatArray, Backward]:
    value = float(kernel.constant_value)
    K = np.broadcast_to(value, (len(X), len(X)))
    return K, _free(kernel.hyperparameter_constant_value, lambda G: np.array([value * _sum_of(G)]))


def _white(kernel: Any, X: FloatArray) -> tuple[FloatArray, Backward]:
    value = float(kernel.noise_level)
    K = value * np.eye(len(X), order="F")
    return K, _free(kernel.hyperparameter_noise_level, lambda G: np.array([value * np.trace(G)]))


def _dot_product(kernel: Any, X: FloatArray) -> tuple[FloatArray, Backward]:
    slope = 2 * float(kernel.sigma_0) ** 2
    backward = _free(kernel.hyperparameter_sigma_0, lambda G: np.array([slope * _sum_of(G)]))
    return kernel(X).T, backward


def _rbf(kernel: Any, X: FloatArray) -> tuple[FloatArray, Backward]:
    z = _scaled(kernel, X)
    K = _exponents(z)
    _exponentiate(K)
    backward = _lengthscales(kernel, z, lambda G: G * K)
    return K, _free(kernel.hyperparameter_length_scale, backward)


def _matern(kernel: Any, X: FloatArray) -> tuple[FloatArray, Backward]:
    if kernel.nu not in (0.5, 1.5, 2.5):
        return _rbf(kernel, X) if kernel.nu == math.inf else _by_scikit_learn(kernel, X)
    z = _scaled(kernel, X)
    d = cdist(z, z).T
    d *= math.sqrt(2 * kernel.nu)
    decay = -d
    _exponentiate(decay)
    # ∂K/∂log l_p = slope · (z_ip - z_jp)²
    if kernel.nu == 0.5:
        K, slope = decay, np.divide(decay, d, out=np.zeros_like(d), where=d > 0)
    elif kernel.nu == 1.5:
        K, slope = (1 + d) * decay, 3 * decay
    else:
        K, slope = (1 + d + d * d / 3) * decay, (5 / 3) * (1 + d) * decay
    backward = _lengthscales(kernel, z, lambda G: G * slope)
    return K, _free(kernel.hyperparameter_length_scale, backward)


def _lengthscales(
    kernel: Any, z: FloatArray, weigh: Callable[[FloatArray], FloatArray]
) -> Backward:
    """Return G ↦ Σ_ij H_ij (z_ip - z_jp)² for each feature p, or summed over them; H = weigh(G)."""

    def backward(G: FloatArray) -> FloatArray:
        H = weigh(G)
        np.einsum("ii->i", H)[...] = 0.0  # of distance 0, but with large weights
        h = dsymv(1.0, H, np.ones(len(H)), lower=1)
        slopes: FloatArray = 2 * (h @ (z * z))
        slopes -= 2 * np.einsum("ip,ip->p", z, dsymm(1.0, H, z, lower=1))
        return slopes if kernel.anisotropic else np.array([slopes.sum()])

    return backward


def _scaled(kernel: Any, X: FloatArray) -> FloatArray:
    """Return contexts in lengthscales, around their mean."""
    centred = X - X.mean(axis=0)
    return np.asarray(centred / np.squeeze(np.asarray(kernel.length_scale, dtype=np.float64)))


def _exponents(z: FloatArray) -> FloatArray:
    """Return -½‖z - z'‖², shape (N, N), in one product where that is exact enough."""
    q = -0.5 * np.einsum("ip,ip->i", z, z)
    if not q.min() > -0.5 * LARGEST_NORM:
        return np.asarray(-0.5 * cdist(z, z, "sqeuclidean").T)
    one = np.ones_like(q)
    left, right = np.column_stack([z, q, one]), np.column_stack([z, one, q])
    exponents: FloatArray = dgemm(1.0, left.T, right.T, trans_a=1)
    np.einsum("ii->i", exponents)[...] = 0.0
    return exponents


def _exponentiate(K: FloatArray) -> None:
    """Take the exponential of the lower triangle of K, in place; NumPy's takes 15 ns per entry."""
    for start in range(0, len(K), COLUMNS):
        part = K[start:, start : start + COLUMNS]
        np.exp(part, out=part)


def _sum_of(G: FloatArray) -> float:
    """Return Σ_ij G_ij."""
    one = np.ones(len(G))
    return float(one @ dsymv(1.0, G, one, lower=1))


def _free(hyperparameter: Any, backward: Backward) -> Backward:
    """Return `backward`, or what returns nothing where the hyperparameter is fixed."""
    return (lambda G: np.empty(0)) if hyperparameter.fixed else backward
