"""Group commit: concurrent writes share one fsync.

Threads that arrive during a commit wait for its end; the first of them then commits for all. A
commit therefore holds the requests that arrived during the one before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass
class _Waiting(Generic[Item]):
    items: Sequence[Item]
    written: list[Item] | None = None
    reason: BaseException | None = None

    @property
    def is_done(self) -> bool:
        return self.written is not None or self.reason is not None


class GroupCommit(Generic[Item]):
    """Writes items of several threads together.

    Args:
        write: commits items, all or none, and returns them as written.
        divisive: an error of `write` about one thread's items: each thread then commits alone.
    """

    def __init__(
        self,
        write: Callable[[list[Item]], list[Item]],
        divisive: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> None:
        self._write, self._divisive = write, divisive
        self._queue: list[_Waiting[Item]] = []
        self._guard, self._turn = threading.Lock(), threading.Lock()

    @property
    def waiting(self) -> int:
        """How many wait for the next commit."""
        return len(self._queue)

    def commit(self, items: Sequence[Item]) -> list[Item]:
        """Return what `write` returns for `items`, or raise what it raises."""
        mine = _Waiting(items)
        with self._guard:
            self._queue.append(mine)
        with self._turn:
            if not mine.is_done:
                with self._guard:
                    group, self._queue = self._queue, []
                self._commit(group)
        if mine.reason is not None:
            raise mine.reason
        assert mine.written is not None
        return mine.written

    def _commit(self, group: list[_Waiting[Item]]) -> None:
        try:
            written = iter(self._write([item for each in group for item in each.items]))
            for each in group:
                each.written = [next(written) for _ in each.items]
        except self._divisive as reason:
            if len(group) == 1:
                group[0].reason = reason
                return
            for each in group:
                self._commit([each])
        except BaseException as reason:
            for each in group:
                each.reason = reason
