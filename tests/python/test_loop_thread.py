"""The thread of the loop that coroutine jobs run on: what would wait there for ever is refused."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from helpers import WATCHDOG

from duetime import ManualClock, Scheduler, Task


def on_own_loop(code: Callable[[Scheduler, ManualClock], Awaitable[None]]) -> None:
    """Run a coroutine beside a scheduler that has its loop."""

    async def main() -> None:
        clock = ManualClock()
        loop = asyncio.get_running_loop()
        async with Scheduler(loop=loop, clock=clock) as scheduler:
            await asyncio.wait_for(code(scheduler, clock), WATCHDOG)

    asyncio.run(main())


@pytest.mark.parametrize("call", ["result", "wait", "exception"])
@pytest.mark.parametrize("timeout", [None, 3600])
def test_a_wait_for_a_task_is_refused(call: str, timeout: float | None) -> None:
    async def code(scheduler: Scheduler, _: ManualClock) -> None:
        task = scheduler.after(0, asyncio.sleep, 0, 7)
        with pytest.raises(RuntimeError, match=rf"^{call} would block .*; await the task instead$"):
            getattr(task, call)(timeout)
        assert await task == 7
        assert task.result() == 7 and task.wait() and task.exception() is None

    on_own_loop(code)


def test_who_does_not_wait_gets_an_answer() -> None:
    async def code(scheduler: Scheduler, _: ManualClock) -> None:
        task = scheduler.after(3600, list)
        assert task.wait(0) is False
        with pytest.raises(concurrent.futures.TimeoutError):
            task.result(0)

    on_own_loop(code)


def test_a_wait_for_a_task_of_another_scheduler_is_none_of_its_business() -> None:
    async def code(scheduler: Scheduler, _: ManualClock) -> None:
        await scheduler.after(0, asyncio.sleep, 0)
        with Scheduler(1) as other:
            assert other.after(0, pow, 2, 10).result(WATCHDOG) == 1024
            assert other.after(0, asyncio.sleep, 0, 3).result(WATCHDOG) == 3
            assert other.wait_idle(WATCHDOG)

    on_own_loop(code)


def test_wait_idle_names_what_to_write() -> None:
    async def code(scheduler: Scheduler, _: ManualClock) -> None:
        with pytest.raises(RuntimeError, match=r"^wait_idle would block .*asyncio\.to_thread\("):
            scheduler.wait_idle()
        assert await asyncio.to_thread(scheduler.wait_idle, WATCHDOG)

    on_own_loop(code)


@pytest.mark.parametrize("call", ["advance", "jump"])
def test_to_move_the_clock_is_refused_before_it_moves(call: str) -> None:
    async def code(scheduler: Scheduler, clock: ManualClock) -> None:
        task = scheduler.after(5, asyncio.sleep, 0, 7)
        with pytest.raises(RuntimeError, match=rf"^{call} would .*to_thread\(clock\.{call}, "):
            getattr(clock, call)(10)
        assert clock.now() == 0
        await asyncio.to_thread(getattr(clock, call), 10)
        assert task.result() == 7 and clock.now() == 10

    on_own_loop(code)


def test_a_clock_that_no_such_scheduler_reads_is_moved() -> None:
    async def code(scheduler: Scheduler, _: ManualClock) -> None:
        other = ManualClock()
        with Scheduler(1, clock=other) as beside:
            task = beside.after(5, list)
            other.advance(5)
            assert task.result(0) == []

    on_own_loop(code)


def test_the_end_of_a_with_block_does_not_wait() -> None:
    async def code(scheduler: Scheduler, _: ManualClock) -> None:
        with Scheduler(loop=asyncio.get_running_loop()) as inner:
            sleeping = inner.after(0, asyncio.sleep, 3600)
        with pytest.raises(asyncio.CancelledError):
            await sleeping

    on_own_loop(code)


def test_on_its_own_loop_a_coroutine_cannot_block_it_either() -> None:
    seen: list[Any] = []

    async def job(other: Task) -> None:
        with pytest.raises(RuntimeError, match="await the task instead") as caught:
            other.result()
        seen.append(caught.value)
        assert await other == 7

    with Scheduler(1) as scheduler:
        other = scheduler.after(0.01, asyncio.sleep, 0, 7)
        scheduler.after(0, job, other).result(WATCHDOG)
    assert seen


def test_on_a_thread_beside_the_loop_a_wait_is_one() -> None:
    async def code(scheduler: Scheduler, _: ManualClock) -> None:
        task = scheduler.after(0, asyncio.sleep, 0, 7)
        assert await asyncio.to_thread(task.result, WATCHDOG) == 7

    on_own_loop(code)
