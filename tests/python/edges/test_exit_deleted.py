"""The end of the interpreter while a thread is in a `__del__` of ours, or an unraisable hook.

Before Python 3.14 such a thread is ended by an unwinding; at a Rust frame that aborts the process.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from helpers import PRESS_AT_EXIT, clean_run

PARTS = """
import contextvars, gc, sys, threading, time, weakref
from concurrent.futures import CancelledError, ThreadPoolExecutor
from duetime import *

def slow(*args):
    time.sleep(0.001)
class Deleted:
    def __del__(self): slow()
    def job(self, *args): pass
    def returns(self, *args): return Deleted()
    def raises(self, *args): raise Fault(Deleted())
    def next_due(self, due, finished): return None
    def delay_after_failure(self, failures): return None
class Fault(Exception): pass
class Number(float):
    def __del__(self): slow()
class Clock:
    def __call__(self): return Number(time.monotonic())
class Rule:
    def next_due(self, due, finished): return Number(due + 1)
class Broken:
    def next_due(self, due, finished): raise Fault(Deleted())
    def delay_after_failure(self, failures): raise Fault(Deleted())
class Retry:
    def delay_after_failure(self, failures): return Number(0.0)
class Executor(ThreadPoolExecutor):
    def __del__(self): slow()
variable = contextvars.ContextVar("variable")
def in_context(call):
    def inside():
        variable.set(Deleted())
        call()
    contextvars.copy_context().run(inside)
def replaced(**options):
    scheduler.schedule(Task("same", due=1e9, job=int, **options), replace=True)
def listens(function, *kinds):
    with Scheduler(1) as own:
        own.add_listener(function, kinds or None)
        own.after(3600, int).cancel()
def fails(*args):
    kept = Deleted()
    raise Fault
"""

USES = {
    "cancelled": "scheduler.after(3600, int, Deleted()).cancel()",
    "cancelled job": "scheduler.after(3600, Deleted().job).cancel()",
    "cancelled by id": "scheduler.cancel(scheduler.after(3600, Deleted().job).id)",
    "replaced": "replaced(args=(Deleted(),))",
    "rule": "scheduler.every(Deleted(), int).cancel()",
    "policy": "scheduler.after(3600, int, retry=Deleted()).cancel()",
    "context": "in_context(lambda: scheduler.after(9, int).cancel())",
    "callback": "t = scheduler.after(9, int); t.add_done_callback(Deleted().job); t.cancel()",
    "called callback": "task.add_done_callback(Deleted().job)",
    "callback's answer": "task.add_done_callback(Deleted().returns)",
    "callback's error": "task.add_done_callback(Deleted().raises)",
    "listener": "scheduler.add_listener(f := Deleted().job); scheduler.remove_listener(f); del f",
    "listener's answer": "listens(Deleted().returns)",
    "listener's error": "listens(Deleted().raises)",
    "forgotten listener": "Scheduler(1).add_listener(Deleted().job)",
    "result": "scheduler.after(0, Deleted).wait()",
    "error": "scheduler.after(0, fails).wait()",
    "error's text": "scheduler.after(0, Deleted().raises).wait()",
    "clock": "Scheduler(1, clock=Clock()).now()",
    "forgotten clock": "Scheduler(1, clock=lambda kept=Deleted(): 1.0)",
    "rule's answer": "scheduler.every(Rule(), int).cancel()",
    "rule's error": "scheduler.every(Broken(), int, first=0).wait()",
    "policy's answer": "scheduler.after(0, fails, retry=Retry()).cancel()",
    "policy's error": "scheduler.after(0, fails, retry=Broken()).wait()",
    "executor": "Task(due=0, job=int, executor=Executor(1))",
    "dependency": "Task(due=0, job=int, depends_on=[Task(due=0, job=Deleted().job)])",
    "bad dependency": "Task(due=0, job=int, depends_on=[Deleted()])",
    "weak reference": "weak = weakref.ref(Task(due=0, job=int), slow)",
    "bad number": "scheduler.after(Deleted(), int)",
    "bad tasks": "scheduler.schedule_all(iter([Deleted()]))",
    "bad kinds": "scheduler.add_listener(print, iter([Deleted()]))",
}

USER = """
sys.unraisablehook = slow
scheduler = Scheduler(2)
task = scheduler.after(0, int)
task.wait()
def user():
    while True:
        try:
            exec(USE)
        except (SchedulerClosedError, CancelledError, ValueError, TypeError, TimeoutError, Fault):
            pass
for _ in range(3):
    threading.Thread(target=user, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.parametrize("use", list(USES), ids=str)
def test_a_daemon_thread_in_code_that_runs_as_a_reference_of_ours_goes(use: str) -> None:
    for _ in range(3):
        clean_run(PARTS + f"USE = {USES[use]!r}" + USER)


COLLECTED = """
class Circle:
    def __init__(self): self.me = self
    def __del__(self):
        while here: time.sleep(0.001)
here = []
scheduler = Scheduler(1)
def user():
    scheduler.now()  # the arguments of a thread's first call are read before it is known
    allocations = FIRST
    gc.collect()
    while True:
        gc.disable()
        Circle()
        gc.set_threshold(gc.get_count()[0] + allocations)
        gc.enable()
        here.append(True)
        try:
            scheduler.every(9, int, id=str(allocations), max_runs=1).cancel()
        except SchedulerClosedError:
            pass
        here.clear()
        allocations += 1
threading.Thread(target=user, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.parametrize("first", range(16))
def test_a_daemon_thread_in_a_collection_that_an_allocation_of_ours_began(first: int) -> None:
    clean_run(PARTS + f"FIRST = {first}" + COLLECTED)


JOBS = {
    "args": "scheduler.after(0, int, Sleepy())",
    "result": "scheduler.after(0, Sleepy)",
    "error": "scheduler.after(0, fails)",
    "local value": "scheduler.after(0, keeps)",
    "local value of one that sends DUE": "sends_due()",
    "unraisable": "hooked()",
}

WORKER = """
import duetime
from duetime import *
started = threading.Event()
def long(*args):
    started.set()
    for _ in range(60_000): time.sleep(0.001)
class Sleepy:
    def __del__(self): long()
    def __int__(self): return 1
def fails(*args):
    kept = Sleepy()
    raise ValueError
here = threading.local()
def keeps():
    here.value = Sleepy()
    scheduler.shutdown(wait=False)
def sends_due():
    gate = threading.Event()
    def listener(event):
        here.value = Sleepy()
        gate.set()
    busy = scheduler.after(0, gate.wait)
    while not busy.running(): pass
    scheduler.add_listener(listener, [EventKind.DUE])
    scheduler.after(0.05, int)
    busy.wait()
    scheduler.shutdown(wait=False)
def hooked():
    sys.unraisablehook = long
    scheduler.add_listener(slip, [EventKind.STARTED])
    scheduler.after(0, int)
def slip(event): raise ValueError
scheduler = Scheduler(1)
exec(JOB)
started.wait()
threading.Thread(target=press, daemon=True).start()
"""


@pytest.mark.parametrize("job", list(JOBS), ids=str)
def test_a_worker_in_code_that_runs_as_a_reference_goes_when_ctrl_c_ends_the_final_wait(
    job: str,
) -> None:
    code = PRESS_AT_EXIT + f"JOB = {JOBS[job]!r}" + WORKER
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
