"""Group commit: concurrent writes share one fsync.

Threads that arrive during a commit wait for its end; the first of them then commits for all. A
commit therefore holds the requests that arrived during the one before.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeAlias, TypeVar

Item = TypeVar("Item")
#: What a thread commits, and what will come of it.
Waiting: TypeAlias = tuple[Sequence[Item], Future[list[Item]]]


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
        self._queue: deque[Waiting[Item]] = deque()
        self._turn = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many wait for the next commit."""
        return len(self._queue)

    def commit(self, items: Sequence[Item]) -> list[Item]:
        """Return what `write` returns for `items`, or raise what it raises."""
        written: Future[list[Item]] = Future()
        self._queue.append((items, written))
        with self._turn:
            if not written.done():
                self._commit([self._queue.popleft() for _ in range(len(self._queue))])
        return written.result()

    def _commit(self, group: list[Waiting[Item]]) -> None:
        try:
            all_written = iter(self._write([item for items, _ in group for item in items]))
        except BaseException as reason:
            if isinstance(reason, self._divisive) and len(group) > 1:
                for each in group:
                    self._commit([each])
            else:
                for _, written in group:
                    written.set_exception(reason)
            return
        for items, written in group:
            written.set_result([next(all_written) for _ in items])
