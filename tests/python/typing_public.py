"""Every public name, used as a user would: `mypy --strict` must pass.

The invariant: a type that a user can see is named here, so a stub that loses or loosens one fails
the type check. Nothing here is run.
"""

import concurrent.futures
import pickle
from asyncio import AbstractEventLoop, new_event_loop
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

from typing_extensions import assert_type

import duetime
from duetime import (
    CancelOutcome,
    Clock,
    ControlOutcome,
    DependencyCycleError,
    DependencyFailed,
    DuetimeError,
    DuplicateTaskError,
    Event,
    EventKind,
    FixedDelay,
    FixedRate,
    ForkedError,
    Job,
    JobReturnedFalse,
    Lateness,
    ManualClock,
    Missed,
    OneTime,
    Percentiles,
    Recurrence,
    RetryPolicy,
    Run,
    Scheduler,
    SchedulerClosedError,
    Seconds,
    Stats,
    Task,
    TaskId,
    TaskInfo,
    TaskState,
    TaskStuck,
    TaskTimeout,
    UnknownTaskError,
    current_run,
    retry,
    testing,
)

SOON = datetime.now(timezone.utc) + timedelta(seconds=5)


class Report:
    """A job of our own."""

    def run(self, now: float) -> str:
        return f"made at {now}"


class Doubling:
    """A recurrence of our own."""

    def next_due(self, due: float, finished: float) -> float | None:
        return 2 * due if finished < 100 else None


class Twice:
    """A retry policy of our own."""

    def delay_after_failure(self, failures: int) -> float | None:
        return 1.0 if failures <= 2 else None


def add(first: int, second: int = 0) -> int:
    return first + second


def on_event(event: Event) -> None:
    assert_type(event.kind, EventKind)
    assert_type(event.task_id, str | int)
    assert_type(event.time, float)
    assert_type(event.due, float)
    assert_type(event.run, int)
    assert_type(event.attempt, int)
    assert_type(event.lateness, float | None)
    assert_type(event.duration, float | None)
    assert_type(event.error, BaseException | None)
    assert_type(event.next_due, float | None)
    assert_type(event.missed, int | None)
    assert_type(event.stack, str | None)
    event.run = 2  # type: ignore[misc]


def own_rules() -> None:
    job: Job = Report()
    recurrences: list[Recurrence] = [
        Doubling(),
        OneTime(),
        FixedRate(0.5),
        FixedRate(timedelta(minutes=10), Missed.CATCH_UP),
        FixedDelay(delay=30),
    ]
    policies: list[RetryPolicy] = [
        Twice(),
        retry.Never(),
        retry.FixedDelay(3, timedelta(minutes=5)),
        retry.ExponentialBackoff(max_retries=5, base=1, factor=3, cap=60.0, jitter=0.1),
        retry.FixedDelay(3, 5, retry_on=OSError, give_up_on=(KeyError, FileNotFoundError)),
    ]
    with Scheduler() as scheduler:
        for recurrence, policy in zip(recurrences, policies, strict=False):
            scheduler.every(recurrence, job, retry=policy)
            scheduler.schedule(Task(due=0, job=job, recurrence=recurrence, retry=policy))


