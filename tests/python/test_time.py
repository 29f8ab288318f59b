"""Time: seconds and timedeltas at the border, integer nanoseconds inside, nothing ever early."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from helpers import WATCHDOG, YEAR, ns
from worlds import World

from duetime import FixedDelay, FixedRate, ManualClock, Missed, Scheduler, Task, current_run, retry

# Every place that takes a duration: (scheduler, duration) -> anything.
DURATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "after": lambda s, value: s.after(value, print),
    "every": lambda s, value: s.every(value, print),
    "every first": lambda s, value: s.every(1, print, first=value),
    "FixedRate": lambda _, value: FixedRate(value),
    "FixedRate catching up": lambda _, value: FixedRate(value, missed=Missed.CATCH_UP),
    "FixedDelay": lambda _, value: FixedDelay(value),
    "retry.FixedDelay": lambda _, value: retry.FixedDelay(1, value),
    "ExponentialBackoff base": lambda _, value: retry.ExponentialBackoff(1, value),
    "ExponentialBackoff cap": lambda _, value: retry.ExponentialBackoff(1, 1, cap=value),
    "advance": lambda _, value: ManualClock().advance(value),
    "jump": lambda _, value: ManualClock().jump(value),
}
PERIODS = ["every", "FixedRate", "FixedRate catching up", "FixedDelay"]
NONE_IS_AN_ANSWER = {"every first", "ExponentialBackoff cap"}

# Every wait. A wait may be longer than 100 years, as threading's waits may.
TIMEOUTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "result": lambda _s, task, value: task.result(timeout=value),
    "exception": lambda _s, task, value: task.exception(timeout=value),
    "wait": lambda _s, task, value: task.wait(timeout=value),
    "wait_idle": lambda s, _task, value: s.wait_idle(timeout=value),
    "shutdown": lambda s, _task, value: s.shutdown(timeout=value),
}

NEVER_A_WAIT = [-1, -1e-12, math.nan, math.inf, -math.inf, timedelta(seconds=-1)]
OUT_OF_BOUNDS = [*NEVER_A_WAIT, 101 * YEAR, 1e300, 2**63, 10**400, timedelta.max]
NOT_A_NUMBER = [True, False, "1", b"1", 1j, [1], ...]


@pytest.fixture
def scheduler(make_scheduler: Callable[..., Scheduler]) -> Scheduler:
    return make_scheduler(1, clock=ManualClock())


@pytest.mark.parametrize("value", OUT_OF_BOUNDS, ids=lambda value: repr(value)[:24])
@pytest.mark.parametrize("place", DURATIONS)
def test_a_duration_out_of_bounds_is_refused_at_the_call(
    scheduler: Scheduler, place: str, value: Any
) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        DURATIONS[place](scheduler, value)
    assert scheduler.tasks() == []
    assert scheduler.next_due() is None


@pytest.mark.parametrize("value", [*NOT_A_NUMBER, None], ids=lambda value: repr(value)[:24])
@pytest.mark.parametrize("place", DURATIONS)
def test_what_is_no_number_is_a_type_error(scheduler: Scheduler, place: str, value: Any) -> None:
    if value is None and place in NONE_IS_AN_ANSWER:
        DURATIONS[place](scheduler, value)
        return
    with pytest.raises(TypeError):
        DURATIONS[place](scheduler, value)
    assert scheduler.tasks() == []


@pytest.mark.parametrize("value", [0, 0.0, -0.0, 1e-10, timedelta(0)], ids=repr)
@pytest.mark.parametrize("place", PERIODS)
def test_a_period_that_rounds_to_nothing_is_refused(
    scheduler: Scheduler, place: str, value: Any
) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        DURATIONS[place](scheduler, value)


@pytest.mark.parametrize("value", [1e-9, 1, 0.1, timedelta(microseconds=1), 99 * YEAR], ids=repr)
@pytest.mark.parametrize("place", DURATIONS)
def test_every_duration_up_to_a_hundred_years_is_taken(
    scheduler: Scheduler, place: str, value: Any
) -> None:
    DURATIONS[place](scheduler, value)


@pytest.mark.parametrize("value", NEVER_A_WAIT, ids=repr)
@pytest.mark.parametrize("place", TIMEOUTS)
def test_a_timeout_out_of_bounds_is_refused(scheduler: Scheduler, place: str, value: Any) -> None:
    task = scheduler.after(1, print)
    with pytest.raises(ValueError, match=r"\w"):
        TIMEOUTS[place](scheduler, task, value)
    assert not task.done(), "a refused shutdown shuts nothing down"


@pytest.mark.parametrize("value", NOT_A_NUMBER, ids=lambda value: repr(value)[:24])
@pytest.mark.parametrize("place", TIMEOUTS)
def test_a_timeout_that_is_no_number_is_a_type_error(
    scheduler: Scheduler, place: str, value: Any
) -> None:
    task = scheduler.after(1, print)
    with pytest.raises(TypeError):
        TIMEOUTS[place](scheduler, task, value)
    assert not task.done()


def test_a_sleep_inside_a_run_is_checked_too(scheduler: Scheduler) -> None:
    def job() -> str:
        run = current_run()
        assert run is not None
        for bad, error in ((-1, ValueError), (math.nan, ValueError), ("1", TypeError)):
            with pytest.raises(error):
                run.wait(bad)
        return "checked"

    assert scheduler.after(0, job).result(WATCHDOG) == "checked"


@pytest.mark.parametrize(
    "due", [math.nan, math.inf, -math.inf, 1e300, 10**400, 2**63], ids=lambda due: repr(due)[:24]
)
def test_a_due_that_no_clock_can_show_is_refused(scheduler: Scheduler, due: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        scheduler.schedule(Task(due=due, job=print))
    with pytest.raises(ValueError, match=r"\w"):
        scheduler.at(due, print)
    assert scheduler.tasks() == []


@pytest.mark.parametrize("due", [None, True, "9:00", ..., timedelta(seconds=1)], ids=repr)
def test_a_due_is_a_number_or_a_datetime(scheduler: Scheduler, due: Any) -> None:
    with pytest.raises(TypeError):
        scheduler.schedule(Task(due=due, job=print))
    with pytest.raises(TypeError):
        scheduler.at(due, print)
    assert scheduler.tasks() == []


def test_a_delay_is_no_datetime(scheduler: Scheduler) -> None:
    with pytest.raises(TypeError):
        scheduler.after(datetime.now(timezone.utc), print)


def test_seconds_and_timedeltas_say_the_same(scheduler: Scheduler) -> None:
    for delay in (90, 90.0, timedelta(minutes=1, seconds=30)):
        assert scheduler.after(delay, print).due == 90.0
    for rule in (5, 5.0, timedelta(seconds=5), FixedRate(5), FixedRate(timedelta(seconds=5))):
        assert scheduler.every(rule, print).due == 5.0


def test_minus_zero_is_zero(scheduler: Scheduler) -> None:
    task = scheduler.after(-0.0, lambda: "now")
    assert task.result(WATCHDOG) == "now"
    assert task.due == 0.0


def test_an_aware_datetime_is_converted_when_the_task_is_scheduled(scheduler: Scheduler) -> None:
    instant = datetime.now(timezone.utc) + timedelta(hours=1)
    tokyo = instant.astimezone(timezone(timedelta(hours=9)))
    tasks = [
        scheduler.at(instant, print),
        scheduler.at(tokyo, print),
        scheduler.schedule(Task(due=tokyo, job=print)),
        scheduler.every(60, print, first=instant),
    ]
    # The clock stands still and the wall goes on, so they differ by the time this test takes.
    assert all(3600 - WATCHDOG < task.due <= 3600 for task in tasks)
    dues = [task.due for task in tasks]
    assert dues == [info.due for info in map(scheduler.info, (task.id for task in tasks))]


def test_a_naive_datetime_is_refused(scheduler: Scheduler) -> None:
    naive = datetime(2030, 1, 1, 9, 0)
    for call in (
        lambda: scheduler.at(naive, print),
        lambda: scheduler.schedule(Task(due=naive, job=print)),
        lambda: scheduler.every(60, print, first=naive),
        lambda: scheduler.every(60, print, until=naive),
    ):
        with pytest.raises(ValueError, match="aware"):
            call()
    assert scheduler.tasks() == []


@pytest.mark.parametrize("year", [1, 9999])
def test_a_datetime_beyond_the_clock_is_refused(scheduler: Scheduler, year: int) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        scheduler.at(datetime(year, 6, 1, tzinfo=timezone.utc), print)


def test_slots_are_exact_however_many(manual: World) -> None:
    start = manual.now()
    seen: list[int] = []
    manual.scheduler.every(0.1, lambda: seen.append(ns(current_run().due)), first=0)
    manual.clock.advance(100)
    assert seen == [ns(start) + n * 100_000_000 for n in range(1001)]


def test_slot_ten_million_is_where_it_belongs(make_scheduler: Callable[..., Scheduler]) -> None:
    clock = ManualClock()
    scheduler = make_scheduler(1, clock=clock)
    scheduler.every(0.1, int, first=0)
    clock.jump(999_999.95)
    assert ns(scheduler.next_due() or 0) == 10_000_000 * 100_000_000


def test_a_nanosecond_early_is_early(make_scheduler: Callable[..., Scheduler]) -> None:
    clock = ManualClock()
    task = make_scheduler(1, clock=clock).after(3e-9, lambda: ns(current_run().now))
    clock.advance(2e-9)
    assert not task.done()
    clock.advance(1e-9)
    assert task.result(WATCHDOG) == 3


def test_a_due_in_the_past_runs_at_once(world: World) -> None:
    log = world.log()
    task = world.scheduler.schedule(Task("late", due=world.past(0), job=lambda: "ran"))
    assert task.result(WATCHDOG) == "ran"
    world.run_until_idle()
    assert log.kinds("late") == ["SCHEDULED", "DUE", "STARTED", "COMPLETED"]
    assert log.of("STARTED")[0].lateness > 0.015


def test_nothing_starts_early(make_world: Callable[..., World]) -> None:
    world = make_world(workers=4)
    log = world.log()
    chance = random.Random(20)
    for _ in range(200):
        world.scheduler.after(chance.random() * world.step, lambda: None)
    world.scheduler.every(world.step / 7, lambda: None, max_runs=5)
    world.advance(world.step)
    world.run_until_idle()
    started = log.of("STARTED")
    assert len(started) > 200
    assert all(event.time >= event.due for event in started)
    assert all(event.lateness >= 0 for event in started)


def test_now_is_seconds_and_never_goes_back(real: Scheduler) -> None:
    readings = [real.now() for _ in range(1000)]
    assert all(type(reading) is float for reading in readings)
    assert readings == sorted(readings)
