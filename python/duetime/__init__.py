"""An in-process task scheduler: tasks at their due time, on a pool of native worker threads.

The invariant of this file: names only. All that is public is here and in `duetime.retry` and
`duetime.testing`; modules with a leading underscore are private.

A `Scheduler` runs a job once, `after` a delay or `at` an instant, or `every` so often; it retries
what fails, and cancels what has not started. Each call gives the `Task`, which is waited on like a
`concurrent.futures.Future`. On a `ManualClock` the same code runs without sleeping:

    >>> from duetime import ManualClock, Scheduler, retry
    >>> clock = ManualClock()
    >>> with Scheduler(workers=1, clock=clock) as scheduler:
    ...     log = []
    ...     once = scheduler.after(90, lambda: log.append(f"once at {clock.now():g}"))
    ...     series = scheduler.every(60, lambda: log.append(f"tick at {clock.now():g}"))
    ...     flaky = scheduler.after(1, lambda: 1 / 0, retry=retry.FixedDelay(2, 5), id="flaky")
    ...     clock.advance(120)
    >>> log
    ['tick at 60', 'once at 90', 'tick at 120']
    >>> flaky.state.name, flaky.runs, flaky.failures
    ('FAILED', 3, 3)

Jobs are callables, or objects with a `run(now)` method. Inside one, `current_run()` tells which
run it is and whether it should stop. Listeners see every `Event`; `Scheduler.info`, `tasks` and
`stats` give plain records.
"""

from duetime import _exit as _exit  # importing it registers the exit hooks
from duetime import _threads as _threads  # what workers import, from the start
from duetime import retry
from duetime._errors import (
    DependencyCycleError,
    DependencyFailed,
    DuetimeError,
    DuplicateTaskError,
    ForkedError,
    JobReturnedFalse,
    SchedulerClosedError,
    TaskStuck,
    TaskTimeout,
    UnknownTaskError,
)
from duetime._native import (
    FixedDelay,
    FixedRate,
    ManualClock,
    OneTime,
    Run,
    Task,
    __version__,
    current_run,
)
from duetime._protocols import Clock, Job, Recurrence, RetryPolicy, Seconds, TaskId
from duetime._records import (
    CancelOutcome,
    ControlOutcome,
    Event,
    EventKind,
    Lateness,
    Missed,
    Percentiles,
    Stats,
    TaskInfo,
    TaskState,
)
from duetime._scheduler import Scheduler

__all__ = [
    "CancelOutcome",
    "Clock",
    "ControlOutcome",
    "DependencyCycleError",
    "DependencyFailed",
    "DuetimeError",
    "DuplicateTaskError",
    "Event",
    "EventKind",
    "FixedDelay",
    "FixedRate",
    "ForkedError",
    "Job",
    "JobReturnedFalse",
    "Lateness",
    "ManualClock",
    "Missed",
    "OneTime",
    "Percentiles",
    "Recurrence",
    "RetryPolicy",
    "Run",
    "Scheduler",
    "SchedulerClosedError",
    "Seconds",
    "Stats",
    "Task",
    "TaskId",
    "TaskInfo",
    "TaskState",
    "TaskStuck",
    "TaskTimeout",
    "UnknownTaskError",
    "__version__",
    "current_run",
    "retry",
]

# A traceback, a repr and a pickle name the public place, not the file.
for _name in __all__:
    _value = globals()[_name]
    if getattr(_value, "__module__", "").startswith("duetime._"):
        _value.__module__ = __name__
del _name, _value
