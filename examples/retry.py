"""Retries: built-in policies, one of your own, what a job says, and a series within its slot."""

from __future__ import annotations

from duetime import Event, EventKind, ManualClock, Scheduler, current_run, retry


class Weather:
    """A service that is down until `up_at`."""

    def __init__(self, clock: ManualClock, up_at: float) -> None:
        self.clock = clock
        self.up_at = up_at

    def fetch(self) -> str:
        """Give the weather, or fail."""
        if self.clock.now() < self.up_at:
            raise ConnectionError("no answer")
        return "sunny"


class Patient:
    """A policy of one's own: any object with this one method."""

    def delay_after_failure(self, failures: int) -> float | None:
        """Try three times quickly, then every minute up to the tenth attempt."""
        if failures < 3:
            return 1
        return 60 if failures < 10 else None


class Library:
    """A service that is down, then busy, and then has no such book."""

    def __init__(self) -> None:
        self.replies = [503, 429, 404]

    def fetch(self) -> str:
        """Fail in the way that suits the reply."""
        match self.replies.pop(0):
            case 429:
                raise retry.RetryAfter(45)  # when the server says, not when the policy does
            case 404:
                raise retry.GiveUp("no such book")  # whatever the policy says
            case status:
                raise ConnectionError(f"status {status}")


def tell(event: Event) -> None:
    """Say what failed, and whether it is tried again."""
    then = "given up" if event.next_due is None else f"again at {event.next_due:g} s"
    print(f"{event.time:>4g} s  {event.task_id}, attempt {event.attempt}: {event.error}, {then}")


def main() -> None:
    """Run tasks against services that come up after a while, or not at all."""
    clock = ManualClock()
    weather = Weather(clock, up_at=100)
    with Scheduler(workers=1, clock=clock) as scheduler:
        scheduler.add_listener(tell, kinds=[EventKind.FAILED])

        backoff = retry.ExponentialBackoff(max_retries=4, base=10, factor=3, cap=60)
        growing = scheduler.after(0, weather.fetch, retry=backoff, id="growing")
        patient = scheduler.after(0, weather.fetch, retry=Patient(), id="patient")

        # Only what may pass is retried: a fault of our own would be final.
        passing = retry.FixedDelay(max_retries=5, delay=5, retry_on=(OSError, EOFError))
        book = scheduler.after(0, Library().fetch, retry=passing, id="book")
        fault = scheduler.after(0, lambda: 1 / 0, retry=passing, id="fault")

        # A series retries within its slot. A retry that would come at or after the next slot is
        # not made: the next slot is run instead.
        def sample() -> int:
            run = current_run()
            weather.fetch()
            return 0 if run is None else run.attempt

        series = scheduler.every(
            60, sample, first=50, id="series", retry=retry.FixedDelay(5, 25), max_runs=4
        )

        clock.advance(600)
        print(f"growing: {growing.result()} after {growing.runs} attempts")
        print(f"patient: {patient.result()} after {patient.runs} attempts")
        print(f"book: {book.exception()!r} after {book.runs} attempts")
        print(f"fault: {fault.exception()!r} after {fault.runs} attempt")
        print(f"series: {series.state.name}, {series.runs} runs, {series.failures} failed")


if __name__ == "__main__":
    main()
