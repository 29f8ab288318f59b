"""submit and map: a scheduler is a concurrent.futures.Executor."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Thread
from worlds import World

from duetime import EventKind, Scheduler, SchedulerClosedError


def test_it_is_an_executor(real: Scheduler) -> None:
    assert isinstance(real, Executor)
    future = real.submit(pow, 2, 10)
    assert isinstance(future, Future)
    assert future.result(WATCHDOG) == 1024


def test_arguments_of_any_name_arrive(world: World) -> None:
    def job(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    future = world.scheduler.submit(job, 1, fn=2, self=3, job=4, id=5, priority=6)
    assert future.result(WATCHDOG) == ((1,), {"fn": 2, "self": 3, "job": 4, "id": 5, "priority": 6})


def test_an_error_arrives(world: World) -> None:
    for error in (ValueError("boom"), SystemExit(3), KeyboardInterrupt()):

        def job(error: BaseException = error) -> None:
            raise error

        assert world.scheduler.submit(job).exception(WATCHDOG) is error
    assert world.scheduler.submit(lambda: "alive").result(WATCHDOG) == "alive"


@pytest.mark.parametrize("answer", [False, None, 0, ""], ids=repr)
def test_any_answer_is_a_result(world: World, answer: Any) -> None:
    assert world.scheduler.submit(lambda: answer).result(WATCHDOG) is answer


def test_they_run_in_the_order_of_submitting(world: World) -> None:
    order: list[int] = []
    with world.hold():
        futures = [world.scheduler.submit(order.append, n) for n in range(100)]
    assert not concurrent.futures.wait(futures, WATCHDOG).not_done
    assert order == list(range(100))


def test_a_future_that_waits_can_be_cancelled(world: World) -> None:
    ran: list[int] = []
    with world.hold():
        future = world.scheduler.submit(ran.append, 1)
        assert not future.running()
        assert future.cancel() is True
        assert future.cancelled()
    world.run_until_idle()
    assert ran == []
    with pytest.raises(CancelledError):
        future.result(0)
    assert concurrent.futures.wait([future], WATCHDOG).done == {future}


def test_a_future_that_runs_cannot(world: World) -> None:
    gate = Gate()
    future = world.scheduler.submit(gate)
    gate.entered()
    assert future.running()
    assert future.cancel() is False
    gate.open()
    assert future.result(WATCHDOG) == "through"
    assert future.cancel() is False


def test_callbacks_of_futures(world: World) -> None:
    gate = Gate()
    seen: list[Any] = []
    future = world.scheduler.submit(gate)
    future.add_done_callback(seen.append)
    gate.open()
    assert future.result(WATCHDOG) == "through"
    world.run_until_idle()
    assert seen == [future]


def test_map_keeps_the_order(real: Scheduler) -> None:
    assert list(real.map(lambda a, b: a * b, range(50), range(50))) == [n * n for n in range(50)]
    assert list(real.map(int, [])) == []


def test_map_raises_what_a_call_raised(real: Scheduler) -> None:
    results = real.map(lambda n: 10 // n, [5, 0, 2], timeout=WATCHDOG)
    assert next(results) == 2
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_map_with_a_timeout(real: Scheduler) -> None:
    gate = Gate()
    with pytest.raises(concurrent.futures.TimeoutError):
        list(real.map(gate, [1], timeout=0.01))
    gate.open()


def test_wait_and_as_completed_work(real: Scheduler) -> None:
    futures = [real.submit(lambda n=n: n) for n in range(20)]
    found = [future.result() for future in concurrent.futures.as_completed(futures, WATCHDOG)]
    assert sorted(found) == list(range(20))


def test_asyncio_runs_in_it(real: Scheduler) -> None:
    async def main() -> list[Any]:
        loop = asyncio.get_running_loop()
        one = loop.run_in_executor(real, pow, 2, 5)
        many = [loop.run_in_executor(real, lambda n=n: n) for n in range(50)]
        name = loop.run_in_executor(real, lambda: threading.current_thread().name)
        return [await one, await asyncio.gather(*many), (await name)[:8]]

    assert asyncio.run(main()) == [32, list(range(50)), "duetime-"]


def test_asyncio_sees_errors_and_cancels(real: Scheduler) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(real, lambda: 1 / 0)
        gate = Gate()
        waiting = loop.run_in_executor(real, gate)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.open()

    asyncio.run(main())


def test_shutdown_cancels_the_futures_that_wait(world: World) -> None:
    gate = Gate()
    running = world.scheduler.submit(gate)
    gate.entered()
    waiting = [world.scheduler.submit(int) for _ in range(5)]
    waiter = Thread(concurrent.futures.wait, waiting, WATCHDOG)
    world.scheduler.shutdown(wait=False)
    assert waiter.outcome().not_done == set()
    assert all(future.cancelled() for future in waiting)
    gate.open()
    assert running.result(WATCHDOG) == "through"
    with pytest.raises(SchedulerClosedError):
        world.scheduler.submit(int)


def test_drain_runs_the_futures_that_wait(world: World) -> None:
    gate = Gate()
    world.scheduler.submit(gate)
    gate.entered()
    waiting = [world.scheduler.submit(lambda n=n: n) for n in range(5)]
    world.scheduler.shutdown(wait=False, drain=True)
    gate.open()
    assert world.scheduler.shutdown(drain=True, timeout=WATCHDOG) is True
    assert [future.result(WATCHDOG) for future in waiting] == list(range(5))


def test_a_submit_is_a_task_like_any_other(make_world: Callable[..., World]) -> None:
    """Whoever has its result finds it counted."""
    world = make_world(workers=2)
    for n in range(1, 101):
        assert world.scheduler.submit(int).result(WATCHDOG) == 0
        stats = world.scheduler.stats()
        assert (stats.done, stats.runs, stats.waiting, stats.running) == (n, n, 0, 0)


@pytest.mark.parametrize("job", [int, lambda: 1 / 0], ids=["done", "failed"])
def test_the_listeners_are_told_before_the_future(world: World, job: Callable[[], Any]) -> None:
    told: list[bool] = []
    with world.hold():
        future = world.scheduler.submit(job)
        world.scheduler.add_listener(
            lambda _: told.append(future.done()), kinds=[EventKind.COMPLETED, EventKind.FAILED]
        )
    concurrent.futures.wait([future], WATCHDOG)
    assert told[-1] is False  # before it was told of what held the worker


def test_what_is_not_callable_is_refused(real: Scheduler) -> None:
    with pytest.raises(TypeError):
        real.submit(None)
    with pytest.raises(TypeError):
        real.submit()
