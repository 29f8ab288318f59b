"""Jitter: each run is moved by chance, and no slot is."""

from __future__ import annotations

import itertools
import math
from datetime import timedelta
from typing import Any

import pytest
from worlds import World

from duetime import FixedDelay, FixedRate, Missed, OneTime, Task, TaskState, current_run, retry


def dues(world: World, task_runs: list[float]) -> None:
    """Be a job that notes when its run was due."""
    run = current_run()
    assert run is not None
    assert run.now >= run.due
    task_runs.append(run.due - world.origin)


def test_each_run_is_due_a_little_after_its_slot_and_nothing_adds_up(manual: World) -> None:
    seen: list[float] = []
    task = manual.scheduler.every(10, dues, manual, seen, jitter=4, max_runs=1000)
    first = manual.now() - manual.origin + 10
    manual.advance(10_100)
    assert (task.state, task.missed, len(seen)) == (TaskState.DONE, 0, 1000)
    offsets = [due - (first + 10 * n) for n, due in enumerate(seen)]
    assert all(-1e-6 <= offset <= 4 + 1e-6 for offset in offsets)
    # All over its width: a quarter of a thousand, and far more than chance would spare.
    for quarter in range(4):
        assert 150 < sum(quarter <= offset < quarter + 1 for offset in offsets) < 350


@pytest.mark.parametrize("jitter", [2.5, timedelta(seconds=2.5)], ids=repr)
def test_every_way_in_takes_it(manual: World, jitter: Any) -> None:
    scheduler = manual.scheduler
    now = manual.now()
    tasks = [
        scheduler.after(10, int, jitter=jitter),
        scheduler.at(now + 10, int, jitter=jitter),
        scheduler.every(60, int, first=10, jitter=jitter),
        scheduler.schedule(Task(due=now + 10, job=int, jitter=jitter)),
        scheduler.schedule(Task(due=now + 10, job=int, recurrence=OneTime(), jitter=jitter)),
    ]

    @scheduler.every(60, first=10, jitter=jitter, id="decorated")
    def decorated() -> None:
        pass

    tasks.append(scheduler.get("decorated"))
    moved = [task.due - now - 10 for task in tasks]
    assert all(0 <= offset <= 2.5 for offset in moved)
    assert len(set(moved)) > 1


def test_none_of_it_is_exact(manual: World) -> None:
    task = manual.scheduler.every(10, int, jitter=0)
    assert task.due == manual.now() + 10


def test_a_description_is_not_moved_yet(manual: World) -> None:
    task = Task(due=5, job=int, jitter=3)
    assert task.due == 5


@pytest.mark.parametrize(
    ("missed", "slots", "count"),
    [(Missed.SKIP, [0, 1, 4, 5], 2), (Missed.CATCH_UP, [0, 1, 2, 3], 0)],
)
def test_missed_slots_are_counted_on_the_grid(
    manual: World, missed: Missed, slots: list[int], count: int
) -> None:
    seen: list[int] = []
    start = manual.now()

    def job() -> None:
        run = current_run()
        assert run is not None
        seen.append(math.floor((run.due - start) / 10))
        if run.number == 2:
            run.wait(20)

    rule = FixedRate(10, missed)
    task = manual.scheduler.every(rule, job, first=0, jitter=5, max_runs=4)
    manual.advance(100)
    assert seen == slots
    assert task.missed == count


def test_a_retry_keeps_its_own_delay(manual: World) -> None:
    seen: list[float] = []

    def job() -> bool:
        dues(manual, seen)
        return False

    manual.scheduler.every(10, job, jitter=3, retry=retry.FixedDelay(1, 2), max_runs=20)
    manual.advance(300)
    assert len(seen) == 40
    assert all(
        after - before == pytest.approx(2)
        for before, after in zip(seen[::2], seen[1::2], strict=True)
    )


def test_nothing_is_due_after_until(manual: World) -> None:
    seen: list[float] = []
    until = manual.now() + 20.5
    for _ in range(20):
        manual.scheduler.every(10, dues, manual, seen, jitter=9, until=until)
    manual.advance(100)
    assert len(seen) == 40
    assert max(seen) <= until - manual.origin


class Doubling:
    """A rule of our own, which is told of its own slots."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    def next_due(self, due: float, finished: float) -> float:
        assert finished >= due
        self.asked.append(due)
        return due * 2


def test_a_rule_of_ones_own_is_asked_by_its_slots(manual: World) -> None:
    rule = Doubling()
    task = Task(due=2048, job=int, recurrence=rule, jitter=1000, max_runs=4)
    manual.scheduler.schedule(task)
    manual.advance(50_000)
    assert task.state is TaskState.DONE
    assert rule.asked == [2048, 4096, 8192]


def test_a_fixed_delay_may_have_any(manual: World) -> None:
    seen: list[float] = []
    manual.scheduler.every(FixedDelay(1), dues, manual, seen, jitter=5, max_runs=50)
    manual.advance(400)
    assert len(seen) == 50
    gaps = [after - before for before, after in itertools.pairwise(seen)]
    assert all(1 - 1e-6 <= gap <= 6 + 1e-6 for gap in gaps)


@pytest.mark.parametrize("jitter", [10, 10.0, 11, timedelta(days=1)], ids=repr)
def test_a_jitter_must_not_reach_the_next_slot(manual: World, jitter: Any) -> None:
    for refused in (
        lambda: manual.scheduler.every(10, int, jitter=jitter),
        lambda: Task(due=0, job=int, recurrence=FixedRate(10), jitter=jitter),
    ):
        with pytest.raises(ValueError, match=r"jitter must be shorter than the period.* 10s"):
            refused()
    assert manual.scheduler.tasks() == []


@pytest.mark.parametrize(
    ("jitter", "error"),
    [
        (-1, ValueError),
        (math.nan, ValueError),
        (math.inf, ValueError),
        (1e300, ValueError),
        (timedelta(-1), ValueError),
        (True, TypeError),
        ("1", TypeError),
        (None, TypeError),
    ],
    ids=repr,
)
def test_what_is_no_length_of_time_is_refused(
    manual: World, jitter: Any, error: type[Exception]
) -> None:
    for refused in (
        lambda: manual.scheduler.after(1, int, jitter=jitter),
        lambda: Task(due=0, job=int, jitter=jitter),
    ):
        with pytest.raises(error, match="jitter"):
            refused()
    assert manual.scheduler.tasks() == []
