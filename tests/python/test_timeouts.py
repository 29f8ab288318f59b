"""Timeouts: each attempt has its time, and what outlives it has failed."""

from __future__ import annotations

import gc
import math
import sys
import threading
import weakref
from concurrent.futures import CancelledError
from datetime import timedelta
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Log, nap, run, until, voluntary_switches, worker_tids

from duetime import (
    CancelOutcome,
    ManualClock,
    Scheduler,
    Task,
    TaskState,
    TaskTimeout,
    retry,
)


def test_an_attempt_has_its_time_from_its_own_start() -> None:
    """0.9 s twice, of 1 s each; and the two seconds in the queue before do not count."""
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        busy = scheduler.after(0, nap, 2)
        starts = []

        def job() -> object:
            starts.append(run().now)
            return nap(0.9) if run().attempt == 2 else nap(0.9) and False

        task = scheduler.after(0, job, timeout=1, retry=retry.FixedDelay(1, delay=7))
        clock.advance(20)
        assert busy.result() == "rested"
        assert task.result() == "rested"
        assert starts == [2.0, 9.9]
        assert task.failures == 1


def test_what_outlives_its_timeout_has_failed_whatever_it_returns() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        task = scheduler.after(5, nap, 100, timeout=timedelta(seconds=10))
        clock.advance(14.5)
        assert task.running()
        clock.advance(0.5)
        assert task.state is TaskState.FAILED
        error = task.exception()
        assert type(error) is TaskTimeout
        assert isinstance(error, TimeoutError)
        assert str(error) == "the attempt had not ended when its timeout of 10s was up"
        assert error.__cause__ is None
        assert task.info().error == str(error)
        assert task.info().finished == 15
        with pytest.raises(TaskTimeout):
            task.result()


def test_the_error_of_a_late_attempt_is_the_cause() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:

        def job() -> None:
            nap(100)
            raise KeyError("late")

        task = scheduler.after(0, job, timeout=1)
        clock.advance(1)
        error = task.exception()
        assert type(error) is TaskTimeout
        assert isinstance(error.__cause__, KeyError)
        assert error.__cause__.__traceback__ is not None


def test_a_run_sees_its_deadline_and_that_it_should_stop() -> None:
    clock = ManualClock(100)
    with Scheduler(workers=1, clock=clock) as scheduler:
        kept: list[Any] = []

        def job() -> None:
            kept.append(run())
            assert (run().deadline, run().stop_requested) == (130, False)
            assert nap(1000) == "told"
            assert run().stop_requested
            with pytest.raises(CancelledError):
                run().raise_if_stopped()

        task = scheduler.after(20, job, timeout=10)
        plain = scheduler.after(20, lambda: run().deadline)
        clock.advance(30)
        assert isinstance(task.exception(), TaskTimeout)
        assert task.exception().__cause__ is None  # type: ignore[union-attr]
        assert kept[0].stop_requested
        assert plain.result() is None


def test_a_late_attempt_is_retried_as_any_failure() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        log = Log()
        scheduler.add_listener(log)

        def job() -> object:
            return nap(1 if run().attempt == 3 else 60)

        policy = retry.FixedDelay(2, delay=5, retry_on=TimeoutError)
        task = scheduler.after(0, job, timeout=10, retry=policy, id="t")
        clock.advance(100)
        assert task.result() == "rested"
        assert (task.runs, task.failures, task.info().started) == (3, 2, 30)
        assert [(e.time, e.next_due) for e in log.of("FAILED")] == [(10, 15), (25, 30)]
        assert all(type(event.error) is TaskTimeout for event in log.of("FAILED"))
        final = scheduler.after(
            0, nap, 60, timeout=1, retry=retry.FixedDelay(9, 0, give_up_on=TaskTimeout)
        )
        clock.advance(10)
        assert final.runs == 1


def test_a_series_goes_on_after_a_late_run() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        task = scheduler.every(10, lambda: nap(60 if run().number == 2 else 0), timeout=3)
        clock.advance(45)
        assert (task.runs, task.failures, task.missed) == (4, 1, 0)
        assert isinstance(task.error, TaskTimeout)
        assert task.cancel() is CancelOutcome.CANCELLED


def test_a_leap_is_no_reason_to_give_up_who_slept() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        task = scheduler.after(0, nap, 1000, timeout=1, grace=1)
        clock.advance(0)
        clock.jump(500)
        assert type(task.exception()) is TaskTimeout
        assert scheduler.stats().stuck == 0


