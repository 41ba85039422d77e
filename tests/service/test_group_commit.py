"""What several threads commit at once is committed together, and each is told its own result."""

from __future__ import annotations

import threading

import pytest

from oclok.service.group_commit import GroupCommit


class WrongError(Exception):
    """About one item."""


class Disk:
    """Squares numbers, slowly at first: not before it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.groups: list[list[int]] = []

    def write(self, items: list[int]) -> list[int]:
        self.begun.set()
        assert self.go.wait(60)
        self.groups.append(items)
        if -1 in items:
            raise WrongError
        if -2 in items:
            raise OSError("the disk is full")
        return [item**2 for item in items]


def committed(requests: list[list[int]]) -> tuple[Disk, list]:
    """Return what became of the first request, and of the others, which come meanwhile."""
    disk = Disk()
    commits = GroupCommit(disk.write, divisive=WrongError)
    results: list = [None] * len(requests)

    def run(place: int) -> None:
        try:
            results[place] = commits.commit(requests[place])
        except Exception as reason:
            results[place] = reason

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(requests))]
    threads[0].start()
    assert disk.begun.wait(60)
    for thread in threads[1:]:
        thread.start()
        while not commits.waiting >= threads.index(thread):
            pass
    disk.go.set()
    for thread in threads:
        thread.join(60)
    return disk, results


def test_those_who_come_during_a_commit_share_the_next():
    disk, results = committed([[1], [2, 3], [], [4]])
    assert results == [[1], [4, 9], [], [16]]
    assert sorted(map(len, disk.groups)) == [1, 3]


def test_one_that_is_wrong_does_not_spoil_the_others():
    _, results = committed([[1], [2], [-1, 5], [3]])
    assert [results[0], results[1], results[3]] == [[1], [4], [9]]
    assert isinstance(results[2], WrongError)


def test_an_error_of_the_disk_is_told_to_all_and_does_not_stay():
    disk, results = committed([[1], [-2], [3]])
    assert results[0] == [1]
    assert all(isinstance(result, OSError) for result in results[1:])
    with pytest.raises(WrongError):
        GroupCommit(disk.write, divisive=WrongError).commit([-1])
