"""The scheduler's age, its idle waits, its grid, and clocks that misbehave."""

from __future__ import annotations

import itertools
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from support import (
    CENTURY,
    DAY,
    STATES,
    WATCHDOG,
    CellClock,
    Log,
    Manual,
    cpu_seconds,
    exact,
    noop,
    scaled,
    switches,
    threads,
    until,
)

from duetime import FixedDelay, FixedRate, Missed, Task

YEARS_50 = 50 * 365 * DAY


@pytest.mark.parametrize(
    "age_ms", [2**31 - 1, 2**32, 2**36 - 1, 2**36, 2**36 + 1, 2**37, 2**40], ids=hex
)
def test_an_old_scheduler_still_keeps_time(manual: Manual, age_ms: int) -> None:
    """tokio#5536: after about two years of uptime a timer's level was computed wrong."""
    manual.jump(timedelta(milliseconds=age_ms))
    task = manual.scheduler.after(10, noop)
    manual.advance(timedelta(seconds=10) - timedelta(microseconds=1))
    assert task.state is STATES.WAITING
    manual.advance(timedelta(microseconds=1))
    assert task.state is STATES.DONE
    assert [event.lateness for event in manual.log.of("STARTED")] == [0]


@pytest.mark.parametrize("start", [2**31, 2**32 / 1000, 2**31 - 1], ids=str)
def test_a_clock_that_starts_late_keeps_time(make_manual: Any, start: float) -> None:
    """tokio#5536: the same, by a clock whose first reading is already large."""
    bench = make_manual(start=start)
    bench.scheduler.every(10, noop, max_runs=3)
    bench.advance(30)
    assert bench.log.starts() == bench.log.dues() == [start + 10, start + 20, start + 30]


@pytest.mark.parametrize("pending", [None, 2**31 / 1000, 2**32 / 1000, 60 * DAY, CENTURY], ids=str)
def test_a_far_task_costs_nothing_and_blocks_nothing(make: Any, pending: float | None) -> None:
    """netty#7365, apscheduler#50: far deadlines overflowed into a busy loop or an error."""
    before = threads()
    scheduler = make(workers=2)
    if pending is not None:
        far = scheduler.after(pending, noop)
    assert scheduler.after(0, noop).wait(WATCHDOG)
    workers = threads() - before
    assert workers
    slept, used = switches(workers), cpu_seconds(workers)
    time.sleep(0.3)  # a window to count in, not a wait for anything
    assert switches(workers) - slept <= 6
    assert cpu_seconds(workers) - used <= 0.1
    assert scheduler.after(0.001, noop).wait(WATCHDOG)
    if pending is not None:
        assert far.state is STATES.WAITING


def test_an_early_wake_up_runs_nothing(make: Any) -> None:
    """pyodide#6306: a wait that was cut into pieces ran the task after the first piece."""
    clock = CellClock()
    scheduler = make(workers=2, clock=clock)
    log = Log(scheduler)
    task = scheduler.after(100 * DAY, noop)
    for step in range(1, 100):
        clock.moved(scheduler, step * DAY)
        assert scheduler.after(0, noop).wait(WATCHDOG)  # the workers have looked again
        assert task.state is STATES.WAITING
    clock.moved(scheduler, 100 * DAY)
    assert task.wait(WATCHDOG)
    assert log.starts(task.id) == [100 * DAY]


def test_a_clock_slower_than_the_machine_starts_nothing_early(make: Any) -> None:
    """pyodide#6306: the wait ends by the machine's time, the due is still ahead."""
    clock = CellClock()
    scheduler = make(workers=1, clock=clock)
    task = scheduler.after(0.001, noop)
    time.sleep(0.05)  # much longer than the wait that a naive worker makes
    assert task.state is STATES.WAITING
    clock.moved(scheduler, 0.001)
    assert task.wait(WATCHDOG)


@pytest.mark.parametrize("due", [0, -0.0, -1, -1e-9, -3600, -YEARS_50])
def test_at_clock_zero_a_past_due_runs_at_once(manual: Manual, due: float) -> None:
    """openab#1459: `now - something` underflowed when the machine had just booted."""
    task = manual.scheduler.at(due, noop)
    assert task.wait(WATCHDOG)
    (started,) = manual.log.of("STARTED")
    assert (started.time, started.due, started.lateness) == (0, due, -due)


