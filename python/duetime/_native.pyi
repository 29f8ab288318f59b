"""The native module: the types and documentation of what Rust defines.

The invariant: this file says exactly what the built module offers; stubtest holds the two together
and has no list of exceptions. Users import these names from `duetime` and `duetime.retry`.

A length of time is seconds (`int`, `float`) or a `timedelta`; one that is negative, not finite or
over 100 years is `ValueError`. An instant is seconds of the scheduler's clock or an aware
`datetime`. A wrong type is `TypeError`. A refused call changes nothing.
"""

import types
from asyncio import AbstractEventLoop
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future
from datetime import datetime
from typing import Any, Final, TypeAlias, TypedDict, final, overload

from typing_extensions import Never as _Never
from typing_extensions import Self, TypeVarTuple, Unpack, disjoint_base

from duetime._protocols import Clock, Job, Recurrence, RetryPolicy, Seconds, TaskId
from duetime._records import (
    CancelOutcome,
    ControlOutcome,
    Event,
    EventKind,
    Missed,
    Stats,
    TaskInfo,
    TaskState,
)

__all__ = [
    "ExponentialBackoff",
    "FixedDelay",
    "FixedRate",
    "ManualClock",
    "Never",
    "OneTime",
    "RetryFixedDelay",
    "Run",
    "Scheduler",
    "Task",
    "_Completion",
    "__version__",
    "_seconds",
    "_shutdown_all",
    "current_run",
]

_Ts = TypeVarTuple("_Ts")

class _TaskOptions(TypedDict, total=False):
    """The keyword parameters of `Task` that `after`, `at` and `every` pass on."""

    id: TaskId | None
    retry: RetryPolicy | None
    priority: int
    max_runs: int | None
    until: float | datetime | None
    depends_on: Iterable[Task | TaskId]
    jitter: Seconds
    executor: Executor | Callable[[], Executor] | None
    group: str | None
    timeout: Seconds | None
    interrupt: bool
    grace: Seconds

_Errors: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]

__version__: Final[str]

def current_run() -> Run | None:
    """Give the run that the calling code is part of; `None` outside of any job.

    In a coroutine it goes by the context, so what the coroutine starts is part of its run too.

    Example:
        >>> from duetime import Scheduler, current_run
        >>> with Scheduler() as scheduler:
        ...     scheduler.after(0, lambda: current_run().number).result()
        1
        >>> current_run() is None
        True
    """

def _shutdown_all() -> None:
    """Shut down every scheduler of this process, and wait for their running jobs."""

def _seconds(parameter: str, value: Seconds, /) -> float:
    """Give a length of time in seconds; refuse one that is out of bounds."""

@final
class _Completion:
    """What a run that goes on elsewhere is ended with. Private to the package."""

    @property
    def run(self) -> Run:
        """The run."""

    @property
    def stuck(self) -> bool:
        """Whether the run was given up as stuck: what it ends with is of no use any more."""

    def done(self, value: object, /) -> None:
        """End the run with what the job gave. After the end this and the others do nothing."""

    def failed(self, error: BaseException, /) -> None:
        """End the run as failed."""

    def stopped(self, error: BaseException, /) -> None:
        """End the run because it was told to stop and did; if it was not told to, it has failed."""

    def on_stop(self, fn: Callable[[], object], /) -> None:
        """Have a function called once the run is to stop, on the thread that says so."""

