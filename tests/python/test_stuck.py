"""Stuck jobs: what does not end is written off, told of, and replaced."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import pytest
from helpers import (
    WATCHDOG,
    CellClock,
    Gate,
    Log,
    Thread,
    nap,
    run,
    until,
    worker_tids,
)

from duetime import (
    ControlOutcome,
    ManualClock,
    Scheduler,
    Task,
    TaskState,
    TaskStuck,
    TaskTimeout,
    retry,
)


def test_a_job_that_never_returns_holds_nobody_up() -> None:
    """One worker, a job that never returns: the next task is served; stats say one is stuck."""
    with Scheduler(workers=1) as scheduler:
        gate = Gate()
        task = scheduler.after(0, gate, timeout=0.02, grace=0.02)
        gate.entered()
        behind = scheduler.after(0, lambda: "served")
        assert behind.result(WATCHDOG) == "served"
        assert type(task.exception(WATCHDOG)) is TaskStuck
        assert scheduler.stats().stuck == 1
        gate.open()
        until(lambda: scheduler.stats().stuck == 0)
        assert task.state is TaskState.FAILED


def test_stuck_is_told_with_the_stack_and_then_failed() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        log = Log()
        scheduler.add_listener(log)
        gate = Gate()

        def blocks_for_good() -> None:
            gate()

        policy = retry.FixedDelay(5, delay=1)
        task = scheduler.after(0, blocks_for_good, timeout=1, grace=2, id="t", retry=policy)
        gate.entered()
        clock.jump(3)
        assert log.kinds("t") == ["SCHEDULED", "DUE", "STARTED", "STUCK", "FAILED"]
        (stuck,) = log.of("STUCK")
        assert (stuck.time, stuck.run, stuck.attempt) == (3, 1, 1)
        assert (stuck.lateness, stuck.duration, stuck.next_due) == (0, 3, None)
        assert type(stuck.error) is TaskStuck
        assert "in blocks_for_good\n    gate()\n" in stuck.stack
        assert log.of("FAILED")[0].next_due is None
        assert log.of("FAILED")[0].stack is None
        error = task.exception()
        assert isinstance(error, TaskTimeout)
        assert str(error) == "the job still ran 2s after its timeout of 1s, and is stuck"
        assert (task.runs, task.failures) == (1, 1)
        info = scheduler.info("t")
        assert (info.state, info.runs, info.finished) == (TaskState.FAILED, 1, 3)
        stats = scheduler.stats()
        assert (stats.stuck, stats.running, stats.failed, stats.failures) == (1, 0, 1, 1)
        assert scheduler.wait_idle(WATCHDOG)
        gate.open()
        until(lambda: scheduler.stats().stuck == 0)
        assert log.kinds("t")[-1] == "FAILED", "what it returns at last is of no use"


def test_a_job_that_swallows_its_interrupt_is_stuck() -> None:
    with Scheduler(workers=1) as scheduler:
        end = threading.Event()

        def job() -> None:
            while not end.is_set():
                try:
                    while not end.is_set():
                        time.sleep(0.0001)
                except TaskTimeout:  # noqa: PERF203 - the loop is the point
                    pass

        task = scheduler.after(0, job, timeout=0.02, grace=0.02, interrupt=True)
        assert type(task.exception(WATCHDOG)) is TaskStuck
        end.set()


def test_the_pool_is_as_large_as_before() -> None:
    clock = ManualClock()
    with Scheduler(workers=2, clock=clock, name="pool") as scheduler:
        stuck = [Gate() for _ in range(2)]
        for gate in stuck:
            scheduler.after(0, gate, timeout=1, grace=0)
            gate.entered()
        clock.jump(1)
        assert scheduler.stats().stuck == 2
        both = Gate()
        tasks = [scheduler.after(0, both) for _ in range(3)]
        both.entered()
        both.entered()
        assert scheduler.stats().running == 2
        for gate in stuck:
            gate.open()
        until(lambda: scheduler.stats().stuck == 0)
        assert scheduler.stats().running == 2
        both.open()
        assert [task.result(WATCHDOG) for task in tasks] == ["through"] * 3
        if sys.platform == "linux":
            until(lambda: len(worker_tids("pool-")) <= 3)
            assert sorted(worker_tids("pool-").values()) == ["pool-0", "pool-1", "pool-late"]


def test_threading_forgets_a_stuck_thread_that_retired() -> None:
    clock = ManualClock()
    before = set(threading.enumerate())
    scheduler = Scheduler(workers=1, clock=clock)
    gate = Gate()
    scheduler.after(0, gate, timeout=1, grace=0)
    gate.entered()
    clock.jump(1)
    gate.open()
    until(lambda: scheduler.stats().stuck == 0)
    scheduler.shutdown()
    until(lambda: set(threading.enumerate()) <= before)


def test_a_stuck_series_ends_failed() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        gate = Gate()
        series = scheduler.every(10, gate, first=0, timeout=1, grace=1)
        gate.entered()
        clock.jump(60)
        assert series.state is TaskState.FAILED
        assert series.runs == 1
        assert series.run_now() is ControlOutcome.FINISHED
        gate.open()


def test_what_depends_on_a_stuck_task_is_cancelled() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        gate = Gate()
        parent = scheduler.after(0, gate, id="parent", timeout=1, grace=1)
        child = scheduler.after(0, print, depends_on=[parent])
        gate.entered()
        clock.jump(60)
        assert child.cancelled()
        assert "'parent', which failed: the job still ran" in str(child.error)
        gate.open()


def test_a_late_attempt_with_retries_is_no_end_for_dependents() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        job = lambda: nap(60 if run().attempt == 1 else 0)  # noqa: E731
        parent = scheduler.after(0, job, timeout=1, retry=retry.FixedDelay(1, delay=5))
        child = scheduler.after(0, lambda: "child", depends_on=[parent])
        clock.advance(5)
        assert not child.done()
        clock.advance(5)
        assert child.result() == "child"


def test_a_stuck_run_gives_its_place_in_a_group_back() -> None:
    clock = ManualClock()
    with Scheduler(workers=4, clock=clock, limits={"db": 1}) as scheduler:
        gate = Gate()
        scheduler.after(0, gate, group="db", timeout=1, grace=1)
        gate.entered()
        behind = scheduler.after(0, lambda: "db", group="db")
        clock.jump(2)
        assert behind.result() == "db"
        gate.open()


def test_a_late_run_is_controlled_as_any_that_runs() -> None:
    clock = CellClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        told, gate = threading.Event(), Gate()

        def job() -> None:
            while not run().stop_requested:
                pass
            told.set()
            gate()

        task = scheduler.every(10, job, first=0, timeout=1, grace=100, id="t")
        until(task.running)
        clock.seconds = 1
        scheduler.wake()
        assert told.wait(WATCHDOG)
        assert task.running()
        assert [info.id for info in scheduler.tasks(TaskState.RUNNING)] == ["t"]
        assert task.run_now() is ControlOutcome.RUNNING
        assert task.reschedule(99) is ControlOutcome.RUNNING
        assert task.pause() is ControlOutcome.RUNNING
        assert task.preview(1) == [10]
        assert not scheduler.wait_idle(0)
        gate.open()
        until(lambda: task.runs == 1)
        assert task.paused
        assert scheduler.wait_idle(WATCHDOG)


def test_while_the_scheduler_is_paused_the_time_of_runs_passes() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        task = scheduler.after(0, nap, 60, timeout=1, retry=retry.FixedDelay(1, delay=0))
        clock.advance(0)
        scheduler.pause()
        clock.advance(10)
        assert (task.runs, task.state) == (1, TaskState.WAITING)
        scheduler.resume()
        clock.advance(10)
        assert (task.runs, task.state) == (2, TaskState.FAILED)


def test_an_id_is_free_again_though_its_last_run_is_stuck() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        gate = Gate()
        scheduler.after(0, gate, id="t", timeout=1, grace=1)
        gate.entered()
        clock.jump(2)
        again = scheduler.schedule(Task("t", due=0, job=lambda: "again"), replace=True)
        assert again.result(WATCHDOG) == "again"
        gate.open()


def test_a_stuck_job_may_still_use_the_scheduler() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        gate, answers = Gate(), []

        def job() -> None:
            gate()
            answers.append(run().stop_requested)
            answers.append(run().wait(3600))
            answers.append(scheduler.after(0, int))
            with pytest.raises(RuntimeError):
                scheduler.wait_idle()
            with pytest.raises(RuntimeError):
                clock.advance(1)

        scheduler.after(0, job, timeout=1, grace=0)
        gate.entered()
        clock.jump(1)
        gate.open()
        until(lambda: scheduler.stats().stuck == 0)
        assert answers[:2] == [True, True]
        assert answers[2].result(WATCHDOG) == 0


def test_a_listener_that_raises_or_blocks_keeps_no_other_run_from_being_told() -> None:
    with Scheduler(workers=3) as scheduler:
        blocked = Gate()

        def listener(event: Any) -> None:
            if event.kind.name == "STUCK":
                blocked()

        scheduler.add_listener(listener)
        gate = Gate()
        stuck = scheduler.after(0, gate, timeout=0.01, grace=0)
        blocked.entered()
        assert stuck.running() or stuck.done()
        late = scheduler.after(0, nap, 3600, timeout=0.01)
        assert type(late.exception(WATCHDOG)) is TaskTimeout
        blocked.open()
        gate.open()
        assert type(stuck.exception(WATCHDOG)) is TaskStuck


def test_from_a_thread_a_blocked_leap_ends_with_another() -> None:
    clock = ManualClock()
    with Scheduler(workers=1, clock=clock) as scheduler:
        gate = Gate()
        task = scheduler.after(0, gate, timeout=1, grace=5)
        gate.entered()
        first = Thread(clock.jump, 1)  # waits for the job, which has its grace
        until(lambda: clock.now() == 1)
        clock.jump(5)
        first.outcome()
        assert type(task.exception()) is TaskStuck
        gate.open()


@pytest.mark.parametrize("before", [True, False])
def test_a_drain_cancels_what_nobody_is_left_to_run(before: bool) -> None:
    """Twice as many stuck as there are workers: nobody is replaced any more."""
    scheduler = Scheduler(workers=1)
    gates = [Gate(), Gate()]
    stuck = [scheduler.after(0, gate, timeout=0.02, grace=0.02) for gate in gates]
    left = scheduler.after(0, int)
    if before:
        until(lambda: scheduler.stats().stuck == 2)
    assert scheduler.shutdown(drain=True) is True
    assert [type(task.exception()) for task in stuck] == [TaskStuck, TaskStuck]
    assert left.cancelled()
    for gate in gates:
        gate.open()
    until(lambda: scheduler.stats().stuck == 0)
