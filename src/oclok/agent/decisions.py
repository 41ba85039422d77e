"""Open decisions and those settled recently: small, in arrays, by id.

A decision takes one row; each of its chosen arms takes one row of another table:

| per decision | start     first row of its arms     waiting   number of arms without an outcome |
|              | decided   when, in seconds          round     of the policy                     |
|              | noise     std of outcomes around f, as believed when it was made; or NaN        |
|              | group     0 baseline, 1 agent, -1 neither         bucket   see `lift`            |
|              | counted   what it adds to the lift; NaN while it adds nothing                   |
| per arm      | contexts  as encoded, sparse        outcomes  NaN while waiting                 |
|              | status    a `Status`                taught    the model's outcome; or NaN       |
|              | mean, std of f, as believed when the decision was made; or NaN                  |

A decision is open while an arm waits. The latest `remember` settled ones are kept, so that
repeated outcomes are recognised and wrong ones can be corrected; older ones are dropped, and
feedback to them is refused. Rows of dropped decisions are reclaimed when they are half of all.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from oclok.agent.arms import ArmId
from oclok.agent.decision import AgentDecision
from oclok.agent.lift import LiftTally, assign
from oclok.arrays import SparseRows, grown
from oclok.errors import FeedbackError
from oclok.persistence import Persistent
from oclok.typing import ArrayLike, FloatArray, IntArray

#: Fewer rows of dropped decisions than this are not worth reclaiming.
LEAST_TO_RECLAIM = 1_000

_PER_DECISION = {
    "start": np.int64,
    "waiting": np.int32,
    "decided": np.float64,
    "round": np.int64,
    "noise": np.float32,
    "group": np.int8,
    "bucket": np.int16,
    "counted": np.float64,
}
_PER_ARM = {
    "outcomes": np.float64,
    "taught": np.float64,
    "status": np.int8,
    "mean": np.float32,
    "std": np.float32,
}


class Status(IntEnum):
    """Status of a chosen arm's outcome."""

    WAITING = 0
    LEARNED = 1
    QUARANTINED = 2
    DEFAULTED = 3
    NEVER_CAME = 4
    CORRECTED = 5

    @property
    def word(self) -> str:
        """The status as the API spells it."""
        return self.name.lower()


#: Outcomes that the model has learned.
KNOWN = (Status.LEARNED, Status.DEFAULTED, Status.CORRECTED)


@dataclass(frozen=True, eq=False)
class Record:
    """A decision as it is kept; arrays have one row per chosen arm."""

    id: str
    decided: float
    arms: list[ArmId]
    outcomes: FloatArray
    taught: FloatArray
    status: IntArray
    _contexts: Callable[[], FloatArray]

    @cached_property
    def contexts(self) -> FloatArray:
        """Contexts of the chosen arms, made dense only where they are asked for."""
        return self._contexts()

    @cached_property
    def places(self) -> dict[ArmId, int]:
        """Positions of the chosen arms by id."""
        return {arm: place for place, arm in enumerate(self.arms)}


class History(NamedTuple):
    """Decisions that are kept, oldest first: copies of the tables above.

    From `row`, which says which decision an arm belongs to, there is one entry per chosen arm.
    """

    ids: list[str]
    round: IntArray
    decided: FloatArray
    noise: FloatArray
    row: IntArray
    status: IntArray
    outcomes: FloatArray
    mean: FloatArray
    std: FloatArray


