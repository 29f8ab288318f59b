"""Cancelling before, while, and after, from every place."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import pytest
from support import (
    HOUR,
    STATES,
    WATCHDOG,
    Log,
    Manual,
    failing,
    noop,
    scaled,
    together,
    until,
    within,
)

import duetime
from duetime import CancelOutcome, FixedDelay, FixedRate, Missed, Task, retry

RULES = {"skip": FixedRate(1), "catch up": FixedRate(1, Missed.CATCH_UP), "delay": FixedDelay(1)}


@pytest.mark.parametrize("every", [2, 3, 7, 999])
def test_cancelled_ones_leave_the_order_of_the_others(manual: Manual, every: int) -> None:
    """cpython#79124: removing one of several equal entries removed another."""
    ran: list[int] = []
    tasks = [manual.scheduler.after(1, ran.append, number) for number in range(1000)]
    for number in range(0, 1000, every):
        assert tasks[number].cancel() is CancelOutcome.CANCELLED
    manual.advance(1)
    assert ran == [number for number in range(1000) if number % every]


def test_the_entry_cancelled_is_the_one_meant(manual: Manual) -> None:
    """cpython#79124: the same with equal jobs, args and priorities: only the id differs."""
    tasks = [Task(f"t{number}", due=1, job=noop, args=(1,)) for number in range(100)]
    manual.scheduler.schedule_all(tasks)
    for number in (0, 50, 99):
        assert manual.scheduler.cancel(f"t{number}")
    manual.advance(1)
    assert [state.name for state in (t.state for t in tasks)].count("DONE") == 97
    assert {t.id for t in tasks if t.state is STATES.CANCELLED} == {"t0", "t50", "t99"}


@pytest.mark.parametrize("wait", ["wait", "result", "exception"])
@pytest.mark.parametrize("by", ["task", "id", "shutdown"])
def test_a_wait_for_a_far_task_ends_when_it_is_cancelled(make: Any, wait: str, by: str) -> None:
    """cpython#81355: the waiter slept on until the cancelled event had been due."""
    scheduler = make()
    task = scheduler.after(HOUR, noop, id="far")
    answers: list[Any] = []

    def waits() -> None:
        try:
            answers.append(getattr(task, wait)(timeout=None))
        except CancelledError:
            answers.append("cancelled")

    waiter = threading.Thread(target=waits, daemon=True)
    waiter.start()
    waiter.join(0.02)
    assert answers == []
    if by == "shutdown":
        within(scheduler.shutdown)
    else:
        assert scheduler.cancel(task if by == "task" else "far")
    waiter.join(WATCHDOG)
    assert answers == [True if wait == "wait" else "cancelled"]


def test_idle_and_drain_do_not_wait_for_a_cancelled_task(make: Any) -> None:
    """cpython#81355: a task in an hour, cancelled or not, holds up neither."""
    scheduler = make()
    task = scheduler.after(HOUR, noop)
    assert within(scheduler.wait_idle)
    task.cancel()
    assert within(scheduler.wait_idle)
    scheduler.after(HOUR, noop)
    assert within(lambda: scheduler.shutdown(drain=True))


def test_the_earliest_cancelled_as_it_falls_due_keeps_no_other_back(manual: Manual) -> None:
    """tonio#35: the wait for the next one was armed only after a run."""
    first, second = manual.scheduler.after(1, noop, id="a"), manual.scheduler.after(2, noop)
    outcomes: list[CancelOutcome] = []

    def on_due(event: Any) -> None:
        if event.kind.name == "DUE" and event.task_id == "a":
            outcomes.append(manual.scheduler.cancel("a"))

    manual.scheduler.add_listener(on_due)
    manual.advance(2)
    assert outcomes in ([CancelOutcome.CANCELLED], [CancelOutcome.STOPPING])
    assert (first.state is STATES.CANCELLED) is bool(outcomes[0])
    assert second.state is STATES.DONE


def test_the_earliest_cancelled_about_its_due_keeps_no_other_back(make: Any) -> None:
    """tonio#35: the same race on the real clock."""
    scheduler = make(workers=1)
    for round_ in range(scaled(10_000, 100)):
        first, second = scheduler.after(0.0005, noop), scheduler.after(0.001, noop)
        time.sleep(0.00001 * (round_ % 80))
        first.cancel()
        assert second.wait(WATCHDOG)


