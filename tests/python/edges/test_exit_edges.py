"""The end of the interpreter with something unusual under way: exit 0, nothing on stderr."""

from __future__ import annotations

import pytest
from helpers import clean_run

SETUP = """
import gc, threading, time
from concurrent.futures import CancelledError
from duetime import *
"""


@pytest.mark.parametrize("circle", [False, True], ids=["dropped", "collected"])
def test_the_jobs_of_a_scheduler_that_is_gone_are_waited_for(circle: bool) -> None:
    code = """
scheduler = Scheduler(2)
inside = threading.Event()
def job():
    inside.set()
    threading.Event().wait(0.3)
    print("job ends")
scheduler.after(0, job)
inside.wait()
if CIRCLE:
    scheduler.circle = scheduler
scheduler = None
gc.collect()
print("main ends")
"""
    assert clean_run(SETUP + f"CIRCLE = {circle}" + code) == "main ends\njob ends\n"


@pytest.mark.parametrize(
    "wait",
    [
        "task.result()",
        "task.exception(3600)",
        "task.wait()",
        "scheduler.wait_idle()",
        "clock.advance(1)",
        "scheduler.submit(gate.wait).result()",
    ],
)
def test_a_daemon_thread_that_waits(wait: str) -> None:
    code = """
gate, inside = threading.Event(), threading.Event()
clock = ManualClock()
manual = Scheduler(1, clock=clock)
scheduler = Scheduler(1)
def job():
    inside.set()
    gate.wait(0.3)
task = scheduler.after(0, job)
inside.wait()
if "clock" in WAIT:
    manual.after(0, job)
    manual.after(0, gate.wait, 0.3)
def wait():
    try:
        eval(WAIT)
    except (CancelledError, SchedulerClosedError):
        pass
for _ in range(4):
    threading.Thread(target=wait, daemon=True).start()
time.sleep(0.05)  # most likely they wait by now
"""
    clean_run(SETUP + f"WAIT = {wait!r}" + code)


@pytest.mark.parametrize("part", ["clock", "recurrence", "retry"])
def test_a_daemon_thread_in_python_code_that_the_core_calls(part: str) -> None:
    code = """
class Slow:
    def __call__(self):
        for _ in range(1000):
            pass
        return time.monotonic()
    def next_due(self, due, finished):
        return self() and due + 1
    def delay_after_failure(self, failures):
        return self() and 0.0

slow = Slow()
scheduler = Scheduler(2, clock=slow if PART == "clock" else None)
def user():
    while True:
        try:
            if PART == "recurrence":
                scheduler.every(slow, int).cancel()
            else:
                scheduler.after(0, int, retry=slow)
            scheduler.now()
        except SchedulerClosedError:
            scheduler.now()
for _ in range(3):
    threading.Thread(target=user, daemon=True).start()
time.sleep(0.1)
"""
    for _ in range(3):
        clean_run(SETUP + f"PART = {part!r}" + code)
