"""schedule_all: all of a list or none of it."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import Gate
from worlds import World

from duetime import (
    DuetimeError,
    DuplicateTaskError,
    Task,
    TaskState,
)


def test_schedule_all_is_all_or_none(world: World) -> None:
    log = world.log()
    taken = world.scheduler.after(3600, print, id="taken")
    later = world.now() + 3600

    def fresh() -> list[Any]:
        return [Task(name, due=later, job=print) for name in ("a", "b", "c")]

    for bad, error in (
        (Task("taken", due=later, job=print), DuplicateTaskError),
        (Task("a", due=later, job=print), DuplicateTaskError),
        (taken, (DuetimeError, ValueError, RuntimeError)),
        ("no task", TypeError),
        (None, TypeError),
    ):
        batch = fresh()
        with pytest.raises(error):
            world.scheduler.schedule_all([*batch, bad])
        assert [info.id for info in world.scheduler.tasks()] == ["taken"]
        assert log.lines() == ["SCHEDULED taken"]
    assert world.scheduler.schedule_all(batch) == batch, "the refused tasks are as new"
    assert world.scheduler.schedule_all([]) == []
    assert {info.id for info in world.scheduler.tasks()} == {"taken", "a", "b", "c"}


def test_schedule_all_replaces_all_or_none(world: World) -> None:
    later = world.now() + 3600
    old = world.scheduler.schedule_all([Task(n, due=later, job=print) for n in range(3)])
    gate = Gate()
    world.scheduler.after(0, gate, id="running")
    gate.entered()
    with pytest.raises((DuetimeError, ValueError, RuntimeError)):
        world.scheduler.schedule_all(
            [Task(n, due=later, job=print) for n in (0, 1, "running")], replace=True
        )
    assert {task.state for task in old} == {TaskState.WAITING}
    gate.open()
    new = world.scheduler.schedule_all(
        [Task(n, due=later, job=print) for n in range(3)], replace=True
    )
    assert {task.state for task in old} == {TaskState.CANCELLED}
    assert [world.scheduler.get(n) for n in range(3)] == new
