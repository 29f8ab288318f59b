"""Calls that are wrong, and things that look wrong and are not."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from support import HOUR, STATES, Manual, noop, snapshot, together

import duetime
from duetime import DuplicateTaskError, FixedDelay, FixedRate, ManualClock, Scheduler, Task, retry

NAIVE = datetime(2031, 1, 1, 12)
AWARE = NAIVE.replace(tzinfo=timezone.utc)


class Incomparable:
    """A job that does not take part in any order."""

    def __init__(self, ran: list[int], number: int) -> None:
        self.ran, self.number = ran, number

    def never(self, _other: object) -> bool:
        raise AssertionError("compared")

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = never  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def run(self, now: float) -> None:
        self.ran.append(self.number)


@pytest.mark.parametrize("where", ["job", "args", "result"])
def test_equal_tasks_are_never_compared(manual: Manual, where: str) -> None:
    """aws-durable#272: at equal times the heap compared the tasks, and raised."""
    ran: list[int] = []
    for number in range(1000):
        thing = Incomparable(ran, number)
        if where == "job":
            manual.scheduler.after(1, thing)
        elif where == "args":
            manual.scheduler.after(1, Incomparable.run, thing, 0.0)
        else:
            manual.scheduler.after(1, lambda thing=thing: (thing.run(0.0), thing)[1])
    manual.advance(1)
    assert ran == list(range(1000))
    assert manual.scheduler.stats().failures == 0


@pytest.mark.parametrize("how", ["after", "schedule", "schedule_all", "every"])
@pytest.mark.parametrize("id", ["one", 1, "", 0, 2**62, "ü\0"], ids=repr)
def test_one_id_from_many_threads_has_one_winner(make: Any, how: str, id: Any) -> None:
    """apscheduler#373: two threads added one id, and both were told that it was theirs."""
    scheduler = make()
    due = scheduler.now() + HOUR
    calls: dict[str, Callable[[], Any]] = {
        "after": lambda: scheduler.after(HOUR, noop, id=id),
        "every": lambda: scheduler.every(HOUR, noop, id=id),
        "schedule": lambda: scheduler.schedule(Task(id, due=due, job=noop)),
        "schedule_all": lambda: scheduler.schedule_all(
            [Task(due=due, job=noop), Task(id, due=due, job=noop), Task(due=due, job=noop)]
        ),
    }
    answers = together(*[calls[how]] * 100)
    losers = [answer for answer in answers if isinstance(answer, Exception)]
    assert len(losers) == 99
    assert {type(error) for error in losers} == {DuplicateTaskError}
    assert len(scheduler.tasks()) == (3 if how == "schedule_all" else 1)
    assert scheduler.cancel(id)


def test_one_task_object_from_many_threads_has_one_winner(make: Any) -> None:
    """apscheduler#373: the same for one Task object, which can be scheduled once."""
    scheduler = make()
    task = Task(due=scheduler.now() + HOUR, job=noop)
    answers = together(*[lambda: scheduler.schedule(task)] * 50)
    assert [answer for answer in answers if not isinstance(answer, Exception)] == [task]
    assert len(scheduler.tasks()) == 1


def test_ids_of_the_scheduler_never_meet_ids_of_the_caller(manual: Manual) -> None:
    """apscheduler#373: an id made up by the scheduler was one that the caller used later."""
    made = {manual.scheduler.after(HOUR, noop).id for _ in range(100)}
    for number in range(1000):
        manual.scheduler.after(HOUR, noop, id=number)
        manual.scheduler.after(HOUR, noop, id=str(number))
    made |= {manual.scheduler.after(HOUR, noop).id for _ in range(100)}
    assert len(made) == 200 and len(manual.scheduler.tasks()) == 2200


def test_an_int_and_its_text_are_two_ids(manual: Manual) -> None:
    """apscheduler#373: 1 and "1" are not the same id."""
    one, text = manual.scheduler.after(1, noop, id=1), manual.scheduler.after(1, noop, id="1")
    assert manual.scheduler.cancel(1)
    manual.advance(1)
    assert (one.state, text.state) == (STATES.CANCELLED, STATES.DONE)


Calls = dict[str, Callable[[Scheduler, Any], object]]
TAKE_INSTANTS: Calls = {
    "at": lambda s, x: s.at(x, noop),
    "due": lambda s, x: s.schedule(Task(due=x, job=noop)),
    "until": lambda s, x: s.every(1, noop, until=x),
}
TAKE_DURATIONS: Calls = {
    "after": lambda s, x: s.after(x, noop),
    "every": lambda s, x: s.every(x, noop),
    "FixedRate": lambda s, x: s.every(FixedRate(x), noop),
    "FixedDelay": lambda s, x: s.every(FixedDelay(x), noop),
    "advance": lambda s, x: ManualClock().advance(x),
    "jump": lambda s, x: ManualClock().jump(x),
    "retry": lambda s, x: retry.FixedDelay(1, x),
    "base": lambda s, x: retry.ExponentialBackoff(1, x),
    "cap": lambda s, x: retry.ExponentialBackoff(1, 1, cap=x),
    "wait_idle": lambda s, x: s.wait_idle(timeout=x),
    "wait": lambda s, x: s.after(HOUR, noop).wait(timeout=x),
    "shutdown": lambda s, x: s.shutdown(timeout=x),
}


