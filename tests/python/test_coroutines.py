"""Coroutine jobs: on an event loop, holding no worker, and otherwise like any job."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import gc
import itertools
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Log, Thread, clean_run, run_python

from duetime import (
    CancelOutcome,
    FixedDelay,
    JobReturnedFalse,
    ManualClock,
    Scheduler,
    Task,
    TaskState,
    current_run,
    retry,
)

COLOUR: ContextVar[str] = ContextVar("COLOUR", default="none")


class Sleeper:
    """A coroutine job that says when it sleeps, and sleeps until it is woken or cancelled."""

    def __init__(self, answer: Any = "woken", stubborn: bool = False) -> None:
        self.answer = answer
        self.stubborn = stubborn
        self.asleep = threading.Semaphore(0)
        self.cancelled = threading.Event()
        self._woken: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def __call__(self) -> Any:
        event = asyncio.Event()
        self._woken.append((asyncio.get_running_loop(), event))
        self.asleep.release()
        try:
            await event.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            if not self.stubborn:
                raise
        return self.answer

    def falls_asleep(self) -> None:
        assert self.asleep.acquire(timeout=WATCHDOG), "the coroutine never began"

    def wake(self) -> None:
        for loop, event in self._woken:
            loop.call_soon_threadsafe(event.set)


@pytest.fixture
def caller_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop of the caller's that runs in a thread, and is closed at the end."""
    loop = asyncio.new_event_loop()
    thread = Thread(loop.run_forever)
    yield loop
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
        thread.outcome()
        loop.close()


# ------------------------------------------------------------------------- what a job may be


async def running(task: Task) -> None:
    while not task.running():  # noqa: ASYNC110 - a task does not tell a loop that it starts
        await asyncio.sleep(0)


async def add(one: int, other: int) -> int:
    await asyncio.sleep(0)
    return one + other


class Adder:
    async def method(self, one: int, other: int) -> int:
        return await add(one, other)

    async def __call__(self, one: int, other: int) -> int:
        return await add(one, other)


@pytest.mark.parametrize(
    "job",
    [
        add,
        functools.partial(add),
        lambda one, other: add(one, other),  # noqa: PLW0108 - that is what it is about
        Adder().method,
        Adder(),
    ],
)
def test_what_gives_a_coroutine_is_a_coroutine_job(real: Scheduler, job: Any) -> None:
    assert real.after(0, job, 2, 3).result(WATCHDOG) == 5


def test_a_job_object_may_have_an_async_run(manual: Any) -> None:
    class Report:
        async def run(self, now: float) -> float:
            await asyncio.sleep(0)
            return now

    task = manual.scheduler.after(5, Report())
    manual.advance(5)
    assert task.result(0) == task.due


def test_a_coroutine_is_no_result_and_other_awaitables_are(real: Scheduler) -> None:
    class Awaitable:
        def __await__(self) -> Any:
            raise AssertionError("nobody awaits it")

    thing = Awaitable()
    assert real.after(0, lambda: thing).result(WATCHDOG) is thing


@pytest.mark.parametrize(
    "error", [ValueError("no"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), MemoryError()]
)
def test_what_it_raises_is_its_error_and_the_loop_lives(
    real: Scheduler, error: BaseException
) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise error

    task = real.after(0, fail)
    assert task.exception(WATCHDOG) is error
    assert task.state is TaskState.FAILED
    assert real.after(0, add, 1, 1).result(WATCHDOG) == 2


def test_false_is_a_failure_and_none_is_none(real: Scheduler) -> None:
    async def give(value: Any) -> Any:
        return value

    assert isinstance(real.after(0, give, False).exception(WATCHDOG), JobReturnedFalse)
    assert real.after(0, give, None).result(WATCHDOG) is None


def test_the_first_step_may_fail_before_any_await(real: Scheduler) -> None:
    async def fail() -> None:
        raise ValueError("at once")

    assert isinstance(real.after(0, fail).exception(WATCHDOG), ValueError)


# ----------------------------------------------------------------------- it is like any job


