"""What many schedulers, and many runs, leave behind: nothing."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

from duetime import ManualClock, Scheduler, current_run

GROWTH_MB = 4.0


def memory() -> float:
    """The megabytes in use."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def held() -> tuple[int, int]:
    """Threads, and open descriptors."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def stays_flat(part: Callable[[], object], parts: int) -> str:
    """The first fifth of the parts warms up; the others add no thread, descriptor or memory."""
    before = held()
    sizes = []
    for _ in range(parts):
        part()
        sizes.append(memory())
    # A thread that has ended may be a moment longer on its way out of the kernel.
    end = time.monotonic() + 10
    while held() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert held() <= before, f"threads, descriptors {before} -> {held()}"
    early, late = sizes[parts // 5], sizes[-1]
    assert late - early < GROWTH_MB, f"memory, in MB: {' '.join(f'{size:.1f}' for size in sizes)}"
    return f"threads, descriptors {before}; memory {early:.1f} -> {late:.1f} MB"


def use(number: int) -> None:
    """Makes a scheduler, and drops it in one of several ways."""
    scheduler = Scheduler(2)
    scheduler.add_listener(lambda _event: None)
    how = number % 5
    if how == 1:
        scheduler.after(3600, int)
    elif how == 2:
        scheduler.every(0.001, int)
    elif how == 3:
        scheduler.after(0, int).result()
        scheduler.shutdown()
    elif how == 4:

        def job() -> None:
            scheduler.stats()  # a cycle through the job

        scheduler.every(0.001, job)


def schedulers(quick: bool) -> str:
    """Schedulers made and dropped: threads, descriptors, memory flat."""
    count = 500 if quick else 10_000

    def part() -> None:
        for number in range(count // 20):
            use(number)
        gc.collect()

    use(0)  # the first wait of a process makes what its main thread sleeps on
    return f"{count} made and dropped: {stays_flat(part, 20)}"


def fails_by_half() -> None:
    if current_run().number % 2:
        raise ValueError


def one_series(count: int) -> str:
    clock = ManualClock()
    with Scheduler(1, clock=clock) as scheduler:
        task = scheduler.every(1, fails_by_half)
        clock.advance(1)
        figures = stays_flat(lambda: clock.advance(count // 20), 20)
        assert (task.runs - 1, task.failures - 1) == (count, count // 2), f"{task!r}"
    return f"{count} runs of a series, half failing: {figures}"


def many_one_offs(count: int) -> str:
    with Scheduler(4) as scheduler:

        def part() -> None:
            for _ in range(count // 20_000):
                for number in range(1000):
                    scheduler.after(0, bytes, 1000 + number)
                assert scheduler.wait_idle(60)

        part()
        figures = stays_flat(part, 20)
        assert scheduler.stats().done == count * 21 // 20, f"{scheduler.stats()}"
    return f"{count} one-offs: {figures}"


def runs(quick: bool) -> str:
    """Very many runs, of one task and of one each: memory flat."""
    count = 100_000 if quick else 1_000_000
    return f"{one_series(count)}; {many_one_offs(count)}"
