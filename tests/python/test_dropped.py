"""The last reference: dropping a scheduler is a shutdown(wait=False); nothing is left over."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Log, Thread, worker_tids
from worlds import World

from duetime import (
    ManualClock,
    Scheduler,
)


def test_nobody_who_waits_hangs(make_world: Callable[..., World]) -> None:
    world = make_world(workers=2)
    tasks = [world.scheduler.after(3600 + n, int) for n in range(5)]
    future = world.scheduler.submit(int)
    assert future.result(WATCHDOG) == 0
    waiters = [Thread(task.wait) for task in tasks]
    with world.hold():
        waiters.append(Thread(world.scheduler.wait_idle))
        world.scheduler.shutdown(wait=False)
    assert [waiter.outcome() for waiter in waiters] == [True] * 6


def test_after_it_nothing_runs_and_no_event_comes(make_world: Callable[..., World]) -> None:
    world = make_world(workers=4)
    log = world.log()
    for n in range(50):
        world.scheduler.every(0.0001 + n / 10_000, int, id=n)
    assert world.scheduler.shutdown() is True
    heard = len(log.events)
    if world.kind == "manual":
        world.clock.advance(60)
    with Scheduler(1) as other:
        assert other.after(0.02, int).wait(WATCHDOG)
    assert len(log.events) == heard


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_thread_is_left() -> None:
    before = {thread.ident for thread in threading.enumerate()}
    for _ in range(20):
        scheduler = Scheduler(4, name="gone")
        assert scheduler.after(0, int).wait(WATCHDOG)
        assert scheduler.shutdown() is True
        # A thread that was joined may be listed for an instant more.
        deadline = time.monotonic() + WATCHDOG
        while worker_tids("gone-") and time.monotonic() < deadline:
            time.sleep(0.001)
        assert worker_tids("gone-") == {}
    assert {thread.ident for thread in threading.enumerate()} == before


def test_dropping_the_last_reference_cancels_what_waits() -> None:
    scheduler = Scheduler(2)
    gate = Gate()
    running, waiting = scheduler.after(0, gate), scheduler.after(3600, int)
    gate.entered()
    dead = weakref.ref(scheduler)
    del scheduler
    gc.collect()
    assert dead() is None
    with pytest.raises(CancelledError):
        waiting.result(WATCHDOG)
    assert running.running(), "as wait=False"
    gate.open()
    assert running.result(WATCHDOG) == "through"


def test_an_app_that_holds_its_scheduler_is_collected() -> None:
    class App:
        def __init__(self) -> None:
            self.scheduler = Scheduler(1, clock=ManualClock())
            self.log = Log()
            self.task = self.scheduler.every(60, self.work)
            self.scheduler.add_listener(self.listen)

        def work(self) -> None: ...

        def listen(self, event: Any) -> None: ...

    app = App()
    dead = weakref.ref(app)
    del app
    gc.collect()
    assert dead() is None
