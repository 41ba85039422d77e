"""What a posterior says of f at some contexts, bound to the state of the model that said it.

A policy asks once per round. The prediction then serves the index, the joint covariance of the
chosen arms and the update with their outcomes: what was computed once stays inside.

    error of mean or std    0          equal to the exact posterior's
                            finite     within this of the exact posterior's, rounding included
                            inf        no bound is known
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg.lapack import dpstrf

from oclok.arrays import chunks
from oclok.typing import ArrayLike, FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """Mean and standard deviation of f at `contexts`; unpacks as these two.

    Attributes:
        contexts: shape (M, D), read-only.
        mean, std: shape (M,).
        mean_error, std_error: bounds on their distance from the exact posterior's; shape (M,). See
            the table at the head of this file. Infinite if left out.
        joint: computes the joint covariance (M, M) on demand.

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
    joint: Callable[[], FloatArray] | None = None
    #: Further arrays with a column for each context, in classes that keep some.
    _columns: ClassVar[tuple[str, ...]] = ()
    #: Cached properties, which hold for these contexts alone.
    _cached: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in ("mean_error", "std_error"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full(len(self.mean), np.inf))

    @classmethod
    def trusted(cls, **fields: Any) -> Self:
        """Return a prediction of all its `fields`; the constructor takes longer."""
        prediction = object.__new__(cls)
        prediction.__dict__.update(fields)
        return prediction

    def __repr__(self) -> str:
        return f"Prediction(mean={self.mean!r}, std={self.std!r})"

    def __iter__(self) -> Iterator[FloatArray]:
        return iter((self.mean, self.std))

    def covariance(self) -> FloatArray:
        """Return the joint covariance of f at the contexts, shape (M, M)."""
        if self.joint is None:
            raise NotImplementedError("give the prediction joint=, or override covariance")
        return self.joint()

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Return one joint sample of f at the contexts, shape (M,)."""
        first, of = distinct(self.contexts)
        C, pivots, rank, _ = dpstrf(self.at(first).covariance(), lower=1)  # may be singular
        sample = np.empty(len(first))
        sample[pivots - 1] = np.tril(C)[:, :rank] @ rng.standard_normal(len(first))[:rank]
        return np.asarray(self.mean[first[of]] + sample[of])

    def at(self, positions: IntArray) -> Self:
        """Return the prediction of the contexts at `positions`, shape (K,)."""
        changes = self._rows(positions)
        for name in self._columns:
            array = self.__dict__[name]
            in_order = array.flags.c_contiguous  # of another array, `take` would make a copy first
            changes[name] = array.take(positions, -1) if in_order else array[..., positions]
        if self.joint is not None:
            changes["joint"] = lambda: self.covariance()[np.ix_(positions, positions)]
        return self._with(**changes)

    def _with(self, **changes: Any) -> Self:
        """Return a copy with other values of some fields."""
        kept = {name: v for name, v in self.__dict__.items() if name not in self._cached}
        return self.trusted(**kept | changes)

    def sharpen(self, positions: IntArray) -> Prediction:
        """Return a prediction with all that is known at `positions`; itself if that is no more."""
        return self

    def without_bounds(self) -> Self:
        """Return the same prediction with no bound on its distance from exact."""
        unknown = np.full(len(self.mean), np.inf)
        return self._with(mean_error=unknown, std_error=unknown)

    def _rows(self, positions: IntArray) -> dict[str, Any]:
        """Return the fields of the contexts at `positions`."""
        contexts = self.contexts.take(positions, axis=0)
        contexts.flags.writeable = False
        return {"contexts": contexts, **{name: getattr(self, name)[positions] for name in _BY_ARM}}


def in_chunks(
    contexts: FloatArray, size: int, predict: Callable[[FloatArray], Prediction]
) -> Prediction:
    """Predict contexts (M, D) in chunks of at most `size`, which bounds the memory it takes."""
    if len(contexts) <= size:
        return predict(contexts)
    parts = [predict(contexts[rows]) for rows in chunks(len(contexts), size)]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _BY_ARM}
    return Prediction(contexts, **columns, joint=lambda: predict(contexts).covariance())


def distinct(X: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the positions of the first of each distinct row of X (M, D), and which one each is.

    Equal contexts have equal f, so a sample must have one value for all of them.
    """
    _, first, of = np.unique(X, axis=0, return_index=True, return_inverse=True)
    return first, of.reshape(-1)


#: Fields with a number for each context.
_BY_ARM = ("mean", "std", "mean_error", "std_error")
#: What the methods of a posterior take: contexts (M, D), or a prediction that has them.
ContextsLike = ArrayLike | Prediction
