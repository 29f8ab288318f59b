"""Whatever a job, a callback, a clock or an object of the user raises: nothing else is harmed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from support import (
    HOUR,
    STATES,
    TIMEOUTS,
    WATCHDOG,
    CellClock,
    Log,
    clean,
    failing,
    noop,
    python,
    scaled,
    together,
    until,
    within,
)

import duetime
from duetime import FixedRate, Task, retry


def outcome(call: Callable[[], Any]) -> Any:
    """What the call answers or raises."""
    try:
        return call()
    except BaseException as error:
        return error


class OwnError(BaseException):
    """An exception outside Exception."""


ERRORS = [
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    concurrent.futures.CancelledError(),
    asyncio.CancelledError(),
    StopIteration(1),
    StopAsyncIteration(),
    MemoryError(),
    RecursionError(),
    OwnError(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("shape", ["callable", "object"])
def test_a_job_that_raises_anything_has_failed_once(
    manual: Any, error: BaseException, shape: str
) -> None:
    """distributed#5958, testplan#74: such exceptions ended the worker, or nobody was told."""

    class Job:
        def run(self, now: float) -> None:
            raise error

    task = manual.scheduler.after(1, failing(error) if shape == "callable" else Job(), id="t")
    following = manual.scheduler.after(1, noop)
    manual.advance(1)
    assert task.exception(WATCHDOG) is error
    assert (task.runs, task.failures, task.state) == (1, 1, STATES.FAILED)
    assert manual.log.ends("t") == ["FAILED"]
    assert following.state is STATES.DONE
    with pytest.raises(type(error)):
        task.result(WATCHDOG)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_is_raised_is_retried_like_any_failure(manual: Any, error: BaseException) -> None:
    """testplan#74: the retry policy applies to what is no Exception, too."""
    task = manual.scheduler.after(1, failing(error), retry=retry.FixedDelay(2, 1))
    manual.advance(5)
    assert (task.runs, task.failures, task.state) == (3, 3, STATES.FAILED)


@pytest.mark.parametrize("code", [None, 0, 1, "with words"])
def test_sys_exit_in_a_job_ends_nothing_else(make: Any, code: Any) -> None:
    """testplan#74: sys.exit in a job stopped the pool's thread."""
    scheduler = make(workers=1)
    task = scheduler.after(0, sys.exit, code)
    assert isinstance(task.exception(WATCHDOG), SystemExit)
    assert scheduler.after(0, lambda: "next").result(WATCHDOG) == "next"


@pytest.mark.parametrize("bad", [ValueError("broken"), KeyboardInterrupt(), "text", float("nan")])
def test_a_clock_that_breaks_for_a_while_locks_nothing(
    make: Any, bad: Any, unraisable: list[BaseException]
) -> None:
    """PyO3#912: a clock that panicked poisoned the lock that was held while it was read."""
    cell = CellClock()

    def clock() -> Any:
        if isinstance(cell.seconds, BaseException):
            raise cell.seconds
        return cell.seconds

    scheduler = make(workers=2, clock=clock)
    task = scheduler.after(HOUR, noop)
    cell.seconds = bad
    calls = (scheduler.now, scheduler.wake, lambda: scheduler.after(1, noop, id="x"))
    raised = [within(outcome, call) for call in calls]
    assert not any("Panic" in type(error).__name__ for error in raised)
    cell.seconds = HOUR
    scheduler.wake()
    assert task.wait(WATCHDOG)
    assert scheduler.after(0, noop).wait(WATCHDOG)


@pytest.mark.parametrize("error", [ValueError("callback"), SystemExit(), OwnError()], ids=repr)
@pytest.mark.parametrize("added", ["before", "after"])
def test_a_callback_that_raises_is_called_once_and_harms_no_other(
    manual: Any, unraisable: list[BaseException], added: str, error: BaseException
) -> None:
    """cpython#77291: added before the end it was logged, added after the end it was raised."""
    calls: list[str] = []

    def bad(_task: Task) -> None:
        calls.append("bad")
        raise error

    task = manual.scheduler.after(1, noop)
    if added == "after":
        manual.advance(1)
    for callback in (lambda _t: calls.append("one"), bad, lambda _t: calls.append("two")):
        task.add_done_callback(callback)
    manual.advance(1)
    until(lambda: len(calls) >= 3, "the callbacks")
    assert (calls, unraisable) == (["one", "bad", "two"], [error])
    assert task.state is STATES.DONE


