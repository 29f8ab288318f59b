"""Random types and numbers into every constructor and method (pounce#477).

Whatever is given, the answer is a value or a documented exception. A panic of the native part
would be `pyo3_runtime.PanicException`, which is no `Exception`; it, `OverflowError` and any other
surprise fail the test. A call that is refused leaves the queue as it was.
"""

from __future__ import annotations

import concurrent.futures
import datetime as dt
import decimal
import fractions
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import duetime
from duetime import (
    DuetimeError,
    FixedDelay,
    FixedRate,
    ManualClock,
    OneTime,
    Scheduler,
    Task,
    retry,
)

WATCHDOG = 30.0
DOCUMENTED = (
    DuetimeError,
    TypeError,
    ValueError,
    TimeoutError,
    concurrent.futures.TimeoutError,
    concurrent.futures.CancelledError,
)


class Asked(Exception):  # noqa: N818 - it is what happened
    """A converter asked a question."""


class Weird:
    """Every question that a converter might ask raises."""

    def refuse(self, *_args: Any) -> Any:
        raise Asked

    __float__ = __int__ = __index__ = __bool__ = __iter__ = __len__ = refuse
    __eq__ = __hash__ = __str__ = refuse  # type: ignore[assignment]


class Almost:
    """Says that it is a number, and answers something else."""

    def __float__(self) -> Any:
        return "1.0"

    def __index__(self) -> Any:
        answer: Any = 1.0
        return answer

    def total_seconds(self) -> Any:
        return "1"


