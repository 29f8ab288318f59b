"""wait_idle: nothing runs and nothing is due, the listeners of the last moves included."""

from __future__ import annotations

import concurrent.futures

import pytest
from helpers import WATCHDOG, Gate, Thread
from worlds import World

from duetime import EventKind

TooLate = concurrent.futures.TimeoutError


def test_idle_is_nothing_running_and_nothing_due(world: World) -> None:
    assert world.scheduler.wait_idle(0) is True, "nothing ever scheduled"
    world.scheduler.after(3600, int)
    assert world.scheduler.wait_idle(WATCHDOG) is True, "what is not due is not waited for"
    with world.hold():
        world.scheduler.after(0, int)
        assert world.scheduler.wait_idle(0) is False
    assert world.scheduler.wait_idle(WATCHDOG) is True
    assert world.scheduler.stats().running == 0


def test_idle_includes_what_the_runs_scheduled(world: World) -> None:
    seen: list[int] = []

    def job(left: int) -> None:
        seen.append(left)
        if left:
            world.scheduler.after(0, job, left - 1)

    world.scheduler.after(0, job, 50)
    assert world.scheduler.wait_idle(WATCHDOG)
    assert seen == list(range(50, -1, -1))


def test_idle_includes_the_listeners_of_the_last_moves(world: World) -> None:
    gate = Gate()
    world.scheduler.add_listener(gate, kinds=[EventKind.COMPLETED])
    world.scheduler.after(0, int)
    gate.entered()
    assert world.scheduler.wait_idle(0) is False
    assert world.scheduler.wait_idle(0.01) is False
    waiter = Thread(world.scheduler.wait_idle)
    gate.open()
    assert waiter.outcome() is True


def test_idle_from_a_job_is_refused(world: World) -> None:
    def job() -> str:
        with pytest.raises(RuntimeError):
            world.scheduler.wait_idle()
        return "refused"

    assert world.scheduler.after(0, job).result(WATCHDOG) == "refused"


def test_cancel_makes_a_scheduler_idle(world: World) -> None:
    with world.hold():
        waiting = world.scheduler.after(0, int)
        waiter = Thread(world.scheduler.wait_idle)
        assert waiting.cancel()
    assert waiter.outcome() is True
