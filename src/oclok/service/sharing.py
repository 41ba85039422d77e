"""Learning once: of the workers that share a folder, one learns for an agent, the others follow.

The leader of an agent holds a lock on a file, which the system releases if the process dies; the
next worker to ask for it leads from then on. The leader publishes its policy with the number of
steps it has taken; the others adopt it. Nothing depends on who leads, or on whether anybody does:
the steps are the same everywhere, and a worker whose leader is slow takes them itself. Workers of
other machines have a folder, and a leader, of their own.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import IO

from oclok import persistence
from oclok.errors import StorageError
from oclok.policies import GPPolicy
from oclok.service.learner import Learner

try:
    import fcntl
except ImportError:  # Windows: every worker learns
    fcntl = None  # type: ignore[assignment]

#: The variable by which workers know their folder.
FOLDER = "OCLOK_SHARED"
#: Seconds between two publications, at least, and as a multiple of what the last one took.
EVERY, MULTIPLE = 0.5, 20.0
#: Seconds between two looks for a publication, or for a leader that is gone.
LOOK_EVERY = 0.2


class Sharing:
    """Who learns for the agents of a worker; without a shared folder, the worker itself."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = None if folder is None or fcntl is None else Path(folder)
        self._leading: dict[str, IO[bytes]] = {}
        self._look_at: dict[str, float] = {}
        self._published: dict[str, tuple[int, float]] = {}  # steps, and when the next is due

    def work(self, agent: str, learner: Learner) -> bool:
        """Learn, publish, or adopt what is published; return whether a step was taken.

        `agent` names the agent and its epoch: steps of other models do not count here.
        """
        if self._folder is None:
            return learner.work()
        now = time.monotonic()
        if agent not in self._leading:
            if not learner.waiting or now < self._look_at.get(agent, 0.0):
                return False
            self._look_at[agent] = now + LOOK_EVERY
            learner.is_following = not self._take_lead(self._folder / f"{agent}.lock", agent)
            if learner.is_following:
                _adopt(self._folder / f"{agent}.model", learner)
                return False
        was_taken = learner.work()
        steps, due = self._published.get(agent, (0, 0.0))
        if learner.steps > steps and now >= due:
            self._publish(self._folder / f"{agent}.model", agent, learner)
        return was_taken

    def lead_only(self, agents: Collection[str]) -> None:
        """Let others lead for all agents but these."""
        for agent in [each for each in self._leading if each not in agents]:
            self._leading.pop(agent).close()
            self._published.pop(agent, None)

    def _take_lead(self, path: Path, agent: str) -> bool:
        file = open(path, "ab")  # noqa: SIM115  (kept)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._leading[agent] = file
        return True

    def _publish(self, path: Path, agent: str, learner: Learner) -> None:
        start = time.monotonic()
        steps, content = learner.dumped()
        temporary = path.with_suffix(".part")
        temporary.write_bytes(steps.to_bytes(8) + content)
        temporary.replace(path)
        now = time.monotonic()
        self._published[agent] = steps, now + max(EVERY, MULTIPLE * (now - start))


def _adopt(path: Path, learner: Learner) -> None:
    try:
        with open(path, "rb") as file:
            steps = int.from_bytes(file.read(8))
            if steps <= learner.steps:
                return
            policy = persistence.loads(file.read())
    except (FileNotFoundError, StorageError):  # not yet there; of another version
        return
    assert isinstance(policy, GPPolicy)
    learner.adopt(steps, policy)
