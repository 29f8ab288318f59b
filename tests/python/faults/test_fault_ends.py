"""Shutting down: twice, at once, from inside, while things run."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from support import (
    HOUR,
    KINDS,
    STATES,
    WATCHDOG,
    Log,
    descriptors,
    everything,
    noop,
    resident_kb,
    scaled,
    threads,
    together,
    until,
    within,
)

import duetime
from duetime import CancelOutcome, Scheduler, SchedulerClosedError, Task


def test_everything_makes_events_of_all_kinds(manual: Any) -> None:
    """The scene of the listener tests shows every kind of event."""
    everything(manual)
    assert {event.kind.name for event in manual.log.events} == set(KINDS)


def blocked(scheduler: Scheduler) -> tuple[Task, threading.Event]:
    """A task whose job runs, and what lets it end."""
    gate, entered = threading.Event(), threading.Event()

    def job() -> None:
        entered.set()
        gate.wait(WATCHDOG)

    task = scheduler.after(0, job)
    assert entered.wait(WATCHDOG)
    return task, gate


@pytest.mark.parametrize("calls", [2, 8])
@pytest.mark.parametrize("used", [False, True])
def test_shutdown_again_and_from_several_threads(make: Any, calls: int, used: bool) -> None:
    """gocron#355: a second shutdown closed a closed channel."""
    scheduler = make()
    if used:
        scheduler.every(0.001, noop)
    assert together(*[scheduler.shutdown] * calls) == [True] * calls
    assert within(scheduler.shutdown) is True


def test_shutdown_while_the_first_task_starts_the_pool(make: Any) -> None:
    """gocron#473: shutdown during start left workers behind, or a caller waiting."""
    for _ in range(scaled(5000, 50)):
        scheduler = make(workers=4)
        task, ended = together(lambda s=scheduler: s.after(0, noop), scheduler.shutdown)
        assert ended is True
        if isinstance(task, Task):
            assert task.wait(WATCHDOG) and task.state in (STATES.DONE, STATES.CANCELLED)
        else:
            assert isinstance(task, SchedulerClosedError)


@pytest.mark.parametrize("drain", [False, True])
def test_a_shutdown_that_times_out_can_be_waited_for_again(make: Any, drain: bool) -> None:
    """gocron#835: after a timeout the later waits returned at once, or never."""
    scheduler = make()
    task, gate = blocked(scheduler)
    waiting = scheduler.after(HOUR, noop)
    for _ in range(3):
        assert within(lambda: scheduler.shutdown(drain=drain, timeout=0.02)) is False
    assert (task.state, waiting.state) == (STATES.RUNNING, STATES.CANCELLED)
    assert within(lambda: scheduler.shutdown(wait=False)) in (True, False)
    gate.set()
    assert within(scheduler.shutdown) is True
    assert task.state is STATES.DONE


@pytest.mark.parametrize("options", [{}, {"drain": True}, {"wait": False}, {"timeout": 5}], ids=str)
def test_shutdown_inside_a_job_does_not_wait_for_itself(make: Any, options: dict[str, Any]) -> None:
    """apscheduler#338: shutdown(wait=True) in a job joined its own thread."""
    scheduler = make()
    task = scheduler.after(0, lambda: scheduler.shutdown(**options))
    assert task.wait(WATCHDOG) and task.done()
    assert within(scheduler.shutdown) is True


@pytest.mark.parametrize("kind", KINDS)
def test_shutdown_inside_a_listener_does_not_wait_for_itself(manual: Any, kind: str) -> None:
    """apscheduler#338: nor in a listener, whichever thread it is called on."""
    asked: list[bool] = []

    def listener(event: Any) -> None:
        if event.kind.name == kind and not asked:
            asked.append(True)
            manual.scheduler.shutdown(wait=True)

    manual.scheduler.add_listener(listener)
    everything(manual)
    assert asked == [True]
    assert within(manual.scheduler.shutdown) is True
    assert manual.scheduler.tasks(STATES.RUNNING) == manual.scheduler.tasks(STATES.WAITING) == []


