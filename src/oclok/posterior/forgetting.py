"""A posterior for a world that changes: old outcomes count less, or not at all.

    age    updates since an outcome was learned        w    its weight, γ^age or 1

An outcome of weight w counts as one of noise variance σ² / w: its precision is discounted, the
prior is not. A posterior cannot unlearn: once a sixteenth too many outcomes are remembered,
another one learns those that stay, a part of them per update, and takes over before there are an
eighth too many.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from oclok.errors import InputError
from oclok.posterior.base import Posterior
from oclok.posterior.prediction import ContextsLike, Prediction
from oclok.posterior.wrapping import WrappingPosterior, learn_past
from oclok.typing import ArrayLike, Kernel
from oclok.validation import as_count, as_probability

#: Outcomes of a weight below this are dropped.
LEAST_WEIGHT = 1e-3
#: Old outcomes are dropped when there are more than they should be by this fraction.
SURPLUS = 1 / 16
#: Outcomes that the next posterior learns per outcome that comes, and per update at least.
AHEAD, PER_CALL = 32, 128


class ForgettingPosterior(WrappingPosterior):
    """A posterior that forgets, by a window or by discounting.

    No bound on its distance from an exact posterior is known, as the world it is exact for is gone.

    Args:
        posterior: the posterior to wrap, of any kind; what it has learned counts as one update.
        window: how many of the latest outcomes to remember (up to an eighth more at times); or
        discount: γ in (0, 1); an update makes the precision of all outcomes before it γ times
            what it was. Outcomes of weight below 0.001 are dropped now and then.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from oclok.posterior import DictionaryPosterior
        >>> posterior = ForgettingPosterior(DictionaryPosterior(RBF(1.0), 0.1), window=8)
        >>> for outcome in [0.0] * 20 + [1.0] * 20:
        ...     posterior.update([[0.5]], [outcome])
        >>> len(posterior) <= 9, posterior.predict([[0.5]]).mean.round(2)
        (True, array([1.]))
    """

    def __init__(
        self, posterior: Posterior, window: int | None = None, discount: float | None = None
    ) -> None:
        if not isinstance(posterior, Posterior):
            raise InputError(f"posterior must be an oclok.posterior.Posterior; got {posterior!r}")
        if (window is None) == (discount is None):
            raise InputError("give window= or discount=, one of them")
        self.window = None if window is None else as_count(window, "window")
        self.rate = None if discount is None else as_probability(discount, "discount")
        self._inner = posterior
        self._kept = self.window or 0
        # To take over, without the outcomes to be forgotten: these are the first `_surplus`.
        self._next: Posterior | None = None
        self._surplus = 0

    @property
    def delegate(self) -> Posterior:
        """The posterior inside."""
        return self._inner

    def empty(self, kernel: Kernel | None = None, noise_std: float | None = None) -> Self:
        """Return a posterior that has learned nothing and forgets alike."""
        return type(self)(self._inner.empty(kernel, noise_std), self.window, self.rate)

    def with_kernel(self, kernel: Kernel, noise_std: float) -> ForgettingPosterior:
        """Return a posterior with another kernel and noise that has learned the same."""
        inner = self._inner.with_kernel(kernel, noise_std)
        other = ForgettingPosterior(inner, self.window, self.rate)
        other._kept = self._kept
        return other

    def offer(self, contexts: ContextsLike) -> None:
        """Note which contexts (M, D) were available, chosen or not; changes no answer."""
        self._inner.offer(contexts)
        if self._next is not None:
            self._next.offer(contexts)

    def maintain(self) -> None:
        """Do pending work now, so that later calls need not."""
        self._renew(len(self))
        self._inner.maintain()

    def predict(self, contexts: ContextsLike) -> Prediction:
        """Return mean and std of f, as it is now, at `contexts` (M, D)."""
        return super().predict(contexts).without_bounds()

    def screen(self, contexts: ContextsLike) -> Prediction:
        """Return a quick prediction of many contexts (M, D), of which few will matter."""
        return super().screen(contexts).without_bounds()

    def correct(self, contexts: ContextsLike, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        self._inner.correct(contexts, before, after)
        self._next = None  # the next update begins anew

    def update(
        self, contexts: ContextsLike, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D), and forget; all, or raise and none."""
        X = self.checked(contexts)
        y, w = self.checked_outcomes(outcomes, weights, len(X))
        if self.window is not None and len(y) >= self.window:
            inner = self._inner.empty()
            inner.update(*(each[-self.window :] for each in (X, y, w)))
            self._inner, self._next = inner, None
            return
        if self.rate is None:
            self._inner.update(contexts, y, w)
        else:
            self._inner.update(contexts, y, w / self.rate)  # which may fail; discounting does not
            self._inner.discount(self.rate)
            if self._next is not None:
                self._next.discount(self.rate)
        self._renew(max(PER_CALL, AHEAD * len(y)))

    def __repr__(self) -> str:
        how = f"discount={self.rate:g}" if self.window is None else f"window={self.window}"
        return f"ForgettingPosterior({how}) of {self._inner!r}"

    def _renew(self, most: int) -> None:
        """Let the next posterior learn up to `most` outcomes, and take over after the last."""
        if self._next is None:
            if len(self) <= self._kept * (1 + SURPLUS):
                return
            if self.window is None:
                self._surplus = int(np.count_nonzero(self.observations.weights < LEAST_WEIGHT))
            else:
                self._surplus = len(self) - self.window
            if self._surplus == 0:
                self._kept = len(self)
                return
            self._next = self._inner.empty()
        if learn_past(self._next, self.observations, most, self._surplus):
            self._inner, self._next = self._next, None
            self._kept = self.window or len(self._inner)
