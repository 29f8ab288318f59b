"""Retry: how often, how long after, within which slot, and what a policy of one's own may do."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from helpers import WATCHDOG, CellClock
from worlds import World

from duetime import Scheduler, Task, TaskState, current_run, retry


def failing(seen: list[tuple[float, int]], start: float) -> Callable[[], bool]:
    """A job that fails, and writes down when, from `start`, and which attempt it was."""

    def job() -> bool:
        run = current_run()
        seen.append((round(run.now - start, 6), run.attempt))
        return False

    return job


def test_without_a_policy_the_first_failure_is_the_last(world: World) -> None:
    for options in ({}, {"retry": None}, {"retry": retry.Never()}):
        task = world.scheduler.after(0, lambda: False, **options)
        assert task.exception(WATCHDOG) is not None
        assert (task.state, task.runs) == (TaskState.FAILED, 1)


@pytest.mark.parametrize("retries", [0, 1, 3, 100])
def test_n_retries_are_n_plus_one_attempts(world: World, retries: int) -> None:
    attempts: list[int] = []
    policy = retry.FixedDelay(retries, 0.00001)

    def job() -> bool:
        attempts.append(current_run().attempt)
        return False

    task = world.scheduler.after(0, job, retry=policy)
    while not task.done():
        world.advance(world.step)
    assert attempts == list(range(1, retries + 2))
    assert (task.state, task.runs, task.failures) == (TaskState.FAILED, retries + 1, retries + 1)


def test_a_retry_is_due_a_delay_after_the_failure(sim: World) -> None:
    seen: list[tuple[float, int]] = []
    start = sim.now()
    task = sim.scheduler.after(1, failing(seen, start), retry=retry.FixedDelay(2, 5))
    sim.advance(1)
    assert (task.state, task.due - start) == (TaskState.WAITING, 6)
    sim.advance(100)
    assert seen == [(1, 1), (6, 2), (11, 3)]


def test_the_delay_counts_from_the_end_of_the_failed_attempt(
    make_scheduler: Callable[..., Scheduler],
) -> None:
    clock = CellClock()
    scheduler = make_scheduler(1, clock=clock)

    def job() -> bool:
        clock.seconds += 7
        return False

    task = scheduler.after(0, job, retry=retry.FixedDelay(1, 5))
    assert scheduler.wait_idle(WATCHDOG)
    assert task.due == 12


def test_success_ends_the_retries(world: World) -> None:
    task = world.scheduler.after(
        0, lambda: current_run().attempt == 3, retry=retry.FixedDelay(10, 0.001)
    )
    world.advance(world.step)
    assert task.result(WATCHDOG) is True
    assert (task.state, task.runs, task.failures) == (TaskState.DONE, 3, 2)
    assert task.exception() is None


def test_a_waiting_retry_holds_no_thread(world: World) -> None:
    flaky = world.scheduler.after(0, lambda: False, retry=retry.FixedDelay(1, 3600))
    world.run_until_idle()
    assert world.scheduler.after(0, lambda: "free").result(WATCHDOG) == "free"
    assert flaky.state is TaskState.WAITING


def test_exponential_backoff_grows_to_its_cap(sim: World) -> None:
    seen: list[tuple[float, int]] = []
    policy = retry.ExponentialBackoff(5, 1, factor=3, cap=20)
    sim.scheduler.after(0, failing(seen, sim.now()), retry=policy)
    sim.run_until_idle()
    sim.advance(1000)
    assert [at for at, _ in seen] == [0, 1, 4, 13, 33, 53]


def test_the_policies_answer_in_seconds() -> None:
    assert retry.Never().delay_after_failure(1) is None
    fixed = retry.FixedDelay(2, timedelta(minutes=5))
    assert [fixed.delay_after_failure(n) for n in (1, 2, 3, 10**6)] == [300, 300, None, None]
    backoff = retry.ExponentialBackoff(4, 0.5)
    assert [backoff.delay_after_failure(n) for n in range(1, 6)] == [0.5, 1, 2, 4, None]


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("factor", [1.0, 2.0, 1e300])
@pytest.mark.parametrize("failures", [1, 2, 64, 1024, 10**6, 2**40])
def test_the_delay_is_finite_and_capped_for_any_attempt(
    failures: int, factor: float, jitter: float
) -> None:
    policy = retry.ExponentialBackoff(2**62, 1, factor=factor, cap=60, jitter=jitter)
    delay = policy.delay_after_failure(failures)
    assert delay is not None
    assert 0 <= delay <= 60
    if jitter == 0.0:
        grown = 60 if factor > 1 and failures > 6 else min(60, factor ** min(failures - 1, 1))
        assert delay == grown
    uncapped = retry.ExponentialBackoff(2**62, 1, factor=factor, jitter=jitter)
    assert math.isfinite(uncapped.delay_after_failure(failures))


def test_jitter_spreads_the_delays() -> None:
    policy = retry.ExponentialBackoff(10, 8, jitter=0.25)
    delays = {policy.delay_after_failure(1) for _ in range(100)}
    assert len(delays) > 10
    assert all(6 <= delay <= 10 for delay in delays)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: retry.FixedDelay(-1, 1), ValueError),
        (lambda: retry.FixedDelay(1.5, 1), TypeError),
        (lambda: retry.FixedDelay(True, 1), TypeError),
        (lambda: retry.FixedDelay("1", 1), TypeError),
        (lambda: retry.FixedDelay(None, 1), TypeError),
        (lambda: retry.ExponentialBackoff(-1, 1), ValueError),
        (lambda: retry.ExponentialBackoff(1, 1, factor=math.nan), ValueError),
        (lambda: retry.ExponentialBackoff(1, 1, factor=math.inf), ValueError),
        (lambda: retry.ExponentialBackoff(1, 1, factor=-1), ValueError),
        (lambda: retry.ExponentialBackoff(1, 1, factor=True), TypeError),
        (lambda: retry.ExponentialBackoff(1, 1, factor="2"), TypeError),
        (lambda: retry.ExponentialBackoff(1, 1, jitter=math.nan), ValueError),
        (lambda: retry.ExponentialBackoff(1, 1, jitter=-0.1), ValueError),
        (lambda: retry.ExponentialBackoff(1, 1, jitter=1.1), ValueError),
        (lambda: retry.ExponentialBackoff(1, 1, jitter=None), TypeError),
    ],
)
def test_numbers_out_of_bounds_are_refused(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


@pytest.mark.parametrize("policy", [..., 3, "twice", print], ids=repr)
def test_what_is_no_policy_is_refused_at_the_call(world: World, policy: Any) -> None:
    with pytest.raises(TypeError):
        world.scheduler.after(1, print, retry=policy)
    assert world.scheduler.tasks() == []


@pytest.mark.parametrize(
    ("delay", "starts"),
    [
        (3, [(10, 1), (13, 2), (16, 3), (20, 1), (23, 2), (26, 3), (30, 1)]),
        (6, [(10, 1), (16, 2), (20, 1), (26, 2), (30, 1)]),
        (10, [(10, 1), (20, 1), (30, 1)]),
        (15, [(10, 1), (20, 1), (30, 1)]),
    ],
    ids=["before the slot", "one only", "at the slot", "after the slot"],
)
def test_a_recurring_task_retries_within_its_slot(
    sim: World, delay: float, starts: list[tuple[float, int]]
) -> None:
    seen: list[tuple[float, int]] = []
    policy = retry.FixedDelay(2, delay)
    sim.scheduler.every(10, failing(seen, sim.now()), retry=policy)
    sim.advance(30)
    assert seen == starts


class Policy:
    """A policy that answers from a list, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[int] = []

    def delay_after_failure(self, failures: int) -> Any:
        self.asked.append(failures)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def test_a_policy_of_ones_own(sim: World) -> None:
    seen: list[tuple[float, int]] = []
    policy = Policy(1, 2.5, timedelta(seconds=3), None)
    task = sim.scheduler.after(0, failing(seen, sim.now()), retry=policy)
    sim.run_until_idle()
    sim.advance(100)
    assert policy.asked == [1, 2, 3, 4]
    assert seen == [(0, 1), (1, 2), (3.5, 3), (6.5, 4)]
    assert task.state is TaskState.FAILED


