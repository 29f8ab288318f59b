"""duetime: tasks one by one, and in one call."""

from __future__ import annotations

from typing import Any

import duetime
from peers_python.base import Job, Peer
from peers_python.system import now, sleep_until


class Duetime(Peer):
    """A task a call."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.scheduler = duetime.Scheduler(workers)
        self.call = self.scheduler.after
        # The same clock with another zero.
        self.zero = now() - self.scheduler.now()

    def call_at(self, due: float, job: Job) -> Any:
        return self.scheduler.at(due - self.zero, job)

    def finish(self, due: float) -> None:
        sleep_until(due)
        self.scheduler.wait_idle()


class DuetimeBatch(Duetime):
    """All tasks in one call."""

    def run_now(self, count: int, job: Job) -> None:
        task = duetime.Task
        self.scheduler.schedule_all([task(due=0, job=job) for _ in range(count)])
        self.scheduler.wait_idle()
