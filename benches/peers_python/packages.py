"""Packages that a Python programmer may choose instead. Each is imported only where it is used."""

from __future__ import annotations

import datetime as dt
import importlib
import itertools
import threading
import time
from typing import Any

from peers_python.base import Job, Peer
from peers_python.system import now

UTC = dt.timezone.utc


class APScheduler(Peer):
    """APScheduler 3 with its default store, in memory, and a pool of threads."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        background = importlib.import_module("apscheduler.schedulers.background")
        pool = importlib.import_module("apscheduler.executors.pool")
        # By default it drops a job that is late by more than a second.
        self.scheduler = background.BackgroundScheduler(
            executors={"default": pool.ThreadPoolExecutor(workers)},
            job_defaults={"misfire_grace_time": None},
            timezone=UTC,
        )
        self.scheduler.start()
        self.call = self.add

    def add(self, delay: float, job: Job) -> Any:
        """Adds a job as its documentation does."""
        run_date = dt.datetime.now(UTC) + dt.timedelta(seconds=delay)
        return self.scheduler.add_job(job, "date", run_date=run_date)

    def call_at(self, due: float, job: Job) -> Any:
        return self.add(due - now(), job)

    def cancel(self, handles: list[Any]) -> None:
        for handle in handles:
            handle.remove()

    def run_now(self, count: int, job: Job) -> None:
        ended, ran = threading.Event(), itertools.count(1)

        def counted() -> None:
            job()
            if next(ran) == count:
                ended.set()

        add = self.scheduler.add_job
        for _ in range(count):
            add(counted)
        ended.wait()


class Schedule(Peer):
    """`schedule`: only recurring jobs, a number of seconds apart; the caller's loop runs them."""

    most_cancels = 100

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.scheduler = importlib.import_module("schedule").Scheduler()
        every = self.scheduler.every
        self.call = lambda delay, job: every(int(delay)).seconds.do(job)

    def cancel(self, handles: list[Any]) -> None:
        for handle in handles:
            self.scheduler.cancel_job(handle)

    def spend(self, end: float) -> None:
        # The loop of its documentation.
        while now() < end:
            self.scheduler.run_pending()
            time.sleep(1)


class RustPyScheduler(Peer):
    """`rust-py-scheduler`: only recurring jobs, a number of seconds apart."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.scheduler = importlib.import_module("rust_py_scheduler").Scheduler(max_workers=workers)
        self.scheduler.start_background()
        every = self.scheduler.every
        self.call = lambda delay, job: every(f"{int(delay)}s", job)

    def cancel(self, handles: list[Any]) -> None:
        for handle in handles:
            self.scheduler.remove_job(handle)


class RScheduler(Peer):
    """`rscheduler`: only recurring jobs, the first time at once, so it is never started here."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.scheduler = importlib.import_module("rscheduler").Scheduler()
        schedule = self.scheduler.schedule
        self.call = lambda delay, job: schedule(job, delay)

    def cancel(self, handles: list[Any]) -> None:
        for handle in handles:
            self.scheduler.cancel(handle)
