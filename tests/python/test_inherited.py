"""What a process that a job starts inherits: what one started by the main thread does."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from helpers import WATCHDOG

from duetime import ManualClock, Scheduler, current_run

LOOK = """
import os
print(os.listdir("/proc/self/fd"))
print(open("/proc/self/timerslack_ns").read())
print([line for line in open("/proc/self/status") if line[:3] == "Sig" and line[:4] != "SigQ"])
"""


def child() -> str:
    """What a child sees of itself, with every descriptor passed on."""
    return subprocess.run(
        [sys.executable, "-c", LOOK], stdout=subprocess.PIPE, text=True, check=True, close_fds=False
    ).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_child_of_a_job_inherits_what_one_of_the_main_thread_does(real: Scheduler) -> None:
    expected = child()
    real.every(3600, int)
    slept = real.after(0.01, child)  # its worker has slept with an exact alarm before
    assert slept.result(WATCHDOG) == expected
    waited = real.after(0, lambda: (current_run().wait(0.001), child())[1])
    assert waited.result(WATCHDOG) == expected


def test_workers_have_the_signal_mask_of_who_started_them(
    make_scheduler: Callable[..., Scheduler],
) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    try:
        scheduler = make_scheduler(1)
        mask = scheduler.after(0, signal.pthread_sigmask, signal.SIG_BLOCK, []).result(WATCHDOG)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert mask == before | {signal.SIGUSR2}


def test_what_holds_a_job_refuses_to_be_pickled(real: Scheduler) -> None:
    task = real.after(0, lambda: pickle.dumps(current_run()))
    for thing in (real, task, ManualClock()):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(thing)
    with pytest.raises(TypeError, match="cannot pickle"):
        task.result(WATCHDOG)
