"""Ids: given or made, used once, replaced, forgotten; and what is remembered of the finished."""

from __future__ import annotations

import dataclasses
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Thread
from worlds import World

from duetime import (
    DuetimeError,
    DuplicateTaskError,
    Scheduler,
    Task,
    TaskInfo,
    TaskState,
    UnknownTaskError,
)


@pytest.mark.parametrize("given", ["report", "", "日報", 0, 7, 2**63 - 1], ids=repr)
def test_an_id_is_a_str_or_an_int(world: World, given: Any) -> None:
    task = world.scheduler.after(3600, print, id=given)
    assert task.id == given
    assert type(task.id) is type(given)
    assert world.scheduler.get(given) is task
    assert world.scheduler.info(given).id == given


@pytest.mark.parametrize("given", [1.0, True, b"x", ..., ("a",)], ids=repr)
def test_nothing_else_is_an_id(world: World, given: Any) -> None:
    with pytest.raises(TypeError):
        world.scheduler.after(3600, print, id=given)
    for lookup in (world.scheduler.get, world.scheduler.info, world.scheduler.forget):
        with pytest.raises(TypeError):
            lookup(given)


def test_an_int_too_large_is_refused(world: World) -> None:
    with pytest.raises((ValueError, OverflowError)):
        world.scheduler.after(3600, print, id=2**64)
    assert world.scheduler.tasks() == []


def test_an_id_is_made_when_none_is_given(world: World) -> None:
    ids = [world.scheduler.after(3600, print).id for _ in range(100)]
    assert len(set(ids)) == 100
    assert all(type(made) is int and made < 0 for made in ids), "never one that a caller gives"


def test_a_str_and_an_int_are_different_ids(world: World) -> None:
    text, number = world.scheduler.after(1, int, id="1"), world.scheduler.after(1, int, id=1)
    assert world.scheduler.get("1") is text
    assert world.scheduler.get(1) is number


def test_an_id_that_waits_is_taken(world: World) -> None:
    log = world.log()
    first = world.scheduler.after(3600, print, id="report")
    with pytest.raises(DuplicateTaskError, match="report"):
        world.scheduler.after(1, print, id="report")
    assert world.scheduler.get("report") is first
    assert len(world.scheduler.tasks()) == 1
    assert log.lines() == ["SCHEDULED report"], "a refused call changes nothing"


def test_an_id_that_runs_or_has_finished_is_taken(world: World) -> None:
    gate = Gate()
    task = world.scheduler.after(0, gate, id="report")
    gate.entered()
    with pytest.raises(DuplicateTaskError):
        world.scheduler.after(1, print, id="report")
    gate.open()
    assert task.wait(WATCHDOG)
    with pytest.raises(DuplicateTaskError):
        world.scheduler.after(1, print, id="report")


def test_one_of_many_threads_gets_the_id(world: World) -> None:
    for n in range(50):
        start = threading.Barrier(4)

        def schedule(n: int = n, start: threading.Barrier = start) -> bool:
            start.wait(WATCHDOG)
            try:
                world.scheduler.after(3600, print, id=n)
            except DuplicateTaskError:
                return False
            return True

        threads = [Thread(schedule) for _ in range(4)]
        assert [thread.outcome() for thread in threads].count(True) == 1
    assert len(world.scheduler.tasks()) == 50


def test_a_task_is_scheduled_once(world: World, real: Scheduler) -> None:
    task = world.scheduler.schedule(Task(due=world.past(0), job=int))
    for again in (world.scheduler, real):
        with pytest.raises((DuetimeError, ValueError, RuntimeError)):
            again.schedule(task)
    assert task.wait(WATCHDOG)
    with pytest.raises((DuetimeError, ValueError, RuntimeError)):
        world.scheduler.schedule(task, replace=True)
    assert task.runs == 1


def test_replace_cancels_the_waiting_holder(world: World) -> None:
    log = world.log()
    old = world.scheduler.after(3600, print, id="report")
    new = world.scheduler.schedule(
        Task("report", due=world.past(0), job=lambda: "new"), replace=True
    )
    assert old.state is TaskState.CANCELLED
    assert new.result(WATCHDOG) == "new"
    world.run_until_idle()
    assert log.lines()[:3] in (
        ["SCHEDULED report", "CANCELLED report", "SCHEDULED report"],
        ["SCHEDULED report", "SCHEDULED report", "CANCELLED report"],
    )
    assert world.scheduler.get("report") in (new, None)
    assert world.scheduler.info("report").state is TaskState.DONE


def test_replace_forgets_the_finished_holder(world: World) -> None:
    assert world.scheduler.after(0, lambda: 1, id="report").result(WATCHDOG) == 1
    world.run_until_idle()
    new = world.scheduler.schedule(Task("report", due=world.now() + 60, job=int), replace=True)
    assert world.scheduler.get("report") is new
    assert [info.state for info in world.scheduler.tasks()] == [TaskState.WAITING]


