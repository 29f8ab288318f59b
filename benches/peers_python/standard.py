"""What the standard library has."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sched
import threading
import time
from typing import Any

from peers_python.base import Job, Peer
from peers_python.system import now, sleep_until


class Asyncio(Peer):
    """An event loop, run by the caller's thread."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.loop = asyncio.new_event_loop()
        self.call = self.loop.call_later
        self.call_at = self.loop.call_at  # type: ignore[assignment]  # its clock is monotonic

    def finish(self, due: float) -> None:
        self.loop.call_at(max(due, now()) + 1e-6, self.loop.stop)
        self.loop.run_forever()

    def spend(self, end: float) -> None:
        self.loop.call_at(end, self.loop.stop)
        self.loop.run_forever()


class Sched(Peer):
    """`sched`, run by the caller's thread."""

    most_cancels = 100

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.scheduler = sched.scheduler(now, time.sleep)
        enter, enter_at = self.scheduler.enter, self.scheduler.enterabs
        self.call = lambda delay, job: enter(delay, 0, job)
        self.call_at = lambda due, job: enter_at(due, 0, job)  # type: ignore[method-assign]

    def cancel(self, handles: list[Any]) -> None:
        for handle in handles:
            self.scheduler.cancel(handle)

    def finish(self, due: float) -> None:
        self.scheduler.run()

    def spend(self, end: float) -> None:
        while (left := end - now()) > 0:
            wait = self.scheduler.run(blocking=False)
            time.sleep(left if wait is None else min(wait, left))


class Timer(Peer):
    """A thread for each task."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.last: list[threading.Timer] = []
        self.call = self.start

    def start(self, delay: float, job: Job) -> threading.Timer:
        """Starts one as its users do, but such that nobody waits for it at exit."""
        timer = threading.Timer(delay, job)
        timer.daemon = True
        timer.start()
        return timer

    def call_at(self, due: float, job: Job) -> Any:
        return self.start(due - now(), job)

    def run_now(self, count: int, job: Job) -> None:
        timers = [self.start(0, job) for _ in range(count)]
        for timer in timers:
            timer.join()

    def finish(self, due: float) -> None:
        sleep_until(due + 1)


class Pool(Peer):
    """`ThreadPoolExecutor`, which knows no due times: here for what a job costs on a pool."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.pool = concurrent.futures.ThreadPoolExecutor(workers)

    def run_now(self, count: int, job: Job) -> None:
        submit = self.pool.submit
        last = [submit(job) for _ in range(count)][-self.workers :]
        concurrent.futures.wait(last)
