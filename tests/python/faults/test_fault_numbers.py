"""Numbers that are too large, too small, or none: refused in the caller's frame."""

from __future__ import annotations

import contextlib
import decimal
import math
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from support import DAY, STATES, TIMEOUTS, WATCHDOG, Manual, noop, short, snapshot, within

import duetime
from duetime import FixedDelay, FixedRate, ManualClock, Scheduler, Task, retry

try:
    from numpy import float64
except ImportError:
    float64 = float  # type: ignore[assignment,misc]

#: Every duration of the interface, as (scheduler, clock, value) -> None.
DURATIONS: dict[str, Callable[[Scheduler, ManualClock, Any], object]] = {
    "after": lambda s, c, x: s.after(x, noop),
    "every": lambda s, c, x: s.every(x, noop),
    "every, first": lambda s, c, x: s.every(1, noop, first=x),
    "FixedRate": lambda s, c, x: s.every(FixedRate(x), noop),
    "FixedDelay": lambda s, c, x: s.every(FixedDelay(x), noop),
    "advance": lambda s, c, x: c.advance(x),
    "jump": lambda s, c, x: c.jump(x),
    "retry, delay": lambda s, c, x: retry.FixedDelay(3, x),
    "retry, base": lambda s, c, x: retry.ExponentialBackoff(3, x),
    "retry, cap": lambda s, c, x: retry.ExponentialBackoff(3, 1.0, cap=x),
}
#: Numbers that are no durations: instants and factors.
INSTANTS: dict[str, Callable[[Scheduler, ManualClock, Any], object]] = {
    "at": lambda s, c, x: s.at(x, noop),
    "due": lambda s, c, x: s.schedule(Task(due=x, job=noop)),
    "until": lambda s, c, x: s.every(1, noop, until=x),
    "start": lambda s, c, x: ManualClock(start=x),
}
FACTORS: dict[str, Callable[[Scheduler, ManualClock, Any], object]] = {
    "factor": lambda s, c, x: retry.ExponentialBackoff(3, 1.0, factor=x),
    "jitter": lambda s, c, x: retry.ExponentialBackoff(3, 1.0, jitter=x),
}
WAITS: dict[str, Callable[[Task, Scheduler, Any], object]] = {
    "result": lambda t, s, x: t.result(timeout=x),
    "exception": lambda t, s, x: t.exception(timeout=x),
    "wait": lambda t, s, x: t.wait(timeout=x),
    "wait_idle": lambda t, s, x: s.wait_idle(timeout=x),
    "shutdown": lambda t, s, x: s.shutdown(timeout=x),
}
NANS = [float("nan"), -float("nan"), decimal.Decimal("nan"), float64("nan")]
TOO_LARGE = [
    2**53,
    2**55,
    2**63,
    2**64,
    sys.maxsize,
    10**400,
    1e308,
    math.inf,
    decimal.Decimal("1e400"),
    timedelta.max,
    float64("inf"),
]
BAD = [-1, -1e-12, math.nan, math.inf, -math.inf, 1e300, 1.8446744073709552e19]


def refused(bench: Manual, call: Callable[..., object], value: Any) -> None:
    """`value` is a ValueError at the call and leaves everything as it was."""
    bench.scheduler.after(5, noop)
    before = snapshot(bench.scheduler)
    with pytest.raises(ValueError):
        call(bench.scheduler, bench.clock, value)
    assert snapshot(bench.scheduler) == before


@pytest.mark.parametrize("value", NANS, ids=["float", "negative", "Decimal", "numpy"])
@pytest.mark.parametrize("name", [*DURATIONS, *INSTANTS, *FACTORS])
def test_nan_is_refused_where_it_is_given(manual: Manual, name: str, value: Any) -> None:
    """twisted#3884, cpython#105641: NaN entered the heap and broke its order."""
    refused(manual, {**DURATIONS, **INSTANTS, **FACTORS}[name], value)


@pytest.mark.parametrize("value", NANS, ids=["float", "negative", "Decimal", "numpy"])
@pytest.mark.parametrize("name", WAITS)
def test_nan_is_refused_as_a_timeout(manual: Manual, name: str, value: Any) -> None:
    """cpython#105641: a NaN timeout waited for ever."""
    task = manual.scheduler.after(5, noop)
    before = snapshot(manual.scheduler)
    with pytest.raises(ValueError):
        within(WAITS[name], task, manual.scheduler, value)
    assert snapshot(manual.scheduler) == before
    manual.advance(5)
    assert task.state is STATES.DONE


@pytest.mark.parametrize("value", TOO_LARGE, ids=short)
@pytest.mark.parametrize("name", DURATIONS)
def test_all_that_is_too_large_is_one_error(manual: Manual, name: str, value: Any) -> None:
    """uvloop#259: some large delays ran at once, some raised OverflowError elsewhere."""
    refused(manual, DURATIONS[name], value)


@pytest.mark.parametrize("value", TOO_LARGE[:-2], ids=short)
@pytest.mark.parametrize("name", WAITS)
def test_a_huge_timeout_never_overflows(manual: Manual, name: str, value: Any) -> None:
    """uvloop#259: the same numbers as timeouts wait until the end or are a ValueError."""
    task = manual.scheduler.after(0, noop)
    assert task.wait(WATCHDOG)
    with contextlib.suppress(ValueError):
        within(WAITS[name], task, manual.scheduler, value)


