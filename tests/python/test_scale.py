"""Scale: a year of ten-minute runs, a hundred thousand tasks at once, and flat memory."""

from __future__ import annotations

import gc
import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, ns

from duetime import ManualClock, Scheduler, Task, TaskState, current_run

DAY = 86_400
MANY = 100_000


def a_year_every_ten_minutes() -> tuple[list[tuple[str, int]], Any]:
    clock = ManualClock()
    log: list[tuple[str, int]] = []
    with Scheduler(1, clock=clock) as scheduler:
        scheduler.add_listener(lambda event: log.append((event.kind.name, ns(event.time))))
        task = scheduler.every(600, lambda: current_run().number % 1000 > 0, id="t")
        clock.advance(365 * DAY)
        info = scheduler.info("t")
    return log, (info, task.runs)


def test_a_year_of_a_ten_minute_task_is_the_same_twice() -> None:
    log, (info, runs) = a_year_every_ten_minutes()
    assert runs == 52_560
    assert (info.runs, info.failures, info.missed, info.state) == (
        52_560,
        52,
        0,
        TaskState.WAITING,
    )
    kinds = Counter(kind for kind, _ in log)
    assert kinds == {
        "SCHEDULED": 1,
        "DUE": 52_560,
        "STARTED": 52_560,
        "COMPLETED": 52_508,
        "FAILED": 52,
        "CANCELLED": 1,
    }
    assert log[1:-1:3] == [("DUE", ns(600 * n)) for n in range(1, 52_561)]
    assert a_year_every_ten_minutes()[0] == log


def due_at_once(workers: int) -> list[int]:
    clock = ManualClock()
    seen: list[int] = []
    with Scheduler(workers, clock=clock) as scheduler:
        scheduler.schedule_all(
            Task(n, due=10, job=seen.append, args=(n,), priority=n % 3) for n in range(MANY)
        )
        assert scheduler.stats().waiting == MANY
        clock.advance(10)
        stats = scheduler.stats()
    assert (stats.waiting, stats.running, stats.done, stats.runs) == (0, 0, MANY, MANY)
    return seen


def test_a_hundred_thousand_due_at_once_keep_their_order() -> None:
    seen = due_at_once(workers=1)
    assert seen == sorted(range(MANY), key=lambda n: (-(n % 3), n))


def test_a_hundred_thousand_due_at_once_run_once_each_on_four_workers() -> None:
    seen = due_at_once(workers=4)
    assert len(seen) == MANY
    assert set(seen) == set(range(MANY))


class Job:
    """A job whose end can be seen."""

    __slots__ = ("__weakref__",)

    def __call__(self) -> None: ...


def test_a_hundred_thousand_cancelled_jobs_are_let_go(
    make_scheduler: Callable[..., Scheduler],
) -> None:
    scheduler = make_scheduler(1, clock=ManualClock())
    alive: set[weakref.ref[Job]] = set()
    for _ in range(MANY):
        job = Job()
        alive.add(weakref.ref(job, alive.discard))
        task = scheduler.after(3600, job)
        del job
        assert task.cancel()
    gc.collect()
    assert len(alive) == 0
    stats = scheduler.stats()
    assert (stats.waiting, stats.cancelled) == (0, MANY)


def test_a_hundred_thousand_waiting_jobs_are_let_go_at_shutdown() -> None:
    scheduler = Scheduler(1, clock=ManualClock())
    alive: set[weakref.ref[Job]] = set()
    for _ in range(MANY):
        job = Job()
        alive.add(weakref.ref(job, alive.discard))
        scheduler.after(3600, job)
    del job
    assert len(alive) == MANY
    assert scheduler.shutdown(timeout=WATCHDOG)
    gc.collect()
    assert len(alive) == 0


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_flat_when_tasks_come_and_go(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler = make_scheduler(1, clock=ManualClock())
    for n in range(1000):
        scheduler.after(1800 + n, int)

    def come_and_go() -> None:
        for _ in range(MANY):
            scheduler.after(3600, int).cancel()

    come_and_go()  # the history is full now, and the heap has its size
    gc.collect()
    before = resident_bytes()
    come_and_go()
    come_and_go()
    gc.collect()
    assert resident_bytes() - before < 8 * 1024 * 1024
    assert scheduler.stats().waiting == 1000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_flat_over_a_long_series(make_scheduler: Callable[..., Scheduler]) -> None:
    clock = ManualClock()
    scheduler = make_scheduler(1, clock=clock)
    task = scheduler.every(1, lambda: current_run().number % 2 > 0)
    clock.advance(10_000)
    gc.collect()
    before = resident_bytes()
    clock.advance(40_000)
    gc.collect()
    assert (task.runs, task.failures) == (50_000, 25_000)
    assert resident_bytes() - before < 4 * 1024 * 1024


def test_a_thousand_waiters_of_one_instant_start_in_order(
    make_scheduler: Callable[..., Scheduler],
) -> None:
    scheduler = make_scheduler(1)
    gate = Gate()
    scheduler.after(0, gate)
    gate.entered()
    seen: list[int] = []
    due = scheduler.now()
    for n in range(1000):
        scheduler.at(due, seen.append, n)
    gate.open()
    assert scheduler.wait_idle(WATCHDOG)
    assert seen == list(range(1000))
