from __future__ import annotations

import os

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from oclok.threads import SMALL, blas_threads


def threads() -> list[int]:
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


@pytest.mark.parametrize("load", [0.0, 1e6])
def test_small_work_and_busy_machines_use_one_thread_and_what_was_set_comes_back(
    load: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    import scipy.linalg.blas  # noqa: F401  (loads its library)

    monkeypatch.setattr("oclok.threads.UNREAD", 0)
    for _ in range(200):  # until the number of threads is read again
        with blas_threads(0.0):
            pass
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load), raising=False)
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        with blas_threads(SMALL / 2):
            assert min(threads()) == 1
        assert threads() == before
        with blas_threads(SMALL * 2):
            assert threads() == before if load == 0 else min(threads()) == 1


def test_threads_come_back_after_an_error() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        try:
            with blas_threads(1.0):
                raise ValueError
        except ValueError:
            pass
        assert threads() == before
