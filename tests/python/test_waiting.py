"""Results and waiting: a task is to its holder what a Future is; waits wake by event."""

from __future__ import annotations

import concurrent.futures
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from datetime import timedelta
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Thread, voluntary_switches
from worlds import World

from duetime import FixedRate, Missed, Scheduler, Seconds, Task, TaskState, retry

TooLate = concurrent.futures.TimeoutError


def test_a_result_is_waited_for(world: World) -> None:
    gate = Gate()
    task = world.scheduler.after(0, gate)
    waiter = Thread(task.result)
    gate.entered()
    gate.open()
    assert waiter.outcome() == "through"
    assert task.result() == task.result(0) == "through"


@pytest.mark.parametrize("timeout", [0, 0.0, 0.01])
def test_a_timeout_that_comes_first(world: World, timeout: float) -> None:
    gate = Gate()
    task = world.scheduler.after(0, gate)
    gate.entered()
    with pytest.raises(TooLate):
        task.result(timeout)
    with pytest.raises(TooLate):
        task.exception(timeout=timeout)
    assert task.wait(timeout) is False
    assert world.scheduler.wait_idle(timeout) is False
    gate.open()
    assert task.wait() is True
    assert task.result() == "through"


LONG = [None, threading.TIMEOUT_MAX, 1e9, 1e300, 10**11, 10**400, timedelta.max, WATCHDOG]


@pytest.mark.parametrize("timeout", LONG, ids=lambda timeout: str(timeout)[:12])
def test_a_long_timeout_waits_for_the_end(world: World, timeout: Seconds | None) -> None:
    gate = Gate()
    task = world.scheduler.after(0, gate)
    waiters = [
        Thread(task.result, timeout),
        Thread(task.exception, timeout),
        Thread(task.wait, timeout),
        Thread(world.scheduler.wait_idle, timeout),
    ]
    gate.entered()
    gate.open()
    assert [waiter.outcome() for waiter in waiters] == ["through", None, True, True]


def test_done_running_cancelled(world: World) -> None:
    def flags(task: Task) -> tuple[bool, bool, bool]:
        return task.done(), task.running(), task.cancelled()

    gate = Gate()
    task = world.scheduler.after(0, gate)
    gate.entered()
    assert flags(task) == (False, True, False)
    gate.open()
    assert task.wait(WATCHDOG)
    assert flags(task) == (True, False, False)

    waiting = world.scheduler.after(3600, int)
    assert flags(waiting) == (False, False, False)
    waiting.cancel()
    assert flags(waiting) == (True, False, True)

    failed = world.scheduler.after(0, lambda: False)
    assert failed.wait(WATCHDOG)
    assert flags(failed) == (True, False, False)


def test_what_a_failed_task_raises_is_what_its_job_raised(world: World) -> None:
    error = ValueError("boom")

    def job() -> None:
        raise error

    task = world.scheduler.after(0, job)
    with pytest.raises(ValueError, match="boom") as caught:
        task.result(WATCHDOG)
    assert caught.value is error is task.exception()


def test_a_cancelled_task_raises_cancelled_error(world: World) -> None:
    task = world.scheduler.after(3600, int)
    task.cancel()
    with pytest.raises(CancelledError):
        task.result()
    with pytest.raises(CancelledError):
        task.exception()
    assert task.wait() is True


def test_cancel_wakes_who_waits(world: World) -> None:
    task = world.scheduler.after(3600, int)
    waiters = [Thread(task.wait) for _ in range(3)]
    task.cancel()
    assert [waiter.outcome() for waiter in waiters] == [True] * 3


def test_a_series_is_done_when_it_ends(sim: World) -> None:
    task = sim.scheduler.every(10, lambda: "run", max_runs=2)
    sim.advance(10)
    assert (task.runs, task.done()) == (1, False)
    with pytest.raises(TooLate):
        task.result(0)
    sim.advance(10)
    assert task.done()
    assert task.result() == "run"


def test_a_retried_task_is_done_when_its_retries_are(sim: World) -> None:
    task = sim.scheduler.after(1, lambda: False, retry=retry.FixedDelay(1, 5))
    sim.advance(1)
    assert (task.failures, task.done()) == (1, False)
    sim.advance(5)
    assert task.state is TaskState.FAILED


def test_a_callback_is_called_once_with_the_task(world: World) -> None:
    gate = Gate()
    seen: list[Any] = []
    task = world.scheduler.after(0, gate)
    gate.entered()
    task.add_done_callback(lambda done: seen.append(("before", done, done.done())))
    task.add_done_callback(lambda done: seen.append(("second", done, done.done())))
    assert seen == []
    gate.open()
    assert task.wait(WATCHDOG)
    world.run_until_idle()
    task.add_done_callback(lambda done: seen.append(("after", done, done.done())))
    assert seen == [("before", task, True), ("second", task, True), ("after", task, True)]


