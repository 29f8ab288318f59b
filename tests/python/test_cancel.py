"""Cancel: what it answers, what it does, and what it lets go of."""

from __future__ import annotations

import contextvars
import enum
import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Thread
from worlds import World

from duetime import CancelOutcome, FixedRate, Missed, Scheduler, Task, TaskState, retry


class Big:
    """Something whose end can be seen."""

    def __call__(self, *_args: Any) -> None: ...


def test_only_cancelled_is_truthy() -> None:
    assert issubclass(CancelOutcome, enum.Enum)
    assert {outcome.name: bool(outcome) for outcome in CancelOutcome} == {
        "CANCELLED": True,
        "STOPPING": False,
        "FINISHED": False,
        "UNKNOWN": False,
    }


def test_a_waiting_task_never_runs(world: World) -> None:
    ran: list[int] = []
    log = world.log()
    with world.hold():
        task = world.scheduler.after(world.step, ran.append, 1, id="t")
        assert world.scheduler.cancel("t") is CancelOutcome.CANCELLED
        assert task.state is TaskState.CANCELLED
    world.advance(2 * world.step)
    assert ran == []
    assert [kind for kind in log.kinds("t") if kind != "DUE"] == ["SCHEDULED", "CANCELLED"]
    with pytest.raises(CancelledError):
        task.result()


@pytest.mark.parametrize(
    "cancel",
    [
        lambda scheduler, task: scheduler.cancel(task),
        lambda scheduler, task: scheduler.cancel(task.id),
        lambda _scheduler, task: task.cancel(),
    ],
    ids=["by task", "by id", "by itself"],
)
def test_three_ways_to_say_it(world: World, cancel: Callable[..., CancelOutcome]) -> None:
    task = world.scheduler.after(3600, print)
    assert cancel(world.scheduler, task) is CancelOutcome.CANCELLED
    assert cancel(world.scheduler, task) is CancelOutcome.FINISHED


def test_a_due_task_that_waits_for_a_worker_is_waiting(world: World) -> None:
    ran: list[int] = []
    with world.hold():
        task = world.scheduler.at(world.past(0), ran.append, 1)
        assert task.cancel() is CancelOutcome.CANCELLED
    world.run_until_idle()
    assert ran == []


def test_a_waiting_retry_is_waiting(sim: World) -> None:
    log = sim.log()
    task = sim.scheduler.after(0, lambda: False, id="t", retry=retry.FixedDelay(5, 2))
    sim.run_until_idle()
    assert task.cancel() is CancelOutcome.CANCELLED
    sim.advance(3)
    assert (task.state, task.runs) == (TaskState.CANCELLED, 1)
    assert log.kinds("t") == ["SCHEDULED", "DUE", "STARTED", "FAILED", "CANCELLED"]


def test_a_next_slot_is_waiting(world: World) -> None:
    task = world.scheduler.every(3600, int, first=0)
    world.run_until_idle()
    assert task.runs == 1
    assert task.cancel() is CancelOutcome.CANCELLED
    assert task.state is TaskState.CANCELLED
    with pytest.raises(CancelledError):
        task.result()


@pytest.mark.parametrize(
    ("answer", "state"), [("fine", TaskState.DONE), (ValueError("no"), TaskState.FAILED)]
)
def test_a_running_one_off_ends_as_its_run_did(world: World, answer: Any, state: TaskState) -> None:
    gate, log = Gate(answer), world.log()
    task = world.scheduler.after(0, gate, id="t", retry=retry.FixedDelay(5, 0.001))
    gate.entered()
    assert task.cancel() is CancelOutcome.STOPPING
    assert task.state is TaskState.RUNNING
    assert task.cancel() is CancelOutcome.STOPPING, "as often as one likes"
    gate.open()
    assert task.wait(WATCHDOG)
    world.advance(world.step)
    assert (task.state, task.runs) == (state, 1), "no retry follows"
    ending = "COMPLETED" if state is TaskState.DONE else "FAILED"
    assert [kind for kind in log.kinds("t") if kind != "CANCELLED"] == [
        "SCHEDULED",
        "DUE",
        "STARTED",
        ending,
    ]


@pytest.mark.parametrize("answer", ["fine", ValueError("no")])
def test_a_running_series_ends_cancelled(world: World, answer: Any) -> None:
    gate, log = Gate(answer), world.log()
    rule = FixedRate(0.001, missed=Missed.CATCH_UP)
    task = world.scheduler.every(rule, gate, first=0, id="t")
    gate.entered()
    assert world.scheduler.cancel("t") is CancelOutcome.STOPPING
    gate.open()
    assert task.wait(WATCHDOG)
    world.advance(world.step)
    assert (task.state, task.runs) == (TaskState.CANCELLED, 1), "no next slot follows"
    ending = "COMPLETED" if answer == "fine" else "FAILED"
    assert log.kinds("t") == ["SCHEDULED", "DUE", "STARTED", ending, "CANCELLED"]
    assert log.of(ending, "t")[0].next_due is None


