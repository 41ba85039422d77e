"""How much exploring pays, learned by rehearsing rounds under the posterior.

    R, A      rounds rehearsed, and base arms of each that are contenders; P = R · A of them
    k         base arms chosen among A
    μ, C      joint posterior mean (P,) and covariance (P, P) of f there
    w, H      a width, and the horizon: rounds in which what is learned is used

A rehearsal has two stages. Stage 1 plays half of the rounds by μ + wσ, where σ shrinks by the arms
chosen so far, their outcomes unseen. Stage 2 plays the other half greedily, by the means μ' that
the outcomes of stage 1 will lead to. Seen from today these are random, with mean μ and covariance
C₂₁ (C₁₁ + noise)⁻¹ C₁₂, and as good as they look on average, so

    value(w)  =  Σ μ of stage 1's arms  +  H · E[Σ of the k largest μ' in a round of stage 2]

Exploring lowers the first and raises the second. The width of the highest value, summed over recent
rehearsals, is used. Where arms on offer vary so much that greedy choices teach as well, that is 0.
Super arms are the k best arms, whatever the oracle: only how many arms are chosen counts here.

A rehearsal knows no more than its model. So the full width is used until there are `EARLY`
outcomes, and in every `TRUST`-th round after that, whatever was learned: what a wrong model hides
comes to light there.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from oclok.persistence import Persistent
from oclok.policies.regret import KeptRounds
from oclok.posterior.base import Posterior
from oclok.typing import FloatArray, IntArray
from oclok.validation import as_range

#: Widths to choose from.
WIDTHS = (0.0, 0.25, 0.5, 1.0)
#: R, arms of a round that are drawn, A contenders among them, and draws of μ'.
ROUNDS, DRAWN, CONTENDERS, DRAWS = 12, 20, 10, 256
#: Contenders that do not have the highest means have the highest μ + OPTIMISM · σ.
OPTIMISM = 1.5
#: H. Further ahead, what a model promises is worth less, as the model is not quite right either.
HORIZON = 60
#: The full width is used for the first EARLY outcomes, and in every TRUST-th round.
EARLY, TRUST = 200, 4
#: After a rehearsal, the next one waits for an EVERY-th of the rounds so far.
EVERY = 4
#: Weight of the rehearsals before, each time there is another one.
MEMORY = 0.6
#: Weight of the mean in indices, which breaks ties between those at the ceiling.
TIE = 1e-6


class Rehearsal(Persistent):
    """Learns a width.

    Args:
        outcome_range: lowest and highest outcome that are possible; the posterior's if left out.

    Attributes:
        width: the one that pays best, as far as is known.
    """

    def __init__(self, outcome_range: tuple[float, float] | None = None) -> None:
        self._range = as_range(outcome_range)
        self.restart(0)

    def restart(self, rounds: int) -> None:
        """Begin anew after this many rounds: the world has moved."""
        self.width = WIDTHS[-1]
        self._values = np.zeros(len(WIDTHS))
        self._start = self._due = rounds

    def width_in(self, t: int) -> float:
        """Return the width to use in round `t`."""
        return self.width if t % TRUST else WIDTHS[-1]

    def ceiling(self, posterior: Posterior) -> float:
        """Return the highest outcome that is possible, as far as is known."""
        return posterior.range[1] if self._range is None else self._range[1]

    def capped(self, index: FloatArray, mean: FloatArray, posterior: Posterior) -> FloatArray:
        """Return indices (M,) below the highest possible outcome; ties there go by the mean."""
        ceiling = self.ceiling(posterior)
        if ceiling == math.inf:
            return index
        return np.minimum(index, ceiling) + TIE * (mean - ceiling)

    def work(self, posterior: Posterior, kept: KeptRounds) -> None:
        """Rehearse if it is due."""
        t = kept.rounds
        if len(posterior) < EARLY or t < self._due:
            return
        self._due = t + max(1, (t - self._start) // EVERY)
        rng = np.random.default_rng([t, len(posterior)])
        drawn = kept.draw(ROUNDS, DRAWN, rng)
        if drawn is None:
            return
        contexts, share = drawn  # (R, M, D)
        R, M, D = contexts.shape
        k, A = max(1, round(share * M)), min(CONTENDERS, M)
        if k >= A:
            return
        mean, std = posterior.predict(contexts.reshape(-1, D))
        of = _contenders(mean.reshape(R, M), std.reshape(R, M), A)
        X = np.take_along_axis(contexts, of[:, :, None], axis=1).reshape(-1, D)
        ceiling = self.ceiling(posterior)
        mean = np.minimum(np.take_along_axis(mean.reshape(R, M), of, axis=1).ravel(), ceiling)
        noise = posterior.noise_std**2
        try:
            value = values(mean, posterior.covariance(X), noise, A, k, ceiling, rng)
        except LinAlgError:
            return  # the width stays
        self._values = MEMORY * self._values + value - value.max()
        self.width = WIDTHS[int(np.argmax(self._values))]


def values(
    mean: FloatArray,
    C: FloatArray,
    noise: float,
    A: int,
    k: int,
    ceiling: float,
    rng: np.random.Generator,
    horizon: float = HORIZON,
) -> FloatArray:
    """Return the value of each of `WIDTHS` in a rehearsal.

    Args:
        mean: μ, shape (P,), round after round.
        C: shape (P, P).
        noise: variance of outcomes around f.
        A: arms per round.
        k: arms to choose in each.
        ceiling: the highest outcome that is possible.
        rng: draws μ'.
        horizon: H.
    """
    first = len(mean) // A // 2
    half = first * A
    draws = rng.standard_normal((DRAWS, first * k))
    result = np.empty(len(WIDTHS))
    for n, width in enumerate(WIDTHS):
        chosen = _stage_1(mean[:half], C[:half, :half], noise, width, A, k, ceiling)
        gain = _halved(C[np.ix_(chosen, chosen)], C[chosen, half:], noise)
        moved = draws @ gain
        later = np.minimum(mean[half:] + np.vstack([moved, -moved]), ceiling)
        best = np.partition(later.reshape(2 * DRAWS, -1, A), A - k, axis=2)[:, :, A - k :]
        result[n] = mean[chosen].sum() + horizon * best.sum(axis=2).mean()
    return result


def _stage_1(
    mean: FloatArray, C: FloatArray, noise: float, width: float, A: int, k: int, ceiling: float
) -> IntArray:
    """Return the positions chosen in rounds of A arms with means (P,) and covariance (P, P)."""
    C = C.copy()
    chosen = []
    for start in range(0, len(mean), A):
        arms = slice(start, start + A)
        index = mean[arms] + width * np.sqrt(np.maximum(C.diagonal()[arms], 0.0))
        taken = start + np.lexsort((-mean[arms], -np.minimum(index, ceiling)))[:k]
        chosen.append(taken)
        if width:
            rest = slice(start + A, None)
            gain = _halved(C[np.ix_(taken, taken)], C[taken, rest], noise)
            C[rest, rest] -= gain.T @ gain
    return np.concatenate(chosen)


def _halved(C: FloatArray, cross: FloatArray, noise: float) -> FloatArray:
    """Return L⁻¹ `cross`, with L the Cholesky factor of C + noise."""
    jitter = noise + 1e-8 * float(np.trace(C)) / len(C) + np.finfo(np.float64).tiny
    L = cholesky(C + jitter * np.eye(len(C)), lower=True)
    halved: FloatArray = solve_triangular(L, cross, lower=True)
    return halved


def _contenders(mean: FloatArray, std: FloatArray, count: int) -> IntArray:
    """Return positions (R, count) of the arms that may be chosen at any width."""
    by_mean = np.argsort(-mean, axis=1, kind="stable")[:, : count // 2]
    optimistic = mean + OPTIMISM * std
    np.put_along_axis(optimistic, by_mean, -np.inf, axis=1)
    others = np.argsort(-optimistic, axis=1, kind="stable")[:, : count - count // 2]
    return np.concatenate([by_mean, others], axis=1)
