"""What the tests share: gates instead of sleeps, a log of events, threads seen from the OS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from duetime import current_run

# How long a test waits for what must happen. Never part of what a test claims.
WATCHDOG = 30.0
PRIVATE = "world-"

YEAR = 365.25 * 86_400


class Gate:
    """A job that says that it has started, and ends when it is told to."""

    def __init__(self, answer: Any = "through") -> None:
        self.answer = answer
        self._started = threading.Semaphore(0)
        self._opened = threading.Event()

    def __call__(self, *_args: Any) -> Any:
        self._started.release()
        assert self._opened.wait(WATCHDOG), "nobody opened the gate"
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def entered(self) -> None:
        assert self._started.acquire(timeout=WATCHDOG), "the gate was never reached"

    def open(self) -> None:
        self._opened.set()


class Log:
    """A listener that keeps what it heard. The harness's own tasks are left out."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def __call__(self, event: Any) -> None:
        if not str(event.task_id).startswith(PRIVATE):
            self.events.append(event)

    def lines(self, *kinds: str) -> list[str]:
        return [
            f"{event.kind.name} {event.task_id}"
            for event in self.events
            if not kinds or event.kind.name in kinds
        ]

    def kinds(self, task_id: Any) -> list[str]:
        return [event.kind.name for event in self.events if event.task_id == task_id]

    def of(self, kind: str, task_id: Any = None) -> list[Any]:
        return [
            event
            for event in self.events
            if event.kind.name == kind and task_id in (None, event.task_id)
        ]


class CellClock:
    """A clock of our own: a callable over a cell that a test, or a job, moves."""

    def __init__(self, start: float = 0.0) -> None:
        self.seconds = start

    def __call__(self) -> float:
        return self.seconds


class Thread(threading.Thread):
    """A thread whose answer, or error, `outcome` hands over."""

    def __init__(self, work: Callable[..., Any], *args: Any) -> None:
        super().__init__(daemon=True)
        self._work, self._args = work, args
        self._value: Any = None
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._value = self._work(*self._args)
        except BaseException as error:
            self._error = error

    def outcome(self) -> Any:
        self.join(WATCHDOG)
        assert not self.is_alive(), "the thread hangs"
        if self._error is not None:
            raise self._error
        return self._value


def ns(seconds: float) -> int:
    return round(seconds * 1_000_000_000)


def run_python(
    code: str, *, timeout: float = WATCHDOG, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Runs `code` in a fresh interpreter."""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, *options, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if not was_struck(done):
            break
    return done


def was_struck(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether it may have been a fault of CPython 3.10's: a daemon thread that waited for the GIL
    reads, as it is ended, what the end of the interpreter has freed (python/cpython#110052).
    """
    crashed = (done.returncode, done.stderr) == (-signal.SIGSEGV, "")
    return crashed and sys.version_info < (3, 11)


def clean_run(code: str, *, options: tuple[str, ...] = ()) -> str:
    """Runs `code`; it must exit with 0 and an empty stderr. Returns what it printed."""
    done = run_python(code, options=options)
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stderr)
    return done.stdout


# Parts of programs that tests run in an interpreter of their own.

PRESS_AT_EXIT = """
import os, signal, sys, threading, time

def press():
    # Once the main thread is in the final wait, its stack is in the exit hook.
    main = threading.main_thread().ident
    while True:
        frame = sys._current_frames().get(main)
        while frame is not None and frame.f_code.co_name != "_shutdown":
            frame = frame.f_back
        if frame is not None:
            break
        time.sleep(0.01)
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)
"""

REFUSED = """
def refused(call):
    try:
        answer = call()
    except ForkedError:
        return
    raise AssertionError(f"answered {answer!r}")
"""


def worker_tids(prefix: str = "duetime-") -> dict[int, str]:
    """OS thread id -> OS thread name, of the live workers of this process (Linux)."""
    found: dict[int, str] = {}
    for entry in Path(f"/proc/{os.getpid()}/task").iterdir():
        try:
            name = (entry / "comm").read_text().strip()
        except OSError:
            continue
        if name.startswith(prefix):
            found[int(entry.name)] = name
    return found


def voluntary_switches(tids: Any) -> int:
    """How often these threads have gone to sleep so far (Linux)."""
    total = 0
    for tid in tids:
        for line in Path(f"/proc/{os.getpid()}/task/{tid}/status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                total += int(line.split()[1])
    return total


def until(holds: Callable[[], object]) -> None:
    """Returns once `holds()` does."""
    end = time.monotonic() + WATCHDOG
    while not holds():
        assert time.monotonic() < end, "it never holds"
        time.sleep(0.0005)


def run() -> Any:
    """The run that the calling job is part of."""
    found = current_run()
    assert found is not None
    return found


def nap(seconds: float) -> str:
    """Sleeps on the clock; says how it woke."""
    return "told" if run().wait(seconds) else "rested"


def spin() -> None:
    """Computes for ever."""
    while True:
        pass
