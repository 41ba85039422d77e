"""Group commit: concurrent writes share one fsync.

Threads that arrive during a commit wait for its end; the first of them then commits for all. A
commit therefore holds the requests that arrived during the one before.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")


class _Waiting(Generic[Item]):
    """What a thread commits, and what came of it; cheaper than a `Future`."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.written: list[Item] | None = None
        self.reason: BaseException | None = None


class GroupCommit(Generic[Item]):
    """Writes items of several threads together.

    Args:
        write: commits items, all or none, and returns them as written.
        divisive: an error of `write` about one thread's items: each thread then commits alone.
    """

    def __init__(
        self, write: Callable[[list[Item]], list[Item]], divisive: type[Exception]
    ) -> None:
        self._write, self._divisive = write, divisive
        self._queue: deque[_Waiting[Item]] = deque()
        self._turn = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many wait for the next commit."""
        return len(self._queue)

    def commit(self, items: Sequence[Item]) -> list[Item]:
        """Return what `write` returns for `items`, or raise what it raises."""
        mine = _Waiting(items)
        self._queue.append(mine)
        with self._turn:
            if mine.written is None and mine.reason is None:
                self._commit([self._queue.popleft() for _ in range(len(self._queue))])
        if mine.written is None:
            assert mine.reason is not None
            raise mine.reason
        return mine.written

    def _commit(self, group: list[_Waiting[Item]]) -> None:
        try:
            written = iter(self._write([item for each in group for item in each.items]))
            for each in group:
                each.written = [next(written) for _ in each.items]
        except BaseException as reason:
            if isinstance(reason, self._divisive) and len(group) > 1:
                for each in group:
                    self._commit([each])
                return
            for each in group:
                each.reason = reason
