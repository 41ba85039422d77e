"""How far a computed prediction can be from the exact posterior's, rounding included.

A model computes with Q and q where the exact posterior has K and k; E = K - Q, e = k - q. What
is left out and what is rounded are bounded alike, entry by entry:

    |E_mn| ≤ η_m η_n      |e_n| ≤ η η_n      η² = ρ + ω      τ = Σ w_n η_n²      s = τ/σ²
    ρ      prior variance that a dictionary leaves out; 0 without one
    ω      rounding of k(x, x) - Σφ², and of what leads there
    v      variance given          a    A⁻¹y: aᵀAa = Σ|z|² and A ⪰ σ²I, so |a|σ ≤ √Σ|z|²
    g      √(1 + s) - 1            δ    ω / max(√v, √ω), rounding of √v

    |std - exact|   ≤  g√v + (1 + g)δ + √s η  =:  d
    |mean - exact|  ≤  |a|σ (√s η + s(√v + d))

docs/explanation/dictionary.md derives them.
"""

from __future__ import annotations

import math

import numpy as np

from oclok.typing import FloatArray

#: Relative error of k(x, x'): that of the RBF product, see `kernels.MOST_FOR_PRODUCT`, is larger
#: than that of any other compiled kernel.
KERNEL_ROUNDING = 1e-13
#: Machine epsilon.
EPSILON = float(np.finfo(np.float64).eps)
#: Rounding is never 0, not even where the prior variance is.
TINY = float(np.finfo(np.float64).tiny)
#: Rounding of m and S over all updates, relative to the prior standard deviation, and to |m|
#: where that is above 1: up to 6e-11 was seen after 20,000 updates.
STATE_ROUNDING = 1e-9


def error_bounds(
    std: FloatArray,
    residual: FloatArray | float,
    rounding_std: FloatArray | float,
    s: float,
    scale: float,
    mean_slack: float = 0.0,
    std_slack: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the errors of mean and std at contexts with √v, ρ and √ω > 0, each (M,).

    `s` is τ/σ², `scale` a bound of |a|σ; the slacks are for rounding of the model's state.
    """
    g = s / (1.0 + math.sqrt(1.0 + s))  # without cancellation
    rounding = rounding_std * rounding_std
    delta = rounding / np.maximum(std, rounding_std)
    of_eta = math.sqrt(s) * np.sqrt(rounding + residual)
    d = g * std + ((1.0 + g) * delta + (of_eta + std_slack))
    return (scale * s) * (std + d) + (scale * of_eta + mean_slack), d


def kernel_rounding(size: int, reach: float) -> float:
    """Return the relative rounding of a factored covariance of `size` contexts.

    A Cholesky factor of n rows is that of a matrix whose entries are off by at most
    n·eps·√(k k'). `reach` is the largest |x| / l: x / l is rounded relative to it.
    """
    return KERNEL_ROUNDING + EPSILON * (2.0 * size + 8.0 * reach)
