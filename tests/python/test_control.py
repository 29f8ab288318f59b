"""Run control: reschedule, run_now, pause and resume, of a task and of the scheduler."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from helpers import WATCHDOG, Gate
from worlds import World

from duetime import (
    ControlOutcome,
    FixedRate,
    ManualClock,
    Missed,
    Scheduler,
    SchedulerClosedError,
    Task,
    TaskState,
    retry,
)

APPLIED, RUNNING = ControlOutcome.APPLIED, ControlOutcome.RUNNING
FINISHED, UNKNOWN = ControlOutcome.FINISHED, ControlOutcome.UNKNOWN

Call = Callable[[Scheduler, Any], ControlOutcome]
BY_TASK: list[Call] = [
    lambda _, task: task.reschedule(1e6),
    lambda _, task: task.pause(),
    lambda _, task: task.resume(),
    lambda _, task: task.run_now(),
]
BY_SCHEDULER: list[Call] = [
    lambda scheduler, task: scheduler.reschedule(task, 1e6),
    lambda scheduler, task: scheduler.pause_task(task),
    lambda scheduler, task: scheduler.resume_task(task),
    lambda scheduler, task: scheduler.run_now(task),
]
BY_ID: list[Call] = [lambda s, task, call=call: call(s, task.id) for call in BY_SCHEDULER]  # type: ignore[misc]


@pytest.mark.parametrize("calls", [BY_TASK, BY_SCHEDULER, BY_ID], ids=["task", "scheduler", "id"])
def test_each_call_says_what_it_found(world: World, calls: list[Call]) -> None:
    def answers(task: Task) -> list[ControlOutcome]:
        return [call(world.scheduler, task) for call in calls]

    gate = Gate()
    task = Task("t", due=world.now() + 1e5, job=gate)
    assert answers(task) == [UNKNOWN] * 4
    world.scheduler.schedule(task)
    assert answers(task) == [APPLIED] * 4
    gate.entered()
    assert answers(task) == [RUNNING] * 4
    gate.open()
    assert task.wait(WATCHDOG)
    world.run_until_idle()
    assert answers(task) == [FINISHED] * 4
    assert (task.runs, task.paused) == (1, False)


def test_the_answers_are_true_for_applied_only() -> None:
    truths = {outcome.name: bool(outcome) for outcome in ControlOutcome}
    assert truths == {"APPLIED": True, "RUNNING": False, "FINISHED": False, "UNKNOWN": False}


@pytest.mark.parametrize(
    ("rule", "runs", "missed"), [(Missed.SKIP, 0, 10), (Missed.CATCH_UP, 10, 0)]
)
def test_ten_slots_in_a_pause(rule: Missed, runs: int, missed: int) -> None:
    clock = ManualClock()
    with Scheduler(1, clock=clock) as scheduler:
        events: list[Any] = []
        scheduler.add_listener(events.append)
        task = scheduler.every(FixedRate(1, rule), list, id="t")
        assert task.pause() is APPLIED and task.paused
        clock.advance(10.5)
        assert task.runs == 0 and scheduler.wait_idle(WATCHDOG)
        assert task.resume() is APPLIED and not task.paused
        assert scheduler.wait_idle(WATCHDOG)
        assert (task.runs, task.missed, task.due) == (runs, missed, 11)
        assert [event.missed for event in events if event.kind.name == "MISSED"] == [10][
            : missed // 10
        ]
        clock.advance(2)
        assert task.runs == runs + 2


def test_a_paused_task_is_known_as_such(world: World) -> None:
    task = world.scheduler.after(1e5, list, id="t")
    task.pause()
    assert "paused" in repr(task) and task.state is TaskState.WAITING
    assert task.info().paused and world.scheduler.info("t").paused
    assert world.scheduler.stats().paused == 1 and world.scheduler.next_due() is None
    task.resume()
    assert "paused" not in repr(task) and not task.info().paused
    assert world.scheduler.stats().paused == 0 and world.scheduler.next_due() == task.due


def test_reschedule_moves_the_grid_and_takes_instants(world: World) -> None:
    step = world.step
    task = world.scheduler.every(100 * step, list, first=50 * step)
    assert task.reschedule(world.now()) is APPLIED
    world.run_until_idle()
    assert task.runs == 1 and task.due is not None and task.due <= world.now() + 100 * step
    assert task.reschedule(datetime.now(timezone.utc) + timedelta(hours=1)) is APPLIED
    assert 3500 < task.due - world.now() <= 3600
    with pytest.raises(ValueError, match="due"):
        task.reschedule(datetime(2030, 1, 1))
    with pytest.raises(TypeError, match="due"):
        task.reschedule("soon")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="due"):
        world.scheduler.reschedule(task, float("nan"))


def test_run_now_leaves_the_grid_and_hurries_a_retry(world: World) -> None:
    series = world.scheduler.every(1e4, list, max_runs=1)
    due = series.due
    assert series.run_now() is APPLIED
    world.run_until_idle()
    assert (series.runs, series.due, series.state) == (1, due, TaskState.WAITING)
    doomed = world.scheduler.after(0, lambda: False, retry=retry.FixedDelay(1, 1e4))
    world.run_until_idle()
    assert doomed.runs == 1 and doomed.run_now() is APPLIED
    assert doomed.wait(WATCHDOG) and doomed.runs == 2


def test_the_scheduler_is_paused(world: World) -> None:
    log = world.log()
    world.scheduler.pause()
    world.scheduler.pause()
    assert world.scheduler.paused and "paused" in repr(world.scheduler)
    task = world.scheduler.after(world.step, list, id="t")
    for _ in range(4):
        world.clock.advance(world.step) if world.kind == "manual" else None
    assert world.scheduler.wait_idle(WATCHDOG) and task.runs == 0
    world.scheduler.resume()
    world.scheduler.resume()
    assert not world.scheduler.paused
    world.advance(2 * world.step)
    assert task.done() and log.kinds("t") == ["SCHEDULED", "DUE", "STARTED", "COMPLETED"]


def test_after_a_shutdown_there_is_nothing_to_control() -> None:
    scheduler = Scheduler()
    task = scheduler.after(1e5, list)
    task.pause()
    assert scheduler.shutdown()
    assert task.cancelled() and task.resume() is FINISHED
    with pytest.raises(SchedulerClosedError):
        scheduler.pause()
    with pytest.raises(SchedulerClosedError):
        scheduler.resume()


def test_a_drain_does_not_wait_for_what_is_paused() -> None:
    scheduler = Scheduler(1)
    gate = Gate()
    scheduler.after(0, gate)
    gate.entered()
    paused, due = scheduler.after(0, list), scheduler.after(0, list)
    assert paused.pause()
    scheduler.shutdown(wait=False, drain=True)
    with pytest.raises(SchedulerClosedError):
        due.reschedule(1e5)
    gate.open()
    assert scheduler.shutdown(drain=True, timeout=WATCHDOG)
    assert paused.cancelled() and due.state is TaskState.DONE


@pytest.mark.parametrize("bad", [None, 1.5, object()])
def test_wrong_types_are_refused(bad: Any) -> None:
    with Scheduler() as scheduler:
        for call in BY_SCHEDULER:
            with pytest.raises(TypeError):
                call(scheduler, bad)