@pytest.mark.parametrize("name", [*TAKE_INSTANTS, "first"])
def test_a_naive_datetime_is_refused_at_the_call(manual: Manual, name: str) -> None:
    """apscheduler#133: a naive datetime was compared with aware ones, later, elsewhere."""
    calls = {**TAKE_INSTANTS, "first": lambda s, x: s.every(1, noop, first=x)}
    before = snapshot(manual.scheduler)
    with pytest.raises(ValueError):
        calls[name](manual.scheduler, NAIVE)
    assert snapshot(manual.scheduler) == before


@pytest.mark.parametrize("value", [AWARE, NAIVE, date(2031, 1, 1)], ids=["aware", "naive", "date"])
@pytest.mark.parametrize("name", TAKE_DURATIONS)
def test_a_datetime_where_a_duration_belongs_is_a_type_error(
    manual: Manual, name: str, value: Any
) -> None:
    """ratelimit#78: a datetime as a delay was converted into something."""
    with pytest.raises(TypeError):
        TAKE_DURATIONS[name](manual.scheduler, value)
    assert not manual.scheduler.tasks(STATES.DONE)


@pytest.mark.parametrize("value", [timedelta(seconds=5), date(2031, 1, 1), "2031-01-01"], ids=str)
@pytest.mark.parametrize("name", TAKE_INSTANTS)
def test_a_duration_where_an_instant_belongs_is_a_type_error(
    manual: Manual, name: str, value: Any
) -> None:
    """ratelimit#78: and a delay as an instant was a time in 1970."""
    before = snapshot(manual.scheduler)
    with pytest.raises(TypeError):
        TAKE_INSTANTS[name](manual.scheduler, value)
    assert snapshot(manual.scheduler) == before


class RunIsNoMethod:
    run = "no method"


@pytest.mark.parametrize("job", [1, "print", object(), [print], RunIsNoMethod(), b""], ids=repr)
def test_a_job_that_cannot_be_called_is_refused_at_the_call(manual: Manual, job: Any) -> None:
    """ratelimit#78: the mistake was found when the job was due, by another thread."""
    calls: list[Callable[[], object]] = [
        lambda: manual.scheduler.after(1, job),
        lambda: manual.scheduler.at(1, job),
        lambda: manual.scheduler.every(1, job),
        lambda: manual.scheduler.submit(job),
        lambda: manual.scheduler.schedule(Task(due=1, job=job)),
        lambda: manual.scheduler.schedule_all([Task(due=1, job=noop), Task(due=1, job=job)]),
        lambda: Task(due=1, job=job),
    ]
    before = snapshot(manual.scheduler)
    for call in calls:
        with pytest.raises(TypeError):
            call()
    assert snapshot(manual.scheduler) == before


@pytest.mark.parametrize("cancelled", [0, 1, 2])
def test_one_function_scheduled_three_times_is_three_tasks(manual: Manual, cancelled: int) -> None:
    """gocron#492: removing by function removed all of them, or the wrong one."""
    ran: list[float] = []

    def job() -> None:
        ran.append(duetime.current_run().due)

    tasks = [manual.scheduler.after(delay, job) for delay in (1, 2, 3)]
    assert tasks[cancelled].cancel()
    manual.advance(3)
    assert ran == [due for number, due in enumerate((1, 2, 3)) if number != cancelled]


def test_one_function_as_three_series_is_three_series(manual: Manual) -> None:
    """gocron#492: the same for series, with equal rules, and for a decorated function."""
    calls: list[Any] = []

    def job() -> None:
        calls.append(duetime.current_run().id)

    series = [manual.scheduler.every(1, job) for _ in range(2)]
    assert manual.scheduler.every(1, id="decorated")(job) is job
    assert series[0].cancel()
    manual.advance(2)
    assert calls == [series[1].id, "decorated"] * 2


def test_one_listener_added_twice_is_removed_at_least_once(manual: Manual) -> None:
    """gocron#492: whatever adding twice means, removing until it is gone ends."""
    heard, lock = [], threading.Lock()

    def listener(event: Any) -> None:
        with lock:
            heard.append(event)

    manual.scheduler.add_listener(listener)
    manual.scheduler.add_listener(listener)
    manual.scheduler.remove_listener(listener)
    with contextlib.suppress(ValueError, KeyError):
        manual.scheduler.remove_listener(listener)
    manual.scheduler.after(1, noop)
    manual.advance(1)
    assert heard == []
