"""What the scheduler says about itself: states, answers, events and records.

The invariant: everything here is an immutable value that holds no scheduler and no task, so it
may be kept, compared, pickled and sent anywhere.

The native module makes the dataclasses by position, in the order in which their fields stand here,
and fills the instance's dict itself; hence no slots.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from duetime._protocols import TaskId


class TaskState(enum.Enum):
    """Where a task is in its life.

    Example:
        >>> from duetime import Scheduler, TaskState
        >>> with Scheduler() as scheduler:
        ...     task = scheduler.after(3600, print)
        ...     task.state
        <TaskState.WAITING: 'waiting'>
    """

    WAITING = "waiting"
    """For its due time, its next slot, a retry or a free worker."""
    RUNNING = "running"
    """Its job is being run."""
    DONE = "done"
    """Ended: its last run succeeded."""
    FAILED = "failed"
    """Ended: its last run failed and no retry is left."""
    CANCELLED = "cancelled"
    """Ended: it was cancelled."""


class Missed(enum.Enum):
    """What a `FixedRate` does about slots that pass while the task cannot run.

    Example:
        >>> from duetime import FixedRate, Missed
        >>> FixedRate(30).next_due(60, 110)
        120.0
        >>> FixedRate(30, Missed.CATCH_UP).next_due(60, 110)
        90.0
    """

    SKIP = "skip"
    """Count them, and go on with the first slot not earlier than the end of the run."""
    CATCH_UP = "catch_up"
    """Run every one, one after the other, late."""


class CancelOutcome(enum.Enum):
    """What a cancel did. True only for `CANCELLED`.

    Example:
        >>> from duetime import CancelOutcome, Scheduler
        >>> with Scheduler() as scheduler:
        ...     task = scheduler.after(3600, print)
        ...     bool(task.cancel()), task.cancel()
        (True, <CancelOutcome.FINISHED: 'finished'>)
    """

    CANCELLED = "cancelled"
    """The task was waiting; it never runs again."""
    STOPPING = "stopping"
    """The task is running; this run finishes, and nothing follows it."""
    FINISHED = "finished"
    """The task had already ended; nothing was done."""
    UNKNOWN = "unknown"
    """The scheduler knows no such task."""

    def __bool__(self) -> bool:
        return self is CancelOutcome.CANCELLED


class ControlOutcome(enum.Enum):
    """What a call of run control found. True only for `APPLIED`.

    The calls are `reschedule`, `run_now`, `pause` and `resume` of a `Task`, and those of a
    `Scheduler` for a task or its id.

    Example:
        >>> from duetime import Scheduler
        >>> with Scheduler() as scheduler:
        ...     task = scheduler.after(3600, print)
        ...     task.pause(), scheduler.run_now("nobody")
        (<ControlOutcome.APPLIED: 'applied'>, <ControlOutcome.UNKNOWN: 'unknown'>)
    """

    APPLIED = "applied"
    """The task was waiting, and now is as the call wants it."""
    RUNNING = "running"
    """The task is running. A pause or its end goes for what follows the run; the other calls have
    done nothing."""
    FINISHED = "finished"
    """The task had already ended; nothing was done."""
    UNKNOWN = "unknown"
    """The scheduler knows no such task."""

    def __bool__(self) -> bool:
        return self is ControlOutcome.APPLIED


class EventKind(enum.Enum):
    """What an `Event` tells of.

    For one run the order is DUE, STARTED, one of COMPLETED and FAILED, then CANCELLED if the task
    was stopped.
    """

    SCHEDULED = "scheduled"
    """The task was accepted."""
    DUE = "due"
    """Its due time has come, whether or not a worker is free."""
    STARTED = "started"
    """A worker begins the run."""
    COMPLETED = "completed"
    """The run succeeded."""
    FAILED = "failed"
    """The attempt failed; `Event.will_retry` says whether the slot has another."""
    CANCELLED = "cancelled"
    """The task ended by being cancelled."""
    MISSED = "missed"
    """Slots were skipped; `Event.missed` says how many."""
    STUCK = "stuck"
    """The job still runs though its timeout and its grace are over; FAILED follows."""


@dataclass(frozen=True)
class Event:
    """One thing that happened to one task.

    Times are seconds of the scheduler's clock, lengths are seconds. What does not apply to the
    kind of event is `None`.

    Example:
        >>> from duetime import EventKind, Scheduler
        >>> with Scheduler() as scheduler:
        ...     seen = []
        ...     scheduler.add_listener(seen.append, kinds=[EventKind.COMPLETED])
        ...     scheduler.after(0, lambda: "result", id="report").result()
        ...     scheduler.wait_idle()
        ...     [(event.kind.name, event.task_id, event.run) for event in seen]
        'result'
        True
        [('COMPLETED', 'report', 1)]
    """

    kind: EventKind
    """What happened."""
    task_id: TaskId
    """To which task."""
    time: float
    """When."""
    due: float
    """The due time of the run that this is about."""
    run: int
    """Which run of the task this is about, counted from 1."""
    attempt: int
    """1 for the first run of a slot, 2 for its first retry, and so on."""
    lateness: float | None = None
    """How long after its due time the run started."""
    duration: float | None = None
    """How long the run took."""
    error: BaseException | None = None
    """Why the attempt failed, or the `DependencyFailed` that cancelled the task."""
    next_due: float | None = None
    """When the task is due again; `None` if no run follows."""
    will_retry: bool | None = None
    """FAILED: whether that is another attempt at this slot, and not the next slot or nothing."""
    missed: int | None = None
    """How many slots were skipped."""
    stack: str | None = None
    """What a stuck job is doing: the Python stack of its thread, as a traceback shows it."""


@dataclass(frozen=True)
class TaskInfo:
    """What the scheduler remembers of a task: plain values, also after its end.

    Times are seconds of the scheduler's clock.

    Example:
        >>> from duetime import Scheduler
        >>> with Scheduler() as scheduler:
        ...     scheduler.after(0, lambda: 1 / 0, id="doomed").wait()
        ...     info = scheduler.info("doomed")
        ...     info.state.name, info.runs, info.error
        True
        ('FAILED', 1, 'ZeroDivisionError: division by zero')
    """

    id: TaskId
    """What the task is known by."""
    state: TaskState
    """Where it is in its life."""
    due: float | None
    """When it is due, or was last due; `None` once there is no such time."""
    runs: int
    """How many runs ended, retries included."""
    failures: int
    """How many of them failed."""
    missed: int
    """How many slots were skipped."""
    error: str | None
    """The last failure as text, or what cancelled the task because it depended on another."""
    started: float | None
    """When the last run started."""
    finished: float | None
    """When the last run ended, or the task was cancelled."""
    paused: bool = False
    """Whether it was paused, and not resumed."""


@dataclass(frozen=True)
class Percentiles:
    """How some lengths of time are spread, in seconds.

    The percentiles are at most 2 % above the truth, and above an hour they say an hour.
    """

    count: int = 0
    """How many there are."""
    p50: float = 0.0
    """Half of them are no longer than this."""
    p90: float = 0.0
    """9 of 10 are no longer."""
    p99: float = 0.0
    """99 of 100 are no longer."""
    max: float = 0.0
    """The longest, exactly."""


@dataclass(frozen=True)
class Lateness:
    """How late the runs started, retries and every slot included, in two parts.

    For each run they add up to what its events call `lateness`. They answer whether it is the
    pool that is too small, or the GIL that is held too long.

    Example:
        >>> from duetime import ManualClock, Scheduler
        >>> clock = ManualClock()
        >>> with Scheduler(clock=clock) as scheduler:
        ...     task = scheduler.after(5, int)
        ...     clock.jump(8)  # a stall
        ...     lateness = scheduler.stats().lateness
        ...     lateness.queue.count, lateness.queue.p50, lateness.gil.max
        (1, 3.0, 0.0)
    """

    queue: Percentiles = Percentiles()
    """For a worker: none had woken yet, or all of them ran jobs. Also for whatever else kept a due
    task back: a group that was full, a pause, a task that it depends on."""
    gil: Percentiles = Percentiles()
    """For the GIL: a worker stood ready, and other Python code ran. On a `ManualClock` zero: no
    time passes."""


@dataclass(frozen=True)
class Stats:
    """What a scheduler is doing, and what it has done since it was made.

    Example:
        >>> from duetime import Scheduler
        >>> with Scheduler(workers=2) as scheduler:
        ...     task = scheduler.after(3600, print)
        ...     stats = scheduler.stats()
        ...     stats.workers, stats.waiting, stats.running
        (2, 1, 0)
    """

    workers: int
    """The size of the pool."""
    waiting: int
    """Tasks that wait now."""
    running: int
    """Tasks that run now."""
    runs: int
    """Runs that ended, retries included."""
    failures: int
    """Runs that failed."""
    done: int
    """Tasks that ended DONE."""
    failed: int
    """Tasks that ended FAILED."""
    cancelled: int
    """Tasks that ended CANCELLED."""
    missed: int
    """Slots that were skipped."""
    paused: int = 0
    """Tasks that wait and are paused."""
    crowded: int = 0
    """Due tasks that found their group full, and wait for a place in it."""
    lateness: Lateness = Lateness()
    """How late runs started, and why."""
    stuck: int = 0
    """Jobs that still run though they were given up as stuck."""
