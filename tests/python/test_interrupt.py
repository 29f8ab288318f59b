"""Interrupts: a job whose time is up is hit wherever it is, and nobody else ever is."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from helpers import WATCHDOG, CellClock, Gate, nap, run, spin, until

from duetime import CancelOutcome, EventKind, ManualClock, Scheduler, TaskState, TaskTimeout


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Threads that compute in Python hand the GIL over soon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("quick_switches")
def test_a_job_is_interrupted_at_its_next_bytecode() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        task = scheduler.after(0, spin, timeout=1, interrupt=True)
        until(task.running)
        clock.jump(1)
        error = task.exception()
        assert type(error) is TaskTimeout
        assert str(error).startswith("the attempt had not ended")
        raised = error.__cause__
        assert type(raised) is TaskTimeout
        names = []
        traceback = raised.__traceback__
        while traceback is not None:
            names.append(traceback.tb_frame.f_code.co_name)
            traceback = traceback.tb_next
        assert names == ["spin"]
        assert scheduler.stats().stuck == 0


@pytest.mark.usefixtures("quick_switches")
def test_a_job_may_clean_up_and_even_go_on() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        seen = []

        def job() -> str:
            try:
                spin()
            except TimeoutError as error:
                seen.append(type(error))
            return "too late"

        task = scheduler.after(0, job, timeout=1, interrupt=True)
        until(task.running)
        clock.jump(1)
        assert type(task.exception()) is TaskTimeout
        assert seen == [TaskTimeout]


@pytest.mark.usefixtures("quick_switches")
def test_nobody_but_the_late_job_is_interrupted() -> None:
    """1,000 interrupted jobs among others, on the same workers: no other one is hit."""
    clock = ManualClock()
    with Scheduler(workers=4, clock=clock) as scheduler:
        local = threading.local()

        def innocent(n: int) -> int:
            local.runs = getattr(local, "runs", 0) + 1
            return sum(range(n % 50))

        late, others = [], []
        for n in range(1000):
            task = scheduler.after(0, spin, timeout=1, interrupt=True)
            others += [
                scheduler.after(1, innocent, 7 * n),
                scheduler.after(1, innocent, n, timeout=60, interrupt=True),
                scheduler.after(1, innocent, n, timeout=60),
            ]
            until(task.running)
            clock.jump(1)
            late.append(task)
        assert all(type(task.exception()) is TaskTimeout for task in late)
        assert all(type(task.exception().__cause__) is TaskTimeout for task in late)  # type: ignore[union-attr]
        assert [task.exception() for task in others if task.exception()] == []
        assert scheduler.stats().stuck == 0


@pytest.mark.usefixtures("quick_switches")
def test_jobs_that_end_as_their_time_is_up_leave_nothing_to_the_next() -> None:
    """On the real clock, with jobs that take about as long as they may."""
    with Scheduler(workers=2) as scheduler:
        hits = []

        def about(seconds: float) -> None:
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                pass

        def innocent() -> None:
            try:
                for _ in range(200):
                    pass
            except BaseException as error:
                hits.append(error)
                raise

        tasks = []
        for n in range(500):
            tasks.append(
                scheduler.after(0, about, 0.0008 + n % 5 / 10_000, timeout=0.001, interrupt=True)
            )
            tasks.append(scheduler.after(0, innocent))
        for task in tasks:
            assert task.wait(WATCHDOG)
        assert hits == []
        assert {type(task.exception()) for task in tasks[1::2]} == {type(None)}
        assert {type(task.exception()) for task in tasks[::2]} <= {type(None), TaskTimeout}


def test_without_interrupt_nothing_is_raised() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        ended = []

        def job() -> None:
            while not run().stop_requested:
                pass
            ended.append(True)

        task = scheduler.after(0, job, timeout=1)
        until(task.running)
        clock.jump(1)
        assert ended == [True]
        assert type(task.exception()) is TaskTimeout
        assert task.exception().__cause__ is None  # type: ignore[union-attr]


@pytest.mark.usefixtures("quick_switches")
def test_a_cancel_does_not_interrupt_but_the_timeout_still_does() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        task = scheduler.after(0, spin, timeout=1, interrupt=True)
        until(task.running)
        assert task.cancel() is CancelOutcome.STOPPING
        clock.jump(1)
        assert task.state is TaskState.FAILED
        series = scheduler.every(10, spin, first=0, timeout=1, interrupt=True)
        until(series.running)
        assert series.cancel() is CancelOutcome.STOPPING
        clock.jump(1)
        assert series.cancelled()


def test_an_interrupt_that_was_never_raised_is_taken_back() -> None:
    """A job that runs no bytecode: it is over before what was set can be raised."""
    with Scheduler(workers=1) as scheduler:
        for _ in range(10):
            late = scheduler.after(0, time.sleep, 0.02, timeout=0.001, interrupt=True)
            innocent = scheduler.after(0, sum, range(100))
            python = scheduler.after(0, lambda: sum(n for n in range(100)))
            assert type(late.exception(WATCHDOG)) is TaskTimeout
            assert late.exception().__cause__ is None  # type: ignore[union-attr]
            assert innocent.result(WATCHDOG) == python.result(WATCHDOG) == 4950


@pytest.mark.usefixtures("quick_switches")
def test_an_interrupt_that_comes_when_the_job_has_ended_hits_nobody() -> None:
    """Whoever interrupts is held up, until the worker is busy with another job."""
    clock = CellClock()
    with Scheduler(workers=2, clock=clock) as scheduler:
        held_up = Gate()

        def listener(_: Any) -> None:
            held_up()

        scheduler.add_listener(listener, kinds=[EventKind.STUCK])
        gate, end = Gate(), threading.Event()
        scheduler.after(0, gate, timeout=1, grace=0)
        gate.entered()
        clock.seconds = 1
        scheduler.wake()
        held_up.entered()

        late = scheduler.after(0, nap, 60, timeout=1, interrupt=True)
        until(late.running)
        clock.seconds = 2
        scheduler.wake()
        assert type(late.exception(WATCHDOG)) is TaskTimeout

        together = threading.Barrier(3, timeout=WATCHDOG)

        def innocent() -> str:
            together.wait()
            while not end.is_set():
                pass
            return "not hit"

        last = scheduler.after(0, asyncio.sleep, 60, timeout=1)
        until(last.running)
        tasks = [scheduler.after(0, innocent) for _ in range(2)]
        together.wait()  # on all workers
        clock.seconds = 3
        scheduler.wake()
        held_up.open()
        # In turn: once this one was cancelled, whatever was to be done about `late` has been.
        assert type(last.exception(WATCHDOG)) is TaskTimeout
        gate.open()
        end.set()
        assert [task.result(WATCHDOG) for task in tasks] == ["not hit"] * 2


def test_the_callbacks_of_another_task_are_not_the_job() -> None:
    """A job that cancels a task runs its callbacks: they are spared, and the job is hit after."""
    with Scheduler(workers=1) as scheduler:
        other = scheduler.after(3600, int)
        future, runs, done = other.future, [], []

        def callback(_: Any) -> None:
            until(lambda: runs[0].stop_requested)
            for _ in range(200):
                time.sleep(0.001)  # the interrupt comes, if it does
            done.append(True)

        other.add_done_callback(callback)

        def cancels() -> None:
            runs.append(run())
            other.cancel()
            spin()

        job = scheduler.after(0, cancels, timeout=0.05, interrupt=True)
        assert type(job.exception(WATCHDOG)) is TaskTimeout
        assert done == [True]
        assert future.cancelled()
