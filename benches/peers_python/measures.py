"""The measurements. Each is told a size and a number of workers, and gives named numbers."""

from __future__ import annotations

import functools
import random
import statistics
import time
from array import array
from collections.abc import Callable
from typing import Any

from peers_python.base import Job, Peer
from peers_python.system import now, resident, wakeups

Make = Callable[[int], Peer]
Found = dict[str, Any]

HOUR = 3600
SAMPLE, PART = 10_000, 1_000
BATCHES = 3
"""How often a process runs its batch of jobs; the median counts, the first starts the threads."""
PERIOD = 0.001


def noop() -> None:
    """Does nothing."""


def spin(rounds: int) -> None:
    """Works without a call."""
    for _ in range(rounds):
        pass


def delays(count: int, seed: int) -> array[float]:
    """Gives delays between one and two hours, in no order; the array is 8 bytes for each."""
    some = random.Random(seed).random
    return array("d", (HOUR * (1 + some()) for _ in range(count)))


def timed(call: Callable[[], object]) -> float:
    """Gives how long a call takes, in seconds."""
    start = now()
    call()
    return now() - start


def typical(call: Callable[[Any], object], items: Any) -> float:
    """Gives what an item costs in the median part, in µs: the machine stops now and then."""
    parts = [items[n : n + PART] for n in range(0, len(items), PART)]
    return statistics.median(timed(functools.partial(call, p)) / len(p) for p in parts) * 1e6


def held(make: Make, size: int, workers: int) -> Found:
    """Tells what a waiting task of `size` takes in memory, and what calls cost beside them.

    The job is shared, there are no arguments, and nobody holds the tasks, but those to cancel.
    """
    peer = make(workers)
    first, more, kept = delays(size, 1), delays(SAMPLE, 2), delays(SAMPLE, 3)
    peer.schedule(more[:100], noop)  # threads have started
    before = resident()
    fill = timed(lambda: peer.schedule(first, noop))
    grown = resident() - before
    schedule = typical(lambda part: peer.schedule(part, noop), more)
    handles = peer.schedule_kept(kept, noop)
    random.Random(4).shuffle(handles)
    handles = handles[: peer.most_cancels]
    cancel = typical(peer.cancel, handles)
    return {
        "bytes": grown / size,
        "total": grown,
        "fill_us": fill / size * 1e6,
        "schedule_us": schedule,
        "cancel_us": cancel,
    }


def life(make: Make, size: int, workers: int) -> Found:
    """Tells what a task of `size` costs to schedule, to cancel with all others, and to run so."""
    peer = make(workers)
    peer.schedule([HOUR], noop)
    times = delays(size, 1)
    start = now()
    handles = peer.schedule_kept(times, noop)
    schedule = (now() - start) / size
    random.Random(2).shuffle(handles)
    handles = handles[: peer.most_cancels]
    cancel = timed(functools.partial(peer.cancel, handles)) / len(handles)
    handles = []
    found = {"schedule_us": schedule * 1e6, "cancel_us": cancel * 1e6}
    peer = make(workers)
    due = now() + size * schedule * 1.5 + 0.1
    peer.schedule_at(due, size, noop)
    if now() < due:
        peer.finish(due)
        found["run_us"] = (now() - due) / size * 1e6
    return found


def burst(make: Make, size: int, workers: int, rounds: int = 0) -> Found:
    """Tells how many jobs a second are run that are due at once, scheduling included."""
    peer = make(workers)
    job: Job = functools.partial(spin, rounds) if rounds else noop
    times = [timed(lambda: peer.run_now(size, job)) for _ in range(BATCHES)]
    return {"per_second": size / statistics.median(times)}


def beat(make: Make, size: int, workers: int) -> Found:
    """Tells of `size` jobs, a millisecond apart, how late each starts, and what it costs."""
    peer = make(workers)
    start = now() + 0.3 + size * 1e-4
    late: list[float] = []

    def job(due: float) -> None:
        late.append(now() - due)

    for n in range(size):
        due = start + n * PERIOD
        peer.call_at(due, functools.partial(job, due))
    peer.spend(start - 0.05)
    wakes, cpu = wakeups(), time.process_time()
    peer.spend(start + size * PERIOD + 0.05)
    # One sleep was the caller's own.
    wakes, cpu = wakeups() - wakes - 1, time.process_time() - cpu
    for _ in range(100):
        if len(late) == size:
            break
        peer.spend(now() + 0.1)  # the machine had other things to do
    else:
        raise RuntimeError(f"only {len(late)} of {size} jobs ran")
    late.sort()
    quantiles = [late[min(size * n // 1000, size - 1)] * 1e6 for n in range(0, 1001, 5)]
    return {
        "late_us": quantiles,
        "p50": late[size // 2] * 1e6,
        "p90": late[size * 90 // 100] * 1e6,
        "p99": late[size * 99 // 100] * 1e6,
        "wakes": wakes / size,
        "cpu_us": cpu / size * 1e6,
    }


def idle(make: Make, size: int, workers: int, seconds: int = 10) -> Found:
    """Tells how often the process wakes while all tasks wait."""
    peer = make(workers)
    peer.schedule(delays(size, 1), noop)
    peer.spend(now() + 0.5)
    wakes = wakeups()
    peer.spend(now() + seconds)
    return {"wakes": max(wakeups() - wakes - 1, 0)}


def calibrate() -> int:
    """Gives the rounds of `spin` that take 10 µs."""
    rounds = 10_000
    best = min(timed(lambda: spin(rounds)) for _ in range(200))
    return max(round(rounds * 10e-6 / best), 1)
