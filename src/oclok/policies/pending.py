"""Decisions that wait for outcomes; saved as one long array per field, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oclok.decision import Decision
from oclok.errors import FeedbackError
from oclok.persistence import Persistent
from oclok.typing import ArrayLike, BoolArray, FloatArray
from oclok.validation import as_outcomes


class Pending(Persistent):
    """Decisions by round, each with a mask, shape (K,), of the outcomes that are missing."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Decision, BoolArray]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[Decision, BoolArray]]:
        """Go through decisions and masks, oldest first."""
        return iter(self._entries.values())

    def __contains__(self, round: int) -> bool:  # noqa: A002  (the paper's word)
        return round in self._entries

    def add(self, decision: Decision) -> None:
        """Wait for all outcomes of a decision; there are none if it chose no arm."""
        if len(decision):
            self._entries[decision.round] = (decision, np.ones(len(decision), dtype=bool))

    def missing(self, decision: Decision, rounds: int) -> BoolArray:
        """Return which outcomes of `decision`, one of the first `rounds`, have not come yet."""
        if not isinstance(decision, Decision):
            raise FeedbackError(f"expected a Decision made by select; got {decision!r}")
        is_past = decision.round <= rounds
        if is_past and len(decision) == 0:
            return np.zeros(0, dtype=bool)
        own, missing = self._entries.get(decision.round) or (None, None)
        if missing is None and is_past:
            raise FeedbackError(
                f"decision {decision.id} is not pending: all its outcomes were given before, or "
                "this policy did not make it"
            )
        if missing is None or not (own is decision or own == decision):
            raise FeedbackError(f"decision {decision.id} was not made by this policy")
        return missing

    def match(
        self, decision: Decision, outcomes: ArrayLike, rounds: int
    ) -> tuple[FloatArray, BoolArray]:
        """Return `outcomes` (K,) of `decision`, checked, and which of them were seen: not NaN."""
        missing = self.missing(decision, rounds)
        y = as_outcomes(outcomes, missing.size, allow_nan=True)
        seen = y == y
        if np.count_nonzero(seen > missing):
            twice = np.flatnonzero(seen > missing).tolist()
            raise FeedbackError(
                f"decision {decision.id}: outcomes of its base arms {twice} were given before; "
                "use NaN for outcomes that are not new"
            )
        return y, seen

    def settle(self, decision: Decision, seen: BoolArray | bool = True) -> None:
        """Stop waiting for the outcomes that were `seen`, shape (K,): for all by default."""
        missing = self._entries[decision.round][1] > seen
        if np.count_nonzero(missing):
            self._entries[decision.round] = (decision, missing)
        else:
            del self._entries[decision.round]

    def contexts(self, most: int) -> FloatArray | tuple[()]:
        """Return the contexts (P, D) of the latest arms that wait, at most `most` of them."""
        parts, count = [], 0
        for decision, missing in reversed(self._entries.values()):
            if count >= most:
                break
            parts.append(decision.contexts[missing])
            count += len(parts[-1])
        return np.vstack(parts[::-1])[-most:] if parts else ()

    def _state(self) -> dict[str, Any]:
        if not self._entries:
            return {}
        decisions, masks = zip(*self._entries.values(), strict=True)
        flags = [-1 if d.is_exact is None else d.is_exact for d in decisions]

        def column(name: str) -> Any:
            values = ((getattr(d, name), len(d)) for d in decisions)
            return np.concatenate([np.full(n, np.nan) if v is None else v for v, n in values])

        return {
            "round": np.array([d.round for d in decisions]),
            "size": np.array([len(d) for d in decisions]),
            "is_exact": np.array(flags, np.int8),
            "has_mean": np.array([d.mean is not None for d in decisions]),
            "has_std": np.array([d.std is not None for d in decisions]),
            **{name: column(name) for name in ("super_arm", "contexts", "index", "mean", "std")},
            "missing": np.concatenate(masks),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._entries = {}
        if not state:
            return
        stops = np.cumsum(state["size"]).tolist()
        for n, (start, stop) in enumerate(zip([0, *stops], stops, strict=False)):
            part = slice(start, stop)
            decision = Decision.trusted(
                round=int(state["round"][n]),
                super_arm=state["super_arm"][part].astype(np.intp),
                contexts=state["contexts"][part],
                index=state["index"][part],
                mean=state["mean"][part] if state["has_mean"][n] else None,
                std=state["std"][part] if state["has_std"][n] else None,
                is_exact=None if state["is_exact"][n] < 0 else bool(state["is_exact"][n]),
            )
            self._entries[decision.round] = (decision, state["missing"][part])
