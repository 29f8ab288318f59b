"""Which waits would be for themselves: of the caller's own scheduler, and of no other."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from helpers import WATCHDOG, Gate

from duetime import Event, EventKind, ManualClock, Scheduler, retry
from duetime.testing import virtual_time


def test_a_job_may_wait_for_another_scheduler() -> None:
    def job() -> list[int | None]:
        with Scheduler(2) as inner:
            tasks = [inner.after(0.001 * n, pow, n, 2) for n in range(5)]
            assert inner.wait_idle(WATCHDOG)
            results = [task.result(WATCHDOG) for task in tasks]
            running = inner.after(0, threading.Event().wait, 0.05)
        assert running.done(), "the end of the block waited for it"
        return results

    with Scheduler(1) as outer:
        assert outer.after(0, job).result(WATCHDOG) == [0, 1, 4, 9, 16]


def test_a_job_may_move_another_schedulers_clock() -> None:
    with virtual_time() as (inner, clock), Scheduler(1) as outer:
        task = inner.after(60, lambda: "done")
        outer.after(0, clock.advance, 60).result(WATCHDOG)
        assert task.result(0) == "done"


def test_a_job_cannot_wait_for_its_own_scheduler() -> None:
    with virtual_time() as (scheduler, clock):
        for wait in (scheduler.wait_idle, lambda: clock.advance(1), lambda: clock.jump(1)):
            task = scheduler.after(0, wait)
            clock.advance(0)
            assert isinstance(task.exception(0), RuntimeError)


class Finalized:
    """Any part of a task; waits for its scheduler when it dies."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.answers: list[object] = []
        self.died = threading.Event()

    def part(self) -> Part:
        return Part(self)


class Part:
    def __init__(self, owner: Finalized) -> None:
        self.owner = owner

    def __call__(self) -> None:
        pass

    def delay_after_failure(self, failures: int) -> None:
        pass

    def next_due(self, due: float, finished: float) -> None:
        pass

    def __del__(self) -> None:
        try:
            self.owner.answers.append(self.owner.scheduler.wait_idle())
        except RuntimeError:
            self.owner.answers.append("refused")
        self.owner.answers.append(self.owner.scheduler.shutdown(wait=True))
        self.owner.died.set()


def start(scheduler: Scheduler, name: str, part: Part) -> None:
    if name == "job":
        scheduler.after(0, part)
    elif name == "args":
        scheduler.after(0, id, part)
    elif name == "retry":
        scheduler.after(0, int, retry=part)
    else:
        scheduler.every(part, int, first=0)


@pytest.mark.parametrize("name", ["job", "args", "retry", "recurrence"])
def test_what_dies_on_a_worker_cannot_wait_for_it(name: str) -> None:
    scheduler, gate = Scheduler(1), Gate()
    owner = Finalized(scheduler)
    scheduler.after(0, gate)
    gate.entered()
    start(scheduler, name, owner.part())  # now the task alone holds it
    gate.open()
    assert owner.died.wait(WATCHDOG)
    assert owner.answers == ["refused", False], "the worker itself has not ended"
    assert scheduler.shutdown(timeout=WATCHDOG)


@pytest.mark.parametrize(
    "kind", [EventKind.SCHEDULED, EventKind.STARTED, EventKind.DUE, EventKind.FAILED]
)
def test_a_listener_cannot_wait_for_the_task_that_waits_for_it(kind: EventKind) -> None:
    seen: list[type[BaseException] | str] = []

    def listener(event: Event) -> None:
        if not seen:
            task = scheduler.get(event.task_id)
            assert task is not None
            try:
                seen.append(repr(task.result()))
            except RuntimeError as error:
                seen.append(type(error))

    with virtual_time() as (scheduler, clock):
        scheduler.add_listener(listener, [kind])
        task = scheduler.after(1, lambda: 1 / 0, id="task", retry=retry.FixedDelay(1, 1))
        clock.advance(5)
        assert seen == [RuntimeError]
        assert task.runs == 2


def test_a_due_listener_cannot_wait_for_a_task_that_has_not_started() -> None:
    refused: list[bool] = []

    def listener(event: Event) -> None:
        try:
            second.result()
        except RuntimeError:
            refused.append(True)

    with virtual_time() as (scheduler, clock):
        scheduler.add_listener(listener, [EventKind.DUE])
        scheduler.after(1, int)
        second = scheduler.after(1, int)
        clock.advance(1)
        assert refused == [True, True]
        assert second.done()


def test_a_listener_may_wait_for_a_task_that_has_ended() -> None:
    results: list[Any] = []
    clock = ManualClock()
    with Scheduler(1, clock=clock) as scheduler:
        scheduler.add_listener(lambda event: results.append(task.result(0)), [EventKind.COMPLETED])
        task = scheduler.after(1, lambda: "result", id="task")
        clock.advance(1)
    assert results == ["result"]