class Decisions(Persistent):
    """Decisions by id.

    Args:
        remember: number of settled decisions that are kept.

    Attributes:
        tally: number of outcomes by `Status`, those of dropped decisions included.
        lift: what decisions of either group earned.
    """

    def __init__(self, remember: int) -> None:
        self.remember = remember
        self._tables: dict[str, np.ndarray[Any, Any]] = {
            name: np.zeros(16, dtype) for name, dtype in (_PER_DECISION | _PER_ARM).items()
        }
        self._contexts = SparseRows()
        self._ids: list[str] = []
        self._arms: list[ArmId] = []
        self._row: dict[str, int] = {}
        self._settled: deque[str] = deque()
        self._first_open = 0
        self.tally: IntArray = np.zeros(len(Status), dtype=np.int64)
        self.lift = LiftTally()

    def __len__(self) -> int:
        """Return how many decisions are open."""
        return len(self._row) - len(self._settled)

    def __contains__(self, decision: object) -> bool:
        return decision in self._row

    @property
    def waiting(self) -> int:
        """How many outcomes have not come."""
        return int(self.tally[Status.WAITING])

    def add(self, decision: AgentDecision, decided: float, group: int = -1) -> None:
        """Keep a decision whose arms all wait. `decided` never falls from one to the next."""
        offer, arms = decision.known_offer, decision.chosen
        row, start = len(self._ids), len(self._arms)
        per_decision = {
            "start": start,
            "waiting": len(arms),
            "decided": decided,
            "round": decision.round,
            "noise": offer.noise_std,
            "group": group,
            "bucket": assign(decision.unit or decision.id, 0.0).bucket,
            "counted": np.nan,
        }
        per_arm = {
            "outcomes": np.nan,
            "taught": np.nan,
            "status": Status.WAITING,
            "mean": offer.column("mean")[offer.chosen] if offer.is_informed else np.nan,
            "std": offer.column("std")[offer.chosen],
        }
        for values, first, count in ((per_decision, row, 1), (per_arm, start, len(arms))):
            for name, value in values.items():
                self._tables[name] = grown(self._tables[name], first + count)
                self._tables[name][first : first + count] = value
        self._contexts.append(offer.contexts[offer.chosen])
        self._ids.append(decision.id)
        self._arms.extend(sys.intern(arm) if isinstance(arm, str) else arm for arm in arms)
        self._row[decision.id] = row
        self.tally[Status.WAITING] += len(arms)
        if not arms:
            self._settle(decision.id)

    def record(self, decision: str) -> Record:
        """Return a decision; its arrays are views, to be read only."""
        if not isinstance(decision, str):
            raise FeedbackError(f"expected the id of a decision, decision.id; got {decision!r}")
        row = self._row.get(decision)
        if row is None:
            raise FeedbackError(
                f"decision {decision!r} is unknown: this agent did not make it, or it was settled "
                f"more than {self.remember:,} decisions ago"
            )
        chosen = self._chosen(row)
        table = self._tables
        return Record(
            decision,
            float(table["decided"][row]),
            self._arms[chosen],
            table["outcomes"][chosen],
            table["taught"][chosen],
            table["status"][chosen],
            partial(self._contexts.__getitem__, chosen),
        )

    def settle(
        self,
        decision: str,
        positions: ArrayLike,
        status: Status,
        outcomes: ArrayLike,
        taught: ArrayLike,
    ) -> None:
        """Set the status of a decision's arms at `positions` among its chosen arms.

        `outcomes` are as given, `taught` as the model learned them; NaN where there is none.
        """
        row = self._row[decision]
        places = self._chosen(row).start + np.asarray(positions, dtype=np.intp)
        before = np.bincount(self._tables["status"][places], minlength=len(Status))
        waited = int(before[Status.WAITING])
        self.tally -= before
        self.tally[status] += len(places)
        self._tables["outcomes"][places] = outcomes
        self._tables["taught"][places] = taught
        self._tables["status"][places] = status
        self._tables["waiting"][row] -= waited
        if self._tables["group"][row] >= 0 and not self._tables["waiting"][row]:
            self._count(row)
        if waited and not self._tables["waiting"][row]:
            self._settle(self._ids[row])  # not `decision`, which may be a second copy of the text

    def start_over(self) -> None:
        """Begin the lift anew: decisions so far no longer count."""
        self._tables["group"][: len(self._ids)] = -1
        self.lift = LiftTally()

    def due(self, before: float) -> list[str]:
        """Return the open decisions made at `before` or earlier, oldest first."""
        rows = len(self._ids)
        waiting, decided = self._tables["waiting"], self._tables["decided"]
        while self._first_open < rows and not waiting[self._first_open]:
            self._first_open += 1
        if self._first_open == rows or decided[self._first_open] > before:
            return []
        last = int(np.searchsorted(decided[:rows], before, side="right"))
        open_rows = self._first_open + np.flatnonzero(waiting[self._first_open : last])
        return [self._ids[row] for row in open_rows.tolist()]

    def with_status(self, status: Status) -> Iterator[tuple[str, ArmId, float]]:
        """Yield decision, arm and outcome of those with `status`, oldest first."""
        for place in np.flatnonzero(self._tables["status"][: len(self._arms)] == status).tolist():
            row = int(np.searchsorted(self._starts, place, side="right")) - 1
            if self._row.get(self._ids[row]) == row:
                yield self._ids[row], self._arms[place], float(self._tables["outcomes"][place])

    def latest_learned(self, most: int) -> tuple[FloatArray, FloatArray, list[tuple[str, ArmId]]]:
        """Return contexts, outcomes and names of up to `most` outcomes of the latest decisions."""
        places = np.flatnonzero(np.isin(self._tables["status"][: len(self._arms)], KNOWN))[-most:]
        rows = np.searchsorted(self._starts, places, side="right") - 1
        names = [
            (self._ids[row], self._arms[place])
            for row, place in zip(rows.tolist(), places.tolist(), strict=True)
        ]
        return self._contexts.take(places), self._tables["outcomes"][places], names

    def history(self, since: float = -np.inf) -> History:
        """Return the decisions made at `since` or later that are kept."""
        kept = list(self._row.values())  # ascending
        first = int(np.searchsorted(self._tables["decided"][kept], since)) if kept else 0
        rows, counts, places = self._kept(kept[first:])
        table = {name: self._tables[name][rows] for name in ("round", "decided", "noise")}
        for name in ("status", "outcomes", "mean", "std"):
            table[name] = self._tables[name][places]
        row = np.repeat(np.arange(len(rows)), counts)
        return History(list(self._row)[first:], row=row, **table)

    def waiting_contexts(self, most: int) -> FloatArray:
        """Return the contexts (P, D) of up to `most` of the latest arms that wait, in order."""
        status = self._tables["status"][: len(self._arms)]
        return self._contexts.take(np.flatnonzero(status == Status.WAITING)[-most:])

    @property
    def _starts(self) -> IntArray:
        return self._tables["start"][: len(self._ids)]

    def _chosen(self, row: int) -> slice:
        starts = self._tables["start"]
        end = int(starts[row + 1]) if row + 1 < len(self._ids) else len(self._arms)
        return slice(int(starts[row]), end)

    def _kept(self, rows: list[int]) -> tuple[IntArray, IntArray, IntArray]:
        """Return rows of decisions, how many arms each has, and the rows of these arms."""
        kept = np.array(rows, dtype=np.intp)
        counts = np.diff(np.append(self._starts, len(self._arms)))[kept]
        places = np.arange(counts.sum()) + np.repeat(
            self._starts[kept] - np.cumsum(counts) + counts, counts
        )
        return kept, counts, places

    def _count(self, row: int) -> None:
        """Add a decision's reward to the lift: missing outcomes count like the others."""
        chosen, table = self._chosen(row), self._tables
        y = table["outcomes"][chosen][np.isin(table["status"][chosen], KNOWN)]
        earned = float(y.mean()) * (chosen.stop - chosen.start) if y.size else np.nan
        where = int(table["group"][row]), int(table["bucket"][row]), float(table["decided"][row])
        before = float(table["counted"][row])
        if not np.isnan(before):
            self.lift.add(*where, before, -1)
        if not np.isnan(earned):
            self.lift.add(*where, earned)
        table["counted"][row] = earned

    def _settle(self, decision: str) -> None:
        self._settled.append(decision)
        if len(self._settled) > self.remember:
            del self._row[self._settled.popleft()]
            dropped = len(self._ids) - len(self._row)
            if dropped > max(LEAST_TO_RECLAIM, len(self._row)):
                self._reclaim()

    def _reclaim(self) -> None:
        """Move what is kept to the front of fresh tables."""
        rows, counts, places = self._kept(sorted(self._row.values()))
        for name, table in self._tables.items():
            self._tables[name] = table[rows if name in _PER_DECISION else places]
        self._contexts = self._contexts.kept(places)
        self._tables["start"] = np.concatenate([[0], np.cumsum(counts)[:-1]])[: len(rows)]
        self._ids = [self._ids[row] for row in rows.tolist()]
        self._arms = [self._arms[place] for place in places.tolist()]
        self._row = {decision: row for row, decision in enumerate(self._ids)}
        self._first_open = 0

    def _state(self) -> dict[str, Any]:
        sizes = dict.fromkeys(_PER_DECISION, len(self._ids))
        return {
            "remember": self.remember,
            "lift": self.lift,
            "tally": self.tally,
            "tables": {
                name: table[: sizes.get(name, len(self._arms))]
                for name, table in self._tables.items()
            },
            "contexts": self._contexts,
            # As one text: a million ids one by one would take seconds.
            "ids": json.dumps(self._ids),
            "arms": json.dumps(self._arms),
            "kept": np.array(list(self._row.values()), dtype=np.int64),
            "settled": json.dumps(list(self._settled)),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.remember, self.lift = state["remember"], state["lift"]
        self._tables, self._contexts = state["tables"], state["contexts"]
        self._ids, self._arms = json.loads(state["ids"]), json.loads(state["arms"])
        self._settled = deque(json.loads(state["settled"]))
        self._row = {self._ids[row]: row for row in state["kept"].tolist()}
        self.tally = state["tally"]
        self._first_open = 0
