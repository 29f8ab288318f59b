"""Helpers of the fault tests: a bench on a manual clock, watchdogs, counters of the system."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duetime

#: How long anything may take before it counts as hung. No test is right because of it.
WATCHDOG = 30.0
#: The part of the full figures that is run: 1.0 is all of it.
SCALE = float(os.environ.get("DUETIME_SCALE", "0.02"))
HOUR = 3600.0
DAY = 24 * HOUR
#: Below "100 years" however the leap days are counted.
CENTURY = 36_500 * DAY
#: What `result(timeout)` raises; two classes on CPython 3.10.
TIMEOUTS = (TimeoutError, concurrent.futures.TimeoutError)
STATES = duetime.TaskState
KINDS = ("SCHEDULED", "DUE", "STARTED", "COMPLETED", "FAILED", "CANCELLED", "MISSED")


def scaled(full: int, least: int = 1) -> int:
    """The number of rounds to run of the `full` figure."""
    return max(least, int(full * SCALE))


def exact(seconds: float | None) -> int:
    """The nanoseconds that a number of seconds stands for."""
    return round(Fraction(seconds or 0.0) * 10**9)


def short(value: Any) -> str:
    """An id for a parameter, of bearable length."""
    return str(value)[:12]


def noop(*_args: Any) -> None:
    """A job that does nothing."""


def within(fn: Callable[..., Any], *args: Any, seconds: float = WATCHDOG) -> Any:
    """`fn(*args)` on another thread: its answer, its exception, or a failure if it hangs."""
    box: dict[str, Any] = {}

    def call() -> None:
        try:
            box["value"] = fn(*args)
        except BaseException as error:
            box["error"] = error

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"{fn!r} still runs after {seconds} s"
    if "error" in box:
        raise box["error"]
    return box["value"]


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run the calls at once, a thread each; the answers or exceptions in order."""
    barrier = threading.Barrier(len(calls))
    answers: list[Any] = [None] * len(calls)

    def call(index: int, fn: Callable[[], Any]) -> None:
        barrier.wait(WATCHDOG)
        try:
            answers[index] = fn()
        except BaseException as error:
            answers[index] = error

    threads = [threading.Thread(target=call, args=pair, daemon=True) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WATCHDOG)
        assert not thread.is_alive(), "one of the calls hangs"
    return answers


def until(condition: Callable[[], bool], what: str, seconds: float = WATCHDOG) -> None:
    """Wait for something that sends no event (a thread leaving, a collection)."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.002)


def gone(scheduler: duetime.Scheduler) -> None:
    """Shut down, whatever the test left behind."""
    within(lambda: scheduler.shutdown(wait=True, timeout=WATCHDOG))


def snapshot(scheduler: duetime.Scheduler) -> tuple[Any, ...]:
    """All that a refused call must leave as it was."""
    tasks = sorted(scheduler.tasks(), key=lambda info: str(info.id))
    return tasks, scheduler.next_due(), scheduler.stats()


class Log:
    """A listener that keeps every event."""

    def __init__(self, scheduler: duetime.Scheduler) -> None:
        self.events: list[Any] = []
        self.append = self.events.append
        scheduler.add_listener(self.append)

    def of(self, *kinds: str, id: Any = None) -> list[Any]:
        return [
            event
            for event in list(self.events)
            if event.kind.name in kinds and (id is None or event.task_id == id)
        ]

    def starts(self, id: Any = None) -> list[float]:
        """When the runs started."""
        return [event.time for event in self.of("STARTED", id=id)]

    def dues(self, id: Any = None) -> list[float]:
        """When the runs that started were due."""
        return [event.due for event in self.of("STARTED", id=id)]

    def ends(self, id: Any = None) -> list[str]:
        """The kinds of the events after which nothing of the task may follow."""
        return [
            event.kind.name
            for event in self.of("COMPLETED", "FAILED", "CANCELLED", id=id)
            if event.next_due is None
        ]


class Manual:
    """A scheduler on a manual clock, and the log of its events."""

    def __init__(self, workers: int = 1, start: float = 0.0, **options: Any) -> None:
        self.clock = duetime.ManualClock(start=start)
        self.scheduler = duetime.Scheduler(workers, clock=self.clock, **options)
        self.log = Log(self.scheduler)

    def __enter__(self) -> Manual:
        return self

    def __exit__(self, *_exc: Any) -> None:
        self.close()

    def close(self) -> None:
        gone(self.scheduler)

    def advance(self, seconds: Any) -> None:
        within(self.clock.advance, seconds)

    def jump(self, seconds: Any) -> None:
        within(self.clock.jump, seconds)


class CellClock:
    """A custom clock: a number that the test moves. `moved` also wakes the scheduler."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds

    def moved(self, scheduler: duetime.Scheduler, seconds: float) -> None:
        self.seconds = seconds
        scheduler.wake()


def lasting(seconds: float) -> Callable[[], None]:
    """A job that takes `seconds` of the scheduler's clock."""

    def job() -> None:
        duetime.current_run().wait(seconds)

    return job


def failing(error: BaseException | None = None) -> Callable[[], None]:
    """A job that raises."""

    def job() -> None:
        raise ValueError("on purpose") if error is None else error

    return job


def failing_before(run: int) -> Callable[[], bool]:
    """A job that fails until its run of this number."""

    def job() -> bool:
        return duetime.current_run().number >= run

    return job


def everything(bench: Manual) -> None:
    """Make events of all kinds, as far as the scheduler still takes tasks."""
    calls: list[Callable[[], object]] = [
        lambda: bench.scheduler.after(1, noop, id="good"),
        lambda: bench.scheduler.after(1, failing(), id="bad"),
        lambda: bench.scheduler.every(1, noop, id="series"),
        lambda: bench.scheduler.after(HOUR, noop, id="never"),
        lambda: bench.scheduler.cancel("never"),
        lambda: bench.jump(10.5),
        lambda: bench.advance(3),
        lambda: bench.scheduler.cancel("series"),
    ]
    for call in calls:
        with contextlib.suppress(duetime.SchedulerClosedError, duetime.DuplicateTaskError):
            call()


# The system's counters, from /proc.


def threads() -> set[int]:
    """The thread ids of this process, native threads included."""
    return {int(name) for name in os.listdir("/proc/self/task")}


def switches(tids: Iterable[int]) -> int:
    """How often these threads went to sleep so far."""
    total = 0
    for tid in tids:
        status = Path(f"/proc/self/task/{tid}/status").read_text()
        total += int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])
    return total


def cpu_seconds(tids: Iterable[int]) -> float:
    """The processor time that these threads have used."""
    ticks = 0
    for tid in tids:
        fields = Path(f"/proc/self/task/{tid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident_kb() -> int:
    """The memory of this process that is in use now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * (os.sysconf("SC_PAGE_SIZE") // 1024)


# Other processes.


def python(
    code: str, *, options: Iterable[str] = (), env: dict[str, str] | None = None, cwd: Any = None
) -> subprocess.CompletedProcess[str]:
    """Run `code` in an interpreter of its own, under the watchdog."""
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **(env or {})}
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
        env=settings,
        cwd=cwd,
        check=False,
    )


def clean(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The words that a process printed, which must have ended well and in silence."""
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.split()
