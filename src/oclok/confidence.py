"""Confidence at all times at once: how far a mean may be off, however often one looks.

Robbins' normal mixture: a sum of n nearly normal numbers of variance 1 stays within c √n of what is
expected, at all n at once, with probability 1 - α, where

    c² = (n + r)/n · log((n + r) / (r α²))

(Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, "Time-uniform central limit theory and
asymptotic confidence sequences").
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def boundary(n: Any, alpha: float, tight: float) -> Any:
    """Return c at n numbers, scalar or array: how many standard errors a mean may be off.

    `alpha` is α, `tight` is r: the boundary is tightest at about 8 r numbers.
    """
    return np.sqrt((n + tight) / n * np.log((n + tight) / (tight * alpha**2)))


def anytime_p_value(n: float, errors: float, tight: float) -> float:
    """Return how likely a mean is to ever be as far off as `errors` standard errors at n are.

    Examples:
        >>> round(anytime_p_value(400.0, float(boundary(400.0, 0.05, 50.0)), 50.0), 6)
        0.05
    """
    p = math.sqrt((n + tight) / tight) * math.exp(-0.5 * errors**2 * n / (n + tight))
    return min(1.0, p)
