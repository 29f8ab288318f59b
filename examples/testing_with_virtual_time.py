"""Testing timed code without sleeping: the tests below cover 25 hours in some milliseconds.

The code under test takes the scheduler as a parameter; that is all it has to do. Run this file as
it is, or with pytest.
"""
# ruff: noqa: S101 - a test asserts

from __future__ import annotations

from duetime import EventKind, Scheduler, Task
from duetime.testing import recorded, virtual_time

HOUR = 3600


class Sessions:
    """The code under test: who logs in is logged out after an hour without a sign of life."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.users: set[str] = set()

    def touch(self, user: str) -> None:
        """Log a user in, or take a sign of life."""
        self.users.add(user)
        due = self.scheduler.now() + HOUR
        expiry = Task(user, due=due, job=self.users.discard, args=(user,))
        self.scheduler.schedule(expiry, replace=True)

    def report_daily(self) -> Task:
        """Print every day how many users there are."""
        return self.scheduler.every(24 * HOUR, lambda: print(len(self.users), "users"), id="report")


def test_a_session_ends_after_an_hour() -> None:
    """Not a second earlier."""
    with virtual_time() as (scheduler, clock):
        sessions = Sessions(scheduler)
        sessions.touch("ada")
        clock.advance(HOUR - 1)
        assert sessions.users == {"ada"}
        clock.advance(1)
        assert sessions.users == set()


def test_a_sign_of_life_starts_the_hour_again() -> None:
    """The task that waited was replaced."""
    with virtual_time() as (scheduler, clock), recorded(scheduler) as events:
        sessions = Sessions(scheduler)
        sessions.touch("ada")
        clock.advance(HOUR / 2)
        sessions.touch("ada")
        clock.advance(HOUR - 1)
        assert sessions.users == {"ada"}
        clock.advance(1)
        assert sessions.users == set()
    kinds = [event.kind for event in events if event.kind is not EventKind.DUE]
    assert kinds == [
        EventKind.SCHEDULED,
        EventKind.CANCELLED,
        EventKind.SCHEDULED,
        EventKind.STARTED,
        EventKind.COMPLETED,
    ]


def test_a_suspended_laptop_reports_once() -> None:
    """`jump` moves the clock in one leap, as a machine that was asleep finds it."""
    with virtual_time() as (scheduler, clock):
        report = Sessions(scheduler).report_daily()
        clock.jump(3.5 * 24 * HOUR)
        assert (report.runs, report.missed) == (1, 2)
        assert report.due == 4 * 24 * HOUR


def main() -> None:
    """Run the tests without pytest."""
    for test in (
        test_a_session_ends_after_an_hour,
        test_a_sign_of_life_starts_the_hour_again,
        test_a_suspended_laptop_reports_once,
    ):
        test()
        print(f"{test.__name__}: ok")


if __name__ == "__main__":
    main()