@pytest.mark.parametrize("ending", ["done", "failed", "cancelled"])
def test_every_ending_calls_the_callbacks(world: World, ending: str) -> None:
    called = threading.Event()
    gate = Gate(ending != "failed")
    task = world.scheduler.after(3600 if ending == "cancelled" else 0, gate)
    task.add_done_callback(lambda _: called.set())
    assert not called.is_set()
    if ending == "cancelled":
        task.cancel()
    gate.open()
    assert called.wait(WATCHDOG)
    assert task.state.name == ending.upper()


def test_a_series_calls_back_at_its_end_only(sim: World) -> None:
    seen: list[int] = []
    task = sim.scheduler.every(10, int, max_runs=3)
    task.add_done_callback(lambda done: seen.append(done.runs))
    sim.advance(20)
    assert seen == []
    sim.advance(10)
    assert seen == [3]


def test_a_callback_that_raises_is_reported(world: World, unraisable: list[BaseException]) -> None:
    errors = [ValueError("before"), ValueError("after")]

    def raising(error: Exception) -> Callable[[Task], None]:
        def callback(_task: Task) -> None:
            raise error

        return callback

    gate = Gate()
    seen: list[Task] = []
    task = world.scheduler.after(0, gate)
    gate.entered()
    task.add_done_callback(raising(errors[0]))
    task.add_done_callback(seen.append)
    gate.open()
    assert task.result(WATCHDOG) == "through"
    world.run_until_idle()
    task.add_done_callback(raising(errors[1]))
    assert seen == [task]
    assert unraisable == errors


def test_a_callback_is_callable(world: World) -> None:
    with pytest.raises(TypeError):
        world.scheduler.after(3600, int).add_done_callback(None)


def test_a_job_cannot_wait_for_itself(world: World) -> None:
    def job(wait: str) -> str:
        with pytest.raises(RuntimeError):
            getattr(world.scheduler.get("self"), wait)()
        return "refused"

    for wait in ("result", "exception", "wait"):
        task = world.scheduler.schedule(
            Task("self", due=world.past(0), job=job, args=(wait,)), replace=True
        )
        assert task.result(WATCHDOG) == "refused"
        world.run_until_idle()


def test_a_job_may_wait_for_another_task(make_world: Callable[..., World]) -> None:
    world = make_world(workers=2)
    other = world.scheduler.after(0, lambda: 42)
    assert world.scheduler.after(0, lambda: other.result(WATCHDOG)).result(WATCHDOG) == 42


def test_everything_else_can_be_called_meanwhile(make_world: Callable[..., World]) -> None:
    world = make_world(workers=2)
    gate = Gate()
    task = world.scheduler.after(0, gate, id="t")
    gate.entered()
    waiters = [
        Thread(task.result),
        Thread(task.exception),
        Thread(task.wait),
        Thread(world.scheduler.wait_idle),
    ]
    assert world.scheduler.after(0, lambda: "ran").result(WATCHDOG) == "ran"
    assert world.scheduler.after(3600, int).cancel()
    assert world.scheduler.info("t").state is TaskState.RUNNING
    assert world.scheduler.stats().running >= 1
    assert len(world.scheduler.tasks()) == 3
    gate.open()
    assert [waiter.outcome() for waiter in waiters] == ["through", None, True, True]


@pytest.mark.skipif(sys.platform != "linux", reason="counts context switches in /proc")
@pytest.mark.parametrize("wait", ["result", "exception", "wait", "wait_idle"])
def test_a_wait_does_not_poll(real: Scheduler, wait: str) -> None:
    gate = Gate()
    task = real.after(0, gate)
    gate.entered()
    waiter = Thread(getattr(real if wait == "wait_idle" else task, wait), WATCHDOG)
    settled, watched = real.after(0.1, int), real.after(0.3, int)
    assert settled.wait(WATCHDOG)
    before = voluntary_switches([waiter.native_id])
    assert watched.wait(WATCHDOG)
    assert voluntary_switches([waiter.native_id]) - before <= 1, "it slept through"
    gate.open()
    waiter.outcome()


def test_many_waiters_all_wake(world: World) -> None:
    gate = Gate()
    rule = FixedRate(0.001, missed=Missed.CATCH_UP)
    task = world.scheduler.schedule(Task(due=world.past(0), job=gate, recurrence=rule, max_runs=5))
    waiters = [Thread(task.result, WATCHDOG) for _ in range(20)]
    gate.open()
    assert {waiter.outcome() for waiter in waiters} == {"through"}
    assert task.runs == 5