@final
class OneTime:
    """The recurrence of a task that runs once.

    Example:
        >>> from duetime import OneTime
        >>> OneTime().next_due(10, 12) is None
        True
    """

    def __new__(cls) -> Self: ...
    def next_due(self, due: float, finished: float) -> None:
        """Give `None`: there is no next run."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class FixedRate:
    """Slots on a grid: the first due time, and every `period` after it.

    A task never overlaps itself: slots that pass during a run, or during a stall, are missed.

    Args:
        period: From slot to slot.
        missed: What to do about missed slots; `Missed.SKIP` by default.

    Raises:
        ValueError: The period is 0, negative, not finite or over 100 years.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from duetime import FixedRate
        >>> rate = FixedRate(30)
        >>> rate.next_due(0, 4)
        30.0
        >>> rate.next_due(60, 110)
        120.0
    """

    def __new__(cls, period: Seconds, missed: Missed | None = None) -> Self: ...
    @property
    def period(self) -> float:
        """From slot to slot, in seconds."""

    @property
    def missed(self) -> Missed:
        """What is done about missed slots."""

    def next_due(self, due: float, finished: float) -> float | None:
        """Give the slot that follows, or `None` beyond the end of the clock's range.

        Args:
            due: The slot that has been run, in seconds of the clock.
            finished: When that run ended, likewise.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class FixedDelay:
    """Each run is due `delay` after the end of the one before.

    Not to be confused with the retry policy `duetime.retry.FixedDelay`.

    Args:
        delay: From the end of a run to the next due time.

    Raises:
        ValueError: The delay is 0, negative, not finite or over 100 years.
        TypeError: The delay is of the wrong type.

    Example:
        >>> from duetime import FixedDelay
        >>> FixedDelay(30).next_due(60, 110)
        140.0
    """

    def __new__(cls, delay: Seconds) -> Self: ...
    @property
    def delay(self) -> float:
        """From the end of a run to the next due time, in seconds."""

    def next_due(self, due: float, finished: float) -> float | None:
        """Give the next due time, or `None` beyond the end of the clock's range.

        Args:
            due: The slot that has been run, in seconds of the clock.
            finished: When that run ended, likewise.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Never:
    """The retry policy that gives up at the first failure; the default.

    Example:
        >>> from duetime import retry
        >>> retry.Never().delay_after_failure(1) is None
        True
    """

    def __new__(cls) -> Self: ...
    def delay_after_failure(self, failures: int) -> None:
        """Give `None`: there is no retry."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class RetryFixedDelay:
    """The retry policy with the same delay each time; public as `duetime.retry.FixedDelay`.

    Args:
        max_retries: How many attempts may follow the first.
        delay: From the end of a failed attempt to the next.
        retry_on: Retry only after these errors: a class or a tuple of classes, as `except` takes;
            after any by default.
        give_up_on: No retry after these, even if `retry_on` names them; none by default.

    Raises:
        ValueError: A number is out of its bounds.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from duetime import retry
        >>> policy = retry.FixedDelay(max_retries=2, delay=300, retry_on=ConnectionError)
        >>> [policy.delay_after_failure(failures) for failures in (1, 2, 3)]
        [300.0, 300.0, None]
    """

    def __new__(
        cls,
        max_retries: int,
        delay: Seconds,
        *,
        retry_on: _Errors | None = None,
        give_up_on: _Errors | None = None,
    ) -> Self: ...
    @property
    def max_retries(self) -> int:
        """How many attempts may follow the first."""

    @property
    def delay(self) -> float:
        """From the end of a failed attempt to the next, in seconds."""

    @property
    def retry_on(self) -> tuple[type[BaseException], ...] | None:
        """The errors after which there is a retry; `None` for any."""

    @property
    def give_up_on(self) -> tuple[type[BaseException], ...] | None:
        """The errors after which there is none; `None` if none are named."""

    def delay_after_failure(self, failures: int) -> float | None:
        """Give the delay before the next attempt in seconds, or `None` to give up.

        Args:
            failures: The failed attempts so far, from 1.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class ExponentialBackoff:
    """The retry policy whose delay grows: base, base · factor, base · factor² and so on.

    Args:
        max_retries: How many attempts may follow the first.
        base: The first delay.
        factor: What each delay is multiplied by to give the next; at least 1.
        cap: The longest delay.
        jitter: From 0 to 1: each delay is cut by a random part of up to this share, so that tasks
            which failed together do not come back together.
        retry_on: Retry only after these errors: a class or a tuple of classes, as `except` takes;
            after any by default.
        give_up_on: No retry after these, even if `retry_on` names them; none by default.

    Raises:
        ValueError: A number is out of its bounds.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from duetime import retry
        >>> policy = retry.ExponentialBackoff(3, base=1, factor=10, cap=60)
        >>> [policy.delay_after_failure(failures) for failures in (1, 2, 3, 4)]
        [1.0, 10.0, 60.0, None]
    """

    def __new__(
        cls,
        max_retries: int,
        base: Seconds,
        factor: float = 2.0,
        cap: Seconds | None = None,
        jitter: float = 0.0,
        *,
        retry_on: _Errors | None = None,
        give_up_on: _Errors | None = None,
    ) -> Self: ...
    @property
    def max_retries(self) -> int:
        """How many attempts may follow the first."""

    @property
    def base(self) -> float:
        """The first delay, in seconds."""

    @property
    def factor(self) -> float:
        """What each delay is multiplied by to give the next."""

    @property
    def cap(self) -> float | None:
        """The longest delay, in seconds; `None` if there is no cap."""

    @property
    def jitter(self) -> float:
        """The share of a delay that chance may take away."""

    @property
    def retry_on(self) -> tuple[type[BaseException], ...] | None:
        """The errors after which there is a retry; `None` for any."""

    @property
    def give_up_on(self) -> tuple[type[BaseException], ...] | None:
        """The errors after which there is none; `None` if none are named."""

    def delay_after_failure(self, failures: int) -> float | None:
        """Give the delay before the next attempt in seconds, or `None` to give up.

        Args:
            failures: The failed attempts so far, from 1.
        """

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class ManualClock:
    """A clock that stands still until it is moved: tests need not sleep.

    Args:
        start: What it shows at first, in seconds.

    Raises:
        ValueError: `start` is out of the clock's range.
        TypeError: `start` is not a number.

    Example:
        >>> from duetime import ManualClock, Scheduler
        >>> clock = ManualClock()
        >>> with Scheduler(clock=clock) as scheduler:
        ...     task = scheduler.after(3600, clock.now)
        ...     clock.advance(7200)
        ...     task.result()
        3600.0
    """

    def __new__(cls, start: float = 0.0) -> Self: ...
    def now(self) -> float:
        """Give the time in seconds."""

    # Takes no argument. A native __call__ shows as (*args, **kwargs), and stubtest wants to see the
    # same here; _Never is the type of which there is no value to pass.
    def __call__(self, *args: _Never, **kwargs: _Never) -> float:
        """Give the time in seconds."""

    def advance(self, seconds: Seconds) -> None:
        """Move the time on, stopping at every due time up to the target.

        Returns when all that became due, and all that those runs scheduled up to the target, has
        finished. Two threads may move one clock: each moves it by its own length, from where it
        stood when its call began, and time never goes back.

        Args:
            seconds: How far.

        Raises:
            RuntimeError: Called from a job or a listener of a scheduler on this clock, or on the
                thread of the event loop that it runs its coroutine jobs on.
            ForkedError: The clock is the parent process's.
        """

    def jump(self, seconds: Seconds) -> None:
        """Move the time on in one leap, as a stall or a suspended laptop does.

        Returns when all that became due has finished.

        Args:
            seconds: How far.

        Raises:
            RuntimeError: Called from a job or a listener of a scheduler on this clock, or on the
                thread of the event loop that it runs its coroutine jobs on.
            ForkedError: The clock is the parent process's.
        """

@final
class Run:
    """What a job sees of its run; got from `current_run()`.

    Example:
        >>> from duetime import Scheduler, current_run
        >>> def job():
        ...     run = current_run()
        ...     while not run.stop_requested:
        ...         run.wait(0.01)
        ...     return f"stopped in run {run.number}"
        >>> scheduler = Scheduler()
        >>> task = scheduler.after(0, job)
        >>> while not task.running():
        ...     pass
        >>> scheduler.shutdown()
        True
        >>> task.result()
        'stopped in run 1'
    """

    @property
    def id(self) -> TaskId:
        """The id of the task."""

    @property
    def due(self) -> float:
        """When the run was due, in seconds of the scheduler's clock."""

    @property
    def now(self) -> float:
        """When the run started, in seconds of the scheduler's clock."""

    @property
    def deadline(self) -> float | None:
        """When its time is up, in seconds of the scheduler's clock; `None` without a timeout."""

    @property
    def attempt(self) -> int:
        """1 for the first run of a slot, 2 for its first retry, and so on."""

    @property
    def number(self) -> int:
        """Which run of the task this is, from 1; retries count."""

    @property
    def stop_requested(self) -> bool:
        """Whether the job should end soon: by a cancel, a shutdown, or because its time is up."""

    def wait(self, seconds: Seconds) -> bool:
        """Sleep, but no longer than until the job should stop.

        Args:
            seconds: The longest sleep.

        Returns:
            Whether the job should stop. Mind a job that ends with this call: `False` as the job's
            result is a failure.
        """

    def raise_if_stopped(self) -> None:
        """End the job here if it should stop.

        Raises:
            concurrent.futures.CancelledError: A stop was requested.
        """

