"""The garbage collector: a circle through a scheduler goes when nobody can reach it, and
nothing goes that a thread is about to call.
"""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, clean_run

from duetime import Event, EventKind, Run, Scheduler, Task, current_run
from duetime.testing import virtual_time


class Marker:
    """Something to watch the life of."""


def collected(reference: weakref.ref[Any]) -> bool:
    for _ in range(3):
        gc.collect()
    return reference() is None


def test_a_failing_job_that_keeps_its_run_leaves_nothing() -> None:
    markers: list[weakref.ref[Marker]] = []

    def job() -> None:
        marker = Marker()
        markers.append(weakref.ref(marker))
        run = current_run()
        assert run is not None and not run.stop_requested
        raise ValueError(marker)

    with virtual_time() as (scheduler, clock):
        task = scheduler.after(0, job)
        clock.advance(0)
        assert isinstance(task.exception(0), ValueError)
        assert markers[0]() is not None, "its holder can still ask for the traceback"
        del task
        assert collected(markers[0])


def test_a_run_that_is_kept_tells_the_truth_after_the_end() -> None:
    runs: list[Run] = []
    gates = [Gate(), Gate()]

    def job() -> None:
        run = current_run()
        assert run is not None
        runs.append(run)
        gates[run.number - 1]()

    with Scheduler(1) as scheduler:
        task = scheduler.every(0.001, job, id="series", first=0)
        gates[0].entered()
        gates[0].open()
        gates[1].entered()
        assert not runs[0].stop_requested, "it ended unasked"
        scheduler.cancel("series")
        gates[1].open()
        assert task.wait(WATCHDOG)
        first, second = runs
        assert (first.id, first.number, first.stop_requested) == ("series", 1, False)
        assert (second.id, second.number, second.stop_requested) == ("series", 2, True)


def test_a_scheduler_in_a_circle_is_finalized_while_all_of_it_still_works() -> None:
    code = """
import gc, threading, weakref
from duetime import *

class App:
    def __init__(self):
        self.seen = []
        self.scheduler = Scheduler(2)
        self.scheduler.add_listener(self.on_event, [EventKind.CANCELLED])
        self.task = self.scheduler.after(3600, self.job)
        self.task.add_done_callback(self.done)
    def job(self): pass
    def on_event(self, event): seen.append(event.kind.name)
    def done(self, task): seen.append(task.state.name)

seen = []
for _ in range(200):
    seen.clear()
    reference = weakref.ref(App())
    gc.collect()
    assert reference() is None
    assert seen == ["CANCELLED", "CANCELLED"], seen
"""
    clean_run(code)


def test_listeners_that_are_being_called_survive_the_collector() -> None:
    code = """
import gc, sys, threading
from duetime import *

sys.setswitchinterval(1e-5)

def circle(depth):
    class App:
        pass
    app = App()
    values = list(range(50))
    def listener(event):
        app.count += sum(values)  # its globals and cells, while the collector looks on
    app.count = 0
    app.listener = listener
    app.scheduler = Scheduler(2)
    app.scheduler.add_listener(listener)
    for n in range(40):
        app.scheduler.after(0, listener, n)
        app.scheduler.every(0.0001, listener, n, first=0)

for depth in range(12):
    circle(depth)
    gc.collect()
"""
    clean_run(code)


@pytest.mark.parametrize("kinds", [[EventKind.COMPLETED], None])
def test_a_scheduler_that_is_dropped_while_its_job_runs_calls_nothing_dead(
    kinds: list[EventKind] | None,
) -> None:
    gate, ended = Gate(), threading.Event()

    class App:
        def __init__(self) -> None:
            self.scheduler = Scheduler(1)
            self.scheduler.add_listener(self.on_event, kinds)
            self.task = self.scheduler.after(0, gate)
            self.task.add_done_callback(self.done)

        def on_event(self, event: Event) -> None:
            assert self.scheduler is not None

        def done(self, task: Task) -> None:
            assert self.task is task
            ended.set()

    app: App | None = App()
    reference = weakref.ref(app)
    gate.entered()
    app = None
    gc.collect()
    assert reference() is not None, "the worker is going to call it"
    gate.open()
    assert ended.wait(WATCHDOG)


def test_a_subclass_may_have_arguments_of_its_own() -> None:
    class Own(Scheduler):
        def __init__(self, database: str, *, size: int) -> None:
            super().__init__(size, name=database)
            self.database = database

    with Own("db", size=2) as scheduler:
        assert (scheduler.workers, scheduler.name, scheduler.database) == (2, "db", "db")
        assert scheduler.after(0, lambda: "works").result(WATCHDOG) == "works"
        with pytest.raises(RuntimeError, match="before"):
            Scheduler.__init__(scheduler)

    class Forgot(Scheduler):
        def __init__(self) -> None:
            pass

    for call in (Forgot().now, Forgot().stats, Forgot().shutdown, Forgot().wait_idle):
        with pytest.raises(RuntimeError, match="__init__ was not called"):
            call()
    assert "not initialized" in repr(Forgot())
