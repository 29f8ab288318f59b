"""Locks, threads and signals: nothing stalls, nothing stays behind."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from support import (
    HOUR,
    SCALE,
    WATCHDOG,
    clean,
    failing,
    noop,
    python,
    scaled,
    together,
    until,
    within,
)

from duetime import DuetimeError, Scheduler, Task, retry


def hammer(scheduler: Scheduler, seed: int, over: threading.Event, beats: list[int]) -> int:
    """Call every method, in a random order, until the time is over."""
    rng, seen = random.Random(seed), 0
    tasks: list[Task] = [scheduler.after(0, noop)]
    calls: list[Callable[[], object]] = [
        lambda: tasks.append(scheduler.after(rng.random() * 0.002, noop)),
        lambda: tasks.append(scheduler.after(0, failing(), retry=retry.FixedDelay(1, 0.001))),
        lambda: tasks.append(scheduler.every(0.001, noop, max_runs=3)),
        lambda: scheduler.after(0.001, noop, id=rng.randint(0, 5)),
        lambda: scheduler.schedule(Task("one", due=0, job=noop), replace=True),
        lambda: scheduler.schedule_all([Task(due=0, job=noop) for _ in range(3)]),
        lambda: scheduler.submit(int, "7").result(WATCHDOG),
        lambda: scheduler.cancel(rng.choice(tasks)),
        lambda: scheduler.cancel(rng.randint(0, 5)),
        lambda: rng.choice(tasks).cancel(),
        lambda: tasks[-1].wait(WATCHDOG),
        lambda: tasks[-1].add_done_callback(noop),
        lambda: (repr(tasks[-1]), tasks[-1].state, tasks[-1].due, tasks[-1].runs),
        lambda: (scheduler.get("one"), scheduler.info("one")),
        lambda: scheduler.forget("one"),
        lambda: (scheduler.tasks(), scheduler.stats(), scheduler.next_due(), scheduler.now()),
        scheduler.wake,
        lambda: scheduler.wait_idle(timeout=0.001),
        lambda: (scheduler.add_listener(tasks.count), scheduler.remove_listener(tasks.count)),
    ]
    while not over.is_set():
        with contextlib.suppress(DuetimeError, ValueError, RuntimeError):
            rng.choice(calls)()
        del tasks[:-50]
        beats[seed] = seen = seen + 1
    return seen


def test_every_method_from_many_threads_at_once(make: Any) -> None:
    """PyO3#4771: two locks, the GIL and the pool's, were taken in both orders."""
    scheduler, over, beats = make(workers=8, history=100), threading.Event(), [0] * 8
    events: list[Any] = []
    scheduler.add_listener(events.append)
    scheduler.add_listener(lambda event: scheduler.stats())
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [
            threading.Thread(target=hammer, args=(scheduler, seed, over, beats), daemon=True)
            for seed in range(8)
        ]
        for thread in threads:
            thread.start()
        end = time.monotonic() + max(0.5, 30 * SCALE)
        while time.monotonic() < end:
            before = list(beats)
            until(lambda before=before: all(map(int.__gt__, beats, before)), "every thread moves")
            events.clear()
        over.set()
        for thread in threads:
            thread.join(WATCHDOG)
            assert not thread.is_alive(), "a hammering thread hangs"
    finally:
        over.set()
        sys.setswitchinterval(interval)
    assert within(lambda: scheduler.wait_idle(WATCHDOG))


class SlowError(Exception):
    """Its text needs time, and the scheduler."""

    scheduler: Scheduler

    def __str__(self) -> str:
        if self.scheduler.after(0, noop).wait(WATCHDOG):
            self.scheduler.after(HOUR, noop).cancel()
        time.sleep(0.001)
        return f"{self.scheduler.stats().workers >= 0}"


@pytest.mark.parametrize("recurring", [False, True])
def test_an_exception_whose_text_needs_the_scheduler_stalls_nothing(
    make: Any, recurring: bool
) -> None:
    """PyO3#4764: str() of the error ran Python code while a lock was held."""
    scheduler = make(workers=4)
    texts: list[str] = []
    scheduler.add_listener(lambda event: texts.append(f"{event.error}"))

    def job() -> None:
        error = SlowError()
        error.scheduler = scheduler
        raise error

    if recurring:
        tasks = [scheduler.every(0.001, job, max_runs=5, id="x")]
    else:
        tasks = [scheduler.after(0, job, id=number) for number in range(2)]
    assert scheduler.after(0, noop).wait(WATCHDOG)
    for task in tasks:
        assert isinstance(task.exception(WATCHDOG), SlowError)
        assert isinstance(within(scheduler.info, task.id).error, str)
        assert isinstance(within(repr, task), str)
    assert within(scheduler.tasks)


