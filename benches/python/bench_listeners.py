"""What listeners cost a job: none, one for the end of each, one for everything."""

from __future__ import annotations

from typing import Any

import pytest

from duetime import Event, EventKind, Scheduler, Task

BATCH = 2_000


def job() -> None:
    """Does nothing."""


def listener(event: Event) -> None:
    """Does nothing."""


@pytest.mark.parametrize("kinds", [(), (EventKind.COMPLETED,), tuple(EventKind)], ids=len)
def test_listeners(benchmark: Any, kinds: tuple[EventKind, ...]) -> None:
    benchmark.group = f"run {BATCH} jobs, by the kinds of events that are listened to"
    with Scheduler() as scheduler:
        if kinds:
            scheduler.add_listener(listener, kinds)

        def setup() -> tuple[Any, dict[str, Any]]:
            now = scheduler.now()
            return ([Task(due=now, job=job) for _ in range(BATCH)],), {}

        def call(tasks: list[Task]) -> None:
            scheduler.schedule_all(tasks)
            scheduler.wait_idle()

        benchmark.pedantic(call, setup=setup, rounds=20, warmup_rounds=2)