@final
class Task:
    """What to run and when, and the handle on it, as a `Timer` or a `Future` is.

    It can be scheduled once. The waiting methods mean what they mean on a
    `concurrent.futures.Future`, for the whole life of the task: a recurring task is done when its
    series ends.

    Args:
        id: What the task is known by; made by the scheduler by default.
        due: When it is first due: seconds of the scheduler's clock, or an aware datetime. In the
            past is legal: it then runs at once.
        job: A callable, called as `job(*args)`, or an object with a method `run(now)`. It fails by
            returning exactly `False` or by raising; anything else that it returns is the result.
        args: What a callable is called with.
        recurrence: When it is due again; `OneTime()` by default.
        retry: What to do about a failure; `retry.Never()` by default.
        priority: Among tasks with equal due times the higher goes first.
        max_runs: How many slots are run at most; the retries of a slot do not count.
        until: The instant after which a series has no slot.
        depends_on: The tasks that it waits for, as objects or ids: it runs at its due time or when
            the last of them is DONE, whichever is later. If one ends FAILED or CANCELLED, it is
            cancelled with `DependencyFailed`. Each was scheduled before, or is by the same
            `schedule_all`.
        jitter: Each run is due at its slot plus a random part of up to this, which moves no later
            slot. With a `FixedRate` it must be shorter than the period.
        executor: What runs the job instead of a worker: a `concurrent.futures.Executor`, or a
            callable that makes one; the scheduler's by default.
        group: The group of the scheduler's `limits` that it counts for; none by default.
        timeout: How long each attempt may take, from its start. Then the run is told to stop, and
            the attempt has failed with `TaskTimeout`, whatever the job answers later; `retry`
            applies. Any length by default.
        interrupt: Whether `TaskTimeout` is also raised in the job then, at its next bytecode; in a
            job that a worker runs, that is. A coroutine is cancelled in any case.
        grace: How long after its timeout a job may still take to stop. Then it is stuck: the task
            is FAILED with `TaskStuck`, without a retry, and another worker takes the place of
            its own.

    Raises:
        ValueError: A number is out of its bounds, or a datetime is naive.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from duetime import FixedRate, Scheduler, Task
        >>> with Scheduler() as scheduler:
        ...     task = Task("tick", due=scheduler.now(), job=lambda: 42, max_runs=1)
        ...     scheduler.schedule(task).result()
        42
    """

    @overload
    def __new__(
        cls,
        id: TaskId | None = None,
        *,
        due: float | datetime,
        job: Job,
        args: tuple[()] = (),
        recurrence: Recurrence | None = None,
        retry: RetryPolicy | None = None,
        priority: int = 0,
        max_runs: int | None = None,
        until: float | datetime | None = None,
        depends_on: Iterable[Task | TaskId] = (),
        jitter: Seconds = 0.0,
        executor: Executor | Callable[[], Executor] | None = None,
        group: str | None = None,
        timeout: Seconds | None = None,
        interrupt: bool = False,
        grace: Seconds = 5.0,
    ) -> Self: ...
    @overload
    def __new__(
        cls,
        id: TaskId | None = None,
        *,
        due: float | datetime,
        job: Callable[[Unpack[_Ts]], object],
        args: tuple[Unpack[_Ts]] = ...,
        recurrence: Recurrence | None = None,
        retry: RetryPolicy | None = None,
        priority: int = 0,
        max_runs: int | None = None,
        until: float | datetime | None = None,
        depends_on: Iterable[Task | TaskId] = (),
        jitter: Seconds = 0.0,
        executor: Executor | Callable[[], Executor] | None = None,
        group: str | None = None,
        timeout: Seconds | None = None,
        interrupt: bool = False,
        grace: Seconds = 5.0,
    ) -> Self: ...
    @property
    def id(self) -> TaskId | None:
        """What the task is known by; `None` until it is scheduled, if none was given."""

    @property
    def state(self) -> TaskState:
        """Where the task is in its life."""

    @property
    def due(self) -> float | None:
        """When it is due, or was last due, in seconds of the scheduler's clock.

        `None` where that is not known: a datetime before the task is scheduled.
        """

    @property
    def priority(self) -> int:
        """Among tasks with equal due times the higher goes first."""

    @property
    def recurrence(self) -> Recurrence:
        """When the task is due again."""

    @property
    def group(self) -> str | None:
        """The group of the scheduler's `limits` that it counts for.

        `None` if it is of none, or the scheduler is gone.
        """

    @property
    def depends_on(self) -> tuple[Task | TaskId, ...]:
        """The tasks that it depends on: their ids; until it is scheduled, what was given."""

    @property
    def runs(self) -> int:
        """How many runs ended, retries included."""

    @property
    def failures(self) -> int:
        """How many runs failed."""

    @property
    def missed(self) -> int:
        """How many slots were skipped."""

    @property
    def paused(self) -> bool:
        """Whether the task was paused, and not resumed."""

    @property
    def error(self) -> BaseException | None:
        """The last failure, also of a series that goes on; `None` if no run failed.

        `DependencyFailed` if it was cancelled because of a task that it depends on.
        """

    def preview(self, n: int) -> list[float]:
        """Give the next due times, in seconds of the scheduler's clock, without running anything.

        They are told as if each run ended in the instant in which it is due, `max_runs` and `until`
        applied. The first is that of the run that waits, a retry included; while the task runs,
        that of the run that follows if this one ends now and is not retried. Jitter is left out of
        all but the first. A recurrence of your own is asked, so its `next_due` should depend on
        nothing but its arguments.

        Args:
            n: How many, from 0 to 1,000,000.

        Returns:
            `n` times; fewer if the series ends before, none if it has ended or was told to stop.

        Raises:
            ValueError: `n` is out of bounds, or the recurrence does not move forward.
            TypeError: `n` is not an int.
            RuntimeError: The task is not scheduled, and its `due` or `until` is a datetime: only
                its scheduler's clock can tell.
            BaseException: What the recurrence raised.

        Example:
            >>> from duetime import FixedRate, Task
            >>> Task(due=0, job=print, recurrence=FixedRate(90), until=250).preview(5)
            [0.0, 90.0, 180.0]
        """

    def result(self, timeout: Seconds | None = None) -> Any:
        """Wait for the end and give what the last run returned.

        Args:
            timeout: The longest wait; without one, as long as it takes.

        Returns:
            What the job returned.

        Raises:
            TimeoutError: The task had not ended in time; `concurrent.futures.TimeoutError` on
                Python 3.10, where the two differ.
            concurrent.futures.CancelledError: It was cancelled; from `DependencyFailed`, if because
                of a task that it depends on.
            RuntimeError: It waits for the caller, or the calling thread is that of the event loop
                that its scheduler runs coroutine jobs on: await the task instead.
            BaseException: It ended FAILED: the error of its last run, or `JobReturnedFalse`.
        """

    def exception(self, timeout: Seconds | None = None) -> BaseException | None:
        """Wait for the end and give the error of the last run; `None` if it succeeded.

        Args:
            timeout: The longest wait; without one, as long as it takes.

        Raises:
            TimeoutError: As for `result`.
            concurrent.futures.CancelledError: As for `result`.
            RuntimeError: As for `result`.
        """

    def wait(self, timeout: Seconds | None = None) -> bool:
        """Wait for the end, whatever it is.

        Args:
            timeout: The longest wait; without one, as long as it takes.

        Returns:
            Whether the task has ended.

        Raises:
            RuntimeError: As for `result`.
        """

    def done(self) -> bool:
        """Tell whether the task has ended: DONE, FAILED or CANCELLED."""

    def running(self) -> bool:
        """Tell whether the job is being run."""

    def cancelled(self) -> bool:
        """Tell whether the task ended CANCELLED."""

    def cancel(self) -> CancelOutcome:
        """Cancel the task: no run starts any more.

        Returns:
            CANCELLED if it was waiting, STOPPING if it is running, FINISHED if it had ended.
            UNKNOWN if it was never scheduled.
        """

    def reschedule(self, due: float | datetime) -> ControlOutcome:
        """Make the waiting task due at another time.

        A series goes on from there: its grid moves with it. See `Scheduler.reschedule`.

        Args:
            due: Seconds of the scheduler's clock, or an aware datetime. In the past means at once.

        Returns:
            APPLIED if it was waiting; RUNNING or FINISHED, and nothing was done. UNKNOWN if it was
            never scheduled.

        Raises:
            SchedulerClosedError: The task waits, and the scheduler is shut down.
        """

    def run_now(self) -> ControlOutcome:
        """Make the waiting task due now: one more run, if it is a series.

        See `Scheduler.run_now`.

        Returns:
            As for `reschedule`.

        Raises:
            SchedulerClosedError: The task waits, and the scheduler is shut down.
        """

    def pause(self) -> ControlOutcome:
        """Hold the task: no run starts until it is resumed.

        See `Scheduler.pause_task`.

        Returns:
            APPLIED if it was waiting. RUNNING: its run goes on, and what follows it is held.
            FINISHED if it had ended, UNKNOWN if it was never scheduled.

        Raises:
            SchedulerClosedError: The task waits, and the scheduler is shut down.
        """

    def resume(self) -> ControlOutcome:
        """Let the task go on, if it was paused.

        See `Scheduler.resume_task`.

        Returns:
            As for `pause`.

        Raises:
            SchedulerClosedError: The task waits, and the scheduler is shut down.
        """

    def add_done_callback(self, fn: Callable[[Task], object]) -> None:
        """Have a function called with this task when it has ended; at once if it has.

        An error of the function is reported through `sys.unraisablehook`.

        Args:
            fn: What to call.
        """

    @property
    def future(self) -> Future[Any]:
        """The whole life of the task as a `concurrent.futures.Future`, the same each time.

        For `concurrent.futures.wait` and `as_completed`, `asyncio.wrap_future`, and all else that
        takes one. Cancelling it cancels a waiting task; once the job is being run it is refused,
        as on any executor. A cancelled task's future is cancelled.

        Example:
            >>> from concurrent.futures import as_completed
            >>> from duetime import Scheduler
            >>> with Scheduler() as scheduler:
            ...     tasks = [scheduler.after(0, pow, 2, n) for n in (1, 2)]
            ...     sorted(future.result() for future in as_completed(t.future for t in tasks))
            [2, 4]
        """

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the end in a coroutine, on any event loop, and give the result as `result` does.

        Several may await one task; cancelling one of them ends its wait and not the task. A
        cancelled task raises `asyncio.CancelledError`.
        """

    def _watch(self, fn: Callable[[Task], object]) -> Callable[[], None] | None:
        """Have a function called with this task when it ends, unless it is taken back before.

        Returns:
            What takes the function back; `None` if the task has ended, and the function is not
            called.
        """

    def info(self) -> TaskInfo:
        """Give the task's record: plain values."""

