"""What a cancelled task leaves in the queue is dropped with no lock held: its `__del__` may do anything.

Each program would stand still with the GIL held, so each runs in a process of its own.
"""

from __future__ import annotations

import pytest
from helpers import run_python

SETUP = """
import threading, time
from duetime import *

scheduler = Scheduler(1)

class Rule:
    def next_due(self, due, finished):
        return due + 3600
    def __del__(self):
        at_the_end()

class Failure(Exception):
    def __del__(self):
        at_the_end()

def fail():
    raise Failure

def add_rule(name):
    scheduler.every(Rule(), int, first=3600, id=name)

def add_failed(name):
    task = scheduler.every(3600, fail, first=0, id=name)
    while not task.failures:
        time.sleep(0.001)
    while task.running():
        time.sleep(0.001)
"""

ENDS = {
    "asks the scheduler": "def at_the_end():\n    scheduler.stats()",
    "schedules": """
def at_the_end():
    try:
        scheduler.after(3600, int)
    except SchedulerClosedError:
        pass
""",
    "lets others run": """
def at_the_end():
    thread = threading.Thread(target=scheduler.stats)
    thread.start()
    thread.join()
""",
}

CLEANERS = {
    "next_due": "scheduler.next_due()",
    "another task": "scheduler.after(0, int).result(5); scheduler.wait_idle(5)",
    "many cancels": "for n in range(300): scheduler.after(1, int, id=str(n)); scheduler.cancel(str(n))",
    "shutdown": "scheduler.shutdown()",
}


@pytest.mark.parametrize("cleaner", CLEANERS.values(), ids=CLEANERS)
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("add", ["add_rule", "add_failed"])
def test_the_values_of_a_tombstone_may_do_anything_when_they_go(
    add: str, end: str, cleaner: str
) -> None:
    code = f"""
{SETUP}
{end}
{add}("one")
{add}("two")
scheduler.cancel("one")
scheduler.cancel("two")
{cleaner}
scheduler.shutdown()
print("done")
"""
    done = run_python(code, timeout=10)
    assert done.stdout == "done\n", done.stderr
    assert done.returncode == 0