def test_run_wait_wakes_at_once_on_the_real_clock() -> None:
    with Scheduler(workers=2) as scheduler:
        task = scheduler.after(0, nap, 3600, timeout=0.02)
        assert type(task.exception(WATCHDOG)) is TaskTimeout


def test_the_exact_timeout_is_too_long() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        task = scheduler.after(0, nap, 1, timeout=1)
        clock.advance(2)
        assert type(task.exception()) is TaskTimeout


@pytest.mark.parametrize("name", ["timeout", "grace"])
@pytest.mark.parametrize("value", [-1, -1e-12, math.nan, math.inf, -math.inf, 1e300, 10**400])
def test_a_time_out_of_bounds_is_refused(name: str, value: float) -> None:
    with Scheduler(workers=1) as scheduler:
        options: Any = {"timeout": 1, name: value}
        with pytest.raises(ValueError, match=name):
            scheduler.after(0, print, **options)
        with pytest.raises(ValueError, match=name):
            Task(due=0, job=print, **options)
        assert scheduler.tasks() == []


@pytest.mark.parametrize("name", ["timeout", "grace", "interrupt"])
@pytest.mark.parametrize("value", ["1", b"1", [], object(), True, None, 1.0])
def test_a_value_of_the_wrong_type_is_refused(name: str, value: Any) -> None:
    fine = {"timeout": (None, 1.0), "grace": (1.0,), "interrupt": (True,)}
    if any(value is one or (value == one and type(value) is type(one)) for one in fine[name]):
        return
    with Scheduler(workers=1) as scheduler:
        options: Any = {"timeout": 1, name: value}
        with pytest.raises(TypeError, match=name):
            scheduler.after(0, print, **options)
        with pytest.raises(TypeError, match=name):
            Task(due=0, job=print, **options)


def test_values_that_make_no_sense_are_refused() -> None:
    with Scheduler(workers=1) as scheduler:
        with pytest.raises(ValueError, match="timeout must be between 1 nanosecond and"):
            scheduler.after(0, print, timeout=0)
        with pytest.raises(ValueError, match=r"interrupt must be False .* without a timeout"):
            scheduler.after(0, print, interrupt=True)
        with pytest.raises(ValueError, match=r"interrupt must be False .* without a timeout"):
            Task(due=0, job=print, timeout=None, interrupt=True)
        assert scheduler.after(0, int, timeout=None, interrupt=False, grace=0).result() == 0
        assert scheduler.every(1, int, first=0, max_runs=1, timeout=9, grace=0).result() == 0
        task = Task(due=0, job=int, timeout=9, interrupt=True, grace=timedelta(0))
        assert scheduler.schedule(task).result() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what the threads do")
def test_nobody_wakes_while_no_deadline_is_near() -> None:
    with Scheduler(workers=2, name="calm") as scheduler:
        gates = [Gate(), Gate()]
        for gate in gates:
            scheduler.after(0, gate, timeout=3600)
            gate.entered()
        until(lambda: len(worker_tids("calm-")) == 4)  # each names itself when it begins
        threads = worker_tids("calm-")
        before = voluntary_switches(threads)
        threading.Event().wait(1)
        after = voluntary_switches(threads)
        for gate in gates:
            gate.open()
        assert after - before <= 2


def test_what_a_timed_task_held_is_free_after_its_end() -> None:
    class Value:
        pass

    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        value = Value()
        dead = weakref.ref(value)
        for options in ({"timeout": 60, "interrupt": True}, {"timeout": 0.5}):
            scheduler.after(0, lambda value: nap(1) and None, value, **options)  # type: ignore[arg-type]
        del value
        clock.advance(5)
        assert scheduler.wait_idle(WATCHDOG)
        scheduler.after(0, int).result(WATCHDOG)
        gc.collect()
        assert dead() is None


def test_the_error_of_a_late_attempt_is_collected_with_its_task() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:

        class Value:
            pass

        dead = []

        def job() -> None:
            value = Value()
            dead.append(weakref.ref(value))
            value.task = tasks[0]  # type: ignore[attr-defined]
            nap(10)
            raise ValueError(value)

        tasks: list[Task] = []
        tasks.append(scheduler.after(1, job, timeout=1))
        clock.advance(5)
        assert isinstance(tasks[0].exception().__cause__, ValueError)  # type: ignore[union-attr]
        tasks.clear()
        until(lambda: gc.collect() is None or dead[0]() is None)
