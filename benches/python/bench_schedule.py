"""What scheduling and cancelling cost, beside 100,000 tasks that wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from duetime import Scheduler, Task

WAITING = 100_000
BATCH = 1_000
HOUR = 3600.0


def job() -> None:
    """Does nothing."""


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Scheduler]:
    with Scheduler() as scheduler:
        due = scheduler.now() + 10 * HOUR
        # In no order that a heap could profit from.
        dues = (due + n * 7_919 % WAITING for n in range(WAITING))
        scheduler.schedule_all([Task(due=due, job=job) for due in dues])
        yield scheduler


def cancel_all(tasks: list[Task]) -> None:
    for task in tasks:
        task.cancel()


def measure(benchmark: Any, setup: Any, call: Any, clean: Any = None) -> None:
    """Measures calls on a thousand tasks each; the figures are per thousand."""
    benchmark.group = f"{BATCH} calls beside {WAITING} waiting tasks"
    benchmark.pedantic(call, setup=setup, teardown=clean, rounds=50, warmup_rounds=3)


def test_after(benchmark: Any, scheduler: Scheduler) -> None:
    made: list[Task] = []

    def setup() -> None:
        cancel_all(made)
        made.clear()

    def call() -> None:
        after = scheduler.after
        made.extend(after(HOUR, job) for _ in range(BATCH))

    measure(benchmark, setup, call)
    cancel_all(made)


def descriptions(scheduler: Scheduler, **options: Any) -> list[Task]:
    due = scheduler.now() + HOUR
    return [Task(due=due + n * 7_919 % BATCH, job=job, **options) for n in range(BATCH)]


def test_schedule(benchmark: Any, scheduler: Scheduler) -> None:
    def call(tasks: list[Task]) -> None:
        for task in tasks:
            scheduler.schedule(task)

    measure(benchmark, lambda: ((descriptions(scheduler),), {}), call, cancel_all)


def test_schedule_all(benchmark: Any, scheduler: Scheduler) -> None:
    setup = lambda: ((descriptions(scheduler),), {})  # noqa: E731
    measure(benchmark, setup, scheduler.schedule_all, cancel_all)


def scheduled(scheduler: Scheduler) -> tuple[Any, dict[str, Any]]:
    return (scheduler.schedule_all(descriptions(scheduler)),), {}


def test_cancel_a_task(benchmark: Any, scheduler: Scheduler) -> None:
    measure(benchmark, lambda: scheduled(scheduler), cancel_all)


def test_cancel_by_id(benchmark: Any, scheduler: Scheduler) -> None:
    def call(tasks: list[Task]) -> None:
        for task in tasks:
            scheduler.cancel(task.id)  # type: ignore[arg-type]

    measure(benchmark, lambda: scheduled(scheduler), call)