@pytest.mark.parametrize("error", [ValueError("listener"), SystemExit(), OwnError()], ids=repr)
def test_a_listener_that_raises_harms_no_other(
    manual: Any, unraisable: list[BaseException], error: BaseException
) -> None:
    """cpython#77291: the same for listeners, for each event."""

    def bad(_event: Any) -> None:
        raise error

    behind: list[Any] = []
    manual.scheduler.add_listener(bad)
    manual.scheduler.add_listener(behind.append)
    task = manual.scheduler.after(1, failing(), retry=retry.FixedDelay(1, 1))
    manual.advance(5)
    assert task.runs == 2
    assert [e.kind for e in behind] == [e.kind for e in manual.log.events]
    assert unraisable == [error] * len(behind)


@pytest.mark.parametrize(
    "order", list(itertools.permutations(["end", "timeout", "cancel"])), ids=str
)
def test_end_timeout_and_cancel_in_one_instant(make: Any, order: tuple[str, ...]) -> None:
    """pythonfutures#86: a future was told finished after it had been told cancelled."""
    scheduler = make(workers=2)
    log = Log(scheduler)
    for round_ in range(scaled(1000, 20)):
        entered, gate, calls = threading.Event(), threading.Event(), []

        def job(entered: Any = entered, gate: Any = gate) -> str:
            entered.set()
            gate.wait(WATCHDOG)
            return "value"

        task = scheduler.after(0, job, id=round_)
        task.add_done_callback(calls.append)
        if round_ % 2:
            assert entered.wait(WATCHDOG)
        actions = {
            "end": gate.set,
            "timeout": lambda task=task: task.result(timeout=0),
            "cancel": task.cancel,
        }
        answers = dict(zip(order, together(*[actions[name] for name in order]), strict=True))
        assert task.wait(WATCHDOG)
        assert bool(answers["cancel"]) is (task.state is STATES.CANCELLED)
        allowed = (*TIMEOUTS, concurrent.futures.CancelledError)
        assert answers["timeout"] == "value" or isinstance(answers["timeout"], allowed)
        until(lambda calls=calls: len(calls) >= 1, "the callback")
        assert scheduler.wait_idle(WATCHDOG)
        assert calls == [task]
        assert len(log.ends(round_)) == 1


@pytest.mark.parametrize(
    "order", list(itertools.permutations(["end", "timeout", "cancel"])), ids=str
)
def test_end_own_timeout_and_cancel_in_one_instant(make: Any, order: tuple[str, ...]) -> None:
    """pythonfutures#86: the same, with the timeout of the task itself."""
    clock = CellClock()
    scheduler = make(workers=2, clock=clock)
    log = Log(scheduler)
    for round_ in range(scaled(1000, 20)):
        entered, gate, calls = threading.Event(), threading.Event(), []

        def job(entered: Any = entered, gate: Any = gate) -> str:
            entered.set()
            gate.wait(WATCHDOG)
            return "value"

        task = scheduler.after(0, job, id=round_, timeout=1, grace=HOUR, interrupt=True)
        task.add_done_callback(calls.append)
        if round_ % 2:
            assert entered.wait(WATCHDOG)
        at = clock.seconds + 1
        actions = {
            "end": gate.set,
            "timeout": lambda at=at: clock.moved(scheduler, at),
            "cancel": task.cancel,
        }
        answers = dict(zip(order, together(*[actions[name] for name in order]), strict=True))
        assert task.wait(WATCHDOG)
        assert bool(answers["cancel"]) is (task.state is STATES.CANCELLED)
        if task.state is STATES.FAILED:
            assert type(task.exception()) is duetime.TaskTimeout
        until(lambda calls=calls: len(calls) >= 1, "the callback")
        assert scheduler.wait_idle(WATCHDOG)
        assert calls == [task]
        assert len(log.ends(round_)) == 1
        assert scheduler.after(0, len, "the next").result(WATCHDOG) == 8, "it is not hit"