@disjoint_base
class Scheduler:
    """The native part of `duetime.Scheduler`, which is the one to use."""

    def __new__(cls, *args: object, **kwargs: object) -> Self: ...
    def __init__(
        self,
        workers: int = 4,
        *,
        clock: Clock | None = None,
        history: int = 10_000,
        name: str = "duetime",
        loop: AbstractEventLoop | Callable[[], AbstractEventLoop] | None = None,
        executor: Executor | Callable[[], Executor] | None = None,
        limits: dict[str, int] | None = None,
    ) -> None: ...
    @property
    def workers(self) -> int:
        """The size of the pool."""

    @property
    def name(self) -> str:
        """What the threads are called, before their number."""

    @property
    def clock(self) -> Clock | None:
        """The clock that the scheduler was made with; `None` for the monotonic clock."""

    @property
    def executor(self) -> Executor | Callable[[], Executor] | None:
        """What the scheduler was made with to run jobs; `None` for its workers."""

    @property
    def paused(self) -> bool:
        """Whether the scheduler was paused, and not resumed."""

    @property
    def closed(self) -> bool:
        """Whether the scheduler is shut down, or shutting down."""

    def schedule(self, task: Task, *, replace: bool = False) -> Task:
        """Take on a task.

        Args:
            task: The task; it can be scheduled once.
            replace: First cancel the waiting task, or forget the finished one, that has the id.

        Returns:
            The task.

        Raises:
            DuplicateTaskError: The id is known, and `replace` is false or its holder is running.
            ValueError: The task was scheduled before, or depends on a series without an end.
            UnknownTaskError: It depends on a task that the scheduler does not know.
            DependencyCycleError: It depends on itself.
            SchedulerClosedError: The scheduler is shut down.
            ForkedError: The scheduler is the parent process's.

        Example:
            >>> from duetime import Scheduler, Task
            >>> with Scheduler() as scheduler:
            ...     task = Task("hello", due=scheduler.now(), job=lambda: "hello")
            ...     scheduler.schedule(task).result()
            'hello'
        """

    def schedule_all(self, tasks: Iterable[Task], *, replace: bool = False) -> list[Task]:
        """Take on several tasks, all or none.

        They may depend on each other, whatever their order.

        Args:
            tasks: The tasks.
            replace: As for `schedule`.

        Returns:
            The tasks, in their order.

        Raises:
            DuplicateTaskError: As for `schedule`; also if two of the tasks have the same id.
            ValueError: A task was scheduled before, or depends on a series without an end.
            UnknownTaskError: One depends on a task that the scheduler does not know.
            DependencyCycleError: They depend on each other in a circle.
            SchedulerClosedError: The scheduler is shut down.
            ForkedError: The scheduler is the parent process's.
        """

    @overload
    def after(self, delay: Seconds, job: Job, /, **options: Unpack[_TaskOptions]) -> Task: ...
    @overload
    def after(
        self,
        delay: Seconds,
        job: Callable[[Unpack[_Ts]], object],
        /,
        *args: Unpack[_Ts],
        **options: Unpack[_TaskOptions],
    ) -> Task:
        """Run a job once, a while from now.

        Args:
            delay: How long from now.
            job: What to run.
            *args: What to call it with.
            **options: Keyword parameters of `Task`.

        Returns:
            The task.

        Raises:
            ValueError: A number is out of its bounds.
            TypeError: An argument is of the wrong type.
            DuplicateTaskError: The `id` is taken.
            UnknownTaskError: It depends on a task that the scheduler does not know.
            SchedulerClosedError: The scheduler is shut down.
            ForkedError: The scheduler is the parent process's.

        Example:
            >>> from duetime import Scheduler
            >>> with Scheduler() as scheduler:
            ...     scheduler.after(0.01, pow, 2, 10).result()
            1024
        """

    @overload
    def at(self, when: float | datetime, job: Job, /, **options: Unpack[_TaskOptions]) -> Task: ...
    @overload
    def at(
        self,
        when: float | datetime,
        job: Callable[[Unpack[_Ts]], object],
        /,
        *args: Unpack[_Ts],
        **options: Unpack[_TaskOptions],
    ) -> Task:
        """Run a job once, at an instant.

        Args:
            when: An aware datetime, which is converted to the scheduler's clock once, now; or
                seconds of that clock. In the past means at once.
            job: What to run.
            *args: What to call it with.
            **options: Keyword parameters of `Task`.

        Returns:
            The task.

        Raises:
            ValueError: A number is out of its bounds, or the datetime is naive.
            TypeError: An argument is of the wrong type.
            DuplicateTaskError: The `id` is taken.
            UnknownTaskError: It depends on a task that the scheduler does not know.
            SchedulerClosedError: The scheduler is shut down.
            ForkedError: The scheduler is the parent process's.

        Example:
            >>> from datetime import datetime, timedelta, timezone
            >>> from duetime import Scheduler
            >>> with Scheduler() as scheduler:
            ...     soon = datetime.now(timezone.utc) + timedelta(milliseconds=10)
            ...     scheduler.at(soon, lambda: "now").result()
            'now'
        """

    @overload
    def every(
        self,
        rule: Seconds | Recurrence,
        job: Job,
        /,
        *,
        first: Seconds | datetime | None = None,
        **options: Unpack[_TaskOptions],
    ) -> Task: ...
    @overload
    def every(
        self,
        rule: Seconds | Recurrence,
        job: Callable[[Unpack[_Ts]], object],
        /,
        *args: Unpack[_Ts],
        first: Seconds | datetime | None = None,
        **options: Unpack[_TaskOptions],
    ) -> Task:
        """Run a job again and again; see `duetime.Scheduler.every`."""

    def _check_every(
        self,
        rule: Seconds | Recurrence,
        /,
        *,
        first: Seconds | datetime | None = None,
        **options: Unpack[_TaskOptions],
    ) -> None:
        """Check the arguments of `every` before there is a job."""

    def cancel(self, task: Task | TaskId, /) -> CancelOutcome:
        """Cancel a task: no run of it starts any more.

        Args:
            task: The task or its id.

        Returns:
            What was done; true only for `CancelOutcome.CANCELLED`.

        Raises:
            ForkedError: The scheduler is the parent process's.

        Example:
            >>> from duetime import Scheduler
            >>> with Scheduler() as scheduler:
            ...     task = scheduler.after(3600, print, id="report")
            ...     if scheduler.cancel("report"):
            ...         print("it never runs")
            it never runs
        """

    def reschedule(self, task: Task | TaskId, due: float | datetime, /) -> ControlOutcome:
        """Make a waiting task due at another time.

        A series goes on from there: its grid moves with it. A retry is only made at another time. A
        paused task stays paused. Of a running task nothing is changed.

        Args:
            task: The task or its id.
            due: Seconds of the scheduler's clock, or an aware datetime. In the past means at once.

        Returns:
            What was done; true only for `ControlOutcome.APPLIED`.

        Raises:
            SchedulerClosedError: The task waits, and the scheduler is shut down.
            ForkedError: The scheduler is the parent process's.

        Example:
            >>> from duetime import ManualClock, Scheduler
            >>> clock = ManualClock()
            >>> with Scheduler(clock=clock) as scheduler:
            ...     task = scheduler.every(600, list, id="tick")
            ...     if scheduler.reschedule("tick", 180):
            ...         clock.advance(180)
            ...     task.runs, task.due
            (1, 780.0)
        """

    def run_now(self, task: Task | TaskId, /) -> ControlOutcome:
        """Make a waiting task due now, if it is not yet.

        This is one more run of a series, before the slot that it waited for, and does not count
        for `max_runs`; slots that pass during it are missed by the series' rule. A retry or a
        one-off task is only made sooner. A paused task is run once, and stays paused. A running
        task is not run again. One that depends on others is due now, and runs when they are done.

        Args:
            task: The task or its id.

        Returns:
            What was done; true only for `ControlOutcome.APPLIED`.

        Raises:
            SchedulerClosedError: The task waits, and the scheduler is shut down.
            ForkedError: The scheduler is the parent process's.

        Example:
            >>> from duetime import ManualClock, Scheduler
            >>> clock = ManualClock()
            >>> with Scheduler(clock=clock) as scheduler:
            ...     task = scheduler.every(600, list)
            ...     answer = scheduler.run_now(task)
            ...     scheduler.wait_idle()
            ...     answer.name, task.runs, task.due
            True
            ('APPLIED', 1, 600.0)
        """

    def pause_task(self, task: Task | TaskId, /) -> ControlOutcome:
        """Hold a task: no run of it starts until it is resumed.

        It still counts as WAITING, but is not due: `wait_idle` does not wait for it, and a drain
        cancels it. A run that goes on is not disturbed; what follows it is held. A task that
        depends on others is held when they are done; if one of them fails, it is cancelled all the
        same.

        Args:
            task: The task or its id.

        Returns:
            What was done; true only for `ControlOutcome.APPLIED`.

        Raises:
            SchedulerClosedError: The task waits, and the scheduler is shut down.
            ForkedError: The scheduler is the parent process's.
        """

    def resume_task(self, task: Task | TaskId, /) -> ControlOutcome:
        """Let a task go on, if it was paused.

        If its due time has passed, a series with `Missed.SKIP` goes on with the first slot that has
        not passed; those before it are missed, the one that it waited for included. Any other task
        runs now, late; with `Missed.CATCH_UP` so does every slot that passed.

        Args:
            task: The task or its id.

        Returns:
            What was done; true only for `ControlOutcome.APPLIED`.

        Raises:
            SchedulerClosedError: The task waits, and the scheduler is shut down.
            ForkedError: The scheduler is the parent process's.

        Example:
            >>> from duetime import ManualClock, Scheduler
            >>> clock = ManualClock()
            >>> with Scheduler(clock=clock) as scheduler:
            ...     task = scheduler.every(60, list, id="tick")
            ...     answer = scheduler.pause_task("tick")
            ...     clock.advance(630)
            ...     answer = scheduler.resume_task("tick")
            ...     task.runs, task.missed, task.due
            (0, 10, 660.0)
        """

    def pause(self) -> None:
        """Start nothing until `resume`.

        Runs that go on are not disturbed, tasks are scheduled as ever, and DUE events are sent on
        time. Nothing counts as due meanwhile: a drain cancels all that waits. Again is no error.

        Raises:
            SchedulerClosedError: The scheduler is shut down.
            ForkedError: The scheduler is the parent process's.

        Example:
            >>> from duetime import Scheduler
            >>> with Scheduler() as scheduler:
            ...     scheduler.pause()
            ...     task = scheduler.after(0, print, "it runs")
            ...     scheduler.wait_idle(), task.state.name
            ...     scheduler.resume()
            ...     task.wait()
            (True, 'WAITING')
            it runs
            True
        """

    def resume(self) -> None:
        """Start again what is due.

        To the tasks the pause was as a time in which all workers were busy. Again is no error.

        Raises:
            SchedulerClosedError: The scheduler is shut down.
            ForkedError: The scheduler is the parent process's.
        """

    def get(self, id: TaskId, /) -> Task | None:
        """Give the live task of that id; `None` if there is none, or it has ended."""

    def info(self, id: TaskId, /) -> TaskInfo:
        """Give the record of a task that lives or is remembered.

        Raises:
            UnknownTaskError: The scheduler does not know the id.
        """

    def tasks(self, state: TaskState | None = None) -> list[TaskInfo]:
        """Give the records of all tasks that live or are remembered.

        Args:
            state: Only those in this state.
        """

    def forget(self, id: TaskId, /) -> None:
        """Forget a finished task: its id is free again.

        Raises:
            UnknownTaskError: The scheduler does not know the id.
            ValueError: The task has not ended; cancel it first.
        """

    def now(self) -> float:
        """Give the time of the scheduler's clock, in seconds."""

    def next_due(self) -> float | None:
        """Give the earliest due time of what waits and is not paused; `None` if nothing does.

        A task that waits for others does not count.
        """

    def wake(self) -> None:
        """Look at the clock again: to be called after a clock of your own was moved."""

    def wait_idle(self, timeout: Seconds | None = None) -> bool:
        """Wait until nothing is running and nothing is due.

        Args:
            timeout: The longest wait; without one, as long as it takes.

        Returns:
            `False` if `timeout` came first.

        Raises:
            RuntimeError: Called from a job or a listener, or on the thread of the event loop
                that coroutine jobs run on.
            ForkedError: The scheduler is the parent process's.
        """

    def stats(self) -> Stats:
        """Give the numbers of this moment, and of all runs since the scheduler was made.

        Example:
            >>> from duetime import Scheduler
            >>> with Scheduler() as scheduler:
            ...     scheduler.after(0, int).result()
            ...     lateness = scheduler.stats().lateness
            ...     lateness.queue.count, 0 <= lateness.gil.p50 <= lateness.gil.p99
            0
            (1, True)
        """

    def add_listener(
        self, fn: Callable[[Event], object], kinds: Iterable[EventKind] | None = None
    ) -> None:
        """Have a function called with each event.

        It is called on the thread that made the move, with no lock held, and may call any method
        of the scheduler. An error of the function is reported through `sys.unraisablehook`.

        Args:
            fn: What to call.
            kinds: Which kinds of event; all of them by default.
        """

    def remove_listener(self, fn: Callable[[Event], object], /) -> None:
        """Stop calling a function; no harm if it is not a listener."""

    def shutdown(
        self, wait: bool = True, *, drain: bool = False, timeout: Seconds | None = None
    ) -> bool:
        """Refuse new tasks, tell running jobs to stop; see `duetime.Scheduler.shutdown`."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: types.TracebackType | None,
        /,
    ) -> None: ...
