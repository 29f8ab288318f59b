"""A task as a `concurrent.futures.Future`, and as something to await."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import logging
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION, as_completed
from concurrent.futures import wait as wait_all
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Thread, clean_run
from worlds import World

from duetime import ManualClock, Scheduler, Task

SOON = 3_600


def on_a_loop(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(work(), WATCHDOG))


# ------------------------------------------------------------------------------- the future


def test_a_task_has_one_real_future(manual: World) -> None:
    task = manual.scheduler.after(1, lambda: "result")
    future = task.future
    assert isinstance(future, concurrent.futures.Future)
    assert task.future is future
    assert not future.done() and not future.running()
    manual.advance(1)
    assert future.done() and future.result(0) == "result" and future.exception(0) is None
    assert task.future is future


def test_the_future_of_a_task_that_has_ended(manual: World) -> None:
    task = manual.scheduler.after(0, lambda: 7)
    manual.advance(0)
    assert task.future.result(0) == 7


def test_two_threads_that_ask_first_get_the_same(real: Scheduler) -> None:
    for _ in range(200):
        task = real.after(SOON, list)
        barrier = threading.Barrier(2)

        def ask(task: Task = task, barrier: threading.Barrier = barrier) -> Any:
            barrier.wait(WATCHDOG)
            return task.future

        one, other = Thread(ask), Thread(ask)
        assert one.outcome() is other.outcome()
        task.cancel()


def test_a_task_that_is_not_scheduled_has_no_future() -> None:
    task = Task(due=0, job=list)
    with pytest.raises(RuntimeError, match="not scheduled"):
        _ = task.future


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt()])
def test_a_failure_is_the_exception(manual: World, error: BaseException) -> None:
    def fail() -> None:
        raise error

    future = manual.scheduler.after(1, fail).future
    manual.advance(1)
    assert future.exception(0) is error


def test_false_is_a_failure(manual: World) -> None:
    future = manual.scheduler.after(1, lambda: False).future
    manual.advance(1)
    assert type(future.exception(0)).__name__ == "JobReturnedFalse"


def test_a_series_ends_its_future_once_at_its_end(manual: World) -> None:
    future = manual.scheduler.every(1, lambda: "last", max_runs=3).future
    manual.advance(2)
    assert not future.done()
    manual.advance(1)
    assert future.result(0) == "last"


def test_a_cancelled_task_is_a_cancelled_future(manual: World) -> None:
    task = manual.scheduler.after(1, list)
    future = task.future
    seen: list[Any] = []
    future.add_done_callback(seen.append)
    assert task.cancel()
    assert future.cancelled() and seen == [future]
    assert wait_all([future], timeout=0).done == {future}
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(0)


def test_cancelling_the_future_cancels_a_waiting_task(manual: World) -> None:
    ran: list[int] = []
    task = manual.scheduler.after(1, ran.append, 1)
    assert task.future.cancel()
    assert task.cancelled() and task.future.cancelled()
    assert task.future.cancel(), "again is no error"
    assert wait_all([task.future], timeout=0).done
    manual.advance(2)
    assert ran == []


def test_cancelling_the_future_of_a_running_task_is_refused(real: Scheduler) -> None:
    gate = Gate()
    task = real.after(0, gate)
    gate.entered()
    assert task.future.running()
    assert not task.future.cancel()
    gate.open()
    assert task.future.result(WATCHDOG) == "through"
    assert not task.future.cancel() and not task.future.cancelled()


def test_cancelling_the_future_after_the_end_is_refused(manual: World) -> None:
    task = manual.scheduler.after(0, lambda: 1)
    manual.advance(0)
    assert not task.future.cancel()
    assert task.future.result(0) == 1


def test_a_cancel_races_the_end_and_one_wins(real: Scheduler) -> None:
    for _ in range(500):
        task = real.after(0, lambda: 1)
        future = task.future
        won = future.cancel()
        assert wait_all([future], WATCHDOG).done
        assert won == future.cancelled() == task.cancelled()


def test_wait_and_as_completed_take_tasks_futures(manual: World) -> None:
    tasks = [manual.scheduler.after(n, lambda n=n: n) for n in (3, 1, 2)]
    futures = [task.future for task in tasks]
    manual.advance(1)
    assert wait_all(futures, 0, FIRST_COMPLETED).done == {futures[1]}
    manual.advance(2)
    assert sorted(future.result() for future in as_completed(futures, WATCHDOG)) == [1, 2, 3]
    failing = manual.scheduler.after(1, lambda: 1 / 0).future
    pending = manual.scheduler.after(SOON, list).future
    manual.advance(1)
    assert wait_all([failing, pending], 0, FIRST_EXCEPTION).done == {failing}


def test_a_thread_waits_on_the_future(real: Scheduler) -> None:
    gate = Gate()
    waiter = Thread(real.after(0, gate).future.result, WATCHDOG)
    gate.open()
    assert waiter.outcome() == "through"


def test_a_shutdown_cancels_the_future() -> None:
    scheduler = Scheduler()
    future = scheduler.after(SOON, list).future
    scheduler.shutdown()
    assert future.cancelled()


def test_nothing_of_a_followed_task_stays(manual: World) -> None:
    class Result:
        pass

    task = manual.scheduler.after(0, Result)
    assert not task.future.done()
    manual.advance(0)
    dead = weakref.ref(task.result(0)), weakref.ref(task.future)
    gc.disable()
    try:
        del task
        assert [ref() for ref in dead] == [None, None], "no circle is left"
    finally:
        gc.enable()


def test_a_circle_through_a_result_is_collected(manual: World) -> None:
    class Result:
        task: Task

    task = manual.scheduler.after(0, Result)
    task.future.add_done_callback(lambda _: None)
    manual.advance(0)
    result = task.result(0)
    result.task = task
    dead = weakref.ref(result)
    del task, result
    gc.collect()
    assert dead() is None


# ------------------------------------------------------------------------------ the wait


def test_a_coroutine_awaits_a_task(real: Scheduler) -> None:
    async def main() -> Any:
        return await real.after(0.001, lambda: "result")

    assert on_a_loop(main) == "result"


def test_a_task_that_has_ended_is_awaited_at_once(manual: World) -> None:
    task = manual.scheduler.after(0, lambda: 5)
    manual.advance(0)

    async def main() -> Any:
        return await task, await task

    assert on_a_loop(main) == (5, 5)


def test_a_failure_is_raised_where_it_is_awaited(real: Scheduler) -> None:
    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await real.after(0.001, lambda: 1 / 0)

    on_a_loop(main)


def test_a_cancelled_task_cancels_who_awaits_it(real: Scheduler) -> None:
    async def main() -> None:
        task = real.after(SOON, list)
        asyncio.get_running_loop().call_soon(task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task

    on_a_loop(main)


def test_many_await_one_task_and_a_cancel_of_one_ends_one_wait(real: Scheduler) -> None:
    gate = Gate("all")

    async def wait(task: Task) -> Any:
        return await task

    async def main() -> Any:
        task = real.after(0, gate)
        waits = [asyncio.ensure_future(wait(task)) for _ in range(5)]
        await asyncio.sleep(0)
        waits[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits[0]
        assert not task.done() and task.info().state.name != "CANCELLED"
        gate.open()
        return await asyncio.gather(*waits[1:])

    assert on_a_loop(main) == ["all"] * 4


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="asyncio itself keeps the frames of a wait that timed out"
)
def test_a_wait_that_was_given_up_leaves_nothing(real: Scheduler) -> None:
    async def main() -> None:
        task = real.after(SOON, list)
        for _ in range(100):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(_awaited(task), 0.0001)
        # What watches a task holds it. The tracebacks of the timeouts go with the collector.
        dead = weakref.ref(task)
        del task
        gc.collect()
        assert dead() is None

    on_a_loop(main)


async def _awaited(task: Task) -> Any:
    return await task


def test_two_loops_await_one_task(real: Scheduler) -> None:
    gate = Gate("both")
    task = real.after(0, gate)
    gate.entered()
    reached = threading.Barrier(3)

    async def main() -> Any:
        asyncio.get_running_loop().call_soon(reached.wait, WATCHDOG)
        return await task

    threads = [Thread(on_a_loop, main) for _ in range(2)]
    reached.wait(WATCHDOG)
    gate.open()
    assert [thread.outcome() for thread in threads] == ["both", "both"]


def test_gather_wait_for_and_wrap_future_take_a_task(real: Scheduler) -> None:
    async def main() -> Any:
        tasks = [real.after(0.001, lambda n=n: n) for n in range(3)]
        wrapped = asyncio.wrap_future(tasks[0].future)
        return await asyncio.gather(*tasks), await asyncio.wait_for(tasks[1], SOON), await wrapped

    assert on_a_loop(main) == ([0, 1, 2], 1, 0)


def test_cancelling_a_wrapped_future_cancels_the_waiting_task(real: Scheduler) -> None:
    async def main() -> None:
        task = real.after(SOON, list)
        wrapped = asyncio.wrap_future(task.future)
        wrapped.cancel()
        await asyncio.sleep(0)
        assert await asyncio.to_thread(task.wait, WATCHDOG) and task.cancelled()

    on_a_loop(main)


def test_a_job_cannot_await_its_own_task(real: Scheduler) -> None:
    cell: list[Task] = []
    ready = threading.Event()

    def job() -> None:
        assert ready.wait(WATCHDOG)
        on_a_loop(lambda: _awaited(cell[0]))

    cell.append(real.after(0, job))
    ready.set()
    with pytest.raises(RuntimeError, match="waits for it"):
        cell[0].result(WATCHDOG)


def test_a_loop_that_is_closed_meanwhile_harms_nothing() -> None:
    # python/asyncio#258
    clean_run("""
        import asyncio, threading
        from duetime import Scheduler

        opened = threading.Event()
        scheduler = Scheduler()
        task = scheduler.after(0, opened.wait)

        async def wait():
            return await task

        loop = asyncio.new_event_loop()
        waiting = loop.create_task(wait())
        loop.run_until_complete(asyncio.sleep(0.01))
        waiting._log_destroy_pending = False  # asyncio's own complaint, which is just
        loop.close()
        opened.set()
        assert task.result(30) is True
        assert asyncio.run(wait()) is True  # from a second loop
        scheduler.shutdown()
    """)


def test_a_closed_loop_keeps_nothing_else_from_being_told(
    real: Scheduler, unraisable: list[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    task = real.after(0, gate)
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(_awaited(task))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    told = threading.Event()
    task.add_done_callback(lambda _: told.set())
    with caplog.at_level(logging.ERROR):
        gate.open()
        assert told.wait(WATCHDOG)
        waiting._log_destroy_pending = False  # type: ignore[attr-defined]
    assert unraisable == [] and caplog.records == []


def test_a_manual_clock_and_an_event_loop_work_together() -> None:
    clock = ManualClock()

    async def main() -> list[Any]:
        with Scheduler(clock=clock) as scheduler:
            tasks = [scheduler.after(n, lambda n=n: n) for n in (1, 2)]
            clock.advance(2)
            return await asyncio.gather(*tasks)

    assert on_a_loop(main) == [1, 2]
