"""The end of the interpreter, beyond what test_exit asks: dropped schedulers and daemon threads.

Each test runs whole programs; each must end with exit code 0 and an empty stderr.
"""

from __future__ import annotations

import os

import pytest
from helpers import clean_run

SCALE = float(os.environ.get("DUETIME_SCALE", "0.02"))

BUSY = """
import gc, sys, threading, time
from duetime import *

inside = threading.Event()

def job():
    inside.set()
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        pass
    print("job ends")
"""


@pytest.mark.parametrize(
    "drop",
    [
        "def main():\n    scheduler = Scheduler(2)\n    scheduler.after(0, job)\n    inside.wait()\nmain()",
        "s = Scheduler(2)\ns.me = s\ns.after(0, job)\ninside.wait()\ndel s\ngc.collect()",
        "s = Scheduler(2)\ns.after(0, job)\ninside.wait()\ns.shutdown(wait=False)\ndel s",
        "s = Scheduler(2)\ntask = s.after(0, job)\ninside.wait()\ndel s",
    ],
    ids=["local", "cycle", "after shutdown", "task kept"],
)
def test_the_running_job_of_a_dropped_scheduler_is_waited_for(drop: str) -> None:
    assert clean_run(f"{BUSY}\n{drop}") == "job ends\n"


def test_a_job_of_a_scheduler_first_imported_during_the_exit_does_no_harm() -> None:
    code = """
import atexit, time

@atexit.register
def late():
    global scheduler
    try:
        from duetime import Scheduler
        scheduler = Scheduler(2)
        def job():
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                pass
        scheduler.after(0, job)
        time.sleep(0.02)
    except RuntimeError:
        pass
"""
    assert clean_run(code) == ""


@pytest.mark.parametrize(
    "call",
    [
        "scheduler.after(3600, int).result()",
        "waiting.result(0.001)",
        "waiting.wait(0.001)",
        "waiting.exception(0.001)",
        "scheduler.wait_idle(0.001)",
        "clock.advance(1)",
        "clock.jump(1)",
        "scheduler.submit(time.sleep, 0.0001).result()",
        "scheduler.shutdown(timeout=0.001)",
    ],
)
def test_a_daemon_thread_in_a_wait_does_no_harm(call: str) -> None:
    """The interpreter ends such a thread where it stands, inside our frames."""
    code = f"""
import threading, time
from duetime import *

scheduler = Scheduler(2)
clock = ManualClock()
manual = Scheduler(1, clock=clock)
manual.every(1, int)
waiting = scheduler.after(3600, int)

def wait():
    while True:
        try:
            {call}
        except BaseException:
            pass

for _ in range(4):
    threading.Thread(target=wait, daemon=True).start()
time.sleep(0.05)
"""
    for _ in range(max(8, int(200 * SCALE))):
        assert clean_run(code) == ""
