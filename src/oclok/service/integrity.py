"""Whether the log of each agent is complete, and everything in it can be read."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from pydantic_core import from_json

from oclok.errors import DamagedLogError
from oclok.service.database import Database
from oclok.service.log import AgentRow, Log
from oclok.service.packing import unpack
from oclok.service.replica import Replica


@dataclass(frozen=True)
class Checked:
    """What was found about one agent; `damage` is empty if all is well."""

    agent: str
    events: int
    damage: str = ""

    @property
    def is_well(self) -> bool:
        """Whether nothing is missing or unreadable."""
        return not self.damage

    def __str__(self) -> str:
        return f"{self.agent}: {self.damage or f'{self.events:,} events, complete'}"


def check(database: Database) -> list[Checked]:
    """Read the logs and snapshots of all agents."""
    log = Log(database)
    return [_checked(log, row) for row in log.agents()]


def _checked(log: Log, row: AgentRow) -> Checked:
    seq = 0
    try:
        log.check(row)
        for event in log.after(row.id, 0, row.last):
            seq = event.seq
            (unpack if event.kind == "decision" and event.decision else from_json)(event.body)
    except DamagedLogError as reason:
        return Checked(row.name, seq, str(reason))
    except (ValueError, KeyError, TypeError, zlib.error) as reason:
        return Checked(row.name, seq, f"event {seq} cannot be read: {reason}")
    snapshot = log.snapshot(row.id)
    if snapshot is not None:
        if snapshot[0] > row.last:
            last = f"the log ends at {row.last}"
            return Checked(row.name, seq, f"the snapshot is of event {snapshot[0]}, but {last}")
        if Replica(row, log).snapshot_seq != snapshot[0]:
            return Checked(row.name, seq, "the snapshot cannot be read; the log is complete")
    return Checked(row.name, seq)