@pytest.mark.parametrize("recurring", [False, True])
def test_a_job_may_cancel_itself(world: World, recurring: bool) -> None:
    outcomes: list[Any] = []

    def job() -> bool:
        outcomes.append(world.scheduler.cancel("self"))
        return False

    options = {"recurrence": FixedRate(0.001, missed=Missed.CATCH_UP)} if recurring else {}
    task = world.scheduler.schedule(
        Task("self", due=world.past(0), job=job, retry=retry.FixedDelay(5, 0.001), **options)
    )
    assert task.wait(WATCHDOG)
    world.advance(world.step)
    assert outcomes == [CancelOutcome.STOPPING]
    assert task.state is (TaskState.CANCELLED if recurring else TaskState.FAILED)


def test_a_finished_task_is_finished(world: World) -> None:
    done = world.scheduler.after(0, int)
    failed = world.scheduler.after(0, lambda: False)
    cancelled = world.scheduler.after(3600, int)
    assert cancelled.cancel()
    world.run_until_idle()
    for task in (done, failed, cancelled):
        state = task.state
        for answer in (world.scheduler.cancel(task), world.scheduler.cancel(task.id)):
            assert answer is CancelOutcome.FINISHED
        assert task.state is state
    assert done.result() == 0


def test_cancel_after_shutdown_is_no_error(real: Scheduler) -> None:
    task = real.after(3600, int)
    assert real.shutdown(timeout=WATCHDOG)
    assert task.cancel() is real.cancel(task.id) is CancelOutcome.FINISHED


@pytest.mark.parametrize("unknown", ["nobody", 17, -1, ""])
def test_what_is_not_known_is_unknown(world: World, unknown: Any) -> None:
    assert world.scheduler.cancel(unknown) is CancelOutcome.UNKNOWN


@pytest.mark.parametrize("nonsense", [None, 1.5, True, b"t", ...], ids=repr)
def test_what_is_no_id_is_a_type_error(world: World, nonsense: Any) -> None:
    with pytest.raises(TypeError):
        world.scheduler.cancel(nonsense)


def test_a_cancelled_task_lets_go_at_once(make_world: Callable[..., World]) -> None:
    world = make_world()
    job, arg, value = Big(), Big(), Big()
    variable: contextvars.ContextVar[Big | None] = contextvars.ContextVar("variable")
    context = contextvars.copy_context()
    context.run(variable.set, value)
    keeper = world.scheduler.after(1800, int)
    task = context.run(world.scheduler.after, 3600, job, arg)
    dead = [weakref.ref(thing) for thing in (job, arg, value)]
    del job, arg, value, context
    gc.collect()
    assert all(ref() is not None for ref in dead)
    assert task.cancel()
    gc.collect()
    assert [ref() for ref in dead] == [None, None, None], "while the entry is still in the heap"
    assert keeper.state is TaskState.WAITING
    assert task.state is TaskState.CANCELLED


def test_a_finished_task_lets_go_of_its_job(world: World) -> None:
    job, arg = Big(), Big()
    task = world.scheduler.after(0, job, arg)
    dead = [weakref.ref(thing) for thing in (job, arg)]
    del job, arg
    assert task.wait(WATCHDOG)
    world.run_until_idle()
    # The worker may still hold the last run's frame; the next run takes its place.
    assert world.scheduler.after(0, int).wait(WATCHDOG)
    world.run_until_idle()
    gc.collect()
    assert [ref() for ref in dead] == [None, None]


def test_a_destructor_may_call_the_scheduler(world: World) -> None:
    seen: list[Any] = []

    class Loud:
        def __call__(self) -> None: ...

        def __del__(self) -> None:
            seen.append(world.scheduler.cancel("other"))
            seen.append(world.scheduler.after(3600, int, id="from del").state)

    world.scheduler.after(3600, int, id="other")
    assert world.scheduler.after(3600, Loud()).cancel()
    gc.collect()
    assert seen == [CancelOutcome.CANCELLED, TaskState.WAITING]


def test_cancel_from_many_threads_wins_once(world: World) -> None:
    for n in range(50):
        start = threading.Barrier(4)
        task = world.scheduler.after(3600, int, id=n)

        def cancel(task: Task = task, start: threading.Barrier = start) -> CancelOutcome:
            start.wait(WATCHDOG)
            return task.cancel()

        answers = [thread.outcome() for thread in [Thread(cancel) for _ in range(4)]]
        assert answers.count(CancelOutcome.CANCELLED) == 1
        assert answers.count(CancelOutcome.FINISHED) == 3


def test_cancelling_the_earliest_does_not_hold_up_the_next(world: World) -> None:
    with world.hold():
        first = world.scheduler.after(world.step, int)
        second = world.scheduler.after(2 * world.step, lambda: "ran")
        assert first.cancel()
        assert world.scheduler.next_due() == second.due
    world.advance(2 * world.step)
    assert second.result(WATCHDOG) == "ran"


def test_most_of_a_heap_can_be_cancelled(world: World) -> None:
    seen: list[int] = []
    with world.hold():
        tasks = [world.scheduler.at(world.past(n % 20), seen.append, n) for n in range(2000)]
        for n, task in enumerate(tasks):
            assert n % 10 == 0 or task.cancel()
        assert world.scheduler.stats().waiting == 200
    world.run_until_idle()
    assert sorted(seen) == list(range(0, 2000, 10))
    assert world.scheduler.stats().cancelled == 1800
