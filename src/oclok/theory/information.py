"""Information gain: how much outcomes can say about f (Section 2.4 of the paper).

Notation
    pair        one base arm of one round; it can be chosen once
    g(S)        information gain of a set S of pairs, ½ log det(I + σ⁻²K_S)
    Δ(x | S)    g(S ∪ {x}) - g(S) = ½ log(1 + σ⁻² var(x | S))
    var(x | S)  variance of f at pair x given noisy outcomes of the pairs S
    G_n         the first n pairs that the greedy rule chooses; G all of them
    L, W        Cholesky factor of K + σ²I of G_n, (n, n), and L⁻¹K(G_n, all pairs), (n, M)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from oclok.errors import ContextError, InputError, NumericalError
from oclok.typing import ArrayLike, FloatArray, Kernel
from oclok.validation import as_contexts, as_count, as_noise_std, check_kernel

#: Choices between two evaluations of the second upper bound.
CHOICES_PER_BOUND = 64
#: Largest rounding of K relative to σ²; the error of the gain is about that, in nats.
LARGEST_ROUNDING = 1e-3


def information_gain(kernel: Kernel, contexts: ArrayLike, noise_std: float) -> float:
    """Return what noisy outcomes at `contexts` say about f: I(r; f) = ½ log det(I + σ⁻²K).

    In nats. A context given twice was observed twice, with independent noise.

    Args:
        kernel: a kernel of `sklearn.gaussian_process.kernels`.
        contexts: shape (N, D).
        noise_std: standard deviation σ of the noise.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> round(information_gain(RBF(1.0), [[0.0], [0.0], [0.5]], noise_std=0.1), 3)
        4.23
    """
    check_kernel(kernel)
    noise_variance = as_noise_std(noise_std) ** 2
    X = as_contexts(contexts)
    _check_noise(kernel, X, len(X), noise_variance)
    K = kernel(X)
    try:
        L = cholesky(np.eye(len(K)) + K / noise_variance, lower=True, check_finite=False)
    except LinAlgError:
        raise _too_small(len(K), noise_variance) from None
    return float(np.sum(np.log(np.diag(L))))


def max_information_gain(
    kernel: Kernel, rounds: Sequence[ArrayLike], k: int, noise_std: float
) -> tuple[float, float]:
    """Return bounds, lower and upper, of γ_KT: the most that T rounds can say about f.

    γ_KT (equation 4) is the largest information gain of at most `k` base arms from each round.
    It is NP-hard to compute. A pair (round, arm) can be chosen once; a context that is
    available in several rounds can be observed in each of them, with independent noise.

    The lower bound is g(G), where G is chosen greedily: always the pair that adds the most,
    among the rounds that have fewer than `k`. The upper bound is the least of

    1. 2 g(G). The gain is monotone and submodular and the rounds form a partition matroid, for
       which greedy reaches at least half of the best (Fisher, Nemhauser and Wolsey 1978).
    2. g(G_n) + Σ_t (the `k` largest Δ(x | G_n) of round t), for n = 0, 64, 128, … and |G|, by
       monotonicity and submodularity: g(O) ≤ g(G_n ∪ O) ≤ g(G_n) + Σ_{x ∈ O} Δ(x | G_n).
    3. g(G) + ½σ⁻² (Σ_t (the `k` largest var(x | G) of round t) - Σ_{x ∈ G} var(x | G)), the
       tangent at G of a concave function: ½ log det(I + σ⁻² K^½ diag(w) K^½) with a weight w_x
       a pair, which equals g(S) where w is the indicator of S.

    The third is tight where outcomes are plenty for the kernel, the second where outcomes hardly
    inform about each other. Time grows with (base arms in all rounds) × (choices)², memory with
    (base arms) × (choices): 250 rounds of 100 base arms and k = 5 take 0.3 GB.

    Args:
        kernel: a kernel of `sklearn.gaussian_process.kernels`.
        rounds: contexts available in each round, shapes (M_t, D).
        k: K, the most base arms in a super arm.
        noise_std: standard deviation σ of the noise.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> rounds = [[[0.0], [0.1]], [[0.0], [0.9]]]
        >>> lower, upper = max_information_gain(RBF(0.5), rounds, k=1, noise_std=0.1)
        >>> round(lower, 3), round(upper, 3)
        (4.596, 4.615)
    """
    check_kernel(kernel)
    k, noise_variance = as_count(k, "k"), as_noise_std(noise_std) ** 2
    arrays = _as_rounds(rounds)
    X, sizes = np.concatenate(arrays), np.array([len(contexts) for contexts in arrays])
    round_of = np.repeat(np.arange(sizes.size), sizes)
    is_among_first = np.arange(len(X)) - np.repeat(np.cumsum(sizes) - sizes, sizes) < k

    def largest_sum(values: FloatArray) -> float:
        """Return the largest sum of `values`, one a pair and none negative, that a choice has."""
        descending = np.lexsort((-values, round_of))
        return float(np.sum(values[descending[is_among_first]]))

    room = np.minimum(sizes, k)
    rank = int(room.sum())
    _check_noise(kernel, X, rank, noise_variance)
    greedy = _Observed(kernel, X, noise_variance, rank)
    is_open, upper = np.ones(len(X), dtype=bool), math.inf
    for n in range(rank + 1):
        if n % CHOICES_PER_BOUND == 0 or n == rank:
            gains = 0.5 * np.log1p(greedy.variances / noise_variance)
            gains[greedy.chosen] = 0.0
            upper = min(upper, greedy.information_gain + largest_sum(gains))
        if n < rank:
            largest = np.argmax(np.where(is_open, greedy.variances, -np.inf))
            # Of equal contexts the first one, whatever rounding makes of their variances.
            pair = int(np.argmax(is_open & (X[largest] == X).all(axis=1)))
            greedy.observe(pair)
            is_open[pair] = False
            room[round_of[pair]] -= 1
            is_open &= room[round_of] > 0

    lower = greedy.information_gain
    slopes = 0.5 / noise_variance * greedy.variances
    tangent = lower + largest_sum(slopes) - float(np.sum(slopes[greedy.chosen]))
    # Where greedy is the best, rounding may leave the tangent a last digit below it.
    return lower, max(lower, min(2 * lower, upper, tangent))


class _Observed:
    """Variances of f at all pairs while outcomes are seen one by one.

    The variance at pair u is k(X[u], X[u]) - ‖W[:, u]‖². An outcome at u adds the row
    (k(X[u], X) - W[:, u]ᵀW) / L_nn to W, with L_nn² = var(X[u]) + σ². A kernel with white noise of
    its own has it at u itself alone, not at another pair of the same context.
    """

    def __init__(self, kernel: Kernel, X: FloatArray, noise_variance: float, most: int) -> None:
        self.variances: FloatArray = kernel.diag(X)
        self.information_gain = 0.0
        self.chosen: list[int] = []
        self._kernel, self._X, self._noise_variance = kernel, X, noise_variance
        self._W = np.empty((most, len(X)))

    def observe(self, u: int) -> None:
        """See a noisy outcome at pair `u`."""
        n, noise, variance = len(self.chosen), self._noise_variance, float(self.variances[u])
        self.information_gain += 0.5 * math.log1p(variance / noise)
        self.chosen.append(u)
        row = self._kernel(self._X[u : u + 1], self._X)[0] - self._W[:n, u] @ self._W[:n]
        row[u] = variance
        self._W[n] = row / math.sqrt(variance + noise)
        left = self.variances - self._W[n] ** 2
        if left.min() < -noise:
            raise _too_small(n + 1, noise)
        self.variances = np.maximum(left, 0.0)


def _as_rounds(rounds: Sequence[ArrayLike]) -> list[FloatArray]:
    arrays: list[FloatArray] = []
    for contexts in rounds:
        try:
            arrays.append(as_contexts(contexts, arrays[0].shape[1] if arrays else None))
        except ContextError as reason:
            raise ContextError(f"round {len(arrays) + 1}: {reason}") from None
    if not arrays:
        raise InputError("rounds must hold the contexts of at least one round; got none")
    return arrays


def _check_noise(kernel: Kernel, X: FloatArray, count: int, noise_variance: float) -> None:
    """Raise a `NumericalError` if the rounding of K, N·eps·k(x, x), counts beside σ²."""
    rounding = np.finfo(np.float64).eps * count * np.max(kernel.diag(X))
    if rounding > LARGEST_ROUNDING * noise_variance:
        raise _too_small(count, noise_variance)


def _too_small(count: int, noise_variance: float) -> NumericalError:
    return NumericalError(
        f"noise_std={math.sqrt(noise_variance):g} is too small for double precision: K + σ²I of "
        f"{count} contexts is K in floats; give a larger noise_std"
    )
