"""What a newcomer gets wrong: each message names the parameter, the value, and what to write."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest

import duetime
from duetime import FixedDelay, ManualClock, Scheduler, Task, retry
from duetime.testing import recorded, virtual_time

AWARE = datetime(2030, 1, 1, tzinfo=timezone.utc)


def tick() -> None:
    """A job."""


def decorate_bare(s: Any) -> Any:
    @s.every
    def job() -> None: ...


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: Scheduler(limits={"a": "2"}), "limits['a'] must be an int, not '2' (str)"),
        (lambda s: Scheduler(limits={1: 2}), "a name in limits must be a str, not 1 (int)"),
        (lambda s: Scheduler(limits={"a": 0}), "limits['a'] must be at least 1, not 0"),
        (
            lambda s: s.after(1, print, until=-5),
            "until must be at or after the first due time, not -5s",
        ),
        (lambda s: s.shutdown("yes"), "wait must be a bool, not 'yes' (str)"),
        (lambda s: s.shutdown(drain=1), "drain must be a bool, not 1 (int)"),
        (lambda s: s.shutdown(cancel_futures=1), "cancel_futures must be a bool, not 1 (int)"),
        (
            lambda s: s.schedule(Task(due=0, job=int), replace=1),
            "replace must be a bool, not 1 (int)",
        ),
        (lambda s: s.schedule_all([], replace=None), "replace must be a bool, not None"),
        (
            lambda s: retry.FixedDelay(1, 1, retry_on=OSError()),
            "retry_on must be an exception class or a tuple of them, not OSError() (OSError)",
        ),
        (
            lambda s: retry.FixedDelay(1, 1, give_up_on=int),
            "give_up_on must be an exception class or a tuple of them, not <class 'int'> (type)",
        ),
        (
            lambda s: s.after(1, print, retry=FixedDelay(3)),
            (
                "retry must be a RetryPolicy (an object with delay_after_failure(failures)), "
                "not FixedDelay(3) (FixedDelay); that is a recurrence; see duetime.retry"
            ),
        ),
        (
            lambda s: s.every(retry.FixedDelay(3, 1), print),
            (
                "rule must be seconds, a timedelta or a Recurrence, "
                "not FixedDelay(3, 1) (FixedDelay); that is a retry policy; see duetime.FixedDelay"
            ),
        ),
        (
            lambda s: Task(due=0, job=int, recurrence=retry.Never()),
            (
                "recurrence must be a Recurrence (an object with next_due(due, finished)), "
                "not Never() (Never); that is a retry policy; see duetime.FixedDelay"
            ),
        ),
        (
            lambda s: s.every("0 9 * * *", int),
            (
                "rule must be seconds, a timedelta or a Recurrence, not '0 9 * * *' (str); "
                "there are no cron rules, but a Recurrence of your own may follow any"
            ),
        ),
        (
            lambda s: s.after(1, int, depends_on=Task("t", due=0, job=int)),
            (
                "depends_on must be an iterable of tasks or ids, not <Task 't' not scheduled> "
                "(Task); for a single one write [task]"
            ),
        ),
        (
            lambda s: s.add_listener(print, ["FAILED"]),
            "kinds must be EventKinds, such as [EventKind.FAILED], not 'FAILED' (str)",
        ),
        (lambda s: s.every(-1, int), "period must be between 1 nanosecond and 100 years, not -1"),
        (lambda s: FixedDelay(0), "delay must be between 1 nanosecond and 100 years, not 0"),
        (
            lambda s: s.after(1, int, depends_on=[s.every(60, int, id="tick")]),
            "depends_on must be a task that ends, by max_runs, until or its rule, not 'tick'",
        ),
        (
            lambda s: s.schedule_all(Task("t", due=0, job=int)),
            "tasks must be an iterable of Tasks, not <Task 't' not scheduled> (Task)",
        ),
        (lambda s: s.schedule_all(3), "tasks must be an iterable of Tasks, not 3 (int)"),
        (lambda s: ManualClock("1"), "start must be seconds of the clock, not '1' (str)"),
        (
            lambda s: ManualClock(AWARE),
            f"start must be seconds of the clock, not {AWARE!r}"[:86] + "... (datetime)",
        ),
        (lambda s: Scheduler(history=-1), "history must be between 0 and 2^64 - 1, not -1"),
        (lambda s: recorded(3).__enter__(), "scheduler must be a Scheduler, not 3 (int)"),
        (lambda s: s.after(None, int), "delay must be seconds or a timedelta, not None"),
        (lambda s: s.after(True, int), "delay must be seconds or a timedelta, not True (bool)"),
        (lambda s: s.submit(5), "fn must be callable, not 5 (int)"),
        (lambda s: Task(due=0, job=int, args=5), "args must be a tuple or a list, not 5 (int)"),
        (
            lambda s: s.after(1, int, replace=True),
            "'replace' is no option; Scheduler.schedule has it",
        ),
    ],
)
def test_a_message(real: Scheduler, call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call(real)
    if "datetime.datetime" in message:
        assert str(caught.value).startswith("start must be seconds of the clock, not datetime")
    else:
        assert str(caught.value) == message
    assert not real.closed


def test_a_keyword_argument_of_the_job_is_pointed_to_partial(real: Scheduler) -> None:
    with pytest.raises(TypeError, match=r"^'sep' is no option; .*functools\.partial$"):
        real.after(1, print, sep="-")


@pytest.mark.parametrize("name", ["after", "at"])
def test_calls_with_options_and_without_are_of_one_method(real: Scheduler, name: str) -> None:
    method = getattr(real, name)
    assert method.__qualname__ == f"Scheduler.{name}"
    assert not hasattr(real, f"_{name}")
    assert method(0, pow, 2, 10).result() == 1024
    assert method(0, pow, 2, 10, id=name, priority=1).result() == 1024
    missing = rf"^Scheduler\.{name}\(\) missing 1 required positional argument: 'job'$"
    for options in ({}, {"priority": 1}):
        with pytest.raises(TypeError, match=missing):
            method(0, **options)


def test_a_timeout_names_the_task_and_the_time(real: Scheduler) -> None:
    task = real.after(3600, int, id="report")
    with pytest.raises(concurrent.futures.TimeoutError) as caught:
        task.result(0.001)
    assert str(caught.value) == "task 'report' has not ended within 1ms"


def test_a_hostile_repr_leaves_the_type(real: Scheduler) -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(TypeError, match=r"not a value that cannot be shown \(Hostile\)$"):
        real.after(Hostile(), int)  # type: ignore[arg-type]


def test_every_without_parentheses_says_how_to_write_it(real: Scheduler) -> None:
    with pytest.raises(TypeError, match=r"^rule must .*job at .*write @scheduler\.every\(seconds"):
        decorate_bare(real)
    with pytest.raises(TypeError, match="write @scheduler"):
        real.every(tick, tick)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.every(-1),
        lambda s: s.every("1"),
        lambda s: s.every(1, foo=3),
        lambda s: s.every(1, first=-1),
        lambda s: s.every(1, max_runs=0),
        lambda s: s.every(1, jitter=2),
        lambda s: s.every(1, interrupt=True),
        lambda s: s.every(FixedDelay),
        lambda s: s.every(retry.Never()),
    ],
)
def test_a_decorator_is_refused_before_it_has_a_function(
    real: Scheduler, call: Callable[[Any], Any]
) -> None:
    with pytest.raises((TypeError, ValueError)):
        call(real)


def test_a_decorator_still_decorates(real: Scheduler) -> None:
    for rule in (60, FixedDelay(60), duetime.OneTime(), 0.5):
        decorate = real.every(rule, first=3600, priority=1, executor=None)
        assert decorate(tick) is tick and decorate(tick) is tick
    assert len(real.tasks()) == 8


def test_virtual_time_takes_the_settings_of_a_scheduler() -> None:
    with virtual_time(2, 5, history=1, limits={"db": 1}) as (scheduler, clock):
        tasks = [scheduler.after(0, int, group="db") for _ in range(3)]
        clock.advance(0)
        assert all(task.done() for task in tasks) and len(scheduler.tasks()) == 1
        assert scheduler.workers == 2 and clock.now() == 5
    with (
        concurrent.futures.ThreadPoolExecutor(1) as pool,
        virtual_time(executor=pool) as (scheduler, _),
    ):
        assert scheduler.executor is pool
