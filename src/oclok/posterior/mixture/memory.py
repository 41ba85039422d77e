"""What stays with an arm: outcomes of contexts that return.

    f(x) = g(x) + e(x)    what features explain, and what stays with the context: e ~ N(0, A)
    τ, κ                  variance that g leaves in outcomes, and the share of it that stays
    A = left + κτ         `left` is what basis functions leave of g
    n, ȳ                  number and mean of the outcomes at x;  ρ = (1 - κ)τ is their noise

Given g, the outcomes at x are those of e alone, so with mean m and variance v of g,

    s = An / (An + ρ)       mean = (1 - s) m + s ȳ       variance = (1 - s)² v + s ρ / n

and v + A where nothing was seen. For g, the n outcomes are worth one of variance A + ρ / n: the
n-th adds (1 - κ) / ((1 + (n - 1)κ) (1 + (n - 2)κ)) of the weight of the first, and tells as much
of the scale: that an arm does as well again does not say that unknown arms do. Only outcomes of
contexts that return tell κ: it is the one of `SHARES` under which they were most likely.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oclok.persistence import Persistent
from oclok.typing import FloatArray

#: Values of κ to choose from.
SHARES = np.array([0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.975, 0.99])
#: Nats by which κ = 0 leads before any context has returned.
HEAD_START = 3.0
#: Squared errors of one outcome count at most CAP; no probability is within DOUBT of 0 or 1.
CAP, DOUBT = 16.0, 0.02
#: Added to variances that may be 0.
TINY = float(np.finfo(np.float64).tiny)


class Recalled(NamedTuple):
    """Weight n (M,) and mean ȳ (M,) of the outcomes at contexts; 0 where there are none."""

    weight: FloatArray
    mean: FloatArray


class Memory(Persistent):
    """Outcomes by context."""

    def __init__(self) -> None:
        self.evidence = np.zeros(len(SHARES))
        self.evidence[0] = HEAD_START
        self._kept: dict[bytes, tuple[float, float]] = {}
        self._unit = 1.0  # of the weights that are kept: discounting changes one number

    @property
    def share(self) -> float:
        """κ."""
        return float(SHARES[int(np.argmax(self.evidence))])

    def recall(self, X: FloatArray) -> Recalled:
        """Return what was seen at contexts X (M, D)."""
        nothing = (0.0, 0.0)
        found = np.array([self._kept.get(key, nothing) for key in keys(X)]).reshape(-1, 2)
        return Recalled(found[:, 0] * self._unit, found[:, 1])

    def add(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
        """Remember outcomes y (N,) at X (N, D); return the weight at each context before."""
        before = np.empty(len(y))
        for n, (key, outcome, weight) in enumerate(
            zip(keys(X), y.tolist(), (weights / self._unit).tolist(), strict=True)
        ):
            count, mean = self._kept.get(key, (0.0, 0.0))
            before[n] = count * self._unit
            total = count + weight
            self._kept[key] = total, mean + (outcome - mean) * weight / total
        return before

    def kept(
        self, recalled: Recalled, left: FloatArray, total: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return s (M,), and the variance (M,) that is not g's: s ρ / n, or A where n = 0."""
        n = recalled.weight
        A, noise = left + self.share * total, (1 - self.share) * total
        s = A * n / (A * n + noise + TINY)
        return s, np.where(n > 0, s * noise / np.maximum(n, 1e-12), A)

    def fill(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Remember outcomes y (N,) at X (N, D) in place of all others."""
        self._kept, self._unit = {}, 1.0
        if len(y):
            self.add(X, y, weights)

    def correct(self, X: FloatArray, change: FloatArray, weights: FloatArray) -> None:
        """Add `change` (N,) to outcomes of these weights (N,) at X (N, D)."""
        for key, amount in zip(keys(X), (change * weights / self._unit).tolist(), strict=True):
            count, mean = self._kept[key]
            self._kept[key] = count, mean + amount / count

    def discount(self, rate: float) -> None:
        """Multiply all weights by `rate`."""
        self._unit *= rate

    def weights(self, before: FloatArray) -> FloatArray:
        """Return what outcomes are worth to g, (N,), given the weight seen there `before` (N,)."""
        share = self.share
        return (1 - share) / (
            (1 + before * share) * np.maximum(1 + (before - 1) * share, 1 - share)
        )

    def judge(
        self,
        y: FloatArray,
        mean: FloatArray,
        variance: FloatArray,
        left: FloatArray,
        total: FloatArray,
        recalled: Recalled,
        ends: tuple[float, float] | None = None,
    ) -> None:
        """Learn κ from outcomes y (N,), given m, v, `left` and τ at their contexts, each (N,).

        Outcomes that have no value but the two `ends` are judged by their probability: where one is
        rare, all others are alike whether they stay with the context or not.
        """
        n = recalled.weight
        A, noise = left + SHARES[:, None] * total, (1 - SHARES[:, None]) * total
        s = A * n / (A * n + noise + TINY)
        mean = mean + s * (recalled.mean - mean)
        if ends is None:
            spread = (1 - s) ** 2 * variance + s * noise / np.maximum(n, 1e-12) + noise + TINY
            density = -0.5 * np.minimum((y - mean) ** 2 / spread, CAP) - 0.5 * np.log(spread)
        else:
            low, high = ends
            p = np.clip((mean - low) / (high - low), DOUBT, 1 - DOUBT)
            density = np.log(np.where(y == high, p, 1 - p))
        self.evidence += (density * (n > 0)).sum(axis=1)
        self.evidence -= self.evidence.max()

    def _state(self) -> dict[str, Any]:
        return {"evidence": self.evidence}

    def _restore(self, state: dict[str, Any]) -> None:
        self.evidence, self._kept, self._unit = state["evidence"], {}, 1.0


def keys(X: FloatArray) -> list[bytes]:
    """Return a key per row of X (M, D): equal rows have equal keys."""
    X = np.ascontiguousarray(X) + 0.0  # -0.0 is 0.0
    rows: Any = X.view(np.dtype((np.void, X.shape[1] * X.itemsize))).ravel().tolist()
    return list(rows)
