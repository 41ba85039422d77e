"""Your own data as a problem: a table with the outcome of every arm in every round."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from oclok.bench.problems.base import Problem, Round, gaussian
from oclok.errors import DataError, InputError
from oclok.frames import feature_columns, numeric_columns, read_frame, rows_by_round
from oclok.oracles import TopK
from oclok.validation import as_count, as_positive

if TYPE_CHECKING:
    import pandas as pd


class Table(Problem):
    """Pick k arms per round out of a table that has the outcome of every arm.

    One row per base arm and round. A policy sees the features of all rows of a round and the
    outcomes of the k rows it picks; the outcomes in the table count as the true means. If only
    the outcomes of arms that were chosen at the time are known, see `oclok.offline`.

    Args:
        frame: the table.
        round: column that says which round a row belongs to. Rounds are played in the order in
            which they first appear.
        outcome: column with the outcomes.
        features: columns that make up the contexts; all other columns if left out.
        k: K, how many base arms are picked in a round.
        noise_std: standard deviation of normal noise on top of the outcomes.
        rounds: how many rounds to play; all if left out.
        seed: order of the rounds, for repeats; as in the table if left out.

    Attributes:
        features: names of the columns of the contexts.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"day": [1, 1, 1, 2, 2], "price": [3, 5, 4, 2, 6], "sold": [2, 7, 4, 1, 9]}
        ... )
        >>> problem = Table(frame, round="day", outcome="sold", k=1)
        >>> [current.oracle(current.means).tolist() for current in problem]
        [[1], [1]]
    """

    name = "table"

    def __init__(
        self,
        frame: pd.DataFrame,
        *,
        round: str,  # noqa: A002  (the paper's word)
        outcome: str,
        k: int,
        features: Sequence[str] | None = None,
        noise_std: float = 0.0,
        rounds: int | None = None,
        seed: int | np.random.SeedSequence | None = None,
    ) -> None:
        self.features = feature_columns(frame, (round, outcome), features)
        self._contexts = numeric_columns(frame, self.features)
        self._means = numeric_columns(frame, [outcome])[:, 0]
        self._rows, labels = rows_by_round(frame, round)
        self._oracle = TopK(k)
        self._noise = gaussian(0.0 if noise_std == 0 else as_positive(noise_std, "noise_std"))
        too_small = [t for t, rows in enumerate(self._rows) if rows.size < self._oracle.k]
        if too_small:
            t = too_small[0]
            raise DataError(
                f"every round needs at least k = {k} base arms; {len(too_small)} of "
                f"{len(self._rows)} rounds have fewer, the first is {round} = {labels[t]!r} with "
                f"{self._rows[t].size}: drop them or choose a smaller k"
            )
        count = len(self._rows) if rounds is None else as_count(rounds, "rounds")
        if count > len(self._rows):
            raise InputError(
                f"rounds must be at most {len(self._rows)}, all there are; got {rounds}"
            )
        super().__init__(count, 0 if seed is None else seed)
        if seed is not None:
            order = np.random.default_rng(self._seeds()[0]).permutation(len(self._rows))
            self._rows = [self._rows[t] for t in order]
        self.dimension = len(self.features)
        self.data_name = f"a table of {len(self._means):,} rows"

    @classmethod
    def from_file(cls, path: str | PathLike[str], **columns: Any) -> Self:
        """Make a problem of a CSV or Parquet file; `columns` are the arguments of `Table`."""
        problem = cls(read_frame(path), **columns)
        problem.data_name = Path(path).name
        return problem

    def scaled(self) -> Self:
        """Return the same problem with each feature scaled to [0, 1] by its range in the table.

        Policies on a grid need contexts in the unit cube, and kernels one length for all.
        """
        low, high = self._contexts.min(axis=0), self._contexts.max(axis=0)
        other = copy.copy(self)
        other._contexts = (self._contexts - low) / np.where(high > low, high - low, 1.0)
        return other

    def _round(self, seed: np.random.SeedSequence) -> Round:
        rows = self._rows[seed.spawn_key[-1]]  # the seeds of rounds are spawned in order
        return Round(self._contexts[rows], self._means[rows], self._oracle, self._noise)
