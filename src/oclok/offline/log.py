"""A log of decisions: available base arms, those chosen, their outcomes, and propensities.

    S       the super arm that was logged
    p_m     P(m ∈ S): inclusion propensity of base arm m, given the round and all before it
    P(S)    propensity of the super arm as a whole

If super arms of K arms out of M are logged uniformly at random, p_m = K/M and P(S) = 1/C(M, K).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self, overload

import numpy as np

from oclok.errors import DataError, InputError
from oclok.frames import feature_columns, numeric_columns, rows_by_round
from oclok.oracles import TopK
from oclok.oracles.base import Oracle
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_contexts, as_outcomes, as_positions

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class LoggedRound:
    """One round of a log.

    Attributes:
        contexts: contexts of all base arms that were available; shape (M, D).
        super_arm: positions, ascending, of those that were chosen; shape (K,).
        outcomes: their outcomes; shape (K,).
        oracle: the feasible super arms of the round, and the reward.
        propensities: p_m of every base arm, shape (M,), NaN where that is not known of an arm
            that was not chosen; None if none are known.
        super_arm_propensity: P(S) of the logged super arm; None if it is not known.
    """

    contexts: FloatArray
    super_arm: IntArray
    outcomes: FloatArray
    oracle: Oracle
    propensities: FloatArray | None = None
    super_arm_propensity: float | None = None

    def __post_init__(self) -> None:
        X, P = as_contexts(self.contexts), self.super_arm_propensity
        chosen = as_positions(self.super_arm, "super_arm", len(X))
        if not np.array_equal(chosen, self.super_arm):
            raise InputError(f"super_arm must be ascending; got {self.super_arm!r}")
        if not isinstance(self.oracle, Oracle):
            raise InputError(f"oracle must be an oclok.oracles.Oracle; got {self.oracle!r}")
        if P is not None and not 0 < P <= 1:
            raise InputError(f"super_arm_propensity must be in (0, 1]; got {P}")
        y, p = as_outcomes(self.outcomes, chosen.size).copy(), self.propensities
        p = None if p is None else _as_propensities(p, len(X), chosen)
        checked = {"contexts": X, "super_arm": chosen, "outcomes": y, "propensities": p}
        for name, array in checked.items():
            if array is not None:
                array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def seen(self) -> FloatArray:
        """The outcomes of logged base arms, 0 of others; shape (M,)."""
        seen = np.zeros(len(self.contexts))
        seen[self.super_arm] = self.outcomes
        return seen

    @cached_property
    def reward(self) -> float:
        """U, the reward of the logged super arm."""
        return self.value(self.seen, self.super_arm)

    @property
    def is_sum(self) -> bool:
        """Whether the reward of the logged super arm is the sum of its outcomes."""
        total = float(self.outcomes.sum())
        return math.isclose(self.reward, total, rel_tol=1e-9, abs_tol=1e-12)

    def value(self, means: FloatArray, super_arm: IntArray) -> float:
        """Return u of `super_arm` for base arms with `means`, shape (M,)."""
        return float(self.oracle.value(means, super_arm))


class Log(Sequence[LoggedRound]):
    """Rounds of a log in the order in which they happened. A slice of a log is a log.

    Args:
        rounds: the rounds, at least one.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {
        ...         "day": [1, 1, 1, 2, 2, 2],
        ...         "price": [3.0, 5.0, 4.0, 2.0, 6.0, 1.0],
        ...         "shown": [True, False, True, True, True, False],
        ...         "sold": [7.0, None, 4.0, 1.0, 9.0, None],
        ...     }
        ... )
        >>> log = Log.from_frame(frame, round="day", chosen="shown", outcome="sold", uniform=True)
        >>> len(log), log[0].super_arm.tolist(), log[0].propensities.round(2).tolist()
        (2, [0, 2], [0.67, 0.67, 0.67])
    """

    def __init__(self, rounds: Iterable[LoggedRound]) -> None:
        self._rounds = tuple(rounds)
        if not self._rounds:
            raise InputError("a log needs at least one round")
        dimensions = {current.contexts.shape[1] for current in self._rounds}
        if len(dimensions) > 1:
            raise InputError(f"all contexts must have the same columns; got {sorted(dimensions)}")

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        round: str,  # noqa: A002  (the paper's word)
        chosen: str,
        outcome: str,
        features: Sequence[str] | None = None,
        propensity: str | None = None,
        super_arm_propensity: str | None = None,
        uniform: bool = False,
        oracle: Oracle | None = None,
    ) -> Self:
        """Make a log of a table with one row per base arm that was available in a round.

        Args:
            frame: the table.
            round: column with the round of a row, in order of appearance.
            chosen: column that is True (or 1) where the base arm was chosen.
            outcome: column with outcomes; only those of chosen base arms are read.
            features: columns of the contexts; all that have no other role if left out.
            propensity: column with the inclusion propensity p_m of each base arm; it may be
                missing where a base arm was not chosen.
            super_arm_propensity: column with P(S), the same in all rows of a round.
            uniform: super arms were logged uniformly at random among all of their size.
            oracle: feasible super arms of every round; `TopK` of the logged size if left out.
        """
        roles = [round, chosen, outcome, propensity, super_arm_propensity]
        others = [name for name in roles if name is not None]
        columns = feature_columns(frame, others, features)
        if uniform and len(others) > 3:
            raise InputError("uniform=True gives all propensities: name no propensity column")
        rows, labels = rows_by_round(frame, round)
        is_chosen = _as_flags(frame, chosen)
        X = numeric_columns(frame, columns)
        y = numeric_columns(frame, [outcome], where=is_chosen)[:, 0]
        p = P = None
        if propensity is not None:
            p = numeric_columns(frame, [propensity], where=is_chosen)[:, 0]
        if super_arm_propensity is not None:
            P = numeric_columns(frame, [super_arm_propensity])[:, 0]
        rounds = []
        for label, at in zip(labels, rows, strict=True):
            super_arm = np.flatnonzero(is_chosen[at])
            if super_arm.size == 0:
                raise DataError(f"no base arm was chosen in {round} = {label!r}; drop the round")
            if P is not None and np.ptp(P[at]) > 0:
                raise DataError(
                    f"column {super_arm_propensity!r} must be the same in all rows of a round; "
                    f"it is not in {round} = {label!r}"
                )
            M, K = len(at), super_arm.size
            logged = None if p is None else p[at], None if P is None else P[at][0]
            if uniform:
                logged = np.full(M, K / M), 1 / math.comb(M, K)
            feasible = TopK(K) if oracle is None else oracle
            try:
                rounds.append(LoggedRound(X[at], super_arm, y[at][super_arm], feasible, *logged))
            except InputError as reason:
                raise DataError(f"{round} = {label!r}: {reason}") from None
        return cls(rounds)

    @property
    def observations(self) -> tuple[FloatArray, FloatArray]:
        """Contexts, shape (N, D), and outcomes, shape (N,), of all chosen base arms."""
        contexts = np.vstack([current.contexts[current.super_arm] for current in self])
        return contexts, np.concatenate([current.outcomes for current in self])

    def __len__(self) -> int:
        return len(self._rounds)

    @overload
    def __getitem__(self, position: int) -> LoggedRound: ...
    @overload
    def __getitem__(self, position: slice) -> Log: ...
    def __getitem__(self, position: int | slice) -> LoggedRound | Log:
        if isinstance(position, slice):
            return type(self)(self._rounds[position])
        return self._rounds[position]

    def __repr__(self) -> str:
        outcomes = sum(current.super_arm.size for current in self)
        return f"<Log: {len(self)} rounds, {outcomes} outcomes>"


def _as_propensities(values: ArrayLike, arms: int, chosen: IntArray) -> FloatArray:
    p = np.array(values, dtype=np.float64)
    if p.shape != (arms,):
        raise InputError(f"propensities must have shape ({arms},); got shape {p.shape}")
    wrong = (p < 0) | (p > 1)
    wrong[chosen] = ~((p[chosen] > 0) & (p[chosen] <= 1))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(
            f"propensities must be in [0, 1], and above 0 where a base arm was chosen; that of "
            f"base arm {first} is {p[first]}"
        )
    return p


def _as_flags(frame: pd.DataFrame, name: str) -> BoolArray:
    values = numeric_columns(frame, [name])[:, 0]
    if not np.isin(values, (0, 1)).all():
        raise DataError(f"column {name!r} must be True or False (or 1 and 0)")
    flags: BoolArray = values == 1
    return flags
