"""A Ctrl-C during the wait at exit, while a worker is in Python code other than the job itself."""

from __future__ import annotations

import subprocess
import sys

import pytest
from helpers import PRESS_AT_EXIT

CODE = (
    PRESS_AT_EXIT
    + """
import duetime
from duetime import *

started = threading.Semaphore(0)

def slow(*args):
    started.release()
    for _ in range(15000):
        time.sleep(0.001)

class Deleted:
    def __del__(self): slow()
    def job(self): pass
class Attribute:
    def run(self, now): pass
    def __getattribute__(self, name):
        if name == "run" and threading.current_thread() is not threading.main_thread():
            slow()
        return object.__getattribute__(self, name)
class Text(Exception):
    def __str__(self): slow(); return ""
class Falsy:
    def __eq__(self, other): slow(); return False
def fails(): raise Text
def local():
    here.value = Deleted()
here = threading.local()
class Clock:
    def __call__(self):
        if threading.current_thread() is not threading.main_thread(): slow()
        return 0.0
class Policy:
    def delay_after_failure(self, failures): slow(); return slow()
class Rule:
    def next_due(self, due, finished): slow()
class Float:
    def __float__(self): slow(); return 1.0
class RuleFloat:
    def next_due(self, due, finished): return Float()
class RetryFloat:
    def delay_after_failure(self, failures): return Float()
def on_end(task, gate):
    task.add_done_callback(slow)
    gate.set()
def hook(*args):
    if threading.current_thread().name.startswith("duetime-"): slow()

scheduler = duetime.Scheduler(4)
for _ in range(2):
    PART
for _ in range(BUSY):
    started.acquire()
threading.Thread(target=press, daemon=True).start()
"""
)

PARTS = {
    "result": "scheduler.after(0, Deleted)",
    "attribute": "scheduler.after(0, Attribute())",
    "text": "scheduler.after(0, fails)",
    "policy": "scheduler.after(0, fails, retry=Policy())",
    "rule": "scheduler.schedule(Task(due=0, job=int, recurrence=Rule()))",
    "float of a rule": "scheduler.schedule(Task(due=0, job=int, recurrence=RuleFloat()))",
    "float of a policy": "scheduler.after(0, lambda: 1/0, retry=RetryFloat())",
    "callback": "on_end(scheduler.after(0, (gate := threading.Event()).wait), gate)",
    "trace": "threading.setprofile(hook); scheduler.after(0, int)",
    "submit": "scheduler.submit(slow)",
    "future callback": "on_end(scheduler.submit((gate := threading.Event()).wait), gate)",
}


if sys.version_info >= (3, 13):
    del PARTS["trace"]  # threading itself has something to say of a thread that is traced then


@pytest.mark.parametrize("part", list(PARTS))
def test_a_ctrl_c_ends_the_final_wait_while_a_worker_is_in_other_code(part: str) -> None:
    # No second worker is woken before the first one is there, and the hook is called on its way.
    busy = 1 if part == "trace" else 2
    code = CODE.replace("PART", PARTS[part]).replace("BUSY", str(busy))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
