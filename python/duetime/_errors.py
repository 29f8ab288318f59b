"""The errors that duetime raises, and those that it gives a task to end with.

    DuetimeError
    ├── DuplicateTaskError    (ValueError)    the id is one that the scheduler knows
    ├── UnknownTaskError      (KeyError)      the id is not one that it knows
    ├── DependencyCycleError  (ValueError)    tasks would wait for each other
    ├── SchedulerClosedError  (RuntimeError)  refused after shutdown
    ├── ForkedError           (RuntimeError)  the scheduler belongs to the parent process
    ├── JobReturnedFalse                      a job failed by returning False
    ├── TaskTimeout           (TimeoutError)  an attempt outlived its timeout
    │   └── TaskStuck                         and went on past its grace
    └── DependencyFailed                      a task that this one waited for did not end DONE

The invariant: everything here is a `DuetimeError` and, where a built-in error means the same,
that one too, so that code which knows only the built-in works. Each is constructed with one
message and survives pickling. A wrong argument is a plain `TypeError` or `ValueError`.

This module imports nothing: the native module takes its exceptions from here.
"""


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
    """Tasks that were scheduled together depend on each other in a circle; none was scheduled."""


class SchedulerClosedError(DuetimeError, RuntimeError):
    """A task was scheduled after `shutdown`; make a new scheduler."""


class ForkedError(DuetimeError, RuntimeError):
    """A scheduler was used in a forked child; its threads live in the parent.

    Make a new scheduler in the child.
    """


class JobReturnedFalse(DuetimeError):  # noqa: N818 - it names what the job did
    """The error of an attempt whose job returned exactly `False`."""


class TaskTimeout(DuetimeError, TimeoutError):  # noqa: N818 - as concurrent.futures names its own
    """The error of an attempt that outlived the task's `timeout`, whatever it returned later.

    A `result(timeout=…)` whose own wait was too short raises the plain `TimeoutError` instead.
    """


class TaskStuck(TaskTimeout):
    """The error of a task whose job was still running `grace` seconds after its timeout.

    There is no retry, since the job may still be running.
    """


class DependencyFailed(DuetimeError):  # noqa: N818 - it names what the dependency did
    """The error of a task that was cancelled because one that it depends on did not end DONE."""
