"""Retries: their number, their times, and what comes between."""

from __future__ import annotations

import gc
import math
import threading
from concurrent.futures import CancelledError
from datetime import timedelta
from typing import Any

import pytest
from support import (
    HOUR,
    STATES,
    WATCHDOG,
    Manual,
    clean,
    failing,
    failing_before,
    noop,
    python,
    within,
)

import duetime
from duetime import FixedDelay, FixedRate, retry


@pytest.mark.parametrize("retries", [0, 1, 3, 1000])
@pytest.mark.parametrize("policy", ["fixed", "backoff"])
@pytest.mark.parametrize("how", ["raise", "return False"])
def test_n_retries_are_n_plus_one_attempts(
    manual: Manual, retries: int, policy: str, how: str
) -> None:
    """airflow#47971: off by one, in both directions, in several versions."""
    rule = (
        retry.FixedDelay(retries, 2)
        if policy == "fixed"
        else retry.ExponentialBackoff(retries, 1, cap=5)
    )
    task = manual.scheduler.after(
        1, failing() if how == "raise" else lambda: False, retry=rule, id="t"
    )
    manual.advance(5 * retries + 1)
    assert (task.runs, task.failures, task.state) == (retries + 1, retries + 1, STATES.FAILED)
    assert [event.attempt for event in manual.log.of("STARTED")] == [*range(1, retries + 2)]
    assert manual.log.ends("t") == ["FAILED"]
    if policy == "fixed":
        assert manual.log.starts() == [1 + 2 * n for n in range(retries + 1)]


def test_no_policy_is_one_attempt(manual: Manual) -> None:
    """airflow#47971: the default retries nothing, and says so by an error that fits."""
    task = manual.scheduler.after(1, lambda: False)
    manual.advance(HOUR)
    assert (task.runs, task.state) == (1, STATES.FAILED)
    assert isinstance(task.exception(WATCHDOG), duetime.JobReturnedFalse)


@pytest.mark.parametrize("good", [1, 2, 4])
def test_the_attempt_that_succeeds_is_the_last(manual: Manual, good: int) -> None:
    """airflow#47971: the attempts are counted, not the failures that are left."""
    task = manual.scheduler.after(1, failing_before(good), retry=retry.FixedDelay(3, 1))
    manual.advance(HOUR)
    assert (task.runs, task.failures, task.state) == (good, good - 1, STATES.DONE)


@pytest.mark.parametrize("failures", [1, 2, 10, 63, 64, 65, 1023, 1024, 1025, 10**6])
@pytest.mark.parametrize("factor", [1.0, 2.0, 10.0])
def test_a_backoff_is_right_capped_and_finite(failures: int, factor: float) -> None:
    """airflow#47971: 2 ** n overflowed after some dozens of attempts."""

    def seconds(policy: Any) -> float:
        delay = policy.delay_after_failure(failures)
        return delay.total_seconds() if isinstance(delay, timedelta) else delay

    capped = seconds(retry.ExponentialBackoff(10**7, 1.5, factor=factor, cap=60))
    expected = min(60.0, 1.5 * factor ** min(failures - 1, 300))
    assert capped == pytest.approx(expected)
    free = seconds(retry.ExponentialBackoff(10**7, 1.5, factor=factor))
    assert math.isfinite(free) and free >= min(1.5, capped)
    for _ in range(20):
        wild = seconds(retry.ExponentialBackoff(10**7, 1.5, factor=factor, cap=60, jitter=0.5))
        assert math.isfinite(wild) and wild >= 0


def test_no_number_of_failures_is_too_large_for_a_policy() -> None:
    """airflow#47971: giving up is an answer, at any number."""
    for policy in (retry.Never(), retry.FixedDelay(3, 1), retry.ExponentialBackoff(3, 1)):
        assert policy.delay_after_failure(10**6) is None


@pytest.mark.parametrize("answer", [KeyError("mine"), math.nan, -1.0, "soon", 1e300], ids=repr)
def test_a_policy_that_is_broken_fails_the_task(manual: Manual, answer: Any) -> None:
    """airflow#47971: a policy of somebody else that raises, or answers nonsense."""

    class Policy:
        def delay_after_failure(self, failures: int) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

    task = manual.scheduler.after(1, failing(), retry=Policy())
    manual.advance(HOUR)
    assert (task.runs, task.state) == (1, STATES.FAILED)
    if isinstance(answer, Exception):
        assert task.exception(WATCHDOG) is answer
    assert manual.scheduler.after(0, noop).wait(WATCHDOG)