def test_replace_does_not_touch_a_running_holder(world: World) -> None:
    gate = Gate()
    old = world.scheduler.after(0, gate, id="report")
    gate.entered()
    with pytest.raises((DuetimeError, ValueError, RuntimeError), match="report"):
        world.scheduler.schedule(Task("report", due=world.now(), job=int), replace=True)
    gate.open()
    assert old.result(WATCHDOG) == "through"


def test_replace_of_nobody_is_a_schedule(world: World) -> None:
    task = world.scheduler.schedule(Task("report", due=world.past(0), job=int), replace=True)
    assert task.result(WATCHDOG) == 0


def test_the_last_finished_ones_are_known(make_world: Callable[..., World]) -> None:
    world = make_world(history=3)
    for n in range(5):
        assert world.scheduler.after(0, int, id=n).wait(WATCHDOG)
        world.run_until_idle()
    alive = world.scheduler.after(3600, int, id="alive")
    for n in (0, 1):
        with pytest.raises(UnknownTaskError):
            world.scheduler.info(n)
    assert [world.scheduler.info(n).id for n in (2, 3, 4)] == [2, 3, 4]
    assert world.scheduler.get(0) is None
    assert world.scheduler.after(3600, int, id=0).state is TaskState.WAITING, "the id is free"
    assert world.scheduler.get("alive") is alive, "live tasks are never forgotten"


def test_no_history_at_all(make_world: Callable[..., World]) -> None:
    world = make_world(history=0)
    for _ in range(3):
        task = world.scheduler.after(0, lambda: "again", id="same")
        assert task.result(WATCHDOG) == "again"
        world.run_until_idle()
    assert world.scheduler.tasks() == []


@pytest.mark.parametrize(
    ("history", "error"), [(-1, ValueError), (True, TypeError), (1.0, TypeError), ("3", TypeError)]
)
def test_history_is_a_count(history: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Scheduler(1, history=history)


def test_forget(world: World) -> None:
    assert world.scheduler.after(0, int, id="done").wait(WATCHDOG)
    world.run_until_idle()
    world.scheduler.forget("done")
    with pytest.raises(UnknownTaskError):
        world.scheduler.info("done")
    with pytest.raises(UnknownTaskError):
        world.scheduler.forget("done")
    world.scheduler.after(3600, int, id="done")
    with pytest.raises((DuetimeError, ValueError, RuntimeError), match="done"):
        world.scheduler.forget("done")
    assert world.scheduler.info("done").state is TaskState.WAITING


def test_get_and_info_of_nobody(world: World) -> None:
    assert world.scheduler.get("nobody") is None
    with pytest.raises(UnknownTaskError, match="nobody"):
        world.scheduler.info("nobody")


def test_a_record_of_a_task(world: World) -> None:
    start = world.now()
    task = world.scheduler.after(0, lambda: 1 / 0, id="t")
    assert task.wait(WATCHDOG)
    world.run_until_idle()
    info = world.scheduler.info("t")
    assert type(info) is TaskInfo
    assert (info.id, info.state) == ("t", TaskState.FAILED)
    assert (info.runs, info.failures, info.missed) == (1, 1, 0)
    assert isinstance(info.error, str)
    assert "division" in info.error
    assert start <= info.due <= info.started <= info.finished <= world.now()
    waiting = world.scheduler.info(world.scheduler.after(3600, int).id)
    assert (waiting.error, waiting.started, waiting.finished) == (None, None, None)


def test_records_are_frozen_plain_and_picklable(world: World) -> None:
    world.scheduler.after(3600, int, id="t")
    for record in (world.scheduler.info("t"), world.scheduler.stats()):
        assert dataclasses.is_dataclass(record)
        assert pickle.loads(pickle.dumps(record)) == record
        for field in dataclasses.fields(record):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(record, field.name, None)


def test_tasks_lists_records_by_state(world: World) -> None:
    world.scheduler.after(0, int, id="done")
    world.scheduler.after(0, lambda: False, id="failed")
    world.scheduler.after(3600, int, id="waiting")
    world.scheduler.after(3600, int, id="cancelled").cancel()
    world.run_until_idle()
    assert {info.id for info in world.scheduler.tasks()} == {
        "done",
        "failed",
        "waiting",
        "cancelled",
    }
    for state in TaskState:
        found = [info.id for info in world.scheduler.tasks(state)]
        assert found == ([] if state is TaskState.RUNNING else [state.name.lower()])
    assert world.scheduler.tasks(state=TaskState.DONE)[0].state is TaskState.DONE


class Big:
    """Something whose end can be seen."""


def test_a_result_lives_and_dies_with_the_callers_task(world: World) -> None:
    task = world.scheduler.after(0, Big, id="t")
    dead = weakref.ref(task.result(WATCHDOG))
    world.run_until_idle()
    assert dead() is task.result()
    del task
    assert world.scheduler.after(0, int).wait(WATCHDOG)
    world.run_until_idle()
    gc.collect()
    assert dead() is None
    assert world.scheduler.info("t").state is TaskState.DONE, "the record stays"
