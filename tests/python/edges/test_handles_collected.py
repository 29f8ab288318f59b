"""Handles on one task and the garbage collector: what it may take, and what somebody still has."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, clean_run

from duetime import Scheduler, Task
from duetime.testing import virtual_time


class Marker:
    """Something to watch the life of."""


def collected(reference: weakref.ref[Any]) -> bool:
    for _ in range(3):
        gc.collect()
    return reference() is None


class App:
    """A circle of its own."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.me = self


def test_the_result_outlives_another_handle_on_the_task_that_was_garbage() -> None:
    gate = Gate("answer")
    with Scheduler(1) as scheduler:
        app = App(scheduler.after(0, gate))
        gate.entered()
        task = scheduler.get(app.task.id)
        gate.open()
        assert task is not None and task.result(WATCHDOG) == "answer"
        del app
        gc.collect()
        assert not task.cancelled()
        assert task.result(0) == "answer"


def test_the_error_outlives_another_handle_on_the_task_that_was_garbage() -> None:
    gate = Gate(ValueError("why"))
    with Scheduler(1) as scheduler:
        app = App(scheduler.after(0, gate))
        gate.entered()
        task = scheduler.get(app.task.id)
        gate.open()
        assert task is not None and isinstance(task.exception(WATCHDOG), ValueError)
        del app
        gc.collect()
        assert isinstance(task.error, ValueError)
        assert isinstance(task.exception(0), ValueError)


def test_a_live_series_keeps_its_last_error_when_a_handle_was_garbage() -> None:
    def job() -> None:
        raise ValueError("why")

    with virtual_time() as (scheduler, clock):
        app = App(scheduler.every(1, job, id="series"))
        clock.advance(1)
        del app
        gc.collect()
        task = scheduler.get("series")
        assert task is not None and task.failures == 1
        assert isinstance(task.error, ValueError)


@pytest.mark.parametrize("gone", [False, True], ids=["open", "gone"])
def test_a_recurrence_that_knows_its_task_is_collected_with_it(gone: bool) -> None:
    class Rule:
        task: Task

        def next_due(self, due: float, finished: float) -> float | None:
            return None

    scheduler = Scheduler(1)
    rule = Rule()
    rule.task = scheduler.every(rule, int, first=0)
    assert rule.task.wait(WATCHDOG)
    reference = weakref.ref(rule)
    del rule
    if gone:
        scheduler.shutdown()
        del scheduler
    assert collected(reference)


def test_what_a_run_is_given_was_not_finalized_before() -> None:
    """A circle dies while tasks are due: they run before the finalizers, or not at all."""
    clean_run("""
import gc, sys, threading, weakref
from duetime import *
sys.setswitchinterval(1e-6)
gc.disable()
bad = []
class Arg:
    dead = False
    def __del__(self):
        self.dead = True
        for _ in range(20): sum(range(100))
class App: pass
def job(arg, ref):
    if arg.dead: bad.append("finalized")
    if ref() is None: bad.append("weakref")
for _ in range(200):
    app = App()
    clock = None
    app.me = app
    app.scheduler = Scheduler(2)
    app.args = [Arg() for _ in range(50)]
    for n, arg in enumerate(app.args):
        app.scheduler.after(0.0001 * n, job, arg, weakref.ref(arg))
    del app, arg
    gc.collect()
assert not bad, (len(bad), set(bad))
""")


def test_a_subclass_whose_del_does_not_call_ours_is_taken_apart_without_a_crash() -> None:
    """At a switch interval of 1 µs; most rounds crash (signal 11)."""
    clean_run("""
import gc, sys, time
from duetime import *
sys.setswitchinterval(1e-6)
gc.set_threshold(1)
class Own(Scheduler):
    def __del__(self): pass
def circle(i):
    class App: pass
    app = App()
    values = list(range(20))
    def listener(event=None):
        app.count = sum(values)
    app.scheduler = Own(2)
    app.scheduler.app = app
    app.scheduler.add_listener(listener)
    for n in range(10):
        app.scheduler.every(0.0002, listener, first=0)
deadline = time.monotonic() + 15
n = 0
while n < 300 and time.monotonic() < deadline:
    circle(n)
    n += 1
    if n % 3 == 0:
        gc.collect()
""")


def test_a_cancelled_task_lets_go_of_its_recurrence_at_once() -> None:
    class Rule:
        def next_due(self, due: float, finished: float) -> float | None:
            return due + 1000

    with virtual_time() as (scheduler, _clock):
        for _ in range(10):
            scheduler.after(3600, int)
        rule = Rule()
        reference = weakref.ref(rule)
        task = scheduler.every(rule, int, id="a")
        del rule
        scheduler.cancel("a")
        del task
        assert collected(reference)


def test_a_cancelled_series_lets_go_of_its_error_though_its_entry_is_in_the_heap() -> None:
    markers: list[weakref.ref[Marker]] = []

    def job() -> None:
        marker = Marker()
        markers.append(weakref.ref(marker))
        raise ValueError("why")

    with virtual_time() as (scheduler, clock):
        for _ in range(10):
            scheduler.after(3600, int)
        task = scheduler.every(1000, job, first=0)
        clock.advance(0)
        task.cancel()
        del task
        assert collected(markers[0])


def test_a_cancelled_series_in_a_circle_with_its_error_is_collected_before_its_entry_goes() -> None:
    held: list[Any] = []

    def job() -> None:
        marker = Marker()
        marker.task = held.pop()  # type: ignore[attr-defined]
        held.append(weakref.ref(marker))
        raise ValueError("why")

    with virtual_time() as (scheduler, clock):
        for _ in range(10):
            scheduler.after(3600, int)
        task = scheduler.every(1000, job, first=1)
        held.append(task)
        clock.advance(1)
        task.cancel()
        del task
        assert collected(held[0])


def test_a_cancelled_series_keeps_its_error_for_who_holds_it_when_garbage_is_collected() -> None:
    def job() -> None:
        raise ValueError("why")

    with virtual_time() as (scheduler, clock):
        task = scheduler.every(1000, job, first=1)
        clock.advance(1)
        task.cancel()
        app = App(task)
        gc.collect()
        assert isinstance(task.error, ValueError)
        del app
        gc.collect()
        assert isinstance(task.error, ValueError)


@pytest.mark.parametrize("name", [None, "named"])
def test_who_asks_twice_for_a_task_that_nobody_held_gets_one_and_it_is_collected(
    name: str | None,
) -> None:
    """Of two, neither could tell the collector what both keep: a result that holds them."""
    gate = Gate(Marker())
    with Scheduler(1) as scheduler:
        id = scheduler.after(0, gate, id=name).id
        gate.entered()
        first, second = scheduler.get(id), scheduler.get(id)
        assert first is not None and first is second
        gate.answer.held = [first, second]
        gate.open()
        assert first.wait(WATCHDOG)
        reference = weakref.ref(gate.answer)
        del first, second, gate
        assert scheduler.wait_idle(WATCHDOG)
        assert collected(reference)
