"""A fork from user code that a worker calls: the child is no worker, whatever that code was."""

from __future__ import annotations

import pytest
from helpers import clean_run

FORK = """
import os, sys, threading, time, signal, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork in a process with threads
from duetime import *
ran = []
def job(n):
    os.write(1, b"run %d\\n" % n)
parent = os.getpid()
pids = []
def fork(*args):
    if pids or os.getpid() != parent:
        return 5.0
    pid = os.fork()
    if pid == 0:
        signal.alarm(8)  # a net under the child
        END
        return 5.0
    pids.append(pid)
    return 5.0
class Rule:
    def next_due(self, due, finished): fork(); return None
    def delay_after_failure(self, failures): fork(); return None
class Arg:
    def __del__(self): fork()
def bad(): raise ValueError
scheduler = Scheduler(1)
gate = threading.Event()
scheduler.after(0, gate.wait)
SETUP
for n in range(5):
    scheduler.after(0, job, n)
gate.set()
scheduler.wait_idle()
_, status = os.waitpid(pids[0], 0)
os.write(1, b"status %d\\n" % status)
"""

WHERE = {
    "STARTED": "scheduler.add_listener(fork, [EventKind.STARTED])",
    "COMPLETED": "scheduler.add_listener(fork, [EventKind.COMPLETED])",
    "callback": "scheduler.after(0, int).add_done_callback(fork)",
    "recurrence": "scheduler.schedule(Task(due=0, job=int, recurrence=Rule()))",
    "retry": "scheduler.after(0, bad, retry=Rule())",
    "del": "scheduler.after(0, lambda arg: None, Arg())",
    "job": "scheduler.after(0, fork)",
}


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)"], ids=["returns", "sys.exit"])
@pytest.mark.parametrize("where", list(WHERE))
def test_a_child_forked_on_a_worker_runs_nothing_and_ends(where: str, end: str) -> None:
    code = FORK.replace("SETUP", WHERE[where]).replace("END", end)
    if end != "pass" and where != "job":
        code = "import sys\nsys.unraisablehook = lambda u: None\n" + code
    out = clean_run(code).split("\n")
    assert sorted(line for line in out if line.startswith("run")) == [f"run {n}" for n in range(5)]
    assert "status 0" in out


@pytest.mark.parametrize("where", [where for where in WHERE if where != "STARTED"])
def test_a_child_forked_on_a_worker_with_nothing_due_ends(where: str) -> None:
    """It is no worker of the parent's pool: it must not wait for its tasks."""
    code = (
        FORK.replace("SETUP", WHERE[where]).replace("END", "pass").replace("range(5)", "range(0)")
    )
    assert clean_run(code).split("\n")[0] == "status 0"