def test_shutdown_while_a_retry_waits_cancels_it(manual: Manual) -> None:
    """more-executors#144: the retry was submitted to a pool that was gone."""
    task = manual.scheduler.after(1, failing(), retry=retry.FixedDelay(5, 10))
    manual.advance(1)
    within(manual.scheduler.shutdown)
    assert (task.runs, task.state) == (1, STATES.CANCELLED)
    with pytest.raises(CancelledError):
        task.result(WATCHDOG)


def test_shutdown_while_a_retry_waits_is_silent() -> None:
    """more-executors#144: and a traceback came out of a thread."""
    code = """
        import threading, duetime
        failed = threading.Event()
        scheduler = duetime.Scheduler(2)
        scheduler.add_listener(lambda e: failed.set() if e.kind.name == "FAILED" else None)
        task = scheduler.after(0, int, "no number", retry=duetime.retry.FixedDelay(5, 3600))
        assert failed.wait(30)
        scheduler.shutdown()
        print(task.state.name)
    """
    assert clean(python(code)) == ["CANCELLED"]


@pytest.mark.parametrize("pending", ["once", "series", "retry"])
def test_dropping_the_scheduler_lets_the_waiters_go(pending: str) -> None:
    """more-executors#114: who waited for a task of a dropped executor waited for ever."""
    scheduler = duetime.Scheduler(2)
    failed = threading.Event()
    if pending == "once":
        task = scheduler.after(HOUR, noop)
    elif pending == "series":
        task = scheduler.every(HOUR, noop)
    else:
        scheduler.add_listener(lambda e: failed.set() if e.kind.name == "FAILED" else None)
        task = scheduler.after(0, failing(), retry=retry.FixedDelay(5, HOUR))
        assert failed.wait(WATCHDOG)
    answers: list[Any] = []

    def waits() -> None:
        try:
            answers.append(task.result(timeout=WATCHDOG))
        except BaseException as error:
            answers.append(type(error))

    waiter = threading.Thread(target=waits, daemon=True)
    waiter.start()
    waiter.join(0.02)
    del scheduler
    gc.collect()
    waiter.join(WATCHDOG)
    assert (answers, task.state) == ([CancelledError], STATES.CANCELLED)


@pytest.mark.parametrize(
    ("delay", "starts"),
    [
        (3, [10, 13, 20, 30]),
        (9.999999999, [10, 19.999999999, 20, 30]),
        (10, [10, 20, 30]),
        (15, [10, 20, 30]),
        (HOUR, [10, 20, 30]),
    ],
)
@pytest.mark.parametrize("rule", ["skip", "catch up"])
def test_a_retry_stays_within_its_slot(
    manual: Manual, rule: str, delay: float, starts: list[float]
) -> None:
    """huey#260: a periodic task that retried ran twice in one slot, or lost its grid."""
    recurrence = FixedRate(10, getattr(duetime.Missed, rule.upper().replace(" ", "_")))
    task = manual.scheduler.every(recurrence, failing_before(2), retry=retry.FixedDelay(3, delay))
    manual.advance(30)
    assert manual.log.starts() == starts
    assert [event.next_due for event in manual.log.of("FAILED")] == [starts[1]]
    assert (task.failures, manual.scheduler.next_due()) == (1, 40)


def test_each_slot_has_its_own_retries(manual: Manual) -> None:
    """huey#260: the retries used up in one slot were missing in the next."""
    manual.scheduler.every(10, failing(), retry=retry.FixedDelay(2, 3))
    manual.advance(39)
    assert manual.log.starts() == [10, 13, 16, 20, 23, 26, 30, 33, 36]
    assert [event.attempt for event in manual.log.of("STARTED")] == [1, 2, 3] * 3


def test_a_retry_of_a_delay_series_moves_its_next_run(manual: Manual) -> None:
    """huey#260: a series without a grid counts from the end of the last attempt."""
    manual.scheduler.every(FixedDelay(10), failing_before(2), retry=retry.FixedDelay(3, 4))
    manual.advance(34)
    assert manual.log.starts() == [10, 14, 24, 34]
