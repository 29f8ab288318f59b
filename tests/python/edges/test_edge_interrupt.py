"""Ctrl-C that comes while a call of ours works, before or between its waits."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from duetime import ManualClock, Scheduler

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")


@pytest.fixture(autouse=True)
def _interrupting_alarm() -> Iterator[None]:
    def interrupt(*_args: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupted_after(seconds: float, call: Callable[[], object]) -> float:
    """How long the call went on after the interrupt."""
    start = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, seconds)
    with pytest.raises(KeyboardInterrupt):
        call()
    return time.monotonic() - start - seconds


@pytest.mark.parametrize("move", ["advance", "jump"])
def test_in_a_move_of_many_brief_steps(move: str) -> None:
    clock = ManualClock()
    with Scheduler(1, clock=clock) as scheduler:
        left = [2_000_000]

        def job() -> None:
            left[0] -= 1
            if move == "jump" and left[0]:
                scheduler.after(0, job)

        if move == "advance":
            scheduler.every(1, job)
        else:
            scheduler.after(1, job)
        assert interrupted_after(0.05, lambda: getattr(clock, move)(2_000_000)) < 2
        assert left[0] > 0
        left[0] = 1
        assert clock.now() <= 2_000_000
        if move == "advance":
            assert scheduler.after(0, lambda: "ran").result(30) == "ran"


def test_in_a_shutdown_that_has_many_tasks_to_cancel() -> None:
    over = threading.Event()
    scheduler = Scheduler(1)
    running = scheduler.after(0, over.wait, 15)
    while not running.running():
        time.sleep(0.001)
    for _ in range(150_000):
        scheduler.after(3600, int)
    assert interrupted_after(0.005, scheduler.shutdown) < 5
    assert running.running()
    over.set()
    assert scheduler.shutdown(timeout=30)
