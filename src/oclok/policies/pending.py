"""Decisions that wait for outcomes, saved as a few long arrays however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oclok.decision import Decision
from oclok.persistence import Persistent
from oclok.typing import BoolArray, FloatArray


class Pending(Persistent):
    """Decisions by round, each with a mask, shape (K,), of the outcomes that are missing."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Decision, BoolArray]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[Decision, BoolArray]]:
        """Go through decisions and masks, oldest first."""
        return iter(self._entries.values())

    def get(self, round: int) -> tuple[Decision, BoolArray] | None:  # noqa: A002
        """Return decision and mask of `round`; None if none of its outcomes is missing."""
        return self._entries.get(round)

    def add(self, decision: Decision) -> None:
        """Keep a decision of which no outcome is known, unless it chose no arm."""
        if len(decision):
            self._entries[decision.round] = (decision, np.ones(len(decision), dtype=bool))

    def set(self, decision: Decision, missing: BoolArray) -> None:
        """Keep `decision` as long as outcomes are `missing`."""
        if np.count_nonzero(missing):
            self._entries[decision.round] = (decision, missing)
        else:
            self._entries.pop(decision.round, None)

    def drop(self, decision: Decision) -> None:
        """Stop waiting for outcomes of `decision`."""
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
        unknown = [np.full(len(d), np.nan) for d in decisions]
        pairs = list(zip(decisions, unknown, strict=True))
        return {
            "round": np.array([d.round for d in decisions]),
            "size": np.array([len(d) for d in decisions]),
            "is_exact": np.array(
                [-1 if d.is_exact is None else d.is_exact for d in decisions], np.int8
            ),
            "has_mean": np.array([d.mean is not None for d in decisions]),
            "has_std": np.array([d.std is not None for d in decisions]),
            "super_arm": np.concatenate([d.super_arm for d in decisions]),
            "contexts": np.vstack([d.contexts for d in decisions]),
            "index": np.concatenate([d.index for d in decisions]),
            "mean": np.concatenate([u if d.mean is None else d.mean for d, u in pairs]),
            "std": np.concatenate([u if d.std is None else d.std for d, u in pairs]),
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


def _as_number(is_exact: bool | None) -> int:
    return -1 if is_exact is None else int(is_exact)
