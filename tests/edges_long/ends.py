"""How a process ends, forks, and is interrupted."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from duetime import ForkedError, ManualClock, Scheduler, SchedulerClosedError, current_run

EXIT_LIMIT = 5.0
CTRL_C_LIMIT = 0.5
FORK_LIMIT = 20  # seconds

#: Programs that end without a shutdown.
EXITS = {
    "tight loops": """
        def job():
            for number in range(1000):
                str(number)
        scheduler = Scheduler(4)
        for _ in range(8):
            scheduler.every(1e-6, job)
    """,
    "self-rescheduling": """
        def job():
            try:
                scheduler.after(0, job)
            except SchedulerClosedError:
                pass
        scheduler = Scheduler(2)
        for _ in range(8):
            scheduler.after(0, job)
    """,
    "module global": """
        scheduler = Scheduler()
        series = scheduler.every(1e-4, int)
        far = scheduler.after(3600, print, "never")
    """,
    "in a cycle": """
        class App:
            def __init__(self):
                self.me = self
                self.scheduler = Scheduler()
                self.scheduler.add_listener(self.listen)
                self.scheduler.every(1e-4, self.tick)
            def tick(self):
                pass
            def listen(self, event):
                self.scheduler.stats()
        App()
    """,
    "made in a thread": """
        def make():
            scheduler = Scheduler()
            scheduler.every(1e-4, scheduler.stats)
            stay.wait()
        stay = threading.Event()
        threading.Thread(target=make, daemon=True).start()
    """,
    "first used in atexit": """
        scheduler = Scheduler()
        @atexit.register
        def late():
            try:
                scheduler.after(0, int).result()
            except SchedulerClosedError:
                pass
            try:
                Scheduler().every(1e-4, int)
            except RuntimeError:
                pass
    """,
    "jobs with their own executor": """
        def job():
            with ThreadPoolExecutor(2) as pool:
                assert list(pool.map(abs, range(20))) == list(range(20))
        scheduler = Scheduler(2)
        scheduler.add_listener(failed.append, kinds=[EventKind.FAILED])
        series = scheduler.every(1e-3, job)
    """,
}
PROGRAM = """
import atexit, os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from duetime import *
failed = []
{body}
time.sleep({pause})
if failed:
    os.write(2, str(failed[0].error).encode())
"""


def ends_well(kind: str, pause: float) -> float:
    """Runs the program, which must end in silence. How long it took."""
    program = PROGRAM.format(body=textwrap.dedent(EXITS[kind]), pause=pause)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    took = time.monotonic() - began
    silent = (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert silent, f"{kind}, after {pause:.4f} s: {done.returncode}, {done.stderr[-2000:]}"
    assert took < EXIT_LIMIT, f"{kind} took {took:.1f} s"
    return took


def exits(quick: bool) -> str:
    """Processes that end without a shutdown: exit code 0 and no word, each in under 5 s."""
    rng = random.Random(1)
    kinds = [kind for _ in range(4 if quick else 72) for kind in EXITS]
    with ThreadPoolExecutor(2) as pool:
        took = list(pool.map(ends_well, kinds, [rng.random() * 0.03 for _ in kinds]))
    return f"{len(took)} exits of {len(EXITS)} kinds: code 0, silent; slowest {max(took):.2f} s"


def child_works(scheduler: Scheduler) -> None:
    """What a forked child does; it ends here."""
    code = 1
    signal.alarm(FORK_LIMIT)  # ends it, whatever it hangs in
    try:
        with contextlib.suppress(ForkedError):
            scheduler.stats()
            os._exit(2)
        with Scheduler(2) as new:
            code = 0 if new.after(0.001, pow, 2, 3).result() == 8 else 3
    finally:
        os._exit(code)


def forks(quick: bool) -> str:
    """Forks while 32 threads contend; in each child the old one is refused, a new one works."""
    rounds, over, scheduler = 100 if quick else 600, threading.Event(), Scheduler(4, history=100)
    calls = [0] * 32

    def contend(number: int) -> None:
        while not over.is_set():
            scheduler.after(0, int)
            scheduler.after(3600, int).cancel()
            scheduler.after(0.0005, int).wait()
            calls[number] += 1

    threads = [threading.Thread(target=contend, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    codes: Counter[int] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: a fork beside threads
        for _ in range(rounds):
            child = os.fork()
            if child == 0:
                child_works(scheduler)
            codes[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])] += 1
    over.set()
    for thread in threads:
        thread.join()
    assert scheduler.after(0, int).result(10) == 0, "the parent is harmed"
    scheduler.shutdown()
    assert set(codes) == {0}, f"exit codes {dict(codes)}, {-signal.SIGALRM} for a hang"
    return f"{rounds} forks beside 32 threads ({sum(calls)} rounds of theirs): 0 hangs"


def interrupted(
    wait: Callable[[Scheduler], object], scheduler: Scheduler, *, closes: bool
) -> float:
    """A Ctrl-C while the main thread waits for a job. After how long it gave way."""
    gate, inside, ready, pressed = threading.Event(), threading.Event(), threading.Event(), [0.0]

    def job() -> None:
        scheduler.run = current_run()
        inside.set()
        gate.wait(60)

    task = scheduler.after(0, job, id="held")

    def press() -> None:
        ready.wait()
        time.sleep(0.05)  # the main thread sleeps by now; if not, that too must end
        pressed[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    inside.wait()
    try:
        ready.set()
        wait(scheduler)
        took = -1.0
    except KeyboardInterrupt:
        took = time.monotonic() - pressed[0]
    assert task.running(), "the job was touched"
    if not closes:
        assert scheduler.after(0, lambda: "usable").result(10) == "usable"
    gate.set()
    assert task.wait(10) and scheduler.shutdown(timeout=10)
    with contextlib.suppress(SchedulerClosedError):
        scheduler.after(0, int)
        raise AssertionError("it takes tasks after its shutdown")
    return took


def leaves_with(scheduler: Scheduler) -> None:
    with scheduler:
        pass


WAITS: dict[str, Callable[[Scheduler], object]] = {
    "result": lambda s: s.get("held").result(),
    "exception": lambda s: s.get("held").exception(),
    "wait": lambda s: s.get("held").wait(),
    "wait_idle": lambda s: s.wait_idle(),
    "a run's sleep": lambda s: s.run.wait(3600),
    "shutdown": lambda s: s.shutdown(wait=True),
    "drain": lambda s: s.shutdown(drain=True),
    "with": leaves_with,
    "advance": lambda s: s.clock.advance(1),
    "jump": lambda s: s.clock.jump(1),
}


def interrupts(quick: bool) -> str:
    """Ctrl-C in every wait raises KeyboardInterrupt in under 0.5 s; the scheduler is usable."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    slowest = dict.fromkeys(WAITS, 0.0)
    try:
        for name in [*WAITS] * (3 if quick else 20):
            clock = ManualClock() if name in {"advance", "jump"} else None
            closes = name in {"shutdown", "drain", "with"}
            took = interrupted(WAITS[name], Scheduler(2, clock=clock), closes=closes)
            assert took >= 0, f"{name} ended without a KeyboardInterrupt"
            assert took < CTRL_C_LIMIT, f"{name} gave way after {took:.3f} s"
            slowest[name] = max(slowest[name], took)
    finally:
        signal.signal(signal.SIGINT, before)
    return "slowest, in ms: " + ", ".join(f"{name} {1000 * t:.1f}" for name, t in slowest.items())