def test_a_logging_handler_that_raises_fails_the_job_that_logs_only(manual: Any) -> None:
    """rocketry#83: the handler's exception ended the loop of the scheduler."""

    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("the disk is full")

    root, handler = logging.getLogger(), Broken()
    root.addHandler(handler)
    try:
        task = manual.scheduler.every(FixedRate(1), logging.error, "from the job", id="s")
        other = manual.scheduler.every(1, noop)
        manual.scheduler.after(1, failing())
        manual.advance(5)
    finally:
        root.removeHandler(handler)
    assert (task.failures, task.runs, other.runs, other.failures) == (5, 5, 5, 0)


@pytest.mark.parametrize(
    "broken",
    [
        "sys.stderr = None",
        "sys.stderr.close()",
        "os.close(2)",
        "sys.unraisablehook = None",
        "del sys.unraisablehook",
        "sys.unraisablehook = sys.excepthook = threading.excepthook = bad",
        "del sys.stdout",
    ],
)
def test_without_a_place_to_complain_it_goes_on(broken: str) -> None:
    """rocketry#83: reporting an error failed, and that error ended the worker."""
    code = f"""
        import os, sys, threading, duetime
        out = os.dup(1)
        def bad(*args):
            raise ValueError("on purpose")
        scheduler = duetime.Scheduler(1)
        scheduler.add_listener(bad)
        {broken}
        for _ in range(3):
            task = scheduler.after(0, bad)
            task.add_done_callback(bad)
            assert isinstance(task.exception(timeout=30), ValueError)
        assert scheduler.after(0, lambda: "next").result(timeout=30) == "next"
        scheduler.shutdown()
        os.write(out, b"goes on")
        os._exit(0)
    """
    done = python(code)
    assert (done.returncode, done.stdout) == (0, "goes on"), done


def test_a_job_that_raises_writes_nothing_by_itself() -> None:
    """rocketry#83: an exception is kept for who asks; stderr is the program's own."""
    code = """
        import duetime
        with duetime.Scheduler(1) as scheduler:
            for error in (ValueError, SystemExit, KeyboardInterrupt):
                def job(error=error):
                    raise error("on purpose")
                assert isinstance(scheduler.after(0, job).exception(timeout=30), error)
        print("silent")
    """
    assert clean(python(code)) == ["silent"]


def test_a_wait_on_a_cancelled_task_raises_what_a_future_raises(make: Any) -> None:
    """pythonfutures#86: and stays so, however often it is asked."""
    task = make().after(HOUR, noop)
    assert task.cancel()
    for _ in range(3):
        with pytest.raises(concurrent.futures.CancelledError):
            task.result(0)
        with pytest.raises(concurrent.futures.CancelledError):
            task.exception(0)
        assert task.wait(0) and task.done() and task.cancelled() and not task.running()


def test_a_loop_closed_while_a_job_runs_is_not_called() -> None:
    """python/asyncio#258: the end of the job called the closed loop, and wrote a traceback."""
    code = """
        import asyncio, threading, duetime
        scheduler, inside, gate = duetime.Scheduler(2), threading.Event(), threading.Event()
        def job():
            inside.set()
            gate.wait(30)
        async def first():
            awaits = asyncio.create_task(in_it(job))
            while not inside.is_set():
                await asyncio.sleep(0.001)
            return awaits  # still waiting when the loop is closed
        async def in_it(work):
            return await asyncio.get_running_loop().run_in_executor(scheduler, work)
        assert asyncio.run(first()).cancelled()
        gate.set()
        assert scheduler.wait_idle(30)
        print(asyncio.run(in_it(lambda: "second")), scheduler.stats().done)
    """
    assert clean(python(code)) == ["second", "2"]