@pytest.mark.parametrize("rule", [FixedRate(60), FixedDelay(60)], ids=["rate", "delay"])
def test_at_clock_zero_a_series_from_the_past_goes_on(manual: Manual, rule: Any) -> None:
    """openab#1459: the same for a series whose first slot was before the clock began."""
    manual.scheduler.schedule(Task("s", due=-30, job=noop, recurrence=rule))
    assert manual.scheduler.wait_idle(WATCHDOG)
    expected = 30 if isinstance(rule, FixedRate) else 60
    assert (manual.log.dues(), manual.scheduler.next_due()) == ([-30], expected)


@pytest.mark.parametrize("due", [-9.1e9, -CENTURY, 6.2e9, 9.1e9, -1e10, 1e10])
def test_a_due_at_the_rim_of_the_clock_neither_wraps_nor_panics(
    make_manual: Any, due: float
) -> None:
    """openab#1459: lateness and distance are right at any distance, or the due is refused."""
    bench = make_manual(start=CENTURY - 1)
    if abs(due) == 1e10:
        with pytest.raises(ValueError):
            bench.scheduler.at(due, noop)
        return
    task = bench.scheduler.at(due, noop)
    assert repr(task)
    if due < 0:
        assert task.wait(WATCHDOG)
        # More than 63 bits of nanoseconds.
        assert [e.lateness for e in bench.log.of("STARTED")] == [CENTURY - 1 - due]
    else:
        assert (task.state, bench.scheduler.next_due()) == (STATES.WAITING, due)


@pytest.mark.parametrize("back", [1e-9, 0.001, 1, 999])
@pytest.mark.parametrize(
    "rule",
    [FixedRate(1000), FixedRate(1000, Missed.CATCH_UP), FixedDelay(1000)],
    ids=["skip", "catch up", "delay"],
)
def test_a_clock_that_goes_back_runs_nothing_twice(make: Any, rule: Any, back: float) -> None:
    """mobc#25: a clock went back by a little between two readings."""
    clock, runs = CellClock(), threading.Semaphore(0)
    scheduler = make(workers=1, clock=clock)
    log = Log(scheduler)
    scheduler.add_listener(lambda e: runs.release() if e.kind.name == "COMPLETED" else None)

    def job() -> None:
        if len(log.starts()) == 3:
            clock.seconds -= back

    task = scheduler.every(rule, job)
    for _ in range(6):
        clock.moved(scheduler, task.due)
        assert runs.acquire(timeout=WATCHDOG)
        until(lambda: task.state is STATES.WAITING, "the next slot")
    dues = log.dues()
    assert len(dues) == 6 and dues == sorted(set(dues))
    if isinstance(rule, FixedRate):
        assert dues == [1000, 2000, 3000, 4000, 5000, 6000]
    assert all(event.duration >= 0 for event in log.of("COMPLETED"))
    assert all(event.lateness >= 0 for event in log.of("STARTED"))


def test_a_due_that_passes_between_look_and_wait_is_due(make: Any) -> None:
    """ngit#76: the time left was negative and became an endless wait."""
    scheduler = make(workers=2)
    for nanoseconds in range(0, scaled(5_000_000, 20_000), 100):
        assert scheduler.after(nanoseconds * 1e-9, noop).wait(WATCHDOG)


@pytest.mark.parametrize("readings", range(12))
def test_a_due_that_passes_at_any_reading_is_due(make: Any, readings: int) -> None:
    """ngit#76: a clock that moves with each reading, so that the due passes at each of them."""
    tick = itertools.count()
    scheduler = make(workers=2, clock=lambda: next(tick) * 1e-4)
    assert scheduler.after(readings * 1e-4, noop).wait(WATCHDOG)


@pytest.mark.parametrize(
    ("period", "period_us", "slot"),
    [
        (0.1, 100_000, 10_000_000),
        (0.1, 100_000, 9_999_999),
        (0.3, 300_000, 10_000_000),
        (0.7, 700_000, 1_000_003),
        (0.001, 1_000, 1_000_000_000),
        (1e-6, 1, 10**12),
        (timedelta(microseconds=123_457), 123_457, 7_654_321),
    ],
    ids=str,
)
@pytest.mark.parametrize("first", [0, 0.1])
def test_a_slot_is_exact_however_far(
    manual: Manual, period: Any, period_us: int, slot: int, first: float
) -> None:
    """Adding 0.1 ten million times drifts; first + n x period, in integers, does not."""
    manual.scheduler.every(period, noop, first=first)
    manual.jump(timedelta(microseconds=slot * period_us) + timedelta(seconds=first))
    nanoseconds = slot * period_us * 1000 + int(first * 10**9)
    assert exact(manual.log.dues()[-1]) == nanoseconds
    assert exact(manual.scheduler.next_due()) == nanoseconds + period_us * 1000
