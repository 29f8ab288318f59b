"""What a run of a series, and a retry, cost: in virtual time, so that nothing is waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from duetime import ManualClock, Scheduler, retry

RUNS = 1_000


def good() -> None:
    """Does nothing."""


def bad() -> bool:
    return False


def raises() -> None:
    raise ValueError


@pytest.mark.parametrize("job", [good, bad, raises])
def test_series(benchmark: Any, job: Callable[[], object]) -> None:
    benchmark.group = f"{RUNS} runs in virtual time"
    clock = ManualClock()
    with Scheduler(1, clock=clock) as scheduler:
        scheduler.every(1, job)
        benchmark.pedantic(clock.advance, args=(RUNS,), rounds=20, warmup_rounds=2)


@pytest.mark.parametrize("job", [bad, raises])
def test_retries(benchmark: Any, job: Callable[[], object]) -> None:
    benchmark.group = f"{RUNS} runs in virtual time"
    clock = ManualClock()
    with Scheduler(1, clock=clock) as scheduler:
        policies = [retry.FixedDelay(10**9, 1), retry.ExponentialBackoff(10**9, 1, factor=1.0)]
        policy = policies[job is raises]
        scheduler.after(0, job, retry=policy)
        benchmark.pedantic(clock.advance, args=(RUNS,), rounds=20, warmup_rounds=2)
