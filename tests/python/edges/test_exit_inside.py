"""The end of the interpreter while a daemon thread is in Python code that one of our calls runs.

Before Python 3.14 such a thread is ended by an unwinding; at a Rust frame that aborts the process.
"""

from __future__ import annotations

import pytest
from helpers import clean_run

SETUP = """
import atexit, gc, os, signal, sys, threading, time
from datetime import datetime, timedelta, timezone, tzinfo
from concurrent.futures import CancelledError
from duetime import *
"""

USES = {
    "schedule_all": "scheduler.schedule_all(slow(n) for n in range(9))",
    "kinds": "scheduler.add_listener(print, (slow(n) for n in range(9)))",
    "remove_listener": "scheduler.remove_listener(Slow())",
    "float": "scheduler.after(Slow(), int)",
    "timeout": "scheduler.wait_idle(Slow())",
    "result timeout": "task.result(Slow())",
    "kept run": "kept[0].wait(Slow())",
    "kept wait": "kept[0].wait(3600)",
    "first": "scheduler.every(1, int, first=Slow())",
    "period": "scheduler.every(Slow(), int)",
    "due": "Task(due=Slow(), job=int)",
    "repr": "scheduler.after(Shown(), int)",
    "args": "Task(due=0, job=int, args=slow)",
    "tzinfo": "scheduler.at(datetime(2040, 1, 1, tzinfo=Zone()), int)",
    "job attribute": "scheduler.after(0, Attribute())",
    "rule attribute": "scheduler.every(Attribute(), int)",
    "retry attribute": "scheduler.after(0, int, retry=Attribute())",
    "rule": "Task(due=0, job=int, recurrence=Attribute())",
    "first reading": "Scheduler(clock=slow)",
    "advance": "ManualClock().advance(Slow())",
    "clock start": "ManualClock(Slow())",
    "period of a rate": "FixedRate(Slow())",
    "factor": "retry.ExponentialBackoff(3, 1, factor=Slow())",
    "dropped description": "Task(due=0, job=int, args=(Deleted(),))",
    "dropped result": "scheduler.after(0, Deleted).result()",
    "shutdown timeout": "scheduler.shutdown(timeout=Slow())",
    "submit": "scheduler.submit(slow)",
}

PARTS = """
def slow(*args):
    time.sleep(0.001)
    return 3.0
class Slow:
    def __float__(self): return slow()
    def __eq__(self, other): slow(); return False
    __hash__ = object.__hash__
class Shown:
    def __float__(self): return -1.0
    def __repr__(self): slow(); return "shown"
class Zone(tzinfo):
    def utcoffset(self, when): slow(); return timedelta(0)
    def dst(self, when): return None
class Attribute:
    def __getattr__(self, name): slow(); raise AttributeError(name)
class Deleted:
    def __del__(self): slow()
    def job(self): pass
scheduler = Scheduler(1)
scheduler.add_listener(Slow().__eq__, [EventKind.MISSED])
scheduler.add_listener(lambda e: None, [EventKind.MISSED])
kept = []
task = scheduler.after(0, lambda: kept.append(current_run()))
task.wait()
def user():
    while True:
        try:
            eval(USE)
        except (SchedulerClosedError, CancelledError, ValueError, TypeError, TimeoutError):
            pass
for _ in range(3):
    threading.Thread(target=user, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.parametrize("use", list(USES), ids=str)
def test_a_daemon_thread_in_python_code_that_a_call_of_ours_runs(use: str) -> None:
    for _ in range(3):
        clean_run(SETUP + f"USE = {USES[use]!r}" + PARTS)


PLAIN_FORK = """
import os, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)
def job():
    time.sleep(0.3)
    try:
        if (pid := os.fork()) == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    except RuntimeError as error:
        print(error)
threading.Thread(target=job).start()
"""


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_a_job_may_use_a_process_pool_while_the_interpreter_waits_for_it(where: str) -> None:
    """Also if that module is imported after ours: its exit hook then runs before ours."""
    if where == "inside" and (refusal := clean_run(PLAIN_FORK)):  # early releases of 3.12
        pytest.skip(f"this Python refuses threads of its own, too: {refusal.strip()}")
    code = """
import sys, time, warnings
from duetime import *
from concurrent.futures import ProcessPoolExecutor
warnings.simplefilter("ignore", DeprecationWarning)
scheduler = Scheduler(1)
if WHERE == "outside":
    pool = ProcessPoolExecutor(1)
    pool.submit(int).result()
def job():
    time.sleep(0.3)
    if WHERE == "outside":
        return pool.submit(int).result()
    with ProcessPoolExecutor(1) as own:
        return own.submit(int).result()
task = scheduler.after(0, job)
task.add_done_callback(lambda task: print(repr(task.exception())))
while not task.running(): time.sleep(0.01)
sys.exit(0)
"""
    assert clean_run(f"WHERE = {where!r}" + code) == "None\n"