def test_shutdown_inside_a_done_callback_does_not_wait_for_itself(make: Any) -> None:
    """apscheduler#338: the same for what is called when a task ends."""
    scheduler = make()
    task = scheduler.after(0, noop)
    task.add_done_callback(lambda _task: scheduler.shutdown(wait=True))
    assert task.wait(WATCHDOG)
    assert within(scheduler.shutdown) is True


def test_a_job_may_use_the_scheduler_while_it_drains(make: Any) -> None:
    """cilium/hive#80: a job that called the pool during its drain deadlocked with it."""
    scheduler, entered = make(workers=1), threading.Event()
    answers: dict[str, Any] = {}

    def job() -> None:
        entered.set()
        answers["stopped"] = duetime.current_run().wait(WATCHDOG)
        try:
            scheduler.after(0, noop)
        except SchedulerClosedError as error:
            answers["schedule"] = error
        answers["cancel"] = scheduler.cancel("late")
        answers["tasks"] = {info.id for info in scheduler.tasks()}
        answers["stats"] = scheduler.stats().running
        answers["next"] = scheduler.next_due()
        answers["shutdown"] = scheduler.shutdown(drain=True)

    scheduler.after(0, job, id="job")
    assert entered.wait(WATCHDOG)
    due_now = scheduler.after(0, noop, id="due")
    late = scheduler.after(HOUR, noop, id="late")
    assert within(lambda: scheduler.shutdown(drain=True)) is True
    assert answers["stopped"] is True
    assert isinstance(answers["schedule"], SchedulerClosedError)
    assert answers["cancel"] in (CancelOutcome.CANCELLED, CancelOutcome.FINISHED)
    assert {"job", "due"} <= answers["tasks"] and answers["stats"] == 1
    assert (due_now.state, late.state) == (STATES.DONE, STATES.CANCELLED)


@pytest.mark.parametrize("drain", [False, True])
def test_nothing_runs_and_nothing_is_told_after_shutdown(make: Any, drain: bool) -> None:
    """gocron#818: jobs still started after shutdown had returned."""
    for _ in range(scaled(500, 10)):
        scheduler, ran = make(workers=4), []
        log = Log(scheduler)
        for _ in range(20):
            scheduler.every(1e-5, ran.append, 1)
            scheduler.after(0, ran.append, 1)
        assert within(lambda s=scheduler: s.shutdown(drain=drain)) is True
        counts = len(ran), len(log.events)
        time.sleep(0.005)  # a chance for what must not come
        assert counts == (len(ran), len(log.events))
        assert scheduler.tasks(STATES.WAITING) == scheduler.tasks(STATES.RUNNING) == []


def rounds_leave_nothing(one_round: Callable[[], object], rounds: int) -> None:
    """After a warm-up, the second half of the rounds leaves no thread, descriptor or memory."""
    before = threads(), descriptors()
    for _ in range(rounds // 2):
        one_round()
    gc.collect()
    until(lambda: len(threads()) <= len(before[0]), "the threads of the warm-up")
    kilobytes = resident_kb()
    for _ in range(rounds // 2):
        one_round()
    gc.collect()
    until(lambda: len(threads()) <= len(before[0]), "the threads of the rounds")
    assert descriptors() <= before[1]
    assert resident_kb() - kilobytes < 8_000 + rounds // 2


@pytest.mark.parametrize("pending", ["nothing", "a task", "a series"])
def test_schedulers_made_and_dropped_leave_nothing(pending: str) -> None:
    """tokio-cron-scheduler#104: each scheduler left its ticking task behind."""

    def one_round() -> None:
        scheduler = Scheduler(2)
        scheduler.add_listener(noop)
        if pending == "a task":
            scheduler.after(HOUR, noop)
        elif pending == "a series":
            scheduler.every(0.001, noop)

    rounds_leave_nothing(one_round, scaled(10_000, 100))


@pytest.mark.parametrize("wait", [True, False])
def test_schedulers_made_and_shut_down_leave_nothing(wait: bool) -> None:
    """dirigiste#11: each pool kept a thread, a map, or a descriptor."""

    def one_round() -> None:
        scheduler = Scheduler(2)
        assert scheduler.after(0, noop).wait(WATCHDOG)
        scheduler.after(HOUR, noop)
        scheduler.shutdown(wait=wait)

    rounds_leave_nothing(one_round, scaled(10_000, 100))
