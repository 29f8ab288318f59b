"""Lateness told apart: what runs waited for a worker, and what for the GIL."""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from helpers import WATCHDOG, Gate
from worlds import World

from duetime import EventKind, Lateness, Percentiles, Scheduler, retry

has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()


def test_nothing_ran(world: World) -> None:
    world.scheduler.after(3600, int)
    assert world.scheduler.stats().lateness == Lateness() == Lateness(Percentiles(), Percentiles())


def test_on_time_is_not_late(manual: World) -> None:
    manual.scheduler.every(10, int)
    manual.advance(100)
    on_time = Percentiles(count=10)
    assert manual.scheduler.stats().lateness == Lateness(on_time, on_time)


def test_a_jump_is_the_queues(manual: World) -> None:
    manual.scheduler.after(5, int)
    manual.leap(15)
    lateness = manual.scheduler.stats().lateness
    assert lateness.queue == Percentiles(count=1, p50=10.0, p90=10.0, p99=10.0, max=10.0)
    assert lateness.gil == Percentiles(count=1)


def test_a_retry_counts_by_its_own_due(manual: World) -> None:
    manual.scheduler.after(0, lambda: False, retry=retry.FixedDelay(2, 60))
    manual.run_until_idle()
    manual.advance(60)
    manual.leap(90)
    queue = manual.scheduler.stats().lateness.queue
    assert (queue.count, queue.p50, queue.max) == (3, 0.0, 30.0)


def test_the_record_is_plain(manual: World) -> None:
    manual.scheduler.after(5, int)
    manual.leap(7)
    lateness = manual.scheduler.stats().lateness
    assert pickle.loads(pickle.dumps(lateness)) == lateness
    assert repr(lateness.queue) == "Percentiles(count=1, p50=2.0, p90=2.0, p99=2.0, max=2.0)"
    assert hash(lateness) == hash(Lateness(lateness.queue, lateness.gil))


@pytest.fixture
def nobody_asks_for_the_gil() -> Iterator[None]:
    """Python code keeps the GIL until it waits for something."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


def hog_the_gil(scheduler: Scheduler, seconds: float) -> tuple[Lateness, float]:
    """A task falls due while other Python code runs; gives what is told of its run."""
    seen: list[float] = []
    scheduler.add_listener(lambda event: seen.append(event.lateness), kinds=[EventKind.STARTED])
    task = scheduler.after(seconds / 10, int)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    assert task.wait(WATCHDOG)
    return scheduler.stats().lateness, seen[0]


@pytest.mark.skipif(not has_gil, reason="there is no GIL")
@pytest.mark.usefixtures("nobody_asks_for_the_gil")
def test_who_holds_the_gil_makes_the_gils_part_grow(
    make_scheduler: Callable[..., Scheduler],
) -> None:
    # A worker that the system wakes very late has not stood ready. It does not do so every time.
    for _ in range(20):
        lateness, whole = hog_the_gil(make_scheduler(2), 0.05)
        assert lateness.queue.max + lateness.gil.max == pytest.approx(whole)
        if lateness.gil.max > 2 * lateness.queue.max:
            return
    pytest.fail(f"it is the GIL that was held: {lateness}")


def test_a_busy_pool_makes_the_queues_part_grow(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler, busy = make_scheduler(1), Gate()
    scheduler.after(0, busy)
    busy.entered()
    before = scheduler.stats().lateness
    task = scheduler.after(0, int)
    scheduled = time.monotonic()
    assert not task.wait(0.02)
    waited = time.monotonic() - scheduled
    busy.open()
    assert task.wait(WATCHDOG)
    after = scheduler.stats().lateness
    assert (before.queue.count, after.queue.count) == (1, 2)
    assert after.queue.max >= waited
    assert after.gil.max == before.gil.max, "its job ran, and let go of the GIL"
