"""Who wakes whom: no wake-up lost, none too many."""

from __future__ import annotations

import itertools
import random
import threading
import time
from typing import Any

import pytest
from support import HOUR, WATCHDOG, CellClock, noop, scaled, switches, threads, together, within

from duetime import FixedRate, Missed, Task


@pytest.mark.parametrize("order", list(itertools.permutations([1, 2, 3, 10])), ids=str)
def test_an_earlier_task_wakes_the_sleeper(manual: Any, order: tuple[int, ...]) -> None:
    """tokio#1700: a delay inserted before the one waited for was found only after it."""
    for delay in order:
        manual.scheduler.after(delay, noop, id=delay)
        manual.scheduler.wait_idle(WATCHDOG)
    manual.advance(10)
    assert [event.task_id for event in manual.log.of("STARTED")] == [1, 2, 3, 10]
    assert manual.log.starts() == [1, 2, 3, 10]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_an_earlier_task_wakes_the_sleeper_of_a_custom_clock(make: Any, workers: int) -> None:
    """tokio#1700: the same where only `wake` tells the scheduler that its clock has moved."""
    for order in itertools.permutations([1, 2, 3, 10]):
        clock, ran = CellClock(), []
        scheduler = make(workers=workers, clock=clock)
        tasks = {hours: scheduler.after(hours * HOUR, ran.append, hours) for hours in order}
        for hours in sorted(tasks):
            clock.moved(scheduler, hours * HOUR)
            assert tasks[hours].wait(WATCHDOG)
        assert ran == [1, 2, 3, 10]


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("listen", [False, True])
def test_a_wake_while_a_worker_goes_to_sleep_is_not_lost(
    make: Any, workers: int, listen: bool
) -> None:
    """cpython#64325: the worker had read the old time, and was not yet asleep to be woken."""
    clock, ran = CellClock(), threading.Semaphore(0)
    scheduler = make(workers=workers, clock=clock)
    if listen:
        scheduler.add_listener(noop)  # which makes a worker's way to its sleep longer
    for _ in range(2):
        scheduler.every(FixedRate(HOUR, Missed.CATCH_UP), ran.release)
    for slot in range(1, scaled(50_000, 500)):
        clock.moved(scheduler, slot * HOUR)
        for _ in range(2):
            assert ran.acquire(timeout=WATCHDOG), f"the wake of slot {slot} was lost"


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("listen", [False, True])
@pytest.mark.parametrize("move", ["advance", "jump"])
def test_a_move_while_a_worker_goes_to_sleep_is_not_lost(
    make_manual: Any, workers: int, listen: bool, move: str
) -> None:
    """cpython#64325: the same for a manual clock, whose move would then never return."""
    bench = make_manual(workers=workers)
    if not listen:
        bench.scheduler.remove_listener(bench.log.append)
    rounds, moves = scaled(500_000, 5000), getattr(bench.clock, move)

    def story() -> None:
        for _ in range(rounds):
            for _ in range(3):
                bench.scheduler.after(1, noop)
            moves(1)

    within(story, seconds=WATCHDOG + rounds / 1000)
    assert bench.scheduler.stats().done == 3 * rounds


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("adders", [1, 3])
def test_a_new_earliest_task_is_not_overslept(make: Any, workers: int, adders: int) -> None:
    """cpython#64325: a scheduler asleep for an hour did not see what other threads added."""
    scheduler = make(workers=workers)
    far = scheduler.after(HOUR, noop)

    def adds(seed: int) -> bool:
        pause = random.Random(seed).random
        for _ in range(scaled(10_000, 100) // adders):
            if not scheduler.after(0.0005, noop).wait(WATCHDOG):
                return False
            time.sleep(pause() * 0.001)
        return True

    assert together(*[lambda seed=seed: adds(seed) for seed in range(adders)]) == [True] * adders
    assert not far.done()


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("late", [0, 1e-9, 1e-3, HOUR])
def test_a_due_already_past_when_added_starts_at_once(make: Any, workers: int, late: float) -> None:
    """restate#3057: between the look at the head and the wait, a past due was added."""
    scheduler = make(workers=workers)

    def adds() -> bool:
        return all(
            scheduler.schedule(Task(due=scheduler.now() - late, job=noop)).wait(WATCHDOG)
            for _ in range(scaled(10_000, 100))
        )

    assert together(adds, adds) == [True, True]


def test_bursts_in_the_instant_the_last_one_ends_are_all_served(make: Any) -> None:
    """ClickHouse#100177: a burst added while workers went to sleep lost a wake-up."""
    scheduler, rounds, sizes = make(workers=4), scaled(100_000, 1000), random.Random(7)
    lock, ended, beat = threading.Lock(), threading.Event(), threading.Semaphore(0)
    left, done = [0], [0]

    def burst() -> None:
        left[0] = size = sizes.randint(1, 8)
        for _ in range(size):
            scheduler.after(0, job)

    def job() -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            done[0] += 1
            beat.release()
            if done[0] < rounds:
                burst()
            else:
                ended.set()

    with lock:
        burst()
    for round_ in range(rounds):
        assert beat.acquire(timeout=WATCHDOG), f"round {round_} does not end"
    assert ended.wait(WATCHDOG) and done == [rounds]


def test_one_task_at_a_time_wakes_one_of_many_sleepers(make: Any) -> None:
    """rayon#394, threadly#184: each task woke the whole pool, and 63 slept again."""
    before = threads()
    scheduler = make(workers=64)
    ready = threading.Barrier(65)
    for _ in range(64):
        scheduler.after(0, ready.wait, WATCHDOG)
    ready.wait(WATCHDOG)
    assert scheduler.wait_idle(WATCHDOG)
    workers = threads() - before
    assert len(workers) >= 64
    slept = switches(workers)
    for _ in range(1000):
        assert scheduler.after(0, noop).wait(WATCHDOG)
    assert switches(workers) - slept <= 1000 * 10


def test_one_timed_task_at_a_time_wakes_few_of_many_sleepers(make: Any) -> None:
    """threadly#184: the same for tasks that fall due, which all sleepers may be waiting for."""
    before = threads()
    scheduler = make(workers=64)
    ready = threading.Barrier(65)
    for _ in range(64):
        scheduler.after(0, ready.wait, WATCHDOG)
    ready.wait(WATCHDOG)
    assert scheduler.wait_idle(WATCHDOG)
    workers, rounds = threads() - before, scaled(10_000, 200)
    slept = switches(workers)
    for _ in range(rounds):
        assert scheduler.after(0.0005, noop).wait(WATCHDOG)
    assert switches(workers) - slept <= rounds * 10


def test_an_idle_pool_with_many_waiting_tasks_sleeps(make: Any) -> None:
    """rayon#394: a periodic look at the queue costs even when nothing is due."""
    before = threads()
    scheduler = make(workers=8)
    scheduler.schedule_all(
        [Task(due=scheduler.now() + HOUR + number, job=noop) for number in range(10_000)]
    )
    assert scheduler.after(0, noop).wait(WATCHDOG)
    assert scheduler.wait_idle(WATCHDOG)
    workers = threads() - before
    slept = switches(workers)
    time.sleep(0.3)  # a window to count in, not a wait for anything
    assert switches(workers) - slept <= 20
