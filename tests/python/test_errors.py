"""Errors: the tree, what the messages say, and that a refused call changes nothing."""

from __future__ import annotations

import concurrent.futures
import math
import pickle
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from helpers import WATCHDOG

import duetime
from duetime import (
    DependencyCycleError,
    DependencyFailed,
    DuetimeError,
    DuplicateTaskError,
    FixedDelay,
    FixedRate,
    ForkedError,
    JobReturnedFalse,
    ManualClock,
    Scheduler,
    SchedulerClosedError,
    Task,
    TaskStuck,
    TaskTimeout,
    UnknownTaskError,
    retry,
)

TREE: dict[type[Exception], type[Exception]] = {
    DuplicateTaskError: ValueError,
    UnknownTaskError: KeyError,
    DependencyCycleError: ValueError,
    SchedulerClosedError: RuntimeError,
    ForkedError: RuntimeError,
    JobReturnedFalse: Exception,
    TaskTimeout: TimeoutError,
    TaskStuck: TaskTimeout,
    DependencyFailed: Exception,
}


@pytest.mark.parametrize("error", TREE, ids=lambda error: error.__name__)
def test_the_tree(error: type[Exception]) -> None:
    assert issubclass(error, DuetimeError)
    assert issubclass(error, TREE[error])
    assert error.__module__ == "duetime"
    assert error.__doc__


def test_the_base_is_an_ordinary_exception() -> None:
    assert issubclass(DuetimeError, Exception)
    assert DuetimeError.__module__ == "duetime"
    found = {
        value
        for value in vars(duetime).values()
        if isinstance(value, type) and issubclass(value, DuetimeError)
    }
    assert found == {DuetimeError, *TREE}


def test_cancelled_is_what_futures_say() -> None:
    with Scheduler(1) as scheduler:
        task = scheduler.after(3600, int)
        task.cancel()
        with pytest.raises(concurrent.futures.CancelledError):
            task.result()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: Scheduler(0), ["workers", "0", "1", "1024"]),
        (lambda s: Scheduler(1025), ["workers", "1025", "1024"]),
        (lambda s: Scheduler(1, history=-3), ["history", "-3"]),
        (lambda s: s.after(-1.5, int), ["delay", "-1.5"]),
        (lambda s: s.after(math.nan, int), ["delay", "nan"]),
        (lambda s: s.after(math.inf, int), ["delay", "inf"]),
        (lambda s: s.after(4e9, int), ["delay", "100 years"]),
        (lambda s: s.at(math.nan, int), ["nan"]),
        (lambda s: s.at(datetime(2030, 1, 1), int), ["2030", "aware"]),
        (lambda s: s.every(0, int), ["period", "0"]),
        (lambda s: s.every(-2, int), ["period", "-2"]),
        (lambda s: s.every(5, int, first=-7), ["first", "-7"]),
        (lambda s: s.every(5, int, max_runs=0), ["max_runs", "0"]),
        (lambda s: FixedRate(0), ["period", "0"]),
        (lambda s: FixedRate(-2), ["period", "-2"]),
        (lambda s: FixedDelay(0), ["delay", "0"]),
        (lambda s: retry.FixedDelay(-4, 1), ["max_retries", "-4"]),
        (lambda s: retry.FixedDelay(1, -4), ["delay", "-4"]),
        (lambda s: retry.ExponentialBackoff(1, -4), ["base", "-4"]),
        (lambda s: retry.ExponentialBackoff(1, 1, factor=0.25), ["factor", "0.25", "1"]),
        (lambda s: retry.ExponentialBackoff(1, 1, cap=-4), ["cap", "-4"]),
        (lambda s: retry.ExponentialBackoff(1, 1, jitter=1.5), ["jitter", "1.5", "0", "1"]),
        (lambda s: s.wait_idle(timeout=-6), ["timeout", "-6"]),
        (lambda s: s.shutdown(timeout=-6), ["timeout", "-6"]),
        (lambda s: s.after(1, int).result(timeout=-6), ["timeout", "-6"]),
        (lambda s: ManualClock().advance(-6), ["-6"]),
        (lambda s: ManualClock().jump(-6), ["-6"]),
    ],
)
def test_a_value_error_names_the_parameter_the_value_and_the_bound(
    real: Scheduler, call: Callable[[Any], Any], words: list[str]
) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        call(real)
    message = str(caught.value)
    assert [word for word in words if word not in message] == [], message


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: Scheduler("4"), ["workers", "str"]),
        (lambda s: Scheduler(True), ["workers", "bool"]),
        (lambda s: Scheduler(1, clock=5), ["clock", "int"]),
        (lambda s: s.after("1", int), ["delay", "str"]),
        (lambda s: s.after(True, int), ["delay", "bool"]),
        (lambda s: s.after(None, int), ["delay", "None"]),
        (lambda s: s.after(1, "job"), ["job", "str"]),
        (lambda s: s.after(1, int, id=1.5), ["id", "float"]),
        (lambda s: s.after(1, int, priority="high"), ["priority", "str"]),
        (lambda s: s.after(1, int, retry=3), ["retry", "int"]),
        (lambda s: s.after(1, int, colour="red"), ["colour"]),
        (lambda s: s.every(object(), int), ["object"]),
        (lambda s: FixedRate("1"), ["period", "str"]),
        (lambda s: retry.FixedDelay("3", 1), ["max_retries", "str"]),
        (lambda s: s.wait_idle("1"), ["timeout", "str"]),
        (lambda s: s.schedule("task"), ["Task", "str"]),
        (lambda s: s.add_listener(5), ["int"]),
        (lambda s: s.cancel(None), ["None"]),
    ],
)
def test_a_type_error_names_the_parameter_and_the_type(
    real: Scheduler, call: Callable[[Any], Any], words: list[str]
) -> None:
    with pytest.raises(TypeError) as caught:
        call(real)
    message = str(caught.value)
    assert [word for word in words if word not in message] == [], message
    assert real.tasks() == []


