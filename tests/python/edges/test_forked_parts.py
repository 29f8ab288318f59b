"""What a forked child inherits besides a scheduler: clocks, runs, threads that it does not have."""

from __future__ import annotations

import os

import pytest
from helpers import REFUSED, clean_run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

SETUP = (
    REFUSED
    + """
import gc, os, sys, threading, warnings
from duetime import *
warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork in a process with threads

def in_child(work):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}")
            sys.stdout.flush()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""
)


def test_a_scheduler_may_be_dropped_in_the_child() -> None:
    code = """
scheduler = Scheduler(4)
scheduler.after(0, int).result()
scheduler.shutdown()
other = Scheduler(4)
other.after(0, int).result()

def child():
    global scheduler, other
    scheduler = other = None
    gc.collect()
    with Scheduler(4) as new:  # whose threads may have the numbers of the parent's
        assert new.after(0, lambda: 7).result(20) == 7
for _ in range(20):
    assert in_child(child) == 0
"""
    clean_run(SETUP + code)


def test_a_clock_of_the_parents_is_refused() -> None:
    code = """
clock = ManualClock(5)
scheduler = Scheduler(clock=clock)
task = scheduler.after(1, lambda: "done")

def child():
    assert clock.now() == 5
    refused(lambda: clock.advance(1))
    refused(lambda: clock.jump(1))
    refused(lambda: Scheduler(clock=clock))
    own = ManualClock()
    with Scheduler(clock=own) as new:
        new.after(1, lambda: "child's")
        own.advance(1)
assert in_child(child) == 0
clock.advance(1)
assert task.result(0) == "done"
"""
    clean_run(SETUP + code)


def test_a_child_that_a_job_forks_is_in_no_run() -> None:
    code = """
def job():
    run = current_run()
    def child():
        assert current_run() is None
        assert not run.stop_requested
        refused(lambda: run.wait(3600))
        with Scheduler(2) as new:
            assert new.after(0, lambda: current_run().number).result(20) == 1
            assert new.wait_idle(20)
    return in_child(child)

with Scheduler(1) as scheduler:
    for _ in range(10):
        assert scheduler.after(0, job).result(30) == 0
"""
    clean_run(SETUP + code)
