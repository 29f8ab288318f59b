"""What the garbage collector has to see, and what it must not take apart before its time."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from helpers import clean_run, run_python

from duetime import Scheduler, current_run

COLLECTED: dict[str, Callable[[Any, Any], None]] = {}


class Node:
    def fail(self) -> None:
        raise ValueError(self)


def makes(cycle: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    COLLECTED[cycle.__name__] = cycle
    return cycle


def failing_with_run(node: Any) -> Callable[[], None]:
    def job() -> None:
        run = current_run()  # noqa: F841 - in the frame that the traceback keeps
        kept = node  # noqa: F841
        raise ValueError

    return job


@makes
def a_failed_job_with_its_run_in_a_local(node: Any, scheduler: Any) -> None:
    scheduler.after(0, failing_with_run(node)).wait()


@makes
def the_same_with_nobody_holding_the_task(node: Any, scheduler: Any) -> None:
    scheduler.after(0, failing_with_run(node))
    scheduler.wait_idle()


@makes
def the_same_in_a_series_that_is_cancelled(node: Any, scheduler: Any) -> None:
    task = scheduler.every(3600, failing_with_run(node), first=0)
    while not task.failures:
        time.sleep(0.001)
    task.cancel()


@makes
def a_result_that_holds_the_run(node: Any, scheduler: Any) -> None:
    def job() -> Any:
        node.run = current_run()
        return node

    scheduler.after(0, job).wait()


@makes
def a_result_that_holds_the_task_and_another_handle_on_it(node: Any, scheduler: Any) -> None:
    node.task = scheduler.after(0.05, lambda: node)
    node.other = scheduler.get(node.task.id)
    node.task.wait()


@makes
def an_error_that_holds_two_handles_on_the_task(node: Any, scheduler: Any) -> None:
    node.task = scheduler.after(0.05, node.fail)
    node.other = scheduler.get(node.task.id)
    node.task.wait()


@pytest.mark.parametrize("cycle", COLLECTED.values(), ids=COLLECTED)
def test_a_cycle_through_the_end_of_a_task_is_collected(cycle: Callable[[Any, Any], None]) -> None:
    scheduler = Scheduler(1)
    node = Node()
    cycle(node, scheduler)
    assert scheduler.shutdown()
    ref = weakref.ref(node)
    del node, scheduler
    for _ in range(50):
        gc.collect()
        if ref() is None:
            return
        time.sleep(0.01)
    raise AssertionError("it lives on")


@pytest.mark.parametrize(
    "listen",
    [
        "scheduler.after(3600, int).add_done_callback(listener)",
        "scheduler.add_listener(listener); scheduler.after(3600, int)",
    ],
    ids=["callback", "listener"],
)
def test_who_is_told_of_the_end_of_a_collected_scheduler_is_whole(listen: str) -> None:
    """A scheduler in a dead cycle cancels its tasks. Whoever hears of it is in the cycle too."""
    code = f"""
import gc
from duetime import *
said = []
class Node: pass
def build():
    node = Node()
    node.said = said
    def listener(what):
        node.said.append("told")
    listener.me = listener
    scheduler = Scheduler(1)
    node.scheduler = scheduler
    {listen}
    said.clear()
gc.disable()
build()
gc.collect()
print(*said)
"""
    # Told, or not told: both are an answer; a listener in pieces is none.
    assert clean_run(code).strip() in ("told", "")


def test_a_scheduler_is_collected_while_its_listeners_are_being_called() -> None:
    code = """
import gc, time
from duetime import *
class Slow:  # unknown to the collector, so it goes in the middle of the clearing, and lets others run
    __slots__ = ()
    def __del__(self):
        time.sleep(0.02)
def build():
    box, count = [], [0]
    def listener(event):
        count[0] += 1
    listener.slow, listener.box = Slow(), box
    scheduler = Scheduler(4)
    scheduler.add_listener(listener)
    for _ in range(50):
        scheduler.every(0.0001, int)
    box.append(scheduler)
gc.disable()
for _ in range(20):
    build()
    time.sleep(0.005)
    gc.collect()
print("whole")
"""
    done = run_python(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "whole\n", "")