class Loose:
    """A recurrence and a policy whose answers do not fit."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def next_due(self, *_args: Any) -> Any:
        return self.answer

    def delay_after_failure(self, *_args: Any) -> Any:
        return self.answer


def job(*_args: Any, **_options: Any) -> None:
    """A job that takes any arguments."""


RIMS = [
    *(0, 1, -1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**400),
    *(0.0, -0.0, 0.1, 1e-9, 5e-10, -1e-12, 1e300, 9.2e9, 9.3e9, -9.3e9, 1.8446744073709552e19),
    *(float("nan"), float("inf"), float("-inf"), sys.float_info.max, sys.float_info.min),
    *(3_153_600_000, 3_155_760_000, 3_155_760_001, 9223372036.854775),
]
numbers = st.sampled_from(RIMS) | st.integers() | st.floats()
aware = st.datetimes(timezones=st.just(dt.timezone.utc))
moments = aware | st.datetimes() | st.timedeltas() | st.dates() | st.times()
odd_numbers = st.sampled_from(
    [
        *(decimal.Decimal(1), decimal.Decimal("nan"), decimal.Decimal("sNaN")),
        *(decimal.Decimal("1e999"), fractions.Fraction(1, 3), 1j, True, False),
    ]
)
# Surrogates and zero bytes, too: a str need not be valid UTF-8.
texts = st.text(max_size=5) | st.sampled_from(["\ud800", "a\0b", "x" * 10_000])
others = (
    st.sampled_from([None, [], [1], {}, set(), object, job, ..., Loose])
    | st.builds(Weird)
    | st.builds(Almost)
    | st.binary(max_size=4)
)
loose = st.builds(Loose, numbers | moments | texts | others)
recurrences = st.sampled_from([OneTime(), FixedRate(5), FixedDelay(5), OneTime, FixedRate])
tasks = st.builds(lambda due: Task(due=due, job=job), st.floats(-1e6, 1e6))
anything = numbers | moments | odd_numbers | texts | others
whatever = anything | loose | recurrences | tasks
options = st.dictionaries(
    st.sampled_from(["id", "args", "recurrence", "retry", "priority", "max_runs", "until"])
    | st.sampled_from(
        ["jitter", "depends_on", "timeout", "interrupt", "grace", "unknown", "first", "due"]
    ),
    whatever,
    max_size=3,
)
fuzz = settings(
    max_examples=max(50, int(5000 * float(os.environ.get("DUETIME_SCALE", "0.02")))),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def attempt(call: Callable[[], Any]) -> tuple[bool, Any]:
    """Whether the call was taken, and its answer; anything undocumented fails."""
    try:
        return True, call()
    except (*DOCUMENTED, Asked) as error:
        return False, error
    except BaseException as error:  # a panic is no Exception
        pytest.fail(f"not documented: {type(error).__module__}.{error!r}")


@pytest.fixture(autouse=True, scope="module")
def hook() -> Iterator[None]:
    """What listeners and callbacks raise goes to a hook of ours: it may be anything but a panic."""
    raised: list[type[BaseException]] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda args: raised.append(args.exc_type)
    yield
    sys.unraisablehook = before
    assert not [error for error in raised if "Panic" in error.__name__]


def snapshot(scheduler: Scheduler) -> tuple[Any, ...]:
    infos = sorted(scheduler.tasks(), key=lambda info: repr(info.id))
    return infos, scheduler.next_due(), scheduler.stats()


def look_ahead(task: Task) -> list[float]:
    """What is due by the wall clock can be looked at only once it is scheduled."""
    try:
        return task.preview(9)
    except RuntimeError as error:
        raise (ValueError if "wall clock" in str(error) else AssertionError) from error


CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "Scheduler": lambda x, y, kw: Scheduler(x),
    "Scheduler, clock": lambda x, y, kw: Scheduler(1, clock=x),
    "Scheduler, history": lambda x, y, kw: Scheduler(1, history=x),
    "Scheduler, name": lambda x, y, kw: Scheduler(1, name=x),
    "Task": lambda x, y, kw: Task(x, **{"due": y, "job": job, **kw}),
    "Task, job": lambda x, y, kw: Task(due=1, job=x, args=y),
    "Task, positional": lambda x, y, kw: Task(x, y),
    "ManualClock": lambda x, y, kw: ManualClock(start=x),
    "OneTime": lambda x, y, kw: OneTime(x),
    "FixedRate": lambda x, y, kw: FixedRate(x),
    "FixedRate, missed": lambda x, y, kw: FixedRate(x, missed=y),
    "FixedDelay": lambda x, y, kw: FixedDelay(x),
    "Never": lambda x, y, kw: retry.Never(x),
    "retry.FixedDelay": lambda x, y, kw: retry.FixedDelay(x, y),
    "retry.ExponentialBackoff": lambda x, y, kw: retry.ExponentialBackoff(x, y),
    "backoff, factor": lambda x, y, kw: retry.ExponentialBackoff(3, 1, factor=x),
    "backoff, cap": lambda x, y, kw: retry.ExponentialBackoff(3, 1, cap=x),
    "backoff, jitter": lambda x, y, kw: retry.ExponentialBackoff(3, 1, jitter=x),
    "policy, filters": lambda x, y, kw: retry.FixedDelay(3, 1, retry_on=x, give_up_on=y),
    "policy, filter": lambda x, y, kw: retry.ExponentialBackoff(3, 1, retry_on=(x, y)),
    "RetryAfter": lambda x, y, kw: retry.RetryAfter(x),
    "GiveUp": lambda x, y, kw: retry.GiveUp(x),
    "preview": lambda x, y, kw: Task(due=1, job=job, recurrence=FixedRate(5)).preview(x),
    "preview, task": lambda x, y, kw: look_ahead(Task(**{"due": x, "job": job, **kw})),
}

SCHEDULING: dict[str, Callable[..., Any]] = {
    "schedule": lambda s, x, y, kw: s.schedule(x),
    "schedule, replace": lambda s, x, y, kw: s.schedule(Task("held", due=9, job=job), replace=x),
    "schedule, task": lambda s, x, y, kw: s.schedule(Task(x, **{"due": y, "job": job, **kw})),
    "schedule_all": lambda s, x, y, kw: s.schedule_all(x),
    "schedule_all, list": lambda s, x, y, kw: s.schedule_all([Task(due=9, job=job), x, y]),
    "after": lambda s, x, y, kw: s.after(x, job, y, **kw),
    "after, job": lambda s, x, y, kw: s.after(1, x, y),
    "at": lambda s, x, y, kw: s.at(x, job, y, **kw),
    "every": lambda s, x, y, kw: s.every(x, job, first=y, **kw),
    "every, job": lambda s, x, y, kw: s.every(5, x, y),
    "every, decorator": lambda s, x, y, kw: s.every(x, **kw)(y),
    "submit": lambda s, x, y, kw: s.submit(x, y),
}

QUESTIONS: dict[str, Callable[..., Any]] = {
    "cancel": lambda s, t, x, y: s.cancel(x),
    "get": lambda s, t, x, y: s.get(x),
    "info": lambda s, t, x, y: s.info(x),
    "tasks": lambda s, t, x, y: s.tasks(x),
    "forget": lambda s, t, x, y: s.forget(x),
    "now": lambda s, t, x, y: s.now(x),
    "next_due": lambda s, t, x, y: s.next_due(x),
    "wake": lambda s, t, x, y: s.wake(x),
    "wait_idle": lambda s, t, x, y: s.wait_idle(timeout=x),
    "stats": lambda s, t, x, y: s.stats(x),
    "add_listener": lambda s, t, x, y: s.add_listener(x),
    "add_listener, kinds": lambda s, t, x, y: s.add_listener(job, kinds=x),
    "add_listener, list": lambda s, t, x, y: s.add_listener(job, kinds=[x, y]),
    "remove_listener": lambda s, t, x, y: s.remove_listener(x),
    "result": lambda s, t, x, y: t.result(timeout=x),
    "exception": lambda s, t, x, y: t.exception(timeout=x),
    "wait": lambda s, t, x, y: t.wait(timeout=x),
    "done": lambda s, t, x, y: t.done(x),
    "preview": lambda s, t, x, y: t.preview(x),
    "add_done_callback": lambda s, t, x, y: t.add_done_callback(x),
    "set an attribute": lambda s, t, x, y: t.cancel(x),
}


@pytest.mark.parametrize("name", CONSTRUCTORS)
@fuzz
@given(x=whatever, y=whatever, kw=options)
@example(x=10**400, y=10**400, kw={})
@example(x=float("nan"), y=float("nan"), kw={"priority": 2**70, "max_runs": -(2**70)})
@example(x=1, y=1, kw={"timeout": float("nan"), "grace": 1e300, "id": 2**200})
def test_constructors_answer_or_refuse(name: str, x: Any, y: Any, kw: dict[str, Any]) -> None:
    """pounce#477: a number out of range panicked in a constructor."""
    made, thing = attempt(lambda: CONSTRUCTORS[name](x, y, kw))
    if made and not isinstance(thing, Scheduler):
        attempt(lambda: repr(thing))