def rules() -> None:
    rate = FixedRate(30, missed=Missed.SKIP)
    assert_type(rate.period, float)
    assert_type(rate.missed, Missed)
    assert_type(rate.next_due(60, 110), float | None)
    assert_type(FixedDelay(30).delay, float)
    assert_type(FixedDelay(30).next_due(0, 1), float | None)
    assert_type(rate == FixedRate(30), bool)
    assert_type(hash(rate), int)
    assert_type(pickle.dumps(rate), bytes)
    OneTime().next_due(0, 1)

    backoff = retry.ExponentialBackoff(5, 1.0)
    assert_type(backoff.max_retries, int)
    assert_type(backoff.base, float)
    assert_type(backoff.factor, float)
    assert_type(backoff.cap, float | None)
    assert_type(backoff.jitter, float)
    assert_type(backoff.delay_after_failure(1), float | None)
    assert_type(retry.FixedDelay(1, 5).max_retries, int)
    assert_type(retry.FixedDelay(1, 5).retry_on, tuple[type[BaseException], ...] | None)
    assert_type(backoff.give_up_on, tuple[type[BaseException], ...] | None)
    retry.FixedDelay(1, 5, retry_on=int)  # type: ignore[arg-type]
    retry.FixedDelay(1, 5, OSError)  # type: ignore[call-arg]
    assert_type(retry.RetryAfter(timedelta(minutes=1)).seconds, float)
    error: DuetimeError = retry.GiveUp("why")
    assert_type(error.__cause__, BaseException | None)
    assert_type(retry.FixedDelay(1, 5).delay, float)
    assert_type(retry.FixedDelay(1, 5).delay_after_failure(1), float | None)
    retry.Never().delay_after_failure(1)


def tasks(scheduler: Scheduler) -> None:
    task = Task(
        "report",
        due=SOON,
        job=add,
        args=(1, 2),
        recurrence=FixedRate(600),
        retry=retry.Never(),
        priority=1,
        max_runs=3,
        until=SOON + timedelta(hours=1),
        depends_on=("a", 1),
    )
    Task(due=0, job=Report(), depends_on=[task])
    Task(due=0, job=add, args=(1,), depends_on=[task, "a"])
    Task(due=0, job=Report(), depends_on=[1.5])  # type: ignore[list-item]
    Task(7, due=0, job=lambda: None)
    Task(due=0.5, job=Report(), until=10, jitter=timedelta(seconds=1))
    Task(due=0, job=Report(), timeout=timedelta(seconds=5), interrupt=True, grace=0.5)
    Task(due=0, job=Report(), timeout=None)
    Task(due=0, job=Report(), timeout="5")  # type: ignore[call-overload]
    assert_type(task.preview(3), list[float])
    Task(due=0, job=add, args=("one",))  # type: ignore[arg-type]
    Task(due=0, job=5)  # type: ignore[call-overload]

    assert_type(scheduler.schedule(task), Task)
    assert_type(scheduler.schedule(task, replace=True), Task)
    assert_type(scheduler.schedule_all([task], replace=False), list[Task])
    assert_type(scheduler.schedule_all(iter((task,))), list[Task])

    assert_type(task.id, str | int | None)
    assert_type(task.state, TaskState)
    assert_type(task.due, float | None)
    assert_type(task.priority, int)
    assert_type(task.recurrence, Recurrence)
    assert_type(task.runs, int)
    assert_type(task.failures, int)
    assert_type(task.missed, int)
    assert_type(task.error, BaseException | None)
    assert_type(task.result(), Any)
    assert_type(task.result(timeout=1), Any)
    assert_type(task.exception(timeout=timedelta(seconds=1)), BaseException | None)
    assert_type(task.wait(0.1), bool)
    assert_type(task.done(), bool)
    assert_type(task.running(), bool)
    assert_type(task.cancelled(), bool)
    assert_type(task.cancel(), CancelOutcome)
    assert_type(task.reschedule(datetime.now(timezone.utc)), ControlOutcome)
    assert_type((task.run_now(), task.pause()), tuple[ControlOutcome, ControlOutcome])
    assert_type((task.resume(), task.paused), tuple[ControlOutcome, bool])
    assert_type(task.info(), TaskInfo)

    def ended(task: Task) -> str:
        return task.state.value

    task.add_done_callback(ended)


