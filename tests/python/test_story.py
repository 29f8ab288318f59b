"""The two design documents' own examples, told once each from beginning to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers import WATCHDOG, CellClock, Log

from duetime import (
    CancelOutcome,
    DuplicateTaskError,
    FixedDelay,
    FixedRate,
    ManualClock,
    Missed,
    Scheduler,
    Task,
    TaskState,
    current_run,
    retry,
)

MINUTE, HOUR = 60.0, 3600.0
NINE = 9 * HOUR


def told(log: Log, start: int = 0) -> list[str]:
    """The log as one reads it: `09:00:00 STARTED report`."""
    lines = []
    for event in log.events[start:]:
        minutes, seconds = divmod(round(event.time), 60)
        hours, minutes = divmod(minutes, 60)
        lines.append(f"{hours:02}:{minutes:02}:{seconds:02} {event.kind.name} {event.task_id}")
    return lines


class Report:
    """The first document's Job: run(now) returns true when it succeeded."""

    def __init__(self) -> None:
        self.runs: list[float] = []

    def run(self, now: float) -> bool:
        self.runs.append(now)
        return True


def test_the_story_of_a_morning(make_scheduler: Callable[..., Scheduler]) -> None:
    clock = ManualClock(NINE - 2 * MINUTE)
    scheduler = make_scheduler(4, clock=clock)
    log = Log()
    scheduler.add_listener(log)

    # 1 and 5: `report` at 9:00 and every ten minutes; its id can be used only once.
    job = Report()
    report = scheduler.schedule(
        Task("report", due=NINE, job=job, recurrence=FixedRate(10 * MINUTE))
    )
    with pytest.raises(DuplicateTaskError):
        scheduler.schedule(Task("report", due=NINE, job=job))

    def sleeps_a_minute() -> bool:
        return current_run().wait(60)  # True: it was told to stop

    # 6: a one-off that always throws, with two retries five minutes apart.
    def throws() -> None:
        raise OSError("disk full")

    backup = scheduler.schedule(
        Task("backup", due=NINE + 30, job=throws, retry=retry.FixedDelay(2, 5 * MINUTE))
    )

    # 7: one task is cancelled at 8:59; another, that runs from 9:00:45, at 9:01.
    answers: list[CancelOutcome] = []
    mail = scheduler.schedule(Task("mail", due=NINE + 15, job=job))
    index = scheduler.schedule(Task("index", due=NINE + 45, job=sleeps_a_minute))
    clock.advance(MINUTE)
    answers.append(scheduler.cancel("mail"))

    # 2, 3, 4: nobody runs before 9:00.
    clock.advance(MINUTE - 1)
    assert job.runs == []
    assert scheduler.next_due() == NINE
    assert told(log) == [
        "08:58:00 SCHEDULED report",
        "08:58:00 SCHEDULED backup",
        "08:58:00 SCHEDULED mail",
        "08:58:00 SCHEDULED index",
        "08:59:00 CANCELLED mail",
    ]

    heard = len(log.events)
    clock.advance(1 + MINUTE)
    answers.append(scheduler.cancel("index"))  # at 9:01: it runs, and is only told to stop
    assert index.result() is True
    clock.advance(20 * MINUTE)
    assert told(log, heard) == [
        "09:00:00 DUE report",
        "09:00:00 STARTED report",
        "09:00:00 COMPLETED report",
        "09:00:30 DUE backup",
        "09:00:30 STARTED backup",
        "09:00:30 FAILED backup",
        "09:00:45 DUE index",
        "09:00:45 STARTED index",
        "09:01:00 COMPLETED index",
        "09:05:30 DUE backup",
        "09:05:30 STARTED backup",
        "09:05:30 FAILED backup",
        "09:10:00 DUE report",
        "09:10:00 STARTED report",
        "09:10:00 COMPLETED report",
        "09:10:30 DUE backup",
        "09:10:30 STARTED backup",
        "09:10:30 FAILED backup",
        "09:20:00 DUE report",
        "09:20:00 STARTED report",
        "09:20:00 COMPLETED report",
    ]
    assert answers == [CancelOutcome.CANCELLED, CancelOutcome.STOPPING]
    assert [bool(answer) for answer in answers] == [True, False]
    assert job.runs == [NINE, NINE + 10 * MINUTE, NINE + 20 * MINUTE]
    assert (report.state, report.due) == (TaskState.WAITING, NINE + 30 * MINUTE)
    assert (backup.state, backup.runs) == (TaskState.FAILED, 3)
    assert isinstance(backup.exception(), OSError)
    assert (mail.state, index.state) == (TaskState.CANCELLED, TaskState.DONE)


