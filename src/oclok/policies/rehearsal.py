"""How much exploring pays, learned by rehearsing rounds under the posterior.

    R, A      rounds rehearsed, and base arms of each that are contenders; P = R · A of them
    k         base arms chosen among A
    μ, C      joint posterior mean (P,) and covariance (P, P) of f there
    F, Y      S samples of f, and of outcomes, shape (S, P)
    w, H      a width, and the horizon: rounds in which what is learned is used

A rehearsal has two stages. Stage 1 plays half of the rounds by μ + wσ, where σ shrinks by the arms
chosen so far, their outcomes unseen. Stage 2 learns the outcomes in each sample and plays the other
half of the rounds greedily:

    regret(w)  =  stage 1's regret  +  H · stage 2's regret per round,  averaged over samples

Exploring raises the first and lowers the second. The width with the lowest regret in recent
rehearsals is used. Where arms on offer vary so much that greedy choices teach as well, that is 0.
All widths meet the same samples, so few of them are needed to tell widths apart. Super arms are the
k best arms, whatever the oracle: only how many arms are chosen counts here.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky

from oclok.persistence import Persistent
from oclok.policies.regret import KeptRounds
from oclok.posterior.base import Posterior
from oclok.typing import FloatArray, IntArray
from oclok.validation import as_range

#: Widths to choose from.
WIDTHS = (0.0, 0.25, 0.5, 1.0)
#: R, arms of a round that are drawn, A contenders among them, and S.
ROUNDS, DRAWN, CONTENDERS, SAMPLES = 12, 20, 10, 48
#: Contenders that do not have the highest means have the highest μ + OPTIMISM · σ.
OPTIMISM = 1.5
#: H. Further ahead, what a model promises is worth less, as the model is not quite right either.
HORIZON = 40
#: The first rehearsal is after this many rounds; others follow after an EVERY-th of all so far.
FIRST, EVERY = 4, 4
#: Weight of the rehearsals before, each time there is another one.
MEMORY = 0.6
#: An outcome is the largest possible if none was larger and it was met this often.
MET = 5
#: Weight of the mean in indices, which breaks ties between those at the ceiling.
TIE = 1e-6


class Rehearsal(Persistent):
    """Learns a width, and the range of outcomes.

    Args:
        outcome_range: lowest and highest outcome that are possible; learned if left out.

    Attributes:
        width: the one to use now.
    """

    def __init__(self, outcome_range: tuple[float, float] | None = None) -> None:
        self._range = as_range(outcome_range)
        self.restart(0)
        self.recount(np.empty(0))

    def restart(self, rounds: int) -> None:
        """Begin anew after this many rounds: the world has moved."""
        self.width = 1.0
        self._scores = np.zeros(len(WIDTHS))
        self._start, self._due = rounds, FIRST

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest outcome that are possible, as far as is known."""
        if self._range is not None:
            return self._range
        (low, lows), (high, highs) = self._lowest, self._highest
        if low >= high:
            return -math.inf, math.inf
        return low if lows >= MET else -math.inf, high if highs >= MET else math.inf

    def capped(self, index: FloatArray, mean: FloatArray) -> FloatArray:
        """Return indices (M,) below the highest possible outcome; ties there go by the mean."""
        ceiling = self.range[1]
        if ceiling == math.inf:
            return index
        return np.minimum(index, ceiling) + TIE * (mean - ceiling)

    def recount(self, outcomes: FloatArray) -> None:
        """Learn the range of outcomes from all of them, shape (N,)."""
        self._lowest, self._highest = (math.inf, 0), (-math.inf, 0)
        self.see(outcomes)

    def see(self, outcomes: FloatArray) -> None:
        """Learn the range of outcomes from further ones, shape (N,)."""
        if not len(outcomes):
            return
        low, high = float(outcomes.min()), float(outcomes.max())
        if low <= self._lowest[0]:
            before = self._lowest[1] if low == self._lowest[0] else 0
            self._lowest = low, before + int(np.count_nonzero(outcomes == low))
        if high >= self._highest[0]:
            before = self._highest[1] if high == self._highest[0] else 0
            self._highest = high, before + int(np.count_nonzero(outcomes == high))

    def work(self, posterior: Posterior, kept: KeptRounds) -> None:
        """Rehearse if it is due."""
        t = kept.rounds - self._start
        if t < self._due or len(kept) < 2:
            return
        self._due = t + max(1, t // EVERY)
        rng = np.random.default_rng([kept.rounds, len(posterior)])
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
        mean = np.take_along_axis(mean.reshape(R, M), of, axis=1).ravel()
        noise = posterior.noise_std**2
        try:
            regret = rehearsed(mean, posterior.covariance(X), noise, A, k, self.range, HORIZON, rng)
        except LinAlgError:
            return  # the width stays
        scale = max(float(regret.mean()), np.finfo(np.float64).tiny)
        self._scores = MEMORY * self._scores + (regret - regret.min()) / scale
        self.width = WIDTHS[int(np.argmin(self._scores))]


def rehearsed(
    mean: FloatArray,
    C: FloatArray,
    noise: float,
    A: int,
    k: int,
    outcome_range: tuple[float, float],
    horizon: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the regret of each of `WIDTHS` in a rehearsal.

    Args:
        mean: μ, shape (P,), round after round.
        C: shape (P, P).
        noise: variance of outcomes around f.
        A: arms per round.
        k: arms to choose in each.
        outcome_range: f is within it.
        horizon: H.
        rng: draws F and Y.
    """
    P = len(mean)
    half = (P // A // 2) * A
    jitter = 1e-8 * float(np.trace(C)) / P + np.finfo(np.float64).tiny
    L = cholesky(C + jitter * np.eye(P), lower=True)
    F = np.clip(mean + rng.standard_normal((SAMPLES, P)) @ L.T, *outcome_range)
    Y = F - mean + math.sqrt(noise) * rng.standard_normal((SAMPLES, P))
    later = F[:, half:].reshape(SAMPLES, -1, A)
    regret = np.empty(len(WIDTHS))
    for n, width in enumerate(WIDTHS):
        chosen = _stage_1(mean[:half], C[:half, :half], noise, width, A, k, outcome_range[1])
        gain = cho_solve(_noisy_factor(C[np.ix_(chosen, chosen)], noise), C[chosen, half:])
        believed = (mean[half:] + Y[:, chosen] @ gain).reshape(SAMPLES, -1, A)
        best = np.argpartition(-believed, k - 1, axis=2)[:, :, :k]
        reward = np.take_along_axis(later, best, axis=2).sum(axis=2).mean()
        regret[n] = -F[:, chosen].sum(axis=1).mean() - horizon * reward
    optimum = np.sort(F.reshape(SAMPLES, -1, A), axis=2)[:, :, -k:].sum(axis=2).mean(axis=0)
    first = half // A
    regret += optimum[:first].sum() + horizon * optimum[first:].mean()
    return np.maximum(regret, 0.0)


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
            cross = C[taken, rest]
            factor = _noisy_factor(C[np.ix_(taken, taken)], noise)
            C[rest, rest] -= cross.T @ cho_solve(factor, cross)
    return np.concatenate(chosen)


def _noisy_factor(C: FloatArray, noise: float) -> tuple[FloatArray, bool]:
    jitter = noise + 1e-8 * float(np.trace(C)) / len(C) + np.finfo(np.float64).tiny
    factor: tuple[FloatArray, bool] = cho_factor(C + jitter * np.eye(len(C)))
    return factor


def _contenders(mean: FloatArray, std: FloatArray, count: int) -> IntArray:
    """Return positions (R, count) of the arms that may be chosen at any width."""
    by_mean = np.argsort(-mean, axis=1, kind="stable")[:, : count // 2]
    optimistic = mean + OPTIMISM * std
    np.put_along_axis(optimistic, by_mean, -np.inf, axis=1)
    others = np.argsort(-optimistic, axis=1, kind="stable")[:, : count - count // 2]
    return np.concatenate([by_mean, others], axis=1)
