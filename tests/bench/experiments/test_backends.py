from __future__ import annotations

import os
import sys

import pytest
from joblib import delayed
from threadpoolctl import threadpool_info

from oclok.bench.experiments import runner
from oclok.bench.experiments.runner import workers
from oclok.errors import ExperimentError, InputError


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_has_one_thread_while_work_is_done_here_and_gets_the_others_back():
    before = blas_threads()
    with workers(1, None) as (count, parallel):
        inside = next(parallel([delayed(blas_threads)()]))
        assert set(inside) == {1}
        assert count == 1
    assert blas_threads() == before


def test_there_is_a_worker_a_core_unless_asked_otherwise():
    with workers(None, None) as (count, _):
        assert count >= 1
    with (
        pytest.raises(InputError, match="jobs must be an integer of at least 1; got 0"),
        workers(0, None),
    ):
        pass


def test_a_worker_that_dies_is_an_error_that_says_what_to_try():
    with pytest.raises(ExperimentError, match="fewer --jobs"), workers(2, None) as (_, parallel):
        list(parallel([delayed(os._exit)(1)]))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://here"])
def test_a_cluster_that_is_not_there_is_an_error(monkeypatch, address):
    pytest.importorskip("distributed")
    monkeypatch.setattr(runner, "PATIENCE", 0.3)
    with (
        pytest.raises(ExperimentError, match=f"no Dask scheduler at {address}"),
        workers(None, address),
    ):
        pass


def test_a_cluster_without_dask_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ExperimentError, match=r"install oclok\[cluster\]"),
        workers(None, "tcp://127.0.0.1:9"),
    ):
        pass


def test_a_cluster_without_workers_and_one_with_another_oclok_are_errors(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(runner, "PATIENCE", 1)
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        with pytest.raises(ExperimentError, match="has no workers"), workers(None, address):
            pass
        cluster.scale(1)
        monkeypatch.setattr(runner, "__version__", "9.9")
        monkeypatch.setattr(runner, "_version", lambda: "0.0")
        with (
            pytest.raises(ExperimentError, match=r"have oclok 0\.0; install 9\.9"),
            workers(None, address),
        ):
            pass
