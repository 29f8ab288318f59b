"""Clocks: manual, one's own, and the rule that the logic reads no other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import pytest
from helpers import WATCHDOG, CellClock, Gate, Log, Thread, ns
from worlds import World

from duetime import EventKind, ManualClock, Scheduler, current_run, retry


def test_a_manual_clock_stands_where_it_is_put() -> None:
    assert ManualClock().now() == 0.0
    clock = ManualClock(32_400)
    assert clock.now() == 32_400.0
    clock.advance(1.5)
    clock.jump(2)
    clock.advance(0)
    clock.jump(0)
    assert clock.now() == 32_403.5
    assert type(clock.now()) is float
    assert ManualClock(start=5.0).now() == 5.0


def test_a_manual_clock_never_goes_back() -> None:
    clock = ManualClock(10)
    for move in (clock.advance, clock.jump):
        with pytest.raises(ValueError, match="-1"):
            move(-1)
    assert clock.now() == 10


@pytest.mark.parametrize("start", [math.nan, math.inf, 1e300, 10**400], ids=lambda v: repr(v)[:9])
def test_a_start_that_no_clock_can_show_is_refused(start: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        ManualClock(start)


@pytest.mark.parametrize("start", [True, "0", None, ...], ids=repr)
def test_a_start_is_a_number(start: Any) -> None:
    with pytest.raises(TypeError):
        ManualClock(start)


def test_the_scheduler_shows_its_clocks_time(sim: World) -> None:
    sim.advance(5)
    assert sim.scheduler.now() == (sim.clock.now() if sim.kind == "manual" else sim.clock.seconds)


@pytest.mark.parametrize("clock", [5, "monotonic", ..., [ManualClock]], ids=repr)
def test_a_clock_is_a_manual_clock_or_a_callable(clock: Any) -> None:
    with pytest.raises(TypeError):
        Scheduler(1, clock=clock)


def test_advance_goes_step_by_step(manual: World) -> None:
    start = manual.now()
    seen: list[tuple[str, float]] = []

    def job(name: str) -> None:
        seen.append((name, current_run().now - start))

    manual.scheduler.after(7, job, "seven")
    manual.scheduler.after(2, job, "two")
    manual.scheduler.every(3, job, "every")
    manual.scheduler.after(10.5, job, "beyond")
    manual.clock.advance(10)
    assert seen == [("two", 2), ("every", 3), ("every", 6), ("seven", 7), ("every", 9)]
    assert manual.now() - start == 10


def test_advance_includes_what_the_runs_schedule_up_to_the_target(manual: World) -> None:
    start = manual.now()
    seen: list[float] = []

    def job() -> None:
        seen.append(manual.now() - start)
        manual.scheduler.after(2, job)

    manual.scheduler.after(1, job)
    manual.clock.advance(7)
    assert seen == [1, 3, 5, 7], "the target included"
    manual.clock.advance(1.5)
    assert seen == [1, 3, 5, 7]


def test_advance_includes_retries(manual: World) -> None:
    task = manual.scheduler.after(1, lambda: False, retry=retry.FixedDelay(3, 2))
    manual.clock.advance(7)
    assert (task.done(), task.runs) == (True, 4)


def test_advance_returns_when_the_listeners_have_returned(manual: World) -> None:
    gate, start = Gate(), manual.now()
    manual.scheduler.add_listener(gate, kinds=[EventKind.COMPLETED])
    manual.scheduler.after(1, int)
    mover = Thread(manual.clock.advance, 5)
    gate.entered()
    assert mover.is_alive()
    assert manual.now() == start + 1, "nor does time go on meanwhile"
    gate.open()
    mover.outcome()
    assert manual.now() == start + 5


def test_advance_by_nothing_waits_for_the_quiet_point(manual: World) -> None:
    seen: list[int] = []
    for n in range(100):
        manual.scheduler.after(0, seen.append, n)
    manual.clock.advance(0)
    assert seen == list(range(100))


def test_a_jump_is_one_leap(manual: World) -> None:
    start, log = manual.now(), manual.log()
    seen: list[tuple[int, float]] = []

    def job(n: int) -> None:
        run = current_run()
        seen.append((n, run.now - start))

    for n in (3, 1, 2):
        manual.scheduler.after(n, job, n)
    manual.clock.jump(10)
    assert seen == [(1, 10), (2, 10), (3, 10)]
    assert [event.lateness for event in log.of("STARTED")] == [9, 8, 7]
    assert manual.now() - start == 10


def test_a_jump_returns_at_the_quiet_point(manual: World) -> None:
    gate = Gate()
    task = manual.scheduler.after(1, gate)
    mover = Thread(manual.clock.jump, 5)
    gate.entered()
    assert mover.is_alive()
    gate.open()
    mover.outcome()
    assert task.done()


def test_a_sleep_inside_a_run_lets_virtual_time_go_on(manual: World) -> None:
    start = manual.now()
    seen: list[float] = []

    def job() -> bool:
        seen.append(manual.now() - start)
        asked_to_stop = current_run().wait(4)
        seen.append(manual.now() - start)
        return not asked_to_stop

    task = manual.scheduler.after(3, job)
    manual.clock.advance(10)
    assert task.result(WATCHDOG) is True
    assert seen == [3, 7]


def test_two_runs_sleep_side_by_side(make_scheduler: Callable[..., Scheduler]) -> None:
    clock = ManualClock()
    scheduler = make_scheduler(2, clock=clock)
    seen: list[tuple[str, float]] = []

    def job(name: str, seconds: float) -> None:
        current_run().wait(seconds)
        seen.append((name, clock.now()))

    scheduler.after(1, job, "long", 5)
    scheduler.after(2, job, "short", 1)
    clock.advance(10)
    assert seen == [("short", 3), ("long", 6)]


def events_of_a_busy_hour(workers: int) -> list[tuple[Any, ...]]:
    clock = ManualClock()
    log = Log()
    with Scheduler(workers, clock=clock) as scheduler:
        scheduler.add_listener(log)
        for n in range(20):
            scheduler.every(
                7 + n, lambda n=n: n % 3 > 0, id=n, retry=retry.FixedDelay(2, 1), priority=n % 2
            )
        scheduler.after(1800, scheduler.cancel, 5, id="cancel")
        clock.advance(1800)
        clock.jump(500)
        scheduler.every(60, lambda: str(current_run().wait(25)), id="slow")
        clock.advance(1290)  # the last slow run ends before that
    return [
        (event.kind, event.task_id, ns(event.time), event.run, event.attempt)
        for event in log.events
    ]


def test_with_one_worker_every_run_tells_the_same_story() -> None:
    first = events_of_a_busy_hour(1)
    assert len(first) > 2000
    assert events_of_a_busy_hour(1) == first


@pytest.mark.parametrize("move", ["advance", "jump"])
def test_time_is_not_moved_from_inside(manual: World, move: str) -> None:
    heard: list[type] = []

    def try_it(*_event: Any) -> None:
        try:
            getattr(manual.clock, move)(1)
        except RuntimeError as error:
            heard.append(type(error))

    before = manual.now()
    manual.scheduler.after(0, try_it)
    manual.run_until_idle()
    manual.scheduler.add_listener(try_it, kinds=[EventKind.SCHEDULED, EventKind.STARTED])
    manual.scheduler.after(0, int)
    manual.run_until_idle()
    assert heard == [RuntimeError] * 3
    assert manual.now() == before


def test_real_time_moves_no_simulated_clock(sim: World, real: Scheduler) -> None:
    task = sim.scheduler.after(0.001, int)
    assert real.after(0.05, int).wait(WATCHDOG)
    assert sim.scheduler.wait_idle(WATCHDOG)
    assert not task.done()
    sim.advance(0.001)
    assert task.done()


def test_a_custom_clock_moves_with_wake(make_scheduler: Callable[..., Scheduler]) -> None:
    clock = CellClock(50.0)
    scheduler = make_scheduler(1, clock=clock)
    task = scheduler.after(3600, lambda: current_run().now)
    assert scheduler.now() == 50.0
    clock.seconds += 3600
    scheduler.wake()
    assert task.result(WATCHDOG) == 3650.0


def test_a_custom_clock_may_be_an_int_and_may_run_by_itself(
    make_scheduler: Callable[..., Scheduler],
) -> None:
    assert make_scheduler(1, clock=lambda: 7).now() == 7.0
    scheduler = make_scheduler(1, clock=time.monotonic)
    due = time.monotonic() + 0.02
    assert scheduler.at(due, lambda: scheduler.now() >= due).result(WATCHDOG) is True


def test_wake_is_harmless(world: World) -> None:
    task = world.scheduler.after(world.step, int)
    for _ in range(100):
        world.scheduler.wake()
    world.advance(world.step)
    assert task.result(WATCHDOG) == 0
    assert task.runs == 1


def test_a_clock_outlives_its_scheduler() -> None:
    clock = ManualClock()
    with Scheduler(1, clock=clock) as scheduler:
        scheduler.after(5, int)
    clock.advance(10)
    assert clock.now() == 10
    with Scheduler(1, clock=clock) as scheduler:
        assert scheduler.now() == 10
        task = scheduler.after(1, lambda: "ran")
        clock.advance(1)
        assert task.result(WATCHDOG) == "ran"


def test_next_due_is_the_earliest_that_waits(sim: World) -> None:
    start = sim.now()
    assert sim.scheduler.next_due() is None
    early = sim.scheduler.after(5, int)
    sim.scheduler.after(10, int)
    assert sim.scheduler.next_due() - start == 5
    early.cancel()
    assert sim.scheduler.next_due() - start == 10
    sim.advance(10)
    assert sim.scheduler.next_due() is None