def test_a_signal_handler_may_call_the_scheduler() -> None:
    """Tron#591: the handler waited for a lock that the interrupted frame held."""
    code = f"""
        import signal, duetime
        scheduler, hits, rounds = duetime.Scheduler(2, history=10), [], {scaled(5000, 100)}
        def handler(signum, frame):
            hits.append(1)
            task = scheduler.after(0.0001, int)
            scheduler.cancel(scheduler.after(3600, int))
            scheduler.tasks(), scheduler.stats(), scheduler.next_due()
            task.cancel()
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        while len(hits) < rounds:
            scheduler.schedule(duetime.Task(due=0, job=int))
            scheduler.after(0.001, int)
            scheduler.wait_idle(timeout=0.002)
        signal.signal(signal.SIGALRM, lambda *_: scheduler.shutdown(wait=False))
        refused = False
        while not refused:
            try:
                scheduler.schedule(duetime.Task(due=0, job=int))
                scheduler.wait_idle()
            except duetime.SchedulerClosedError:
                refused = True
        signal.setitimer(signal.ITIMER_REAL, 0, 0)
        assert scheduler.shutdown()
        print("well")
    """
    assert clean(python(code)) == ["well"]


@pytest.mark.parametrize("wait", ["wait_idle()", "task.wait()", "task.result()", "shutdown()"])
def test_a_wait_is_interrupted_and_leaves_the_scheduler_usable(wait: str) -> None:
    """Tron#591: the signal of Ctrl-C reaches a thread that waits, and only that wait ends."""
    call = wait if wait.startswith("task") else f"scheduler.{wait}"
    code = f"""
        import os, signal, threading, duetime
        signal.signal(signal.SIGINT, signal.default_int_handler)
        scheduler, gate, entered = duetime.Scheduler(2), threading.Event(), threading.Event()
        def job():
            entered.set()
            gate.wait(30)
        task = scheduler.after(0, job)
        assert entered.wait(30)
        try:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            {call}
        except KeyboardInterrupt:
            print("interrupted", task.state.name)
        gate.set()
        assert task.wait(30)
        if "shutdown" not in {wait!r}:
            assert scheduler.after(0, int).wait(30)
        scheduler.shutdown()
    """
    assert clean(python(code)) == ["interrupted", "RUNNING"]


def test_the_threads_of_a_pool_leave_no_trace_in_threading(make: Any) -> None:
    """cpython#114423: each foreign thread that logged left a dummy Thread object."""
    logger = logging.getLogger("duetime.test")
    handler = logging.StreamHandler(open(os.devnull, "w"))  # noqa: SIM115
    handler.setFormatter(logging.Formatter("%(threadName)s %(message)s"))
    logger.addHandler(handler)
    before, names = threading.enumerate(), []

    def job() -> None:
        logger.error("from a job")
        names.append(threading.current_thread().name)

    try:
        for _ in range(scaled(1000, 20)):
            with Scheduler(2) as scheduler:
                assert scheduler.after(0, job).wait(WATCHDOG)
    finally:
        logger.removeHandler(handler)
        handler.stream.close()
    until(lambda: threading.enumerate() == before, "the threads that were there before")
    assert set(names) <= {"duetime-0", "duetime-1"}


def test_one_pool_in_use_does_not_grow_the_list_of_threads(make: Any) -> None:
    """cpython#114423: nor does a pool that lives on, by the number of its jobs."""
    scheduler, barrier = make(workers=4), threading.Barrier(4)
    for _ in range(scaled(1000, 20)):
        tasks = [
            scheduler.after(0, lambda: (barrier.wait(WATCHDOG), threading.current_thread()))
            for _ in range(4)
        ]
        assert len({task.result(WATCHDOG)[1] for task in tasks}) == 4
        assert len([t for t in threading.enumerate() if t.name.startswith("duetime-")]) <= 4
    assert together(*[scheduler.stats] * 8)
