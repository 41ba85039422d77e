"""A posterior for a world that moves: old outcomes count less, or not at all.

    age    updates since an outcome was learned        w    its weight, γ^age or 1

An outcome of weight w counts as one of noise variance σ² / w: its precision is discounted, the
prior is not. Outcomes outside the window, or of weight below `LEAST`, are dropped. Weights are
brought up to date, and old outcomes dropped, in one go whenever the data have grown by a
`SHARE`: a round costs the same however long the past, and one in many costs a refit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from oclok.errors import InputError
from oclok.posterior.base import Bounded, Posterior
from oclok.posterior.dictionary import DictionaryPosterior
from oclok.posterior.observations import Rows
from oclok.typing import FloatArray, IntArray
from oclok.validation import as_count, as_probability

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

LEAST = 1e-3
SHARE = 1 / 8


class ForgettingPosterior(Posterior):
    """A posterior that forgets, by a window or by discounting.

    Args:
        kernel: a kernel of `sklearn.gaussian_process.kernels`.
        noise_std: standard deviation of the noise of an outcome.
        window: how many of the latest outcomes to remember (up to an eighth more at times); or
        discount: γ in (0, 1); an update makes the precision of all outcomes before it γ times
            what it was.

    Example:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> posterior = ForgettingPosterior(RBF(1.0), noise_std=0.1, window=8)
        >>> for outcome in [0.0] * 20 + [1.0] * 20:
        ...     posterior.update([[0.5]], [outcome])
        >>> len(posterior) <= 9, posterior.predict([[0.5]])[0].round(2)
        (True, array([1.]))
    """

    def __init__(
        self,
        kernel: Kernel,
        noise_std: float,
        window: int | None = None,
        discount: float | None = None,
    ) -> None:
        super().__init__(kernel, noise_std)
        if (window is None) == (discount is None):
            raise InputError("give window= or discount=, one of them")
        self.window = None if window is None else as_count(window, "window")
        self.discount = None if discount is None else as_probability(discount, "discount")
        self._inner = DictionaryPosterior(kernel, noise_std)
        self._learned_at = Rows()
        self._updates = 0
        self._refresh_above = (self.window or 0) * (1 + SHARE)

    def __len__(self) -> int:
        return len(self._inner)

    @property
    def dimension(self) -> int | None:
        """D, or None as long as nothing was learned."""
        return self._inner.dimension

    @property
    def contexts(self) -> FloatArray:
        """Contexts of the outcomes remembered, shape (N, D)."""
        return self._inner.contexts

    @property
    def outcomes(self) -> FloatArray:
        """The outcomes remembered, shape (N,)."""
        return self._inner.outcomes

    @property
    def information_gain(self) -> float:
        """I(r; f) of the outcomes remembered, in nats."""
        return self._inner.information_gain

    @property
    def inducing(self) -> FloatArray:
        """Contexts of the basis functions, shape (rank, D)."""
        return self._inner.inducing

    def with_kernel(self, kernel: Kernel, noise_std: float) -> ForgettingPosterior:
        """Return a posterior with another kernel and noise that has learned the same."""
        other = ForgettingPosterior(kernel, noise_std, self.window, self.discount)
        other.__dict__.update({**self.__dict__, "kernel": kernel, "noise_std": noise_std})
        other._learned_at = self._learned_at.copy()
        other._inner = self._inner.with_kernel(kernel, noise_std)
        return other

    def _expect(self, X: FloatArray, chosen: IntArray | None, at: FloatArray | None) -> None:
        self._inner._expect(X, chosen, at)

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._inner._predict(X)

    def _predict_bounded(self, X: FloatArray) -> Bounded:
        return self._inner._predict_bounded(X)

    def _predict_known(self, X: FloatArray) -> FloatArray:
        return self._inner._predict_known(X)

    def _refine(self, X: FloatArray) -> Bounded | None:
        return self._inner._refine(X)

    def _sample(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        return self._inner._sample(X, rng)

    def _covariance(self, X: FloatArray) -> FloatArray:
        return self._inner._covariance(X)

    def _update(self, X: FloatArray, y: FloatArray) -> None:
        if len(self) + len(y) <= self._refresh_above:
            self._inner._update(X, y)
        else:
            self._refresh(X, y)
        self._learned_at.extend(np.full(len(y), float(self._updates)))
        self._learned_at.keep_last(len(self._inner))
        self._updates += 1

    def _refresh(self, X: FloatArray, y: FloatArray) -> None:
        """Learn anew, with today's weights, what is not forgotten, and y seen at X."""
        if self.window is not None:
            X, y = X[-self.window :], y[-self.window :]
        kept = self._kept(len(y))
        weights = np.ones(len(kept) + len(y))
        if self.discount is not None:
            weights[: len(kept)] = self.discount ** (self._updates - self._learned_at.array[kept])
        fresh = DictionaryPosterior(self.kernel, self.noise_std)
        fresh._remembered = self._inner._remembered
        old = self._inner
        fresh._update_weighted(
            np.vstack([old._X.array[kept], X]) if len(kept) else X,
            np.concatenate([old._y.array[kept], y]),
            weights,
        )
        self._inner = fresh
        self._refresh_above = (self.window or len(fresh)) * (1 + SHARE)

    def _kept(self, new: int) -> range:
        """Return the positions of outcomes to remember when `new` ones come."""
        first = 0
        if self.window is not None:
            first = max(0, len(self) + new - self.window)
        elif self.discount is not None:
            oldest = self._updates - math.log(LEAST) / math.log(self.discount)
            first = int(np.searchsorted(self._learned_at.array, oldest))
        return range(first, len(self))
