"""What a job costs that does nothing, by the number of workers."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import pytest

from duetime import Scheduler, Task

BATCH = 5_000
WORKERS = [1, 2, 4, 8]


def job() -> None:
    """Does nothing."""


@pytest.mark.parametrize("workers", WORKERS)
def test_run_all_at_once(benchmark: Any, workers: int) -> None:
    benchmark.group = f"schedule and run {BATCH} jobs"
    with Scheduler(workers) as scheduler:

        def setup() -> tuple[Any, dict[str, Any]]:
            now = scheduler.now()
            return ([Task(due=now, job=job) for _ in range(BATCH)],), {}

        def call(tasks: list[Task]) -> None:
            scheduler.schedule_all(tasks)
            scheduler.wait_idle()

        benchmark.pedantic(call, setup=setup, rounds=30, warmup_rounds=3)


@pytest.mark.parametrize("workers", WORKERS)
def test_run_one_by_one(benchmark: Any, workers: int) -> None:
    benchmark.group = f"schedule and run {BATCH} jobs"
    with Scheduler(workers) as scheduler:

        def call() -> None:
            after = scheduler.after
            for _ in range(BATCH):
                after(0, job)
            scheduler.wait_idle()

        benchmark.pedantic(call, rounds=30, warmup_rounds=3)


@pytest.mark.parametrize("workers", WORKERS)
def test_round_trip(benchmark: Any, workers: int) -> None:
    benchmark.group = "one job, to its result"
    with Scheduler(workers) as scheduler:
        benchmark(lambda: scheduler.after(0, job).result())


def test_round_trip_of_a_thread_pool(benchmark: Any) -> None:
    benchmark.group = "one job, to its result"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        benchmark(lambda: pool.submit(job).result())


@pytest.mark.parametrize("executor", [Scheduler, concurrent.futures.ThreadPoolExecutor])
def test_submit(benchmark: Any, executor: Any) -> None:
    benchmark.group = f"submit {BATCH} jobs to 4 workers"
    with executor(4) as pool:

        def call() -> None:
            futures = [pool.submit(job) for _ in range(BATCH)]
            concurrent.futures.wait(futures)

        benchmark.pedantic(call, rounds=20, warmup_rounds=2)
