"""The errors that duetime raises, and those that it gives a task to end with.

    DuetimeError
    ├── DuplicateTaskError    (ValueError)    the id is one that the scheduler knows
    ├── UnknownTaskError      (KeyError)      the id is not one that it knows
    ├── DependencyCycleError  (ValueError)    tasks would wait for each other
    ├── SchedulerClosedError  (RuntimeError)  refused after shutdown
    ├── ForkedError           (RuntimeError)  the scheduler belongs to the parent process
    ├── JobReturnedFalse                      a job failed by returning False
    ├── RetryAfter                            raised by a job: try again after this delay
    ├── GiveUp                                raised by a job: do not try again
    ├── TaskTimeout           (TimeoutError)  an attempt outlived its timeout
    │   └── TaskStuck                         and went on past its grace
    └── DependencyFailed                      a task that this one waited for did not end DONE

The invariant: everything here is a `DuetimeError` and, where a built-in error means the same,
that one too, so that code which knows only the built-in works. Each is constructed with one
message (`RetryAfter` with its delay) and survives pickling. A wrong argument is a plain `TypeError`
or `ValueError`. `RetryAfter` and `GiveUp` are public in `duetime.retry`.

This module imports nothing when it is imported: the native module takes its exceptions from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime._protocols import Seconds


class DuetimeError(Exception):
    """The base of all errors of duetime.

    Example:
        >>> from duetime import DuetimeError, Scheduler
        >>> scheduler = Scheduler()
        >>> try:
        ...     scheduler.info("no such task")
        ... except DuetimeError as error:
        ...     print(type(error).__name__)
        UnknownTaskError
    """


class DuplicateTaskError(DuetimeError, ValueError):
    """A task was scheduled under an id that the scheduler still knows.

    Choose another id, let the scheduler make one, or say `schedule(task, replace=True)`.
    """


class UnknownTaskError(DuetimeError, KeyError):
    """The scheduler knows no task of that id: it never did, or has forgotten it."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put the message in quotes.
        return Exception.__str__(self)


class DependencyCycleError(DuetimeError, ValueError):
    """Tasks that were scheduled together depend on each other in a circle; none was scheduled.

    The message gives the path: each task waits for the next. One without an id is `tasks[n]`.
    """


class SchedulerClosedError(DuetimeError, RuntimeError):
    """A task was scheduled after `shutdown`; make a new scheduler."""


class ForkedError(DuetimeError, RuntimeError):
    """A scheduler was used in a forked child; its threads live in the parent.

    Make a new scheduler in the child.
    """


class JobReturnedFalse(DuetimeError):  # noqa: N818 - it names what the job did
    """The error of an attempt whose job returned exactly `False`."""


class RetryAfter(DuetimeError):  # noqa: N818 - it names what the job asks for
    """Raised by a job: the next attempt after this delay, instead of the policy's.

    The policy still says whether there is one: the failure counts as any other, a policy that is
    out of retries gives up, and without a policy it is final. A policy's `retry_on` and
    `give_up_on` are not asked.

    Args:
        seconds: From the end of this attempt to the next.

    Raises:
        ValueError: The delay is negative, not finite or over 100 years.
        TypeError: The delay is of the wrong type.

    Example:
        >>> from duetime import ManualClock, Scheduler, retry
        >>> def fetch():
        ...     raise retry.RetryAfter(30)  # what the server said
        >>> clock = ManualClock()
        >>> with Scheduler(clock=clock) as scheduler:
        ...     task = scheduler.after(0, fetch, retry=retry.FixedDelay(max_retries=3, delay=1))
        ...     clock.advance(1)
        ...     task.due
        30.0
    """

    def __init__(self, seconds: Seconds) -> None:
        # Not above: the native module takes its exceptions from this one.
        from duetime._native import _seconds  # noqa: PLC0415

        self.seconds = _seconds("seconds", seconds)
        super().__init__(self.seconds)

    def __str__(self) -> str:
        """Say it in words."""
        return f"retry after {self.seconds:g} s"


class GiveUp(DuetimeError):  # noqa: N818 - it names what the job does
    """Raised by a job: no further attempt, whatever the policy says.

    A one-off task is FAILED; a series goes on with its next slot. The error of the task is this
    one, and what it was raised from is its `__cause__`.

    Args:
        reason: Why.

    Example:
        >>> from duetime import Scheduler, retry
        >>> def convert(text):
        ...     try:
        ...         return int(text)
        ...     except ValueError as error:
        ...         raise retry.GiveUp("no number will come of it") from error
        >>> with Scheduler() as scheduler:
        ...     task = scheduler.after(0, convert, "x", retry=retry.FixedDelay(3, delay=60))
        ...     task.exception(), type(task.exception().__cause__)
        (GiveUp('no number will come of it'), <class 'ValueError'>)
    """


class TaskTimeout(DuetimeError, TimeoutError):  # noqa: N818 - as concurrent.futures names its own
    """The error of an attempt that outlived the task's `timeout`, whatever it returned later.

    A `result(timeout=…)` whose own wait was too short raises the plain `TimeoutError` instead.
    """


class TaskStuck(TaskTimeout):
    """The error of a task whose job was still running `grace` seconds after its timeout.

    There is no retry, since the job may still be running.
    """


class DependencyFailed(DuetimeError):  # noqa: N818 - it names what the dependency did
    """The error of a task that was cancelled because one that it depends on did not end DONE.

    The message names the root cause: the first task that failed or was cancelled, and its error.
    """
