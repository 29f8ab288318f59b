"""A scheduler as the measurements use it, so that all of them do the same work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from peers_python.system import sleep_until

Job = Callable[[], object]


class Peer:
    """One scheduler.

    The loops are here, around the scheduler's own function, so that what is timed is that function
    and not a wrapper.
    """

    most_cancels = 1 << 60
    """How many cancels are enough; less for those that search for the task."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    call: Callable[[float, Job], Any]
    """Schedules a job after a delay, and gives what cancels it."""

    def call_at(self, due: float, job: Job) -> Any:
        """Schedules one job at a time of `time.monotonic`."""
        raise NotImplementedError

    def schedule(self, delays: Iterable[float], job: Job) -> None:
        """Schedules one job after each of the delays; nothing is kept."""
        call = self.call
        for delay in delays:
            call(delay, job)

    def schedule_kept(self, delays: Iterable[float], job: Job) -> list[Any]:
        """Schedules one job after each of the delays."""
        call = self.call
        return [call(delay, job) for delay in delays]

    def cancel(self, handles: list[Any]) -> None:
        """Cancels each."""
        for handle in handles:
            handle.cancel()

    def run_now(self, count: int, job: Job) -> None:
        """Schedules a job that often, due at once, and returns when all have been run."""
        call = self.call
        for _ in range(count):
            call(0, job)
        self.finish(0)

    def schedule_at(self, due: float, count: int, job: Job) -> None:
        """Schedules a job that often, at one time."""
        call_at = self.call_at
        for _ in range(count):
            call_at(due, job)

    def finish(self, due: float) -> None:
        """Returns when all tasks have been run, the last of which is due then."""
        raise NotImplementedError

    def spend(self, end: float) -> None:
        """Lets it work until then, as its users do, where nothing has to be waited for."""
        sleep_until(end)
