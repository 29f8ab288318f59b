"""Listeners that call back, chains of tasks, and the context of a run."""

from __future__ import annotations

import contextlib
import contextvars
import sys
from typing import Any

import pytest
from support import KINDS, STATES, WATCHDOG, everything, noop, until

from duetime import DuetimeError, SchedulerClosedError, Task, retry

var: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="none")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "act", ["cancel self", "cancel another", "add the id again", "shutdown", "remove", "add"]
)
def test_a_listener_may_do_anything(manual: Any, kind: str, act: str) -> None:
    """apscheduler#1076: a listener that changed a job or the listeners crashed the loop."""
    scheduler, acted, added = manual.scheduler, [], []

    def listener(event: Any) -> None:
        if event.kind.name != kind or len(acted) >= 5:
            return
        acted.append(event.task_id)
        if act == "cancel self":
            scheduler.cancel(event.task_id)
        elif act == "cancel another":
            scheduler.cancel("series" if event.task_id != "series" else "good")
        elif act == "add the id again":
            with contextlib.suppress(DuetimeError, ValueError, RuntimeError):  # it may be running
                scheduler.schedule(Task(event.task_id, due=20, job=noop), replace=True)
        elif act == "shutdown":
            scheduler.shutdown()
        elif act == "remove":
            scheduler.remove_listener(listener)
        else:
            scheduler.add_listener(added.append)

    scheduler.add_listener(listener)
    everything(manual)
    assert acted
    if act == "remove":
        assert len(acted) == 1
    if act == "shutdown":
        with pytest.raises(SchedulerClosedError):
            scheduler.after(1, noop)
    else:
        task = scheduler.after(1, noop)
        manual.advance(1)
        assert task.state in (STATES.DONE, STATES.CANCELLED)
        assert act != "add" or added


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("by", ["job", "listener", "callback"])
def test_a_chain_of_tasks_does_not_nest(make_manual: Any, by: str, workers: int) -> None:
    """PyO3#1683: each task ran inside the one that scheduled it, until the stack was full."""
    bench, depths = make_manual(workers=workers), []
    length = 1000

    def depth() -> int:
        frame, count = sys._getframe(), 0
        while frame is not None:
            frame, count = frame.f_back, count + 1  # type: ignore[assignment]
        return count

    def following(_cause: Any = None) -> None:
        if len(depths) < length:
            task = bench.scheduler.after(0, job)
            if by == "callback":
                task.add_done_callback(following)

    def job() -> None:
        depths.append(depth())
        if by == "job":
            following()

    if by == "listener":
        bench.scheduler.add_listener(lambda e: following() if e.kind.name == "COMPLETED" else None)
    following()
    until(lambda: len(depths) >= length, "the end of the chain")
    bench.advance(0)
    # A callback added after the end runs where it is added, so it may nest a little.
    assert len(depths) == length and max(depths) < 100


def test_a_run_sees_the_context_of_its_scheduling(manual: Any) -> None:
    """bengal#159: a worker thread saw an empty context, or that of somebody else."""
    seen: list[tuple[str, str]] = []

    def schedules(value: str) -> None:
        var.set(value)
        manual.scheduler.after(1, lambda: seen.append((value, var.get())))
        manual.scheduler.every(1, lambda: seen.append((value, var.get())), max_runs=2)
        manual.scheduler.submit(lambda: seen.append((value, var.get()))).result(WATCHDOG)
        var.set("changed after")

    for value in ("a", "b", "c"):
        contextvars.copy_context().run(schedules, value)
    manual.scheduler.after(1, lambda: seen.append(("none", var.get())))
    manual.advance(3)
    assert len(seen) == 13
    assert all(given == got for given, got in seen)


@pytest.mark.parametrize("bad", [False, True])
def test_each_run_has_its_own_copy_and_leaks_nothing(manual: Any, bad: bool) -> None:
    """mlflow#24422: what one run set, the next job on that thread saw."""
    seen: list[str] = []

    def job() -> None:
        seen.append(var.get())
        var.set("leaked")
        if bad:
            raise ValueError("on purpose")

    manual.scheduler.every(1, job, max_runs=3)
    manual.scheduler.after(1, job, retry=retry.FixedDelay(2, 1))
    manual.scheduler.submit(job)
    manual.advance(9)
    manual.scheduler.after(0, job)
    manual.advance(0)
    assert set(seen) == {"none"} and len(seen) == (8 if bad else 6)