# The second document's table: 30 ms, and the third run takes 50 ms. Milliseconds from the first.
TABLE = [
    (FixedRate(0.030), [0, 30, 60, 120, 150], 1),
    (FixedRate(0.030, missed=Missed.SKIP), [0, 30, 60, 120, 150], 1),
    (FixedRate(0.030, missed=Missed.CATCH_UP), [0, 30, 60, 110, 120], 0),
    (FixedDelay(0.030), [0, 30, 60, 140, 170], 0),
]
IDS = ["fixed rate", "skip", "catch up", "fixed delay"]


@pytest.mark.parametrize(("rule", "starts", "missed"), TABLE, ids=IDS)
def test_the_table_on_a_manual_clock(
    make_scheduler: Callable[..., Scheduler], rule: Any, starts: list[int], missed: int
) -> None:
    clock = ManualClock()
    scheduler = make_scheduler(1, clock=clock)
    seen: list[int] = []

    def job() -> None:
        run = current_run()
        seen.append(round(run.now * 1_000_000))
        if run.number == 3:
            run.wait(0.050)

    task = scheduler.every(rule, job, first=0, max_runs=5)
    clock.advance(1)
    assert seen == [start * 1000 for start in starts]
    assert (task.state, task.runs, task.missed) == (TaskState.DONE, 5, missed)


@pytest.mark.parametrize(("rule", "starts", "missed"), TABLE, ids=IDS)
def test_the_table_on_a_clock_of_ones_own(
    make_scheduler: Callable[..., Scheduler], rule: Any, starts: list[int], missed: int
) -> None:
    clock = CellClock()
    scheduler = make_scheduler(1, clock=clock)
    seen: list[int] = []

    def job() -> None:
        seen.append(round(clock.seconds * 1_000_000))
        if current_run().number == 3:
            clock.seconds += 0.050

    task = scheduler.every(rule, job, first=0, max_runs=5)
    assert scheduler.wait_idle(WATCHDOG)
    while (due := scheduler.next_due()) is not None:
        clock.seconds = max(clock.seconds, due)
        scheduler.wake()
        assert scheduler.wait_idle(WATCHDOG)
    assert seen == [start * 1000 for start in starts]
    assert (task.state, task.runs, task.missed) == (TaskState.DONE, 5, missed)


@pytest.mark.parametrize(("rule", "starts", "missed"), TABLE, ids=IDS)
def test_the_table_on_the_real_clock(
    real: Scheduler, rule: Any, starts: list[int], missed: int
) -> None:
    seen: list[float] = []

    def job() -> None:
        run = current_run()
        seen.append(run.due)
        if run.number == 3:
            run.wait(0.050)

    task = real.every(rule, job, first=0, max_runs=5)
    assert task.wait(WATCHDOG)
    # The machine may be slow, so: no slot early, none off the grid, and every miss counted.
    slots = [round((due - seen[0]) * 1000, 3) for due in seen]
    if isinstance(rule, FixedRate):
        assert all(slot % 30 in (0, 30) for slot in slots)
        assert task.missed >= missed
        assert slots[-1] == 30 * (4 + task.missed)
    else:
        assert all(slot >= start for slot, start in zip(slots, starts, strict=True))
        assert task.missed == 0
