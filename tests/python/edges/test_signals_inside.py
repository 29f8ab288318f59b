"""Waits that Ctrl-C does not end, and waits that wait for themselves."""

from __future__ import annotations

import threading

import pytest
from helpers import WATCHDOG, Gate, Thread, run_python

from duetime import Event, EventKind, Scheduler, Task, current_run, retry


@pytest.mark.parametrize("series", [True, False], ids=["series", "retried"])
def test_a_due_listener_that_waits_for_a_task_that_runs_and_must_run_again(series: bool) -> None:
    """While DUE is sent nothing starts: the second run of the task would wait for the listener."""
    gate = Gate()
    answer: list[object] = []
    told = threading.Event()

    def job() -> None:
        gate()
        if not series and (run := current_run()) is not None and run.attempt == 1:
            raise ValueError

    with Scheduler(2) as scheduler:
        if series:
            task = scheduler.every(0.001, job, first=0, max_runs=2)
        else:
            task = scheduler.after(0, job, retry=retry.FixedDelay(1, 0))
        gate.entered()

        def listener(event: Event) -> None:
            if event.task_id == "other":
                told.set()
                try:
                    answer.append(task.wait(5))
                except RuntimeError:
                    answer.append(RuntimeError)

        scheduler.add_listener(listener, [EventKind.DUE])
        thread = Thread(scheduler.after, 0.01, int)
        thread.outcome()
        scheduler.schedule(Task("other", due=scheduler.now() + 0.01, job=int))
        assert told.wait(WATCHDOG)
        gate.open()
        assert scheduler.wait_idle(WATCHDOG)
        assert answer in ([True], [RuntimeError])


@pytest.mark.parametrize("call", ["now()", "wait_idle()", "after(0, int)"])
def test_ctrl_c_while_a_clock_of_the_callers_own_is_read_is_not_swallowed(call: str) -> None:
    """It is no mistake of the clock: whoever pressed the key waits for the program to stop."""
    done = run_python(
        f"CALL = {call!r}"
        """
import os, signal, threading, time
from duetime import *
press, gate = [], threading.Event()
def clock():
    if press and threading.current_thread() is threading.main_thread():
        press.clear()
        signal.raise_signal(signal.SIGINT)
        for _ in range(100): pass
    return time.monotonic()
scheduler = Scheduler(2, clock=clock)
scheduler.after(0, gate.wait, 4)
press.append(1)
try:
    eval("scheduler." + CALL)
    print("swallowed", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
gate.set()
"""
    )
    assert done.stdout == "interrupted\n"