def test_failures_are_counted_anew_in_each_slot(sim: World) -> None:
    seen: list[tuple[float, int]] = []
    policy = Policy(1, None, 1, None, 1)
    task = sim.scheduler.every(10, failing(seen, sim.now()), retry=policy)
    sim.advance(30)
    assert policy.asked == [1, 2, 1, 2, 1]
    assert [attempt for _, attempt in seen] == [1, 2, 1, 2, 1]
    assert task.failures == 5, "the task's own count goes on"


@pytest.mark.parametrize("recurring", [False, True])
def test_a_policy_that_raises_fails_the_task_with_its_error(world: World, recurring: bool) -> None:
    error = LookupError("no policy")
    options = {"retry": Policy(error)}
    if recurring:
        task = world.scheduler.every(3600, lambda: False, first=0, **options)
    else:
        task = world.scheduler.after(0, lambda: False, **options)
    assert task.exception(WATCHDOG) is error
    assert (task.state, task.runs) == (TaskState.FAILED, 1)
    assert world.scheduler.after(0, int).result(WATCHDOG) == 0


@pytest.mark.parametrize("answer", [-1, math.nan, math.inf, "1", True, ...], ids=repr)
def test_a_policy_that_answers_nonsense_fails_the_task(world: World, answer: Any) -> None:
    task = world.scheduler.after(0, lambda: False, retry=Policy(answer))
    assert isinstance(task.exception(WATCHDOG), Exception)
    assert (task.state, task.runs) == (TaskState.FAILED, 1)


def test_a_success_asks_no_policy(world: World) -> None:
    policy = Policy()
    task = world.scheduler.schedule(Task(due=world.past(0), job=int, retry=policy))
    assert task.result(WATCHDOG) == 0
    assert policy.asked == []


def test_policies_are_values() -> None:
    for policy in (
        retry.Never(),
        retry.FixedDelay(3, 5),
        retry.ExponentialBackoff(3, 1, factor=3.0, cap=60, jitter=0.5),
    ):
        copy = pickle.loads(pickle.dumps(policy))
        assert copy == policy
        assert type(policy).__name__ in repr(policy)
    assert retry.FixedDelay(3, 5) != retry.FixedDelay(3, 6)