def test_an_id_error_names_the_id_and_what_to_do(real: Scheduler) -> None:
    real.after(3600, int, id="report")
    with pytest.raises(DuplicateTaskError, match=r"report.*replace"):
        real.after(1, int, id="report")
    with pytest.raises(UnknownTaskError, match="nobody"):
        real.info("nobody")
    with pytest.raises(UnknownTaskError, match="17"):
        real.forget(17)


def test_a_key_error_reads_like_a_sentence(real: Scheduler) -> None:
    with pytest.raises(UnknownTaskError) as caught:
        real.info("nobody")
    assert str(caught.value) == caught.value.args[0], "not the repr that KeyError would show"


def test_a_closed_scheduler_says_so() -> None:
    scheduler = Scheduler(1)
    scheduler.shutdown()
    with pytest.raises(SchedulerClosedError, match="shut down"):
        scheduler.after(1, int)


def test_an_error_from_false_names_the_task(real: Scheduler) -> None:
    error = real.after(0, lambda: False, id="report").exception(WATCHDOG)
    assert isinstance(error, JobReturnedFalse)
    assert "False" in str(error)


@pytest.mark.parametrize("error", [*TREE, DuetimeError], ids=lambda error: error.__name__)
def test_errors_are_picklable(error: type[Exception]) -> None:
    original = error("what and why")
    copy = pickle.loads(pickle.dumps(original))
    assert type(copy) is error
    assert copy.args == original.args


def test_a_raised_error_is_picklable(real: Scheduler) -> None:
    for call in (lambda: real.info("nobody"), lambda: real.schedule(real.after(3600, int))):
        with pytest.raises((DuetimeError, ValueError, RuntimeError)) as caught:
            call()
        copy = pickle.loads(pickle.dumps(caught.value))
        assert (type(copy), str(copy)) == (type(caught.value), str(caught.value))


def test_a_refused_call_changes_nothing(real: Scheduler) -> None:
    heard: list[Any] = []
    real.after(3600, int, id="kept")
    real.add_listener(heard.append)
    before = real.tasks(), real.stats(), real.next_due()
    now = real.now()
    for call in (
        lambda: real.after(-1, int),
        lambda: real.after(0, "job"),
        lambda: real.after(0, int, id="kept"),
        lambda: real.after(0, int, priority=1.5),
        lambda: real.after(0, int, retry="no"),
        lambda: real.every(0, int),
        lambda: real.every(1, int, max_runs=0),
        lambda: real.at(math.nan, int),
        lambda: real.schedule(Task("kept", due=now, job=int)),
        lambda: real.schedule_all([Task("a", due=now, job=int), Task("a", due=now, job=int)]),
        lambda: real.submit("fn"),
        lambda: real.forget("nobody"),
        lambda: real.add_listener("fn"),
        lambda: real.shutdown(timeout=-1),
    ):
        with pytest.raises((TypeError, ValueError, KeyError)):
            call()
    assert (real.tasks(), real.stats(), real.next_due()) == before
    assert heard == []
