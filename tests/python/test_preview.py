"""Looking ahead: the due times to come, without running anything."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from helpers import WATCHDOG, Gate
from worlds import World

from duetime import FixedDelay, FixedRate, Missed, Task, TaskState, current_run, retry


def never() -> None:
    pytest.fail("a preview runs nothing")


@pytest.mark.parametrize(
    ("options", "dues"),
    [
        ({}, [5]),
        ({"recurrence": FixedRate(10)}, [5, 15, 25, 35]),
        ({"recurrence": FixedRate(10, Missed.CATCH_UP)}, [5, 15, 25, 35]),
        ({"recurrence": FixedDelay(timedelta(minutes=1))}, [5, 65, 125, 185]),
        ({"recurrence": FixedRate(10), "max_runs": 2}, [5, 15]),
        ({"recurrence": FixedRate(10), "until": 25}, [5, 15, 25]),
        ({"recurrence": FixedRate(10), "jitter": 9}, [5, 15, 25, 35]),
        ({"recurrence": FixedRate(10), "retry": retry.FixedDelay(9, 1)}, [5, 15, 25, 35]),
    ],
    ids=repr,
)
def test_a_description_tells_its_slots(options: dict[str, Any], dues: list[float]) -> None:
    task = Task(due=5, job=never, **options)
    assert task.preview(4) == dues
    assert task.preview(1) == [5]
    assert task.preview(0) == []
    assert task.state is TaskState.WAITING


def test_a_scheduled_task_tells_what_is_left(sim: World) -> None:
    start = sim.now()
    task = sim.scheduler.every(10, int, max_runs=4)
    assert task.preview(9) == [start + n for n in (10, 20, 30, 40)]
    sim.advance(25)
    assert task.preview(9) == [start + 30, start + 40]
    assert task.preview(1) == [task.due]
    assert task.runs == 2
    sim.advance(20)
    assert task.preview(9) == []


def test_what_is_told_is_what_comes(manual: World) -> None:
    seen: list[float] = []
    task = manual.scheduler.every(0.1, lambda: seen.append(current_run().due))
    told = task.preview(1000)
    manual.advance(101)
    assert seen[:1000] == told


def test_a_retry_that_waits_comes_first_and_the_grid_goes_on(sim: World) -> None:
    start = sim.now()
    task = sim.scheduler.every(10, lambda: False, first=0, retry=retry.FixedDelay(1, 3))
    sim.run_until_idle()
    assert task.preview(3) == [start + 3, start + 10, start + 20]


def test_the_run_that_waits_has_its_jitter_and_the_others_none(sim: World) -> None:
    start = sim.now()
    task = sim.scheduler.every(10, int, jitter=9)
    assert task.preview(3) == [task.due, start + 20, start + 30]


def test_a_running_task_tells_what_follows_if_it_ends_now(manual: World) -> None:
    told: list[list[float]] = []
    start = manual.now()

    def job() -> None:
        told.append([due - start for due in task.preview(2)])
        current_run().wait(25)
        told.append([due - start for due in task.preview(2)])

    task = manual.scheduler.schedule(
        Task(due=start + 1, job=job, recurrence=FixedRate(10), max_runs=2)
    )
    manual.advance(100)
    assert told == [[11], [31], [], []]


def test_nothing_follows_a_stop_a_cancel_or_an_end(world: World) -> None:
    gate = Gate()
    running = world.scheduler.every(3600, gate, first=0)
    gate.entered()
    assert len(running.preview(2)) == 2
    running.cancel()
    assert running.preview(2) == []
    gate.open()
    assert running.wait(WATCHDOG)
    assert running.preview(2) == []
    waiting = world.scheduler.every(3600, int)
    waiting.cancel()
    assert waiting.preview(2) == []
    once = world.scheduler.after(0, int)
    assert once.wait(WATCHDOG)
    assert once.preview(2) == []


class Rule:
    """A rule of our own, from a function."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule
        self.asked: list[tuple[float, float]] = []

    def next_due(self, due: float, finished: float) -> Any:
        self.asked.append((due, finished))
        return self.rule(due)


def test_a_rule_of_ones_own_is_asked_as_if_runs_took_no_time(sim: World) -> None:
    rule = Rule(lambda due: due + 10 if due < sim.origin + 30 else None)
    task = Task(due=sim.origin + 10, job=never, recurrence=rule)
    expected = [sim.origin + n for n in (10, 20, 30)]
    assert task.preview(9) == expected
    assert rule.asked == [(due, due) for due in expected]
    sim.scheduler.schedule(task)
    assert task.preview(9) == expected


def fail(_due: float) -> float:
    raise LookupError("no idea")


@pytest.mark.parametrize(
    ("rule", "error"),
    [(fail, LookupError), (lambda due: due, ValueError), (lambda _due: "soon", TypeError)],
    ids=["raises", "stands still", "nonsense"],
)
def test_a_rule_that_fails_fails_the_preview_and_not_the_task(
    sim: World, rule: Any, error: type[Exception]
) -> None:
    task = Task(due=sim.now() + 10, job=never, recurrence=Rule(rule))
    with pytest.raises(error):
        task.preview(2)
    sim.scheduler.schedule(task)
    with pytest.raises(error):
        task.preview(2)
    assert task.preview(1) == [task.due]
    assert task.state is TaskState.WAITING


def test_a_rule_may_call_the_scheduler(sim: World) -> None:
    """It is asked with no lock held."""

    def rule(due: float) -> float:
        assert task.preview(1) == [task.due]
        assert task.info().state is TaskState.WAITING
        assert len(sim.scheduler.tasks()) == 1
        return due + 10

    task = sim.scheduler.schedule(Task(due=sim.now() + 10, job=never, recurrence=Rule(rule)))
    assert len(task.preview(3)) == 3


def test_a_rule_may_cancel_the_task_that_it_is_of(sim: World) -> None:
    def rule(due: float) -> float:
        task.cancel()
        return due + 10

    task = sim.scheduler.schedule(Task(due=sim.now() + 10, job=never, recurrence=Rule(rule)))
    assert len(task.preview(3)) == 3
    assert task.cancelled()


def test_only_a_scheduler_can_tell_what_a_datetime_is(sim: World) -> None:
    noon = datetime.now(timezone.utc) + timedelta(hours=1)
    for task in (
        Task(due=noon, job=never),
        Task(due=1, job=never, recurrence=FixedRate(1), until=noon),
    ):
        with pytest.raises(RuntimeError, match="once it is scheduled"):
            task.preview(1)
        sim.scheduler.schedule(task)
        assert task.preview(1) == [task.due]
        task.cancel()


@pytest.mark.parametrize(
    ("n", "error"),
    [
        (-1, ValueError),
        (1_000_001, ValueError),
        (2**70, ValueError),
        (1.0, TypeError),
        (True, TypeError),
        ("3", TypeError),
        (None, TypeError),
    ],
    ids=repr,
)
def test_a_number_out_of_bounds_is_refused(sim: World, n: Any, error: type[Exception]) -> None:
    for task in (Task(due=0, job=never), sim.scheduler.every(60, never)):
        with pytest.raises(error, match="n must be"):
            task.preview(n)


def test_a_million_is_no_matter() -> None:
    dues = Task(due=0, job=never, recurrence=FixedRate(1)).preview(1_000_000)
    assert (len(dues), dues[-1]) == (1_000_000, 999_999)
