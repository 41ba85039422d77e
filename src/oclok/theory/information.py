"""Information gain: how much outcomes can say about f (Section 2.4 of the paper).

Notation
    pair        one base arm of one round; it can be chosen once
    g(S)        information gain of a set S of pairs, ½ log det(I + σ⁻²K_S)
    Δ(x | S)    g(S ∪ {x}) - g(S) = ½ log(1 + σ⁻² var(x | S))
    var(x | S)  variance of f at pair x given noisy outcomes of the pairs S
    G_n         the first n pairs that the greedy rule chooses; G all of them
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from oclok.errors import ContextError, InputError, NumericalError
from oclok.theory.variances import Variances
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_contexts, as_count, as_noise_std, check_kernel

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Choices between two updates of all variances; one by one is limited by memory bandwidth.
CHOICES_PER_FOLD = 64
#: Largest rounding of K, relative to σ², for which the logarithm is right to about as many nats.
LARGEST_ROUNDING = 1e-3


def information_gain(kernel: Kernel, contexts: ArrayLike, noise_std: float) -> float:
    """Return what noisy outcomes at `contexts` say about f: I(r; f) = ½ log det(I + σ⁻²K).

    In nats. A context that stands there twice was observed twice, with independent noise.

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
    2. g(G_n) + Σ_t (the `k` largest Δ(x | G_n) of round t), for n = 0, 64, 128, … and |G|. For
       the best set O, g(O) ≤ g(G_n ∪ O) by monotonicity, which is at most
       g(G_n) + Σ_{x ∈ O} Δ(x | G_n) by submodularity; and O has at most `k` pairs a round.
    3. g(G) + ½σ⁻² (Σ_t (the `k` largest var(x | G) of round t) - Σ_{x ∈ G} var(x | G)). With a
       weight w_x a pair, h(w) = ½ log det(I + σ⁻² K^½ diag(w) K^½) over all pairs is concave,
       equals g(S) at the indicator of S, and has the slope ½σ⁻² var(x | G) in w_x at G's. A
       concave function lies below its tangent at G; that, maximised over O, is the bound.

    The third is within a few percent where outcomes are plenty for the kernel (RBF(1) in
    [0, 1]³), the second where outcomes hardly inform about each other.

    Time grows with (base arms in all rounds) × (choices)², memory with (base arms) × (choices):
    250 rounds of 100 base arms and k = 5 take a few seconds and 0.3 GB.

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
    pairs = _Pairs(_as_rounds(rounds), as_count(k, "k"))
    noise_variance = as_noise_std(noise_std) ** 2
    _check_noise(kernel, pairs.contexts, pairs.rank, noise_variance)
    variances = Variances(kernel, pairs.contexts, noise_variance, pairs.rank)
    chosen: list[int] = []
    upper = math.inf
    while True:
        if len(chosen) % CHOICES_PER_FOLD == 0 or len(chosen) == pairs.rank:
            variances.fold()
            gains = 0.5 * np.log1p(variances.values[pairs.context_of] / noise_variance)
            gains[chosen] = 0.0
            upper = min(upper, variances.information_gain + pairs.largest_sum(gains))
        if len(chosen) == pairs.rank:
            break
        context = variances.largest(pairs.available)
        variances.observe(context)
        chosen.append(pairs.choose(context))

    lower = variances.information_gain
    slopes = 0.5 / noise_variance * variances.values[pairs.context_of]
    slopes[chosen] = 0.5 / noise_variance * variances.of_observed()
    tangent = lower + pairs.largest_sum(slopes) - float(np.sum(slopes[chosen]))
    # Where greedy is the best, rounding may leave the tangent a last digit below it.
    return lower, max(lower, min(2 * lower, upper, tangent))


class _Pairs:
    """The pairs (round, base arm), of which at most `k` a round can be chosen.

    Pairs are numbered round by round. Equal contexts are held once, in order of appearance.

    Attributes:
        contexts: the U distinct contexts, shape (U, D).
        context_of: each pair's position in `contexts`.
        rank: how many pairs can be chosen in all.
    """

    def __init__(self, rounds: list[FloatArray], k: int) -> None:
        sizes = np.array([len(contexts) for contexts in rounds])
        self.contexts, self.context_of = _distinct(np.concatenate(rounds))
        self._room = np.minimum(sizes, k)
        self.rank = int(self._room.sum())
        self._round_of = np.repeat(np.arange(sizes.size), sizes)
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self._is_among_first = np.arange(sizes.sum()) - self._starts[self._round_of] < k
        self._is_open = np.ones(sizes.sum(), dtype=bool)
        copies = np.bincount(self.context_of)
        self._open_copies = copies
        by_context = np.argsort(self.context_of, kind="stable")
        self._pairs_of = np.split(by_context, np.cumsum(copies)[:-1])

    @property
    def available(self) -> BoolArray:
        """Which distinct contexts can still be chosen in some round; shape (U,)."""
        return self._open_copies > 0

    def choose(self, context: int) -> int:
        """Choose the first pair with this context that can be chosen, and return it."""
        candidates = self._pairs_of[context]
        pair = int(candidates[np.argmax(self._is_open[candidates])])
        t = self._round_of[pair]
        self._close(np.array([pair]))
        self._room[t] -= 1
        if self._room[t] == 0:
            self._close(np.arange(self._starts[t], self._starts[t + 1]))
        return pair

    def largest_sum(self, values: FloatArray) -> float:
        """Return the largest sum of `values`, one a pair and none negative, that a choice has."""
        descending = np.lexsort((-values, self._round_of))
        return float(np.sum(values[descending[self._is_among_first]]))

    def _close(self, pairs: IntArray) -> None:
        closing = pairs[self._is_open[pairs]]
        np.subtract.at(self._open_copies, self.context_of[closing], 1)
        self._is_open[closing] = False


def _distinct(contexts: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows in order of appearance, and where each row is among them."""
    _, first, inverse = np.unique(contexts, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return contexts[first[order]], np.argsort(order)[inverse.ravel()]


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
    largest = float(np.max(kernel.diag(X)))
    if float(np.finfo(np.float64).eps) * count * largest > LARGEST_ROUNDING * noise_variance:
        raise _too_small(count, noise_variance)


def _too_small(count: int, noise_variance: float) -> NumericalError:
    return NumericalError(
        f"noise_std={math.sqrt(noise_variance):g} is too small for double precision: K + σ²I of "
        f"{count} contexts inconclusive from K; give a larger noise_std"
    )
