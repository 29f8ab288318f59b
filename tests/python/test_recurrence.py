"""Recurrence: grids and delays, slots missed or caught up, and where a series ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from helpers import WATCHDOG, CellClock, Gate
from worlds import World

from duetime import (
    FixedDelay,
    FixedRate,
    Missed,
    OneTime,
    Scheduler,
    Task,
    TaskState,
    current_run,
)

DAYS = 86_400.0


def dues_of(seen: list[float], world: World) -> Callable[[], None]:
    """A job that writes down the slot it runs for, in seconds from now."""
    start = world.now()
    return lambda: seen.append(round(current_run().due - start, 6))


def test_one_time_has_no_next_run(world: World) -> None:
    for recurrence in ({}, {"recurrence": OneTime()}):
        task = world.scheduler.schedule(Task(due=world.past(0), job=int, **recurrence))
        assert task.wait(WATCHDOG)
        assert (task.runs, task.state) == (1, TaskState.DONE)


def test_fixed_rate_keeps_to_its_grid(sim: World) -> None:
    seen: list[float] = []
    sim.scheduler.every(FixedRate(10), dues_of(seen, sim), first=3)
    sim.advance(50)
    assert seen == [3, 13, 23, 33, 43]


def test_the_first_slot_is_one_period_away_unless_first_says_otherwise(sim: World) -> None:
    start = sim.now()
    assert sim.scheduler.every(10, print).due - start == 10
    assert sim.scheduler.every(timedelta(seconds=10), print).due - start == 10
    assert sim.scheduler.every(FixedDelay(10), print).due - start == 10
    assert sim.scheduler.every(10, print, first=timedelta(seconds=4)).due - start == 4
    assert sim.scheduler.every(10, print, first=0).due == start


def late_run(seen: list[float], clock: CellClock, slow_run: int, seconds: float) -> Any:
    """A job whose run number `slow_run` takes `seconds`."""

    def job() -> None:
        seen.append(round(clock.seconds, 6))
        if current_run().number == slow_run:
            clock.seconds += seconds

    return job


@pytest.fixture
def cell(make_scheduler: Callable[..., Scheduler]) -> tuple[Scheduler, CellClock]:
    clock = CellClock()
    return make_scheduler(1, clock=clock), clock


def step(scheduler: Scheduler, clock: CellClock, target: float) -> None:
    while (due := scheduler.next_due()) is not None and due <= target:
        clock.seconds = max(clock.seconds, due)
        scheduler.wake()
        assert scheduler.wait_idle(WATCHDOG)


@pytest.mark.parametrize(
    ("rule", "starts", "missed"),
    [
        (FixedRate(10), [0, 40, 50, 60], 3),
        (FixedRate(10, missed=Missed.SKIP), [0, 40, 50, 60], 3),
        (FixedRate(10, missed=Missed.CATCH_UP), [0, 36, 36, 36, 40, 50, 60], 0),
        (FixedDelay(10), [0, 46, 56], 0),
    ],
    ids=["default", "skip", "catch up", "fixed delay"],
)
def test_what_a_run_of_36_s_does_to_a_series_of_10_s(
    cell: tuple[Scheduler, CellClock], rule: Any, starts: list[float], missed: int
) -> None:
    scheduler, clock = cell
    seen: list[float] = []
    task = scheduler.every(rule, late_run(seen, clock, 1, 36), first=0)
    assert scheduler.wait_idle(WATCHDOG)
    step(scheduler, clock, 60)
    assert seen == starts
    assert task.missed == missed


def test_a_slot_equal_to_the_end_of_the_run_is_not_missed(
    cell: tuple[Scheduler, CellClock],
) -> None:
    scheduler, clock = cell
    seen: list[float] = []
    task = scheduler.every(10, late_run(seen, clock, 1, 20), first=0)
    assert scheduler.wait_idle(WATCHDOG)
    step(scheduler, clock, 40)
    assert seen == [0, 20, 30, 40]
    assert task.missed == 1


def test_catching_up_runs_every_slot_with_its_own_due(manual: World) -> None:
    seen: list[float] = []
    log = manual.log()
    rule = FixedRate(5, missed=Missed.CATCH_UP)
    task = manual.scheduler.every(rule, dues_of(seen, manual))
    manual.clock.jump(3600)
    assert seen == [5.0 * n for n in range(1, 721)]
    assert (task.runs, task.missed) == (720, 0)
    assert log.of("MISSED") == []


def test_skipped_slots_are_counted_and_announced_once(manual: World) -> None:
    seen: list[float] = []
    log = manual.log()
    task = manual.scheduler.every(5, dues_of(seen, manual), id="t")
    manual.clock.jump(62)
    assert seen == [5], "one late run"
    assert task.due - manual.now() == 3, "then the old grid"
    assert (task.runs, task.missed) == (1, 11)
    assert [event.missed for event in log.of("MISSED", "t")] == [11]
    manual.clock.jump(34)
    assert task.missed == 11 + 6
    assert [event.missed for event in log.of("MISSED", "t")] == [11, 6]
    assert manual.scheduler.info("t").missed == manual.scheduler.stats().missed == 17


def test_nothing_missed_is_not_announced(world: World) -> None:
    log = world.log()
    world.scheduler.every(3600, print, first=3600)
    world.scheduler.after(0, int)
    world.run_until_idle()
    assert log.of("MISSED") == []


@pytest.mark.timeout(20)
def test_after_ten_years_the_next_slot_is_one_division_away(manual: World) -> None:
    start = manual.now()
    task = manual.scheduler.every(0.001, int)
    manual.clock.jump(3652.5 * DAYS + 0.0005)
    assert task.runs == 1
    assert round(task.due - start, 6) == round(3652.5 * DAYS + 0.001, 6)
    assert task.missed == 3652.5 * DAYS * 1000 - 1


def test_a_task_never_overlaps_itself(real: Scheduler) -> None:
    running: list[int] = []
    most: list[int] = []

    def job() -> None:
        running.append(1)
        most.append(len(running))
        current_run().wait(0.0005)
        running.pop()

    task = real.every(FixedRate(0.0001, missed=Missed.CATCH_UP), job, first=0, max_runs=100)
    assert task.wait(WATCHDOG)
    assert max(most) == 1
    assert len(most) == 100


def test_the_next_slot_is_queued_when_the_run_ends(world: World) -> None:
    gate = Gate()
    log = world.log()
    task = world.scheduler.every(world.step, gate, first=0, id="t")
    gate.entered()
    assert world.scheduler.next_due() is None
    assert task.cancel().name == "STOPPING"
    gate.open()
    assert task.wait(WATCHDOG)
    world.run_until_idle()
    assert log.kinds("t").count("STARTED") == 1


def test_a_recurring_task_goes_on_after_a_failed_run(sim: World) -> None:
    seen: list[float] = []
    note = dues_of(seen, sim)

    def job() -> bool:
        note()
        if len(seen) == 3:
            raise SystemExit
        return len(seen) != 2

    task = sim.scheduler.every(10, job)
    sim.advance(50)
    assert seen == [10, 20, 30, 40, 50]
    assert (task.state, task.runs, task.failures) == (TaskState.WAITING, 5, 2)


def test_max_runs_ends_a_series_as_done(world: World) -> None:
    seen: list[int] = []
    rule = FixedRate(0.001, missed=Missed.CATCH_UP)
    task = world.scheduler.every(rule, lambda: seen.append(len(seen)) or len(seen), max_runs=3)
    world.advance(world.step)
    assert task.result(WATCHDOG) == 3, "the result of the last run"
    assert (task.state, task.runs) == (TaskState.DONE, 3)
    assert seen == [0, 1, 2]


def two_runs(world: World, job: Callable[[], Any]) -> Task:
    rule = FixedRate(0.001, missed=Missed.CATCH_UP)
    return world.scheduler.schedule(Task(due=world.past(0), job=job, recurrence=rule, max_runs=2))


def test_a_series_whose_last_run_failed_has_failed(world: World) -> None:
    outcomes = iter([None, ValueError("last")])

    def job() -> None:
        if (outcome := next(outcomes)) is not None:
            raise outcome

    task = two_runs(world, job)
    with pytest.raises(ValueError, match="last"):
        task.result(WATCHDOG)
    assert (task.state, task.failures) == (TaskState.FAILED, 1)


def test_a_series_that_failed_only_before_its_last_run_is_done(world: World) -> None:
    task = two_runs(world, lambda: current_run().number > 1)
    assert task.result(WATCHDOG) is True
    assert (task.state, task.failures) == (TaskState.DONE, 1)
    assert task.exception() is None


def test_until_ends_a_series(sim: World) -> None:
    seen: list[float] = []
    task = sim.scheduler.every(10, dues_of(seen, sim), until=sim.now() + 35)
    sim.advance(100)
    assert seen == [10, 20, 30]
    assert task.state is TaskState.DONE


def test_until_may_be_an_aware_datetime(manual: World) -> None:
    until = datetime.now(timezone.utc) + timedelta(hours=1)
    task = manual.scheduler.every(600, int, until=until)
    manual.clock.advance(2 * 3600)
    assert task.state is TaskState.DONE
    assert task.runs in (5, 6), "the instant was converted while real time went on"


@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-1, ValueError), (True, TypeError), (1.5, TypeError), ("3", TypeError)],
    ids=repr,
)
def test_max_runs_is_a_positive_int(world: World, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        world.scheduler.every(10, print, max_runs=value)
    assert world.scheduler.tasks() == []
