"""What a posterior says of f at some contexts, as a value that is passed on.

A policy asks once per round. The prediction then travels: to the index, to the joint covariance
of the chosen arms, to the update with their outcomes. Whatever the posterior computed on the way
travels with it as `work`, so no step computes again what the step before it knew. A prediction
that is stale, because the posterior has learned since, counts as its contexts alone.

    error of mean or std    0          equal to the exact posterior's
                            finite     within this of the exact posterior's, rounding included
                            inf        no bound is known
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import Contexts


class Work(Protocol):
    """What a posterior computed for M contexts."""

    def at(self, positions: IntArray) -> Any:
        """Return the same for the contexts at `positions`."""


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """Mean and standard deviation of f at `contexts`; unpacks as these two.

    Attributes:
        contexts: shape (M, D), read-only.
        mean, std: shape (M,).
        mean_error, std_error: how far they can be from the exact posterior's; shape (M,). See
            the table at the head of this file. Infinite if left out.
        state: token of the posterior's state, if `work` is to be used again.
        work: what the posterior computed on the way.

    Examples:
        >>> prediction = Prediction(np.zeros((2, 1)), np.array([0.1, 0.2]), np.ones(2))
        >>> mean, std = prediction
        >>> prediction.at(np.array([1])).mean
        array([0.2])
    """

    contexts: FloatArray
    mean: FloatArray
    std: FloatArray
    mean_error: FloatArray = None  # type: ignore[assignment]  # filled in below
    std_error: FloatArray = None  # type: ignore[assignment]
    state: object = None
    work: Work | None = None

    def __post_init__(self) -> None:
        if self.mean_error is None:
            object.__setattr__(self, "mean_error", np.full(len(self.mean), np.inf))
        if self.std_error is None:
            object.__setattr__(self, "std_error", np.full(len(self.mean), np.inf))

    def __repr__(self) -> str:
        return f"Prediction(mean={self.mean!r}, std={self.std!r})"

    def __iter__(self) -> Iterator[FloatArray]:
        return iter((self.mean, self.std))

    def at(self, positions: IntArray) -> Self:
        """Return the prediction of the contexts at `positions`, shape (K,)."""
        contexts = self.contexts.take(positions, axis=0)
        contexts.flags.writeable = False
        return type(self)(
            contexts,
            self.mean[positions],
            self.std[positions],
            self.mean_error[positions],
            self.std_error[positions],
            self.state,
            None if self.work is None else self.work.at(positions),
        )

    @classmethod
    def of(cls, contexts: FloatArray) -> Self:
        """Return what stands for checked contexts (M, D) of which nothing is known."""
        unknown = np.broadcast_to(np.nan, len(contexts))
        return cls(contexts, unknown, unknown, unknown, unknown)

    @classmethod
    def joined(cls, contexts: FloatArray, parts: list[Self]) -> Self:
        """Return the prediction of `contexts` (M, D) that was made in `parts`."""
        names = ("mean", "std", "mean_error", "std_error")
        mean, std, *errors = (np.concatenate([getattr(p, name) for p in parts]) for name in names)
        return cls(contexts, mean, std, errors[0], errors[1])

    def without_work(self) -> Self:
        """Return the same prediction, of which no posterior knows more."""
        return type(self)(self.contexts, self.mean, self.std, self.mean_error, self.std_error)

    def without_bounds(self) -> Self:
        """Return the same prediction with no bound on its distance from exact."""
        unknown = np.full(len(self.mean), np.inf)
        return replace(self, mean_error=unknown, std_error=unknown)


#: What the methods of a posterior take: contexts (M, D), or a prediction that has them.
Asked = ArrayLike | Contexts | Prediction
