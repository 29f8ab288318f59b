"""Timeouts at the end: shutdown, drain, exit, fork. Nobody waits for a stuck job."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref

import pytest
from helpers import (
    REFUSED,
    WATCHDOG,
    Gate,
    clean_run,
    until,
    worker_tids,
)

from duetime import (
    Scheduler,
    TaskStuck,
)


def test_shutdown_waits_no_longer_than_timeout_and_grace() -> None:
    scheduler = Scheduler(workers=1)
    gate = Gate()
    task = scheduler.after(0, gate, timeout=0.02, grace=0.02)
    gate.entered()
    assert scheduler.shutdown(timeout=WATCHDOG)
    assert type(task.exception()) is TaskStuck
    gate.open()


def test_shutdown_does_not_wait_for_a_stuck_job() -> None:
    scheduler = Scheduler(workers=1)
    gate = Gate()
    task = scheduler.after(0, gate, timeout=0.01, grace=0)
    assert type(task.exception(WATCHDOG)) is TaskStuck
    assert scheduler.shutdown(timeout=WATCHDOG)
    assert scheduler.shutdown(timeout=WATCHDOG)
    gate.open()


def test_a_drain_runs_what_is_due_on_the_replacement() -> None:
    scheduler = Scheduler(workers=1)
    gate = Gate()
    task = scheduler.after(0, gate, timeout=0.02, grace=0.02)
    gate.entered()
    rest = [scheduler.after(0, lambda: "drained") for _ in range(10)]
    assert scheduler.shutdown(drain=True, timeout=WATCHDOG)
    assert type(task.exception()) is TaskStuck
    assert [task.result() for task in rest] == ["drained"] * 10
    gate.open()


def test_a_dropped_scheduler_leaves_nothing() -> None:
    before = threading.active_count()
    scheduler = Scheduler(workers=1, name="drops")
    dead = weakref.ref(scheduler)
    assert scheduler.after(0, int, timeout=60).result(WATCHDOG) == 0
    del scheduler
    gc.collect()
    assert dead() is None
    if sys.platform == "linux":
        until(lambda: not worker_tids("drops-"))
    until(lambda: threading.active_count() <= before)


def test_no_thread_watches_before_a_task_has_a_timeout() -> None:
    if sys.platform != "linux":
        pytest.skip("/proc tells of threads")
    with Scheduler(workers=1, name="lazy") as scheduler:
        scheduler.after(0, int).result(WATCHDOG)
        assert sorted(worker_tids("lazy-").values()) == ["lazy-0"]
        scheduler.after(0, int, timeout=60).result(WATCHDOG)
        names = ["lazy-0", "lazy-late", "lazy-watch"]
        until(lambda: sorted(worker_tids("lazy-").values()) == names)


EXITS = {
    "a job that sleeps on the clock": ("current_run().wait(3600)", "timeout=0.05"),
    "a job that spins": ("while True: pass", "timeout=0.05, interrupt=True"),
    "a job that blocks": ("threading.Event().wait()", "timeout=0.05, grace=0.05"),
    "a job that spins for good": ("while True: pass", "timeout=0.05, grace=0.05"),
    "a coroutine that swallows": (
        "return forever()",
        "timeout=0.05, grace=0.05",
    ),
}


@pytest.mark.parametrize(("code", "options"), EXITS.values(), ids=EXITS.keys())
@pytest.mark.parametrize("end", ["", "s.shutdown()", "t.wait()", "del s, t"])
def test_the_interpreter_ends_though_a_job_does_not(code: str, options: str, end: str) -> None:
    program = f"""
import asyncio, threading, sys
from duetime import Scheduler, current_run
sys.setswitchinterval(1e-4)
begun = threading.Event()
async def forever():
    while True:
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            pass
def job():
    begun.set()
    {code}
s = Scheduler(workers=1)
t = s.after(0, job, {options})
begun.wait()
{end}
print("over")
"""
    assert clean_run(program) == "over\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_fork_while_a_job_is_stuck() -> None:
    program = """
import os, sys, threading, warnings
warnings.simplefilter("ignore")
from duetime import ForkedError, Scheduler, TaskStuck, TaskTimeout, current_run
gate = threading.Event()
s = Scheduler(workers=1)
stuck = s.after(0, gate.wait, timeout=0.01, grace=0)
assert type(stuck.exception()) is TaskStuck
late = s.after(0, lambda: current_run().wait(3600), timeout=0.3)
REFUSED
child = os.fork()
if child == 0:
    refused(s.stats)
    refused(stuck.exception)
    with Scheduler(workers=1) as own:
        task = own.after(0, lambda: current_run().wait(3600), timeout=0.01)
        assert type(task.exception()) is TaskTimeout
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert type(late.exception()) is TaskTimeout
gate.set()
print("over")
""".replace("REFUSED", REFUSED)
    assert clean_run(program) == "over\n"
