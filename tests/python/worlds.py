"""One harness for every kind of clock: the same test on manual, custom and real time.

A `World` is a scheduler with a clock that the test can let pass. On the real clock time is
let pass by waiting for a task that is due at the target, never by sleeping.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from helpers import PRIVATE, WATCHDOG, CellClock, Gate, Log

from duetime import ManualClock, Scheduler

START = 1_000.0  # where simulated clocks begin
PAST = 1 / 32  # this much has always passed since a world's origin; exact in binary


class World:
    """A scheduler and a way to let its time pass. Subclasses know the clock."""

    kind = ""
    step = 1.0  # a stretch of time that is cheap to let pass; exact in binary and in ns

    def __init__(self, workers: int, clock: Any, **options: Any) -> None:
        self.workers = workers
        self.clock = clock
        self.scheduler = Scheduler(workers, clock=clock, **options)
        self.origin = self.scheduler.now()
        self._serial = 0

    def now(self) -> float:
        return self.scheduler.now()

    def past(self, k: int) -> float:
        """Instants in the past, `k` from 0 to 20, a millisecond apart."""
        assert 0 <= k <= 20
        return self.origin + k * 0.001

    def log(self) -> Log:
        log = Log()
        self.scheduler.add_listener(log)
        return log

    def run_until_idle(self) -> None:
        assert self.scheduler.wait_idle(WATCHDOG)

    def advance(self, seconds: float) -> None:
        """Lets time pass, and returns when all that became due has finished."""
        raise NotImplementedError

    def leap(self, seconds: float) -> None:
        """The same in one leap, which does not wait for running jobs first."""
        self.advance(seconds)

    def private_id(self) -> str:
        self._serial += 1
        return f"{PRIVATE}{self._serial}"

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Every worker is busy inside the block."""
        gate = Gate()
        for _ in range(self.workers):
            self.scheduler.after(0, gate, id=self.private_id(), priority=1_000_000)
        for _ in range(self.workers):
            gate.entered()
        try:
            yield
        finally:
            gate.open()

    def close(self) -> None:
        assert self.scheduler.shutdown(timeout=WATCHDOG)


class ManualWorld(World):
    kind = "manual"

    def __init__(self, workers: int, **options: Any) -> None:
        super().__init__(workers, ManualClock(START), **options)
        self.clock.advance(PAST)

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def leap(self, seconds: float) -> None:
        self.clock.jump(seconds)


class CallableWorld(World):
    kind = "callable"

    def __init__(self, workers: int, **options: Any) -> None:
        super().__init__(workers, CellClock(START), **options)
        self._move(START + PAST)

    def _move(self, target: float) -> None:
        self.clock.seconds = max(self.clock.seconds, target)
        self.scheduler.wake()
        self.run_until_idle()

    def advance(self, seconds: float) -> None:
        target = self.clock.seconds + seconds
        while (due := self.scheduler.next_due()) is not None and due <= target:
            self._move(due)
        self._move(target)


class RealWorld(World):
    kind = "real"
    step = 1 / 64

    def __init__(self, workers: int, **options: Any) -> None:
        super().__init__(workers, None, **options)
        # Whole steps are exact as floats and as nanoseconds, so that sums of them are too.
        self.origin = math.floor(self.origin / self.step) * self.step
        self._wait_for(self.origin + PAST)

    def _wait_for(self, target: float) -> None:
        never = threading.Event()
        while (left := target - self.now()) > 0:
            never.wait(left)

    def advance(self, seconds: float) -> None:
        mark = self.scheduler.after(seconds, bool, 1, id=self.private_id(), priority=-1_000_000)
        assert mark.wait(WATCHDOG)
        self.run_until_idle()


KINDS: dict[str, type[World]] = {
    "manual": ManualWorld,
    "callable": CallableWorld,
    "real": RealWorld,
}