def test_it_holds_no_worker(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler = make_scheduler(1)
    sleeper = Sleeper()
    tasks = [scheduler.after(0, sleeper) for _ in range(3)]
    for _ in tasks:
        sleeper.falls_asleep()
    assert all(task.running() for task in tasks)
    assert scheduler.stats().running == 3
    assert scheduler.after(0, lambda: "free").result(WATCHDOG) == "free"
    assert not scheduler.wait_idle(0.001)
    sleeper.wake()
    assert [task.result(WATCHDOG) for task in tasks] == ["woken"] * 3
    assert scheduler.wait_idle(WATCHDOG)


def test_ten_thousand_sleep_at_once_on_four_workers(real: Scheduler) -> None:
    asleep = threading.Semaphore(0)
    gates: list[asyncio.Event] = []

    async def sleep(n: int) -> int:
        if not gates:
            gates.append(asyncio.Event())
        asleep.release()
        await gates[0].wait()
        return n

    tasks = [real.after(0, sleep, n) for n in range(10_000)]
    for _ in tasks:
        assert asleep.acquire(timeout=WATCHDOG)
    assert real.stats().running >= 10_000
    assert len({thread.name for thread in threading.enumerate()} & {"duetime-loop"}) == 1
    assert real.after(0, lambda: "workers are idle").result(WATCHDOG) == "workers are idle"

    async def open_it() -> None:
        gates[0].set()

    real.after(0, open_it)
    assert [task.result(WATCHDOG) for task in tasks] == list(range(10_000))


def test_it_is_retried_and_recurs(manual: Any) -> None:
    log = Log()
    manual.scheduler.add_listener(log)
    attempts: list[int] = []

    async def flaky() -> int:
        await asyncio.sleep(0)
        attempts.append(len(attempts))
        if len(attempts) == 1:
            raise ValueError("first")
        return len(attempts)

    task = manual.scheduler.every(
        60, flaky, id="flaky", retry=retry.FixedDelay(1, 5), max_runs=2, first=0
    )
    manual.advance(60)
    assert task.result(0) == 3
    assert (task.runs, task.failures) == (3, 1)
    run = ["STARTED", "COMPLETED"]
    assert log.kinds("flaky") == [
        *("SCHEDULED", "DUE", "STARTED", "FAILED"),
        *("DUE", *run, "DUE", *run),
    ]


def test_a_fixed_delay_counts_from_its_end(manual: Any) -> None:
    ends: list[float] = []

    async def job() -> None:
        await asyncio.sleep(0)
        ends.append(manual.now())

    task = manual.scheduler.every(FixedDelay(10), job, first=0, max_runs=3)
    manual.advance(30)
    assert task.runs == 3
    assert [b - a for a, b in itertools.pairwise(ends)] == [10, 10]


def test_advance_waits_for_it() -> None:
    clock = ManualClock()
    ended: list[bool] = []

    async def job() -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        ended.append(True)

    with Scheduler(clock=clock) as scheduler:
        scheduler.after(1, job)
        clock.advance(1)
        assert ended == [True]


def test_it_never_overlaps_itself(real: Scheduler) -> None:
    sleeper = Sleeper()
    task = real.every(0.001, sleeper, first=0, max_runs=2)
    sleeper.falls_asleep()
    real.after(0.02, list).result(WATCHDOG)
    assert task.runs == 0 and task.running()
    sleeper.wake()
    sleeper.falls_asleep()
    assert task.missed > 0
    sleeper.wake()
    assert task.wait(WATCHDOG)


# ------------------------------------------------------------------------ context and run


def test_it_runs_in_a_fresh_copy_of_its_context(real: Scheduler) -> None:
    async def paint() -> str:
        before = COLOUR.get()
        COLOUR.set("painted")
        await asyncio.sleep(0)
        assert COLOUR.get() == "painted"
        return before

    token = COLOUR.set("red")
    task = real.every(0.001, paint, first=0, max_runs=3)
    COLOUR.reset(token)
    assert task.result(WATCHDOG) == "red"
    assert real.after(0, paint).result(WATCHDOG) == "none"


def test_current_run_tells_of_its_run_on_the_loop(real: Scheduler) -> None:
    async def ask() -> Any:
        return current_run()

    async def job() -> None:
        await asyncio.sleep(0)
        mine = current_run()
        assert mine is not None
        elsewhere = [await asyncio.create_task(ask()), await asyncio.to_thread(current_run)]
        seen.append((mine.id, {run.number for run in elsewhere}, mine.attempt))

    seen: list[Any] = []
    tasks = [real.every(0.001, job, id=f"job {n}", first=0, max_runs=2) for n in range(3)]
    for task in tasks:
        task.result(WATCHDOG)
    assert sorted(seen) == [(f"job {n}", {number}, 1) for n in range(3) for number in (1, 2)]
    assert current_run() is None


def test_a_run_that_ended_is_not_current_in_what_it_left(real: Scheduler) -> None:
    left: list[Any] = []

    async def later(ended: asyncio.Event) -> None:
        await ended.wait()
        left.append(current_run())

    async def job(cell: list[Any]) -> None:
        event = asyncio.Event()
        cell.append((event, asyncio.create_task(later(event))))

    cell: list[Any] = []
    real.after(0, job, cell).result(WATCHDOG)

    async def wake() -> None:
        event, task = cell[0]
        event.set()
        await task

    real.after(0, wake).result(WATCHDOG)
    assert left == [None]


def test_it_may_not_wait_for_itself(real: Scheduler) -> None:
    cell: list[Task] = []
    ready = threading.Event()

    async def job() -> None:
        assert await asyncio.to_thread(ready.wait, WATCHDOG)
        with pytest.raises(RuntimeError, match="wait_idle"):
            real.wait_idle()
        with pytest.raises(RuntimeError, match="wait_idle"):
            await asyncio.to_thread(real.wait_idle)
        with pytest.raises(RuntimeError):
            cell[0].result()
        with pytest.raises(RuntimeError):
            await cell[0]

    cell.append(real.after(0, job))
    ready.set()
    cell[0].result(WATCHDOG)


def test_it_may_not_move_its_clock() -> None:
    clock = ManualClock()

    async def job() -> None:
        with pytest.raises(RuntimeError, match="clock"):
            clock.advance(1)

    with Scheduler(clock=clock) as scheduler:
        task = scheduler.after(0, job)
        clock.advance(0)
        task.result(0)


def test_shutdown_inside_one_does_not_wait() -> None:
    scheduler = Scheduler()

    async def job() -> bool:
        return scheduler.shutdown()

    task = scheduler.after(0, job)
    assert isinstance(task.exception(WATCHDOG), JobReturnedFalse)
    assert scheduler.shutdown(timeout=WATCHDOG)


def test_coroutine_jobs_await_tasks_and_schedule_more(real: Scheduler) -> None:
    async def parent() -> int:
        children = [real.after(0.001, add, n, n) for n in range(3)]
        return sum(await asyncio.gather(*children))

    assert real.after(0, parent).result(WATCHDOG) == 6


# --------------------------------------------------------------------------------- cancel


def test_a_stop_cancels_it_and_the_task_is_cancelled(real: Scheduler) -> None:
    sleeper = Sleeper()
    log = Log()
    real.add_listener(log)
    task = real.after(0, sleeper, id="sleeper", retry=retry.FixedDelay(3, 0))
    sleeper.falls_asleep()
    assert task.cancel() is CancelOutcome.STOPPING
    assert task.wait(WATCHDOG) and sleeper.cancelled.is_set()
    assert task.cancelled() and task.runs == 1
    with pytest.raises(concurrent.futures.CancelledError):
        task.result(0)
    real.wait_idle(WATCHDOG)
    assert log.kinds("sleeper") == ["SCHEDULED", "DUE", "STARTED", "FAILED", "CANCELLED"]
    assert isinstance(log.of("FAILED")[0].error, concurrent.futures.CancelledError)


def test_one_that_survives_the_cancellation_ends_as_it_ran(real: Scheduler) -> None:
    sleeper = Sleeper("survived", stubborn=True)
    task = real.after(0, sleeper)
    sleeper.falls_asleep()
    task.cancel()
    assert task.result(WATCHDOG) == "survived"
    series = real.every(1, sleeper, first=0)
    sleeper.falls_asleep()
    series.cancel()
    assert series.wait(WATCHDOG) and series.cancelled()


def test_one_that_cancels_itself_has_failed(real: Scheduler) -> None:
    async def job() -> None:
        raise asyncio.CancelledError

    task = real.after(0, job)
    assert isinstance(task.exception(WATCHDOG), concurrent.futures.CancelledError)
    assert task.state is TaskState.FAILED


def test_a_stop_before_it_begins(make_scheduler: Callable[..., Scheduler]) -> None:
    gate = Gate()
    ran: list[int] = []

    async def block() -> None:
        gate()

    async def job() -> None:
        ran.append(1)

    scheduler = make_scheduler(1)
    first = scheduler.after(0, block)
    gate.entered()  # the loop is busy
    second = scheduler.after(0, job)
    while not second.running():
        pass
    scheduler.after(0, list).result(WATCHDOG)  # the worker has handed the second on
    assert second.cancel() is CancelOutcome.STOPPING
    gate.open()
    assert second.wait(WATCHDOG) and second.cancelled() and ran == []
    first.result(WATCHDOG)


def test_stop_requested_is_seen_inside(real: Scheduler) -> None:
    async def job() -> bool:
        try:
            asleep.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            run = current_run()
            assert run is not None
            return run.stop_requested
        return False

    asleep = threading.Event()
    task = real.after(0, job)
    assert asleep.wait(WATCHDOG)
    task.cancel()
    assert task.result(WATCHDOG) is True


@pytest.mark.parametrize("drain", [False, True])
def test_a_shutdown_cancels_what_sleeps_and_ends_the_loop(drain: bool) -> None:
    scheduler = Scheduler(name="ending")
    sleeper = Sleeper()
    tasks = [scheduler.after(0, sleeper) for _ in range(100)]
    for _ in tasks:
        sleeper.falls_asleep()
    if drain:
        sleeper.wake()
    assert scheduler.shutdown(drain=drain, timeout=WATCHDOG)
    assert all(task.done() for task in tasks)
    assert not [t for t in threading.enumerate() if t.name.startswith("ending")]


def test_the_last_reference_cancels_what_sleeps() -> None:
    scheduler = Scheduler(name="dropped")
    sleeper = Sleeper()
    task = scheduler.after(0, sleeper)
    sleeper.falls_asleep()
    [loop] = [t for t in threading.enumerate() if t.name == "dropped-loop"]
    del scheduler
    gc.collect()
    assert task.wait(WATCHDOG) and task.cancelled()
    loop.join(WATCHDOG)
    assert not loop.is_alive()


def test_what_a_job_left_on_the_loop_ends_with_it() -> None:
    clean_run("""
        import asyncio
        from duetime import Scheduler

        ended = []

        async def stray():
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append(True)

        async def job():
            job.task = asyncio.create_task(stray())
            await asyncio.sleep(0)

        with Scheduler() as scheduler:
            scheduler.after(0, job).result(30)
        assert ended == [True]
    """)


def test_the_interpreter_exits_with_coroutines_asleep() -> None:
    clean_run("""
        import asyncio
        from duetime import Scheduler

        scheduler = Scheduler()
        tasks = [scheduler.after(0, asyncio.sleep, 1e6) for _ in range(10)]
        scheduler.every(0.001, asyncio.sleep, 0)
        while not all(task.running() for task in tasks):
            pass
    """)


def test_nothing_of_a_run_stays(real: Scheduler) -> None:
    class Value:
        pass

    dead: list[Any] = []

    async def job(value: Value) -> Value:
        await asyncio.sleep(0)
        if len(dead) == 2:
            raise ValueError(value)
        return value

    for _ in range(3):
        value = Value()
        dead.append(weakref.ref(value))
        task = real.after(0, job, value)
        task.wait(WATCHDOG)
        del task, value
    real.wait_idle(WATCHDOG)
    # The loop's last callback holds its frame until the next one.
    real.after(0, add, 1, 1).result(WATCHDOG)
    gc.collect()
    assert [ref() for ref in dead] == [None] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_leaves_them_to_its_parent_and_runs_its_own() -> None:
    clean_run("""
        import asyncio, os, threading, warnings
        from duetime import ForkedError, Scheduler

        warnings.simplefilter("ignore")  # of a fork with threads
        asleep = threading.Event()

        async def job(value):
            await asyncio.sleep(0)
            return value

        async def sleep():
            asleep.set()
            await asyncio.sleep(1e6)

        scheduler = Scheduler()
        task = scheduler.after(0, sleep)
        assert asleep.wait(30)
        child = os.fork()
        if child == 0:
            try:
                task.cancel()
            except ForkedError:
                with Scheduler() as new:
                    assert new.after(0, job, 7).result(30) == 7
        else:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert scheduler.after(0, job, 8).result(30) == 8
            task.cancel()
            assert task.wait(30) and task.cancelled()
    """)


# ------------------------------------------------------------------------ the caller's loop


def test_it_runs_on_the_loop_of_the_caller(caller_loop: asyncio.AbstractEventLoop) -> None:
    async def job() -> bool:
        return asyncio.get_running_loop() is caller_loop

    with Scheduler(loop=caller_loop) as scheduler:
        assert scheduler.after(0, job).result(WATCHDOG) is True
    assert caller_loop.is_running()
    assert not [t for t in threading.enumerate() if t.name.endswith("-loop")]


def test_a_scheduler_in_a_coroutine_uses_its_loop() -> None:
    async def main() -> Any:
        async with Scheduler(loop=asyncio.get_running_loop()) as scheduler:
            sleeping = scheduler.after(0, asyncio.sleep, 3600)
            result = await scheduler.after(0, add, 1, 2)
            with pytest.raises(RuntimeError):
                scheduler.wait_idle()
            await running(sleeping)
        assert scheduler.closed and sleeping.cancelled()
        return result

    assert asyncio.run(asyncio.wait_for(main(), WATCHDOG)) == 3


def test_shutdown_on_the_thread_of_the_loop_does_not_wait() -> None:
    async def main() -> None:
        scheduler = Scheduler(loop=asyncio.get_running_loop())
        task = scheduler.after(0, asyncio.sleep, 3600)
        await running(task)
        assert scheduler.shutdown() is False
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(scheduler.shutdown, timeout=WATCHDOG)

    asyncio.run(asyncio.wait_for(main(), WATCHDOG))


def test_a_loop_that_is_closed_fails_its_runs(caller_loop: asyncio.AbstractEventLoop) -> None:
    scheduler = Scheduler(loop=caller_loop)
    sleeper = Sleeper()
    tasks = [scheduler.after(0, sleeper) for _ in range(3)]
    for _ in tasks:
        sleeper.falls_asleep()
    caller_loop.call_soon_threadsafe(caller_loop.stop)
    while caller_loop.is_running():
        pass
    never_begun = scheduler.after(0, sleeper)
    while not never_begun.running():
        pass
    scheduler.after(0, list).result(WATCHDOG)
    caller_loop.close()
    for task in [*tasks, never_begun]:
        with pytest.raises(RuntimeError, match="loop"):
            task.result(WATCHDOG)
    late = scheduler.after(0, sleeper)
    with pytest.raises(RuntimeError, match="closed"):
        late.result(WATCHDOG)
    assert scheduler.shutdown(timeout=WATCHDOG)
    sleeper._woken.clear()
    gc.collect()  # nothing complains


def test_a_loop_that_was_stopped_holds_no_shutdown_up() -> None:
    loop = asyncio.new_event_loop()
    scheduler = Scheduler(loop=loop)
    sleeper = Sleeper()
    task = scheduler.after(0, sleeper)

    async def until_it_sleeps() -> None:
        await asyncio.to_thread(sleeper.falls_asleep)

    loop.run_until_complete(until_it_sleeps())
    assert scheduler.shutdown(timeout=WATCHDOG)
    with pytest.raises(RuntimeError, match="does not run"):
        task.result(0)
    loop.run_until_complete(asyncio.sleep(0))  # it is cancelled, should the loop go on
    loop.run_until_complete(loop.shutdown_default_executor())
    assert sleeper.cancelled.is_set()
    loop.close()


def test_a_series_on_a_closed_loop_fails_each_time_and_goes_on() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    clock = ManualClock()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Scheduler(clock=clock, loop=loop) as scheduler:
            task = scheduler.every(1, add, 1, 1, first=0)
            clock.advance(2)
            assert (task.runs, task.failures) == (3, 3)
            gc.collect()


def test_a_loop_that_is_closed_under_asyncio_run() -> None:
    clean_run("""
        import asyncio
        from duetime import Scheduler

        async def main():
            global scheduler, task
            scheduler = Scheduler(loop=asyncio.get_running_loop())
            task = scheduler.after(0, asyncio.sleep, 3600)
            while not task.running():
                await asyncio.sleep(0)

        asyncio.run(main())
        assert task.exception(30) is not None
        assert scheduler.shutdown(timeout=30)
    """)


def test_a_factory_makes_the_loop_of_the_scheduler() -> None:
    made: list[asyncio.AbstractEventLoop] = []

    def make() -> asyncio.AbstractEventLoop:
        made.append(asyncio.new_event_loop())
        return made[-1]

    async def job() -> Any:
        return asyncio.get_running_loop()

    with Scheduler(loop=make) as scheduler:
        assert made == [], "only with the first coroutine"
        loops = {scheduler.after(0, job).result(WATCHDOG) for _ in range(3)}
    assert loops == set(made) and len(made) == 1
    assert made[0].is_closed()


def test_a_factory_that_fails_fails_the_run(make_scheduler: Callable[..., Scheduler]) -> None:
    def make() -> Any:
        raise OSError("no loop today")

    scheduler = make_scheduler(loop=make)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(scheduler.after(0, add, 1, 1).exception(WATCHDOG), OSError)
        gc.collect()


def test_a_factory_that_makes_no_loop_fails_the_run(
    make_scheduler: Callable[..., Scheduler],
) -> None:
    task = make_scheduler(loop=dict).after(0, add, 1, 1)
    assert isinstance(task.exception(WATCHDOG), TypeError)


@pytest.mark.parametrize("loop", [3, "loop", object()])
def test_what_is_no_loop_is_refused(loop: Any) -> None:
    with pytest.raises(TypeError, match="loop"):
        Scheduler(loop=loop)


def test_uvloop_runs_them() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def job() -> str:
        await asyncio.sleep(0.001)
        return type(asyncio.get_running_loop()).__module__

    with Scheduler(loop=uvloop.new_event_loop) as scheduler:
        sleeping = scheduler.after(0, asyncio.sleep, 3600)
        assert scheduler.after(0, job).result(WATCHDOG).startswith("uvloop")
        sleeping.cancel()
        assert sleeping.wait(WATCHDOG) and sleeping.cancelled()
    loop = uvloop.new_event_loop()
    scheduler = Scheduler(loop=loop)
    task = scheduler.after(0, asyncio.sleep, 3600)

    async def until_it_runs() -> None:
        await running(task)
        await asyncio.sleep(0.01)

    loop.run_until_complete(until_it_runs())
    loop.close()
    assert isinstance(task.exception(WATCHDOG), RuntimeError)
    assert scheduler.shutdown(timeout=WATCHDOG)


def test_plain_jobs_start_no_loop_and_import_no_asyncio() -> None:
    done = run_python("""
        import sys
        from duetime import Scheduler

        with Scheduler() as scheduler:
            scheduler.after(0, list).result(30)
        print("asyncio" in sys.modules)
    """)
    assert (done.stdout.strip(), done.stderr) == ("False", "")