def cancel_from_both_ends(tasks: list[Task]) -> list[set[CancelOutcome]]:
    """Two threads cancel the tasks while they run; what each task's cancels answered."""
    there, back = together(
        lambda: [task.cancel() for task in tasks],
        lambda: [task.cancel() for task in reversed(tasks)],
    )
    assert all(task.wait(WATCHDOG) for task in tasks)
    return [{one, other} for one, other in zip(there, reversed(back), strict=True)]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_cancel_racing_the_end_has_one_outcome(make: Any, workers: int) -> None:
    """python/asyncio#123, pebble#75: cancelled and done at once, or told twice."""
    scheduler, calls = make(workers=workers, history=10), []
    log, tasks, seen = Log(scheduler), [], set()
    for _ in range(scaled(100_000, 2000) // 50):
        batch = [scheduler.after(0, time.sleep, 1e-4) for _ in range(50)]
        for task in batch:
            task.add_done_callback(calls.append)
        for task, answers in zip(batch, cancel_from_both_ends(batch), strict=True):
            assert (CancelOutcome.CANCELLED in answers) is (task.state is STATES.CANCELLED)
            assert task.cancelled() is (task.state is STATES.CANCELLED)
            seen |= answers
        tasks += batch
    assert len(seen) == 3, "it did not race"
    assert within(scheduler.wait_idle)
    until(lambda: len(calls) >= len(tasks), "the callbacks")
    assert sorted(map(id, calls)) == sorted(map(id, tasks))
    ends = Counter(event.task_id for event in log.of("COMPLETED", "FAILED", "CANCELLED"))
    assert ends == dict.fromkeys((task.id for task in tasks), 1)


def test_cancel_racing_a_series_ends_it_once(make: Any) -> None:
    """pebble#75: the same for a series, whose end is always CANCELLED."""
    scheduler, seen = make(workers=2), set()
    log, tasks = Log(scheduler), []
    for _ in range(scaled(20_000, 400) // 10):
        batch = [scheduler.every(1e-6, time.sleep, 1e-4, first=0) for _ in range(10)]
        seen.update(*cancel_from_both_ends(batch))
        assert {task.state for task in batch} == {STATES.CANCELLED}
        tasks += batch
    assert len(seen) == 3, "it did not race"
    assert within(scheduler.wait_idle)
    ended = Counter(event.task_id for event in log.of("CANCELLED"))
    assert ended == dict.fromkeys((task.id for task in tasks), 1)
    assert {event.next_due for event in log.of("CANCELLED")} == {None}


def test_cancel_while_a_retry_waits_ends_the_attempts(manual: Manual) -> None:
    """more-executors#151: the retry that was already planned ran all the same."""
    task = manual.scheduler.after(1, failing(), retry=retry.FixedDelay(5, 10))
    manual.advance(1)
    assert (task.state, manual.scheduler.next_due()) == (STATES.WAITING, 11)
    assert task.cancel() is CancelOutcome.CANCELLED
    manual.advance(HOUR)
    assert (task.runs, task.state) == (1, STATES.CANCELLED)


@pytest.mark.parametrize("attempt", [1, 2, 5])
def test_cancel_from_the_failed_listener_ends_the_attempts(manual: Manual, attempt: int) -> None:
    """more-executors#151: the same in the moment between the failure and the retry."""
    task = manual.scheduler.after(1, failing(), id="t", retry=retry.FixedDelay(9, 10))

    def on_failed(event: Any) -> None:
        if event.kind.name == "FAILED" and event.attempt == attempt:
            assert manual.scheduler.cancel("t") is not CancelOutcome.UNKNOWN

    manual.scheduler.add_listener(on_failed)
    manual.advance(HOUR)
    assert (task.runs, task.done()) == (attempt, True)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("run", [1, 2, 1000])
@pytest.mark.parametrize("place", ["job", "started", "completed", "queued"])
def test_no_run_of_a_series_starts_after_its_cancel(
    manual: Manual, rule: str, run: int, place: str
) -> None:
    """gocron#120, akka#214, jboss-threads#163: the series queued itself once more."""
    outcomes: list[CancelOutcome] = []

    def cancel() -> None:
        outcomes.append(manual.scheduler.cancel("s"))

    def job() -> None:
        if place == "job" and duetime.current_run().number == run:
            cancel()

    def listener(event: Any) -> None:
        if event.kind.name == place.upper() and event.run == run:
            cancel()

    manual.scheduler.add_listener(listener)
    task = manual.scheduler.every(RULES[rule], job, id="s")
    manual.advance(run)
    if place == "queued":
        cancel()
    manual.advance(10)
    assert len(outcomes) == 1
    assert (task.runs, len(manual.log.starts("s")), task.state) == (run, run, STATES.CANCELLED)
    assert [event.kind.name for event in manual.log.of("CANCELLED")] == ["CANCELLED"]
    if place in ("job", "started"):
        assert outcomes == [CancelOutcome.STOPPING]


def scenario(
    scheduler: duetime.Scheduler, advance: Callable[..., object] = noop
) -> list[tuple[Any, ...]]:
    """A bit of everything, one part after the other; the events by kind, task and run."""
    log = Log(scheduler)
    base = scheduler.now() + 0.2
    order = [Task(f"o{n}", due=base, job=noop, priority=-n % 3) for n in range(6)]
    for part in (
        lambda: scheduler.schedule_all(order),
        lambda: [scheduler.after(0.01, failing(), id="r", retry=retry.FixedDelay(2, 0.005))],
        lambda: [scheduler.every(0.005, noop, id="s", max_runs=4)],
        lambda: [scheduler.every(FixedDelay(0.005), failing(), id="d", max_runs=3)],
    ):
        tasks = part()
        advance(1)
        assert all(task.wait(WATCHDOG) for task in tasks)
    gone = scheduler.after(HOUR, noop, id="gone")
    assert gone.cancel() and not gone.cancel()
    assert within(scheduler.wait_idle)
    kinds = ("STARTED", "COMPLETED", "FAILED", "CANCELLED")
    return [(e.kind.name, e.task_id, e.run, e.attempt) for e in log.of(*kinds)]


def test_the_manual_and_the_real_clock_tell_the_same_story(make: Any, make_manual: Any) -> None:
    """jmock#48: the deterministic scheduler treated cancel otherwise than the real one."""
    real = scenario(make(workers=1))
    custom = scenario(make(workers=1, clock=time.monotonic))
    bench = make_manual()
    assert scenario(bench.scheduler, bench.advance) == real == custom


@pytest.mark.parametrize("make_task", ["once", "series"])
def test_shutdown_does_not_wait_for_a_task_cancelled_before_its_first_run(
    make: Any, make_task: str
) -> None:
    """gocron#566: shutdown waited for a job that had been removed."""
    scheduler = make()
    task = scheduler.after(HOUR, noop) if make_task == "once" else scheduler.every(HOUR, noop)
    assert task.cancel()
    assert within(lambda: scheduler.shutdown(wait=True))


@pytest.mark.parametrize("after", ["cancel", "done", "failed", "shutdown", "series"])
def test_a_second_cancel_is_no_error(manual: Manual, after: str) -> None:
    """EigenLayer#778: cancel of what was over raised or crashed."""
    place: Callable[[], Task] = {
        "cancel": lambda: manual.scheduler.after(1, noop, id="t"),
        "shutdown": lambda: manual.scheduler.after(9, noop, id="t"),
        "done": lambda: manual.scheduler.after(0, noop, id="t"),
        "failed": lambda: manual.scheduler.after(0, failing(), id="t"),
        "series": lambda: manual.scheduler.every(1, noop, max_runs=2, id="t"),
    }[after]
    task = place()
    if after == "cancel":
        assert task.cancel()
    elif after == "shutdown":
        within(manual.scheduler.shutdown)
    else:
        manual.advance(3)
    state, events = task.state, len(manual.log.events)
    for _ in range(3):
        assert task.cancel() is CancelOutcome.FINISHED
        assert manual.scheduler.cancel(task) is CancelOutcome.FINISHED
        assert manual.scheduler.cancel("t") is CancelOutcome.FINISHED
    assert manual.scheduler.cancel("other") is CancelOutcome.UNKNOWN
    assert (task.state, len(manual.log.events)) == (state, events)
