"""Shutdown: what it refuses, stops, cancels and waits for; nobody who waits on a task hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Thread
from worlds import World

from duetime import (
    CancelOutcome,
    EventKind,
    Scheduler,
    SchedulerClosedError,
    Task,
    TaskState,
    current_run,
    retry,
)


def test_waiting_tasks_are_cancelled(world: World) -> None:
    log = world.log()
    once = world.scheduler.after(3600, int, id="once")
    series = world.scheduler.every(3600, int, id="series")
    waiters = [Thread(once.wait), Thread(series.wait)]
    assert world.scheduler.shutdown() is True
    assert {once.state, series.state} == {TaskState.CANCELLED}
    assert [waiter.outcome() for waiter in waiters] == [True, True]
    with pytest.raises(CancelledError):
        once.result()
    assert sorted(log.lines("CANCELLED")) == ["CANCELLED once", "CANCELLED series"]


def test_a_waiting_retry_is_cancelled(world: World) -> None:
    task = world.scheduler.after(0, lambda: False, retry=retry.FixedDelay(5, 3600))
    world.run_until_idle()
    assert world.scheduler.shutdown() is True
    assert task.state is TaskState.CANCELLED


@pytest.mark.parametrize(
    "schedule",
    [
        lambda s: s.schedule(Task(due=s.now(), job=int)),
        lambda s: s.schedule(Task(due=s.now(), job=int), replace=True),
        lambda s: s.schedule_all([Task(due=s.now(), job=int)]),
        lambda s: s.after(0, int),
        lambda s: s.at(0, int),
        lambda s: s.at(datetime.now(timezone.utc) + timedelta(hours=1), int),
        lambda s: s.every(1, int),
        lambda s: s.every(1)(int),
        lambda s: s.submit(int),
        lambda s: s.map(int, "12"),
    ],
)
def test_new_tasks_are_refused(world: World, schedule: Callable[[Any], Any]) -> None:
    world.scheduler.shutdown()
    with pytest.raises(SchedulerClosedError):
        schedule(world.scheduler)
    assert world.scheduler.tasks() == []


def test_questions_are_still_answered(world: World) -> None:
    done = world.scheduler.after(0, lambda: 42, id="done")
    assert done.wait(WATCHDOG)
    world.run_until_idle()
    world.scheduler.after(3600, int, id="waiting")
    world.scheduler.shutdown()
    assert done.result() == 42
    assert world.scheduler.info("done").state is TaskState.DONE
    assert {info.id for info in world.scheduler.tasks()} == {"done", "waiting"}
    assert world.scheduler.cancel("waiting") is CancelOutcome.FINISHED
    assert world.scheduler.next_due() is None
    assert world.scheduler.wait_idle(WATCHDOG) is True
    assert (world.scheduler.stats().done, world.scheduler.stats().cancelled) == (1, 1)
    assert world.scheduler.now() >= 0
    world.scheduler.wake()
    world.scheduler.forget("done")


def test_it_waits_for_running_jobs(world: World) -> None:
    gate = Gate()
    task = world.scheduler.after(0, gate)
    gate.entered()
    shutting = Thread(world.scheduler.shutdown)
    assert world.scheduler.shutdown(timeout=0.01) is False
    assert shutting.is_alive()
    assert task.running()
    gate.open()
    assert shutting.outcome() is True
    assert task.result(0) == "through"


def test_without_wait_it_does_not(world: World) -> None:
    gate = Gate()
    task = world.scheduler.after(0, gate)
    gate.entered()
    world.scheduler.shutdown(wait=False)
    assert task.running()
    with pytest.raises(SchedulerClosedError):
        world.scheduler.after(0, int)
    gate.open()
    assert task.result(WATCHDOG) == "through"
    assert world.scheduler.shutdown() is True


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_a_timeout_that_comes_first_is_false(world: World, timeout: float) -> None:
    gate = Gate()
    task = world.scheduler.after(0, gate)
    gate.entered()
    assert world.scheduler.shutdown(timeout=timeout) is False
    assert world.scheduler.shutdown(timeout=timeout) is False
    gate.open()
    assert world.scheduler.shutdown(timeout=WATCHDOG) is True
    assert task.result(0) == "through"


def test_running_jobs_are_told_to_stop(world: World) -> None:
    inside = threading.Event()

    def job() -> tuple[bool, bool]:
        run = current_run()
        assert not run.stop_requested
        run.raise_if_stopped()
        inside.set()
        told = run.wait(3600)
        return told, run.stop_requested

    task = world.scheduler.after(0, job)
    assert inside.wait(WATCHDOG)
    assert world.scheduler.shutdown(timeout=WATCHDOG)
    assert task.result(0) == (True, True)


def test_a_job_may_end_by_raise_if_stopped(world: World) -> None:
    inside = threading.Event()

    def job() -> None:
        inside.set()
        current_run().wait(3600)
        current_run().raise_if_stopped()

    task = world.scheduler.after(0, job)
    assert inside.wait(WATCHDOG)
    assert world.scheduler.shutdown(timeout=WATCHDOG)
    assert task.done()
    with pytest.raises(CancelledError):
        task.result(0)


def test_a_running_series_ends(world: World) -> None:
    gate = Gate()
    task = world.scheduler.every(0.001, gate, first=0)
    gate.entered()
    world.scheduler.shutdown(wait=False)
    gate.open()
    assert world.scheduler.shutdown(timeout=WATCHDOG)
    assert (task.state, task.runs) == (TaskState.CANCELLED, 1)


def test_a_failing_run_is_not_retried(world: World) -> None:
    gate = Gate(ValueError("no"))
    task = world.scheduler.after(0, gate, retry=retry.FixedDelay(5, 0.001))
    gate.entered()
    world.scheduler.shutdown(wait=False)
    gate.open()
    assert world.scheduler.shutdown(timeout=WATCHDOG)
    assert (task.state, task.runs) == (TaskState.FAILED, 1)


def test_due_tasks_are_cancelled_without_drain(world: World) -> None:
    seen: list[int] = []
    gate = Gate()
    world.scheduler.after(0, gate)
    gate.entered()
    due = world.scheduler.after(0, seen.append, 1)
    world.scheduler.shutdown(wait=False)
    gate.open()
    assert world.scheduler.shutdown(timeout=WATCHDOG)
    assert (due.state, seen) == (TaskState.CANCELLED, [])


def test_drain_runs_what_is_due_first(world: World) -> None:
    seen: list[int] = []
    gate = Gate()
    world.scheduler.after(0, gate)
    gate.entered()
    due = [world.scheduler.after(0, seen.append, n) for n in range(20)]
    later = world.scheduler.after(3600, seen.append, 99)
    shutting = Thread(lambda: world.scheduler.shutdown(drain=True))
    assert later.wait(WATCHDOG), "what is not due is cancelled at once"
    with pytest.raises(SchedulerClosedError):
        world.scheduler.after(0, int)
    gate.open()
    assert shutting.outcome() is True
    assert seen == list(range(20))
    assert {task.state for task in due} == {TaskState.DONE}
    assert later.state is TaskState.CANCELLED


def test_again_and_from_many_threads(world: World) -> None:
    world.scheduler.after(3600, int)
    threads = [Thread(world.scheduler.shutdown) for _ in range(8)]
    assert [thread.outcome() for thread in threads] == [True] * 8
    assert world.scheduler.shutdown() is True
    world.scheduler.shutdown(wait=False)
    assert world.scheduler.shutdown(drain=True, timeout=0) is True


def test_of_a_scheduler_that_never_ran(world: World) -> None:
    assert world.scheduler.shutdown() is True


def test_from_a_job_it_does_not_wait(world: World) -> None:
    def job() -> str:
        world.scheduler.shutdown(wait=True)
        return "through"

    task = world.scheduler.after(0, job)
    waiting = world.scheduler.after(3600, int)
    assert task.result(WATCHDOG) == "through"
    assert waiting.wait(WATCHDOG)
    assert world.scheduler.shutdown() is True


@pytest.mark.parametrize("kind", ["SCHEDULED", "DUE", "STARTED", "COMPLETED", "CANCELLED"])
def test_from_a_listener_it_does_not_wait(world: World, kind: str) -> None:
    heard: list[Any] = []

    def listen(event: Any) -> None:
        world.scheduler.shutdown(wait=True)
        heard.append(event)

    world.scheduler.add_listener(listen, kinds=[EventKind[kind]])
    if kind == "CANCELLED":
        world.scheduler.after(3600, int).cancel()
    else:
        assert world.scheduler.after(0, int).wait(WATCHDOG)
    assert world.scheduler.shutdown(timeout=WATCHDOG) is True
    assert len(heard) == 1


def test_with_waits() -> None:
    gate = Gate()
    with Scheduler(2) as scheduler:
        assert isinstance(scheduler, Scheduler)
        running = scheduler.after(0, gate)
        waiting = scheduler.after(3600, int)
        gate.entered()
        opener = Thread(lambda: (waiting.wait(WATCHDOG), gate.open()))
    assert running.result(0) == "through"
    assert waiting.cancelled()
    opener.outcome()
    with pytest.raises(SchedulerClosedError):
        scheduler.after(0, int)


def test_with_lets_errors_through() -> None:
    with pytest.raises(LookupError), Scheduler(1) as scheduler:
        task = scheduler.after(3600, int)
        raise LookupError
    assert task.cancelled()