@pytest.mark.parametrize("name", SCHEDULING)
@fuzz
@given(x=whatever, y=whatever, kw=options)
@example(x=10**400, y=10**400, kw={})
@example(x=1, y=1, kw={"id": "held"})
@example(x=1, y=1, kw={"priority": 2**70, "until": float("nan")})
@example(x=float("nan"), y=None, kw={})
@example(x=-(2**63), y=2**63, kw={})
def test_what_schedules_answers_or_changes_nothing(
    name: str, x: Any, y: Any, kw: dict[str, Any]
) -> None:
    """pounce#477: a number out of range panicked under the lock, and the queue was lost."""
    scheduler = Scheduler(1, clock=ManualClock())
    try:
        held = scheduler.after(8, job, id="held")
        before = snapshot(scheduler)
        taken, _ = attempt(lambda: SCHEDULING[name](scheduler, x, y, kw))
        if not taken:
            assert snapshot(scheduler) == before
            assert held.cancel()
        following = scheduler.at(-1e7, job)
        assert following.wait(WATCHDOG) and following.state.name == "DONE"
        scheduler.tasks(), scheduler.next_due(), scheduler.stats(), repr(scheduler)
    finally:
        assert scheduler.shutdown(timeout=WATCHDOG)


@pytest.mark.parametrize("name", QUESTIONS)
@fuzz
@given(x=whatever, y=whatever)
@example(x=10**400, y=None)
@example(x=float("nan"), y=None)
@example(x="\ud800", y=None)
@example(x=2**63, y=None)
@example(x=-1, y=None)
def test_the_other_methods_answer_or_change_nothing(name: str, x: Any, y: Any) -> None:
    """pounce#477: the same for everything that asks, waits or cancels."""
    scheduler = Scheduler(1, clock=ManualClock())
    try:
        scheduler.after(8, job, id="held")
        ended = scheduler.after(0, job)
        assert ended.wait(WATCHDOG) and scheduler.wait_idle(WATCHDOG)
        before = snapshot(scheduler)
        taken, _ = attempt(lambda: QUESTIONS[name](scheduler, ended, x, y))
        if not taken or name not in ("cancel", "forget"):
            assert snapshot(scheduler) == before
    finally:
        assert scheduler.shutdown(timeout=WATCHDOG)


