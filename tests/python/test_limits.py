"""Limits: of a group of tasks only so many run at once, and nobody else waits for that."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, voluntary_switches, worker_tids

from duetime import EventKind, ManualClock, Scheduler, Task, retry


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what the workers do")
def test_those_that_wait_for_their_group_wake_nobody() -> None:
    """1,000 due tasks of a full group: the one behind them starts; then nothing happens."""
    with Scheduler(workers=4, limits={"db": 1}, name="limits") as scheduler:
        gate = Gate()
        scheduler.after(0, gate, group="db")
        gate.entered()
        tasks = [scheduler.after(0, list, group="db") for _ in range(1000)]
        assert scheduler.after(0, lambda: "at once").result(WATCHDOG) == "at once"
        assert not any(task.done() for task in tasks)
        assert not scheduler.wait_idle(0.1), "they are due"
        workers = worker_tids("limits-")
        assert len(workers) == 4
        switches = voluntary_switches(workers)
        threading.Event().wait(2)
        assert voluntary_switches(workers) - switches <= 4
        gate.open()
        assert scheduler.wait_idle(WATCHDOG)
        assert all(task.done() for task in tasks)


def test_no_more_than_the_limit_run_at_once() -> None:
    with Scheduler(workers=8, limits={"db": 3}) as scheduler:
        lock, counts, most = threading.Lock(), [0], [0]
        together = threading.Barrier(3, timeout=WATCHDOG)

        def job() -> None:
            with lock:
                counts[0] += 1
                most[0] = max(most[0], counts[0])
            together.wait()  # as many as may
            with lock:
                counts[0] -= 1

        tasks = [scheduler.after(0, job, group="db") for _ in range(60)]
        assert all(task.wait(WATCHDOG) for task in tasks)
        assert most == [3]
        assert all(task.exception() is None for task in tasks)


def test_a_due_task_that_waits_is_told_of_and_late() -> None:
    clock = ManualClock()
    with Scheduler(workers=4, clock=clock, limits={"db": 1, "net": 1}) as scheduler:
        seen: list[Any] = []
        scheduler.add_listener(seen.append, [EventKind.DUE, EventKind.STARTED])
        for id in ("a", "b"):
            scheduler.after(5, list, id=id, group="db", priority=1 if id == "a" else 0)
        clock.advance(5)
        told = [(event.kind.name, event.task_id, event.time) for event in seen]
        assert told[:3] == [("DUE", "a", 5), ("DUE", "b", 5), ("STARTED", "a", 5)]


def test_a_retry_gives_its_place_to_others() -> None:
    clock = ManualClock()
    with Scheduler(workers=2, clock=clock, limits={"db": 1}) as scheduler:
        doomed = scheduler.after(0, lambda: False, group="db", retry=retry.FixedDelay(1, 60))
        other = scheduler.schedule(Task(due=1, job=list, group="db"))
        clock.advance(30)
        assert (doomed.runs, other.done()) == (1, True)
        clock.advance(30)
        assert doomed.runs == 2


@pytest.mark.parametrize("drain", [False, True])
def test_a_coroutine_keeps_its_place_while_it_sleeps(drain: bool) -> None:
    running, most = [0], [0]

    async def job() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0.01)
        running[0] -= 1

    scheduler = Scheduler(workers=4, limits={"db": 2})
    tasks = [scheduler.after(0, job, group="db") for _ in range(10)]
    if not drain:
        assert scheduler.wait_idle(WATCHDOG)
    assert scheduler.shutdown(drain=drain, timeout=WATCHDOG)
    assert all(task.state.name == "DONE" for task in tasks)
    assert most == [2]


@pytest.mark.parametrize("kind", ["coroutine", "executor"])
def test_a_run_that_goes_on_elsewhere_keeps_its_place(kind: str) -> None:
    gate = Gate()

    async def coroutine() -> None:
        await asyncio.get_running_loop().run_in_executor(None, gate)

    with (
        ThreadPoolExecutor(1) as pool,
        Scheduler(1, clock=ManualClock(), limits={"db": 1}) as scheduler,
    ):
        if kind == "executor":
            first = scheduler.after(0, gate, group="db", executor=pool)
        else:
            first = scheduler.after(0, coroutine, group="db")
        gate.entered()
        second = scheduler.after(0, list, group="db")
        child = scheduler.after(0, list, group="db", priority=1, depends_on=[first])
        assert scheduler.after(0, list).result(WATCHDOG) == []
        assert (first.running(), second.runs, child.runs) == (True, 0, 0)
        assert (scheduler.stats().waiting, scheduler.stats().crowded) == (2, 1)
        gate.open()
        assert scheduler.wait_idle(WATCHDOG)
        assert scheduler.stats().crowded == 0
        assert (second.result(0), child.result(0)) == ([], [])


def test_what_is_refused() -> None:
    with Scheduler(limits={"db": 1, "net": 2}) as scheduler:
        task = Task("t", due=0, job=list, group="disk")
        for _ in range(2):
            with pytest.raises(ValueError, match='group must be one of "db", "net", not "disk"'):
                scheduler.schedule(task)
        with pytest.raises(ValueError, match="group"):
            scheduler.every(1, list, group="")
        with pytest.raises(TypeError, match="group"):
            scheduler.after(0, list, group=5)  # type: ignore[arg-type]
        assert scheduler.tasks() == []
        assert scheduler.every(1, list, group=None) is not None
    with Scheduler() as scheduler, pytest.raises(ValueError, match="has none"):
        scheduler.after(0, list, group="db")
    for bad in (0, -1, 10**30):
        with pytest.raises(ValueError, match="limits"):
            Scheduler(limits={"db": bad})
    for wrong in ({"db": 1.5}, {"db": True}, {"db": None}, {5: 1}, [("db", 1)], "db"):
        with pytest.raises(TypeError, match="limits"):
            Scheduler(limits=wrong)  # type: ignore[arg-type]
