"""Work beside requests: learning, reading what other processes logged, expiry, snapshots, keys."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time

import sqlalchemy as sa

from oclok.errors import OclokError
from oclok.service import views
from oclok.service.access import Access
from oclok.service.learner import PAUSE
from oclok.service.lifecycle import Lifecycle
from oclok.service.replica import Replica
from oclok.service.server import return_free_memory
from oclok.service.service import Service
from oclok.service.sharing import FOLDER, Sharing

LOGGER = logging.getLogger("oclok.service")
#: Seconds between looks at the log, at the keys, and at each model.
EVERY, ACCESS_EVERY, LOOK_EVERY = 0.2, 0.7, 0.5
#: Models that are looked at per second, at most: a look takes some 10 µs, and most find nothing.
MODELS_PER_SECOND = 250
#: Seconds between two summaries of an agent, returns of free memory, and checks that no event is
#: missing.
SUMMARISE_EVERY, TRIM_EVERY, CHECK_EVERY = 10.0, 20.0, 60.0
#: Seconds between two times that old decisions are reduced.
KEEP_EVERY = 3600.0
#: Seconds until a step of learning that failed is tried again.
RETRY_AFTER = 2.0
#: A snapshot is made after this many events, or this share of the log if that is more; up to
#: twice as much, by process. A start then takes less than a tenth of reading the whole log, or
#: reads a thousand events.
LEAST_EVENTS, SHARE = 1_000, 0.04


class Background:
    """Threads that keep the models of a process up to date: one learns, one does all else."""

    def __init__(self, service: Service, access: Access) -> None:
        self._service, self._access = service, access
        self._threads = [
            threading.Thread(target=target, name="oclok-background", daemon=True)
            for target in (self._run, self._learn)
        ]
        self._stop = threading.Event()
        self._sharing = Sharing(os.environ.get(FOLDER))
        self._again: dict[int, float] = {}  # when to try again to learn for an agent
        self._due: dict[str, float] = {}
        self.is_ready = False

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, and wait for what is under way."""
        self._stop.set()
        self._service.work_available.set()
        for thread in self._threads:
            thread.join(timeout=5)
        self._sharing.lead_only(())
        try:
            for replica in self._service.replicas:
                self._summarise(replica, 0.0)
        except (sa.exc.SQLAlchemyError, OclokError) as reason:
            LOGGER.warning("the database cannot be reached: %s", reason)

    def _learn(self) -> None:
        while not self._stop.is_set():
            self._service.work_available.clear()
            replicas = self._service.replicas
            waiting = [replica for replica in replicas if replica.learner.waiting]
            every = max(EVERY, len(replicas) / MODELS_PER_SECOND)
            if self._is_time("share", every):
                self._sharing.lead_only({_model(replica) for replica in replicas})
                waiting = replicas  # some may have something to publish
            taken = [self._step(replica) for replica in waiting]
            if any(taken):
                time.sleep(PAUSE)
            else:
                self._service.work_available.wait(EVERY if waiting else every)

    def _step(self, replica: Replica) -> bool:
        """Take a step of learning for an agent; one that fails is tried again after a while."""
        if time.monotonic() < self._again.get(replica.id, 0.0):
            return False
        try:
            return self._sharing.work(_model(replica), replica.learner)
        except Exception:
            self._again[replica.id] = time.monotonic() + RETRY_AFTER
            LOGGER.exception("agent %s: learning failed; again in %g s", replica.name, RETRY_AFTER)
            return False

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._work()
                self.is_ready = True
            except (sa.exc.SQLAlchemyError, OclokError) as reason:
                self.is_ready = False
                LOGGER.warning("the database cannot be reached: %s", reason)
            except Exception:
                LOGGER.exception("work in the background failed")
            self._stop.wait(EVERY)

    def _work(self) -> None:
        if os.environ.get("OCLOK_PARENT", str(os.getppid())) != str(os.getppid()):
            os.kill(os.getpid(), signal.SIGTERM)  # the parent has died
        service = self._service
        service.refresh()
        if self._is_time("access", ACCESS_EVERY):
            self._access.refresh()
        if self._is_time("check", CHECK_EVERY):
            service.check()
        if self._is_time("look", max(LOOK_EVERY, len(service.replicas) / MODELS_PER_SECOND)):
            for replica in service.replicas:
                service.expire(replica, time.time())
                self._snapshot(replica)
                self._summarise(replica, SUMMARISE_EVERY)
            self._evict()
        age = service.config.keep_seconds
        if age is not None and self._is_time("keep", min(KEEP_EVERY, age)):
            self._keep(time.time() - age)
        if self._is_time("trim", TRIM_EVERY):
            return_free_memory()

    def _is_time(self, what: str, every: float) -> bool:
        now = time.monotonic()
        if now < self._due.get(what, 0.0):
            return False
        self._due[what] = now + every
        return True

    def _summarise(self, replica: Replica, every: float) -> None:
        """Let a list of agents show a model that may not be in memory then."""
        seq, when = replica.summary
        if seq != replica.seq and time.time() > when + every:
            replica.summary = replica.seq, time.time()
            self._service.log.summarise(replica.id, views.row(replica).model_dump_json())

    def _keep(self, since: float) -> None:
        """Reduce logged decisions made before `since`, as `--keep` says."""
        service = self._service
        for row in service.log.agents():
            if service.log.has_before(row.id, since):
                service.save_snapshot(service.replica(row.name))
                Lifecycle(service.log, "retention").keep(row, since)

    def _evict(self) -> None:
        """Drop the models used longest ago, with a snapshot each, if there are too many."""
        most = self._service.config.max_models
        replicas = sorted(self._service.replicas, key=lambda replica: replica.used)
        for replica in replicas[: max(0, len(replicas) - most)] if most else []:
            self._summarise(replica, 0.0)
            if replica.seq > replica.snapshot_seq:
                self._service.save_snapshot(replica)
            self._service.drop(replica)

    def _snapshot(self, replica: Replica) -> None:
        learner = replica.learner  # which may be learning the past anew
        if learner.is_following or learner.is_behind() or not self._is_due(replica):
            return
        replica.snapshot_seq = self._service.log.snapshot_seq(replica.id)  # another one's, perhaps
        if self._is_due(replica):
            self._service.save_snapshot(replica)

    def _is_due(self, replica: Replica) -> bool:
        # Staggered by process, so that one writes the snapshot and the others see it.
        events = (1 + os.getpid() % 8 / 8) * max(LEAST_EVENTS, SHARE * replica.snapshot_seq)
        return replica.seq >= replica.snapshot_seq + events


def _model(replica: Replica) -> str:
    return f"{replica.id}-{replica.epoch}"