@pytest.mark.parametrize("value", BAD, ids=str)
@pytest.mark.parametrize("name", DURATIONS)
def test_a_bad_duration_is_an_exception(manual: Manual, name: str, value: float) -> None:
    """dora#2620, boxlite#1011: Duration::from_secs_f64 panicked on such numbers."""
    refused(manual, DURATIONS[name], value)


@pytest.mark.parametrize("value", BAD, ids=str)
@pytest.mark.parametrize("name", WAITS)
def test_a_bad_timeout_is_an_exception_or_an_answer(
    manual: Manual, name: str, value: float
) -> None:
    """dora#2620, boxlite#1011: no timeout may panic, and none may hang a finished task."""
    task = manual.scheduler.after(0, noop)
    assert task.wait(WATCHDOG)
    with contextlib.suppress(ValueError, *TIMEOUTS):
        within(WAITS[name], task, manual.scheduler, value)
    assert task.state is STATES.DONE


@pytest.mark.parametrize("value", BAD, ids=str)
def test_a_bad_sleep_inside_a_job_fails_the_job_only(manual: Manual, value: float) -> None:
    """boxlite#1011: the same inside a run: `current_run().wait`."""
    task = manual.scheduler.after(0, lambda: duetime.current_run().wait(value))
    assert isinstance(task.exception(WATCHDOG), ValueError)
    assert manual.scheduler.after(0, noop).wait(WATCHDOG)


@pytest.mark.parametrize("name", ["after", "every, first", "advance", "jump"])
def test_minus_zero_is_zero(manual: Manual, name: str) -> None:
    """dora#2620: -0.0 is 0, not a negative duration."""
    DURATIONS[name](manual.scheduler, manual.clock, -0.0)
    manual.scheduler.wait_idle(WATCHDOG)
    assert manual.scheduler.now() == 0
    assert all(due == 0 for due in manual.log.dues())


@pytest.mark.parametrize("value", [0, 0.0, -0.0, 1e-10, timedelta(0)], ids=repr)
@pytest.mark.parametrize("rule", [FixedRate, FixedDelay, "every"])
def test_a_period_that_rounds_to_nothing_is_refused(manual: Manual, rule: Any, value: Any) -> None:
    """uvloop#259: the other end of the scale, a period of no time, would spin."""
    before = snapshot(manual.scheduler)
    with pytest.raises(ValueError):
        manual.scheduler.every(value if rule == "every" else rule(value), noop)
    assert snapshot(manual.scheduler) == before


@pytest.mark.parametrize("timeout", [threading.TIMEOUT_MAX, 1e10, None], ids=str)
@pytest.mark.parametrize("name", WAITS)
def test_a_very_long_wait_ends_with_the_task(make: Any, name: str, timeout: Any) -> None:
    """cpython#81846: large timeouts overflowed and returned, or raised, at once."""
    scheduler, gate, entered = make(), threading.Event(), threading.Event()

    def job() -> str:
        entered.set()
        gate.wait(WATCHDOG)
        return "done"

    task = scheduler.after(0, job)
    assert entered.wait(WATCHDOG)
    answers: list[Any] = []
    waiter = threading.Thread(
        target=lambda: answers.append(WAITS[name](task, scheduler, timeout)), daemon=True
    )
    waiter.start()
    waiter.join(0.02)
    assert answers == []
    gate.set()
    waiter.join(WATCHDOG)
    assert answers == [{"result": "done", "exception": None}.get(name, True)]


@pytest.mark.parametrize("workers", [0, -1, 10**9, 1025, 2**64, 10**400], ids=short)
def test_a_pool_size_out_of_range_is_refused_at_construction(workers: int) -> None:
    """solid: a pool of 0 accepted tasks and never ran them."""
    with pytest.raises(ValueError, match="workers"):
        Scheduler(workers)


@pytest.mark.parametrize("workers", [1.5, True, False, "4", None, 4.0, [4]], ids=repr)
def test_a_pool_size_of_another_type_is_refused(workers: Any) -> None:
    """solid: the same for what is no int."""
    with pytest.raises(TypeError, match="workers"):
        Scheduler(workers)


@pytest.mark.parametrize("value", [True, "1", None, [1], b"1", 1j, object()], ids=repr)
@pytest.mark.parametrize("name", [name for name in DURATIONS if name != "every, first"])
def test_what_is_no_number_is_a_type_error(manual: Manual, name: str, value: Any) -> None:
    """boxlite#1011: the same calls with other types."""
    if name == "retry, cap" and value is None:
        return
    before = snapshot(manual.scheduler)
    with pytest.raises(TypeError):
        DURATIONS[name](manual.scheduler, manual.clock, value)
    assert snapshot(manual.scheduler) == before


def test_the_longest_legal_delay_is_kept_to_the_second(manual: Manual) -> None:
    """uvloop#259: up to the bound nothing is clamped."""
    manual.scheduler.after(36_500 * DAY, noop)
    assert manual.scheduler.next_due() == 36_500 * DAY
    manual.jump(36_500 * DAY - 1)
    assert manual.log.starts() == []
    manual.jump(1)
    assert manual.log.starts() == [36_500 * DAY]
