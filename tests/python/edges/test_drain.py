"""A drain runs whatever was due when it began, however old a worker's reading of the clock is."""

from __future__ import annotations

import threading
from typing import Any

from duetime import EventKind, Scheduler

WATCHDOG = 30


def test_what_fell_due_while_a_listener_was_busy_runs_in_the_drain() -> None:
    told, gate = threading.Event(), threading.Event()

    def slow(_: Any) -> None:
        told.set()
        gate.wait(WATCHDOG)

    scheduler = Scheduler(1)
    scheduler.add_listener(slow, kinds=[EventKind.COMPLETED])
    scheduler.after(0, int)
    late = scheduler.after(0.01, lambda: "ran")
    assert told.wait(WATCHDOG)
    while scheduler.now() <= (late.due or 0):
        threading.Event().wait(0.001)
    scheduler.shutdown(wait=False, drain=True)
    gate.set()
    assert late.result(WATCHDOG) == "ran"
    assert scheduler.shutdown(drain=True, timeout=WATCHDOG)