@pytest.mark.parametrize("name", ["advance", "jump"])
@fuzz
@given(steps=st.lists(whatever, min_size=1, max_size=5), start=st.floats(-1e9, 6e9))
@example(steps=[3_153_600_000] * 5, start=0.0)
@example(steps=[3_153_600_000, 10**400, float("nan")], start=0.0)
def test_a_manual_clock_only_goes_forward(name: str, steps: list[Any], start: float) -> None:
    """pounce#477: moving a clock beyond its range wrapped, or panicked."""
    clock = ManualClock(start=start)
    scheduler = Scheduler(1, clock=clock)
    try:
        for step in steps:
            before = clock.now()
            taken, _ = attempt(lambda step=step: getattr(clock, name)(step))
            assert clock.now() >= before if taken else clock.now() == before
            assert scheduler.now() == clock.now()
    finally:
        assert scheduler.shutdown(timeout=WATCHDOG)


@fuzz
@given(wait=whatever, drain=whatever, timeout=whatever)
@example(wait=True, drain=False, timeout=10**400)
@example(wait=True, drain=True, timeout=float("nan"))
def test_shutdown_answers_or_leaves_it_open(wait: Any, drain: Any, timeout: Any) -> None:
    """pounce#477: a refused shutdown shuts nothing down."""
    scheduler = Scheduler(1, clock=ManualClock())
    try:
        taken, _ = attempt(lambda: scheduler.shutdown(wait, drain=drain, timeout=timeout))
        if not taken:
            assert scheduler.after(0, job).wait(WATCHDOG)
    finally:
        assert scheduler.shutdown(timeout=WATCHDOG)


@fuzz
@given(answer=whatever, failing=st.booleans())
def test_a_strange_answer_of_a_rule_ends_its_task_only(answer: Any, failing: bool) -> None:
    """pounce#477: what custom recurrences, policies and clocks may answer."""
    scheduler = Scheduler(1, clock=ManualClock())
    rule, runs = Loose(answer), []

    def counted() -> bool:
        runs.append(1)
        return not failing or len(runs) > 3

    try:
        if failing:
            task = scheduler.after(0, counted, retry=rule)
        else:
            task = scheduler.every(rule, counted, first=0, max_runs=3)
        assert scheduler.wait_idle(WATCHDOG)
        assert task.state.name in ("WAITING", "FAILED", "DONE")
        assert scheduler.after(0, job).wait(WATCHDOG)
    finally:
        assert scheduler.shutdown(timeout=WATCHDOG)


@fuzz
@given(reading=whatever)
def test_a_strange_clock_harms_nobody(reading: Any) -> None:
    """pounce#477: the answers of a custom clock."""
    cell: list[Any] = [0.0]
    scheduler = Scheduler(1, clock=lambda: cell[0])
    try:
        task = scheduler.after(5, job)
        cell[0] = reading
        attempt(scheduler.now)
        attempt(scheduler.wake)
        cell[0] = 5.0
        scheduler.wake()
        assert task.wait(WATCHDOG) and task.state.name == "DONE"
    finally:
        cell[0] = 5.0
        assert scheduler.shutdown(timeout=WATCHDOG)


@fuzz
@given(wait=whatever)
def test_a_strange_sleep_fails_its_job_only(wait: Any) -> None:
    """pounce#477: and those of `Run.wait`."""
    clock = ManualClock()
    scheduler = Scheduler(1, clock=clock)
    try:
        seconds: list[Any] = []

        def sleeps() -> None:
            answered, _ = attempt(lambda: duetime.current_run().raise_if_stopped())
            assert answered
            seconds.append(attempt(lambda: duetime.current_run().wait(wait)))

        task = scheduler.after(1, sleeps)
        scheduler.at(0, job).wait(WATCHDOG)
    finally:
        assert scheduler.shutdown(timeout=WATCHDOG)
    assert task.done() and seconds == []
