"""Timeouts of coroutines and of calls on other executors."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

from helpers import (
    WATCHDOG,
    Gate,
    Log,
    run,
    until,
)

from duetime import (
    ManualClock,
    Scheduler,
    TaskState,
    TaskStuck,
    TaskTimeout,
    retry,
)


def test_a_coroutine_is_cancelled_when_its_time_is_up() -> None:
    with Scheduler(workers=1) as scheduler:
        seen = []

        async def job() -> None:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                seen.append(run().stop_requested)
                raise

        task = scheduler.after(0, job, timeout=0.02)
        error = task.exception(WATCHDOG)
        assert type(error) is TaskTimeout
        assert isinstance(error.__cause__, CancelledError)
        assert task.state is TaskState.FAILED
        assert seen == [True]


def test_a_late_coroutine_is_retried() -> None:
    with Scheduler(workers=1) as scheduler:

        async def job() -> str:
            await asyncio.sleep(3600 if run().attempt == 1 else 0)
            return "in time"

        task = scheduler.after(0, job, timeout=0.05, retry=retry.FixedDelay(5, delay=0))
        assert task.result(WATCHDOG) == "in time"
        assert task.failures >= 1


def test_of_many_sleeping_coroutines_the_late_one_is_cancelled() -> None:
    """10,000 asleep at once on 4 workers; one of them has a timeout."""
    with Scheduler(workers=4) as scheduler:
        asleep = threading.Semaphore(0)

        async def main() -> asyncio.Event:
            return asyncio.Event()

        end: Any = scheduler.after(0, main).result(WATCHDOG)

        async def job() -> str:
            asleep.release()
            await end.wait()
            return "slept"

        async def wake() -> None:
            end.set()

        tasks = [scheduler.after(0, job) for _ in range(9_999)]
        late = scheduler.after(0, job, timeout=0.05)
        assert type(late.exception(WATCHDOG)) is TaskTimeout
        for _ in range(9_999):
            assert asleep.acquire(timeout=WATCHDOG)
        assert scheduler.stats().running == 9_999
        scheduler.after(0, wake).result(WATCHDOG)
        assert all(task.result(WATCHDOG) == "slept" for task in tasks)


def test_on_a_manual_clock_a_leap_is_what_ends_a_coroutine() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        task = scheduler.after(0, asyncio.sleep, 3600, timeout=10)
        until(task.running)
        clock.jump(10)
        assert type(task.exception()) is TaskTimeout


def test_a_coroutine_that_swallows_its_cancellation_is_stuck_and_holds_no_end_up() -> None:
    scheduler = Scheduler(workers=1)
    ended = threading.Event()

    async def job() -> None:
        while not ended.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.001)

    log = Log()
    scheduler.add_listener(log)
    task = scheduler.after(0, job, timeout=0.01, grace=0.01)
    assert type(task.exception(WATCHDOG)) is TaskStuck
    assert [event.stack for event in log.of("STUCK")] == [None]
    assert scheduler.stats().stuck == 1
    assert scheduler.after(0, asyncio.sleep, 0, "another").result(WATCHDOG) == "another"
    assert scheduler.shutdown(timeout=WATCHDOG)
    ended.set()


def test_a_call_that_has_not_begun_is_taken_back_when_its_time_is_up() -> None:
    with ThreadPoolExecutor(1) as pool, Scheduler(workers=1) as scheduler:
        gate = Gate()
        first = scheduler.after(0, gate, executor=pool)
        gate.entered()
        second = scheduler.after(0, gate, executor=pool, timeout=0.01, grace=60)
        assert type(second.exception(WATCHDOG)) is TaskTimeout
        gate.open()
        assert first.result(WATCHDOG) == "through"


def test_a_call_that_has_begun_is_stuck_after_its_grace() -> None:
    with ThreadPoolExecutor(1) as pool, Scheduler(workers=1) as scheduler:
        gate = Gate()
        task = scheduler.after(0, gate, executor=pool, timeout=0.01, grace=0.01)
        assert type(task.exception(WATCHDOG)) is TaskStuck
        assert scheduler.stats().stuck == 1
        assert scheduler.after(0, lambda: "served").result(WATCHDOG) == "served"
        gate.open()
        until(lambda: scheduler.stats().stuck == 0)
        assert type(task.exception()) is TaskStuck
