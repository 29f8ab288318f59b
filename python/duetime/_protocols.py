"""What a user may bring: jobs, rules and clocks of their own, as protocols.

The invariant: these are structural. Nothing needs to be subclassed or registered; an object with
the one method fits. The built-in rules fit them too.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol, TypeAlias, runtime_checkable

Seconds: TypeAlias = float | timedelta
"""A length of time: seconds as a number, or a `timedelta`."""

TaskId: TypeAlias = str | int
"""What a task is known by within its scheduler."""


@runtime_checkable
class Job(Protocol):
    """The work of a task, as an object. A plain callable does as well.

    Example:
        >>> from duetime import Job
        >>> class Report:
        ...     def run(self, now: float) -> object:
        ...         return f"made at {now}"
        >>> isinstance(Report(), Job)
        True
    """

    def run(self, now: float) -> object:
        """Do the work.

        Args:
            now: The time of the scheduler's clock, in seconds.

        Returns:
            The task's result. Exactly `False` means that the attempt failed, and so does
            anything raised.
        """
        ...


@runtime_checkable
class Recurrence(Protocol):
    """When a task is due again.

    Built in are `OneTime`, `FixedRate` and `FixedDelay`. `Task.preview` asks it too, so it should
    answer by its arguments alone.

    Example:
        >>> from duetime import Recurrence
        >>> class Doubling:
        ...     def next_due(self, due: float, finished: float) -> float | None:
        ...         return 2 * due if due < 100 else None
        >>> isinstance(Doubling(), Recurrence)
        True
    """

    def next_due(self, due: float, finished: float) -> float | None:
        """Say when the task is due next.

        Args:
            due: The slot that has just been run, in seconds of the scheduler's clock.
            finished: When that run ended, likewise.

        Returns:
            A time after `due`, or `None` to end the series. One that is not after `due`, or a
            raised error, ends the task as FAILED.
        """
        ...


@runtime_checkable
class RetryPolicy(Protocol):
    """Whether and when a failed attempt is made again.

    Built in are `retry.Never`, `retry.FixedDelay` and `retry.ExponentialBackoff`. Whatever the
    policy, a job may raise `retry.RetryAfter` for another delay, or `retry.GiveUp` for none.

    Example:
        >>> from duetime import RetryPolicy
        >>> class Twice:
        ...     def delay_after_failure(self, failures: int) -> float | None:
        ...         return 1.0 if failures <= 2 else None
        >>> isinstance(Twice(), RetryPolicy)
        True
    """

    def delay_after_failure(self, failures: int) -> float | None:
        """Say how long to wait before the next attempt.

        Args:
            failures: The failed attempts of this slot so far, from 1.

        Returns:
            Seconds from the end of the failed attempt, or `None` to give up. A raised error ends
            the task as FAILED.
        """
        ...


class Clock(Protocol):
    """Where a scheduler takes the time from: any zero-argument callable that gives seconds.

    After moving such a clock call `Scheduler.wake`. For tests there is `ManualClock`, which needs
    no such call.

    Example:
        >>> import time
        >>> from duetime import Clock, Scheduler
        >>> clock: Clock = time.monotonic
        >>> with Scheduler(clock=clock) as scheduler:
        ...     scheduler.now() <= time.monotonic()
        True
    """

    def __call__(self) -> float:
        """Give the time in seconds since an instant of the clock's choice."""
        ...