def shorthands(scheduler: Scheduler) -> None:
    assert_type(scheduler.after(5, add, 1), Task)
    assert_type(scheduler.after(timedelta(seconds=5), add, 1, 2, id="sum", priority=3), Task)
    assert_type(scheduler.after(0.5, Report(), retry=Twice()), Task)
    assert_type(scheduler.at(SOON, add, 1), Task)
    assert_type(scheduler.at(12.5, Report(), id=5), Task)
    assert_type(scheduler.every(600, add, 1, first=SOON, until=SOON, jitter=1), Task)
    assert_type(scheduler.every(FixedDelay(600), Report(), first=0), Task)
    scheduler.after(5, Report(), timeout=5, interrupt=True, grace=timedelta(seconds=1))
    scheduler.after(5, Report(), depends_on=[scheduler.at(SOON, Report()), "sum"])
    scheduler.after(5, add, "one")  # type: ignore[arg-type]
    scheduler.after(5, print, unknown=1)  # type: ignore[call-overload]

    @scheduler.every(timedelta(minutes=10), id="refresh")
    def refresh(much: int = 1) -> int:
        return much

    assert_type(refresh(2), int)


def executor(scheduler: Scheduler) -> None:
    assert_type(scheduler.submit(add, 1, second=2), concurrent.futures.Future[int])
    scheduler.submit(add, "one")  # type: ignore[arg-type]
    any_executor: concurrent.futures.Executor = scheduler
    assert_type(list(any_executor.map(add, [1, 2], [3, 4])), list[int])


def questions(scheduler: Scheduler, id: TaskId) -> None:
    assert_type(scheduler.cancel(id), CancelOutcome)
    found = scheduler.get(id)
    assert_type(found, Task | None)
    if found is not None and scheduler.cancel(found):
        scheduler.forget(id)
    assert_type(scheduler.tasks(), list[TaskInfo])
    assert_type(scheduler.tasks(TaskState.WAITING), list[TaskInfo])
    assert_type(scheduler.now(), float)
    assert_type(scheduler.next_due(), float | None)
    assert_type(scheduler.wait_idle(timeout=1), bool)
    assert_type(scheduler.workers, int)
    assert_type(scheduler.name, str)
    assert_type(scheduler.clock, Clock | None)
    assert_type(scheduler.closed, bool)
    scheduler.wake()
    assert_type(scheduler.reschedule(id, 5), ControlOutcome)
    assert_type(scheduler.run_now(id), ControlOutcome)
    assert_type(scheduler.pause_task(id), ControlOutcome)
    assert_type(scheduler.resume_task(id), ControlOutcome)
    scheduler.pause()
    assert_type(scheduler.paused, bool)
    scheduler.resume()

    info = scheduler.info(id)
    assert_type(info, TaskInfo)
    assert_type(info.id, str | int)
    assert_type(info.state, TaskState)
    assert_type(info.due, float | None)
    assert_type((info.runs, info.failures, info.missed), tuple[int, int, int])
    assert_type(info.error, str | None)
    assert_type(info.paused, bool)
    assert_type((info.started, info.finished), tuple[float | None, float | None])

    stats = scheduler.stats()
    assert_type(stats, Stats)
    assert_type((stats.workers, stats.waiting, stats.running), tuple[int, int, int])
    assert_type((stats.paused, stats.crowded), tuple[int, int])
    assert_type(stats.lateness, Lateness)
    assert_type((stats.lateness.queue, stats.lateness.gil), tuple[Percentiles, Percentiles])
    assert_type((stats.lateness.gil.count, stats.lateness.gil.p99), tuple[int, float])
    assert_type((stats.runs, stats.failures, stats.missed), tuple[int, int, int])
    assert_type(stats.stuck, int)
    assert_type((stats.done, stats.failed, stats.cancelled), tuple[int, int, int])


def listeners(scheduler: Scheduler) -> None:
    scheduler.add_listener(on_event)
    scheduler.add_listener(on_event, kinds=[EventKind.DUE, EventKind.STARTED])
    scheduler.add_listener(on_event, set(EventKind) - {EventKind.SCHEDULED})
    scheduler.remove_listener(on_event)
    every_kind: tuple[EventKind, ...] = (
        EventKind.SCHEDULED,
        EventKind.DUE,
        EventKind.STARTED,
        EventKind.COMPLETED,
        EventKind.FAILED,
        EventKind.CANCELLED,
        EventKind.MISSED,
    )
    assert_type(every_kind[0].value, str)


