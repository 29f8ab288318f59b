"""Run control of tasks that wait for others to end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from helpers import WATCHDOG, Gate

from duetime import CancelOutcome, ControlOutcome, ManualClock, Scheduler, TaskState

APPLIED = ControlOutcome.APPLIED


class Pair:
    """A task due at 100, and one that waits for it and is due at 10; the times of its runs."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.scheduler = Scheduler(1, clock=self.clock)
        self.runs: list[float] = []
        self.broken = False
        self.parent = self.scheduler.after(100, lambda: not self.broken, id="parent")
        self.child = self.scheduler.after(
            10, lambda: self.runs.append(self.clock.now()), id="child", depends_on=["parent"]
        )

    def counts(self) -> tuple[int, int]:
        stats = self.scheduler.stats()
        return stats.waiting, stats.paused


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    with pair.scheduler:
        yield pair


def test_it_is_rescheduled(pair: Pair) -> None:
    assert pair.child.reschedule(150) is APPLIED
    assert (pair.child.due, pair.scheduler.next_due()) == (150, 100)
    pair.clock.advance(200)
    assert pair.runs == [150]


def test_run_now_makes_it_due_and_it_still_waits(pair: Pair) -> None:
    assert pair.scheduler.reschedule("child", 1000) is APPLIED
    pair.clock.advance(30)
    assert pair.scheduler.run_now("child") is APPLIED
    pair.clock.advance(69)
    assert (pair.child.due, pair.runs) == (30, [])
    pair.clock.advance(1)
    assert pair.runs == [100]


def test_one_that_is_paused_is_held_when_it_is_freed(pair: Pair) -> None:
    assert pair.counts() == (2, 0)
    assert pair.child.pause() is APPLIED
    assert (pair.child.paused, pair.counts()) == (True, (2, 1))
    pair.clock.advance(120)
    assert (pair.child.state, pair.counts(), pair.runs) == (TaskState.WAITING, (1, 1), [])
    assert pair.scheduler.next_due() is None
    assert pair.child.resume() is APPLIED
    assert pair.scheduler.wait_idle(WATCHDOG)
    assert (pair.runs, pair.counts()) == ([120], (0, 0))


def test_one_that_is_resumed_waits_again(pair: Pair) -> None:
    assert pair.child.pause()
    assert pair.child.resume()
    pair.clock.advance(99)
    assert (pair.runs, pair.counts()) == ([], (2, 0))
    pair.clock.advance(1)
    assert pair.runs == [100]


@pytest.mark.parametrize("broken", [False, True])
def test_a_paused_one_is_cancelled(pair: Pair, broken: bool) -> None:
    pair.broken = broken
    assert pair.child.pause()
    if not broken:
        assert pair.child.cancel() is CancelOutcome.CANCELLED
    pair.clock.advance(100)
    assert pair.child.cancelled()
    assert (pair.counts(), pair.child.paused, pair.runs) == ((0, 0), False, [])


def test_while_the_scheduler_is_paused_a_coroutine_ends_and_frees_it() -> None:
    gate = Gate()

    async def job() -> None:
        await asyncio.get_running_loop().run_in_executor(None, gate)

    with Scheduler(1, clock=ManualClock()) as scheduler:
        parent = scheduler.after(0, job)
        child = scheduler.after(0, list, depends_on=[parent])
        gate.entered()
        scheduler.pause()
        assert (scheduler.stats().running, scheduler.wait_idle(0)) == (1, False)
        gate.open()
        assert parent.wait(WATCHDOG)
        assert scheduler.wait_idle(WATCHDOG)
        stats = scheduler.stats()
        assert (child.state, stats.waiting, stats.paused) == (TaskState.WAITING, 1, 0)
        scheduler.resume()
        assert child.result(WATCHDOG) == []