def states() -> None:
    assert_type(bool(CancelOutcome.CANCELLED), bool)
    list(CancelOutcome)
    outcomes = (CancelOutcome.STOPPING, CancelOutcome.FINISHED, CancelOutcome.UNKNOWN)
    ends = (TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED)
    before = (TaskState.WAITING, TaskState.RUNNING)
    assert_type(len(outcomes) + len(ends) + len(before), int)


def inside_a_job() -> None:
    run = current_run()
    assert_type(run, Run | None)
    if run is not None:
        assert_type(run.id, str | int)
        assert_type((run.due, run.now), tuple[float, float])
        assert_type((run.attempt, run.number), tuple[int, int])
        assert_type(run.stop_requested, bool)
        assert_type(run.wait(timedelta(seconds=1)), bool)
        run.raise_if_stopped()


def pause(seconds: Seconds) -> None:
    clock = ManualClock(start=5)
    assert_type(clock.now(), float)
    assert_type(clock(), float)
    clock.advance(seconds)
    clock.jump(seconds)
    counted: Callable[[], float] = clock
    own: Clock = lambda: 5.0  # noqa: E731 - the annotation is what is checked
    Scheduler(4, clock=own, history=100, name="mine")
    Scheduler(workers=2, clock=counted)


def ends(scheduler: Scheduler) -> None:
    assert_type(scheduler.shutdown(), bool)
    assert_type(scheduler.shutdown(False, drain=True, timeout=5), bool)
    assert_type(scheduler.shutdown(wait=True, cancel_futures=True), bool)


async def elsewhere(scheduler: Scheduler, pool: Executor, loop: AbstractEventLoop) -> None:
    async def fetch(name: str) -> int:
        return len(name)

    task = scheduler.after(0, fetch, "name")
    assert_type(task, Task)
    assert_type(await task, Any)
    assert_type(task.future, Future[Any])
    scheduler.every(60, add, 1, 2, executor=pool)
    scheduler.every(60, add, 1, 2, executor=ThreadPoolExecutor)
    scheduler.at(60, add, 1, 2, executor=lambda: ThreadPoolExecutor(2))
    Task(due=0, job=add, args=(1, 2), executor=pool)
    async with Scheduler(loop=loop, executor=pool) as own:
        assert_type(own, Scheduler)
    Scheduler(loop=new_event_loop, executor=ThreadPoolExecutor)
    Scheduler(executor=3)  # type: ignore[arg-type]
    Scheduler(loop=3)  # type: ignore[arg-type]


def errors(scheduler: Scheduler) -> None:
    value_errors: list[type[ValueError]] = [DuplicateTaskError, DependencyCycleError]
    runtime_errors: list[type[RuntimeError]] = [SchedulerClosedError, ForkedError]
    key_errors: list[type[KeyError]] = [UnknownTaskError]
    timeouts: list[type[TimeoutError]] = [TaskTimeout, TaskStuck]
    all_errors: list[type[DuetimeError]] = [
        DuplicateTaskError,
        DependencyCycleError,
        SchedulerClosedError,
        ForkedError,
        UnknownTaskError,
        TaskTimeout,
        TaskStuck,
        JobReturnedFalse,
        DependencyFailed,
    ]
    try:
        scheduler.info("unknown")
    except (*value_errors, *runtime_errors, *key_errors, *timeouts, *all_errors) as error:
        assert_type(str(error), str)


def helpers() -> None:
    with testing.virtual_time(workers=2, start=1.0) as (scheduler, clock):
        assert_type(scheduler, Scheduler)
        assert_type(clock, ManualClock)
        with testing.recorded(scheduler, kinds=[EventKind.FAILED]) as events:
            assert_type(events, list[Event])


assert_type(duetime.__version__, str)
