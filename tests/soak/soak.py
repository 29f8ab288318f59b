# ruff: noqa: BLE001, D102, D103, PLR2004, PTH123, PTH208, S311, T201
"""Everything at once, for minutes: random calls from several threads on real clocks.

    python tests/soak/soak.py [--minutes 10] [--seed 1]

Rounds of two seconds. In each, several threads schedule, cancel, replace, forget, submit, wait and
listen as chance has it, on one scheduler that lives through all rounds; meanwhile others are made
and shut down, garbage is collected, and the process forks. Then everything comes to rest, and all
must add up:

- each task ended once, and whoever waited was told once;
- for each task the events came in the order of its life;
- a task that depends on others ran after all of them, and not at all if one was not DONE;
- of a group no more ran at once than its limit, and nothing that was paused;
- no run started before its due time, and none while the same task ran;
- what outlived its timeout was FAILED with TaskTimeout or TaskStuck, and nothing else was;
- one worker starts what is due together in the order due, priority, adding;
- every call answered as the contract says, and within its timeout;
- memory, threads and descriptors are what they were.

The seed of a failure repeats the calls, but not the moments at which the threads meet.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import random
import resource
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass

from client import Client
from world import CLIENTS, ELSEWHERE, PATIENCE, MeantError, World, faults

from duetime import EventKind, ForkedError, Scheduler, Task, TaskState

ROUND = 2.0
# With the main one, the one that sends DUE, the two that watch over timeouts, and the event loop's.
THREADS = CLIENTS + ELSEWHERE + 5


def check_order(rng: random.Random) -> None:
    """With one worker: what is due together starts in the order due, priority, adding."""
    with Scheduler(1) as scheduler:
        gate = threading.Event()
        held = scheduler.after(0, gate.wait)
        while not held.running():
            time.sleep(0)
        began, now = [], scheduler.now()
        expected = []
        for n in range(rng.randint(1, 40)):
            due, priority = now + rng.randrange(-3, 8) / 1000, rng.randint(-2, 2)
            expected.append((due, -priority, n))
            scheduler.schedule(Task(due=due, priority=priority, job=began.append, args=(n,)))
        while scheduler.now() < now + 0.008:
            time.sleep(0.001)
        gate.set()
        faults.check(scheduler.wait_idle(PATIENCE), "the order's tasks never end")
        faults.check(began == [n for *_, n in sorted(expected)], f"order {began} of {expected}")


def fork(world: World) -> None:
    """The child's copy says so, a new scheduler works there, and the child ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork in a process with threads
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            try:
                world.scheduler.after(0, int)
            except ForkedError:
                with Scheduler(2) as scheduler:
                    code = 0 if scheduler.submit(pow, 2, 3).result(PATIENCE) == 8 else 2
        finally:
            os._exit(code)
    end = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            faults.check(status == 0, f"a forked child ended with status {status}")
            return
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    faults.add("a forked child hangs")


@dataclass
class Size:
    """What the process holds at rest."""

    memory: float
    threads: int
    descriptors: int | None

    @classmethod
    def now(cls) -> Size:
        try:
            with open("/proc/self/statm") as statm:
                memory = int(statm.read().split()[1]) * resource.getpagesize() / 1e6
            # A thread that was joined may be a moment longer on its way out of the kernel.
            end = time.monotonic() + 1
            threads = len(os.listdir("/proc/self/task"))
            while time.monotonic() < end and threads > THREADS:
                time.sleep(0.01)
                threads = len(os.listdir("/proc/self/task"))
            return cls(memory, threads, len(os.listdir("/proc/self/fd")))
        except FileNotFoundError:  # no /proc here
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            return cls(peak / 1e6, threading.active_count(), None)


def play_round(world: World, number: int) -> None:
    until = time.monotonic() + ROUND
    clients = [
        Client(world, random.Random(f"{world.seed} {number} {client}")) for client in range(CLIENTS)
    ]
    threads = [threading.Thread(target=client.play, args=(until,)) for client in clients]
    for thread in threads:
        thread.start()
    rng = random.Random(f"{world.seed} {number}")
    try:
        if rng.random() < 0.5:
            time.sleep(rng.random() * ROUND / 2)
            fork(world)
        gc.collect()
        check_order(rng)
    finally:
        for thread in threads:
            thread.join()
    for client in clients:
        world.calls.update(client.calls)
    rest(world)


def rest(world: World) -> None:
    """Ends what goes on, and looks whether all adds up."""
    scheduler = world.scheduler
    scheduler.resume()
    end = time.monotonic() + 0.2  # some may end by themselves
    while time.monotonic() < end and scheduler.stats().waiting:
        time.sleep(0.01)
    # A job may still schedule one more task while the others are cancelled.
    for _ in range(3):
        with world.lock:
            tasks = list(world.tasks)
        for task in tasks:
            task.cancel()
        for task in tasks:
            if not task.wait(PATIENCE):
                faults.add(f"it never ends: {task!r}, {task.info()}")
                return
    faults.check(scheduler.wait_idle(PATIENCE), "the scheduler does not come to rest")
    with world.lock:
        tasks = list(world.tasks)
        endings = [world.endings[id(task)] for task in tasks]
    faults.check(set(endings) <= {1}, f"callbacks a task: {Counter(endings)}")
    check_links(world)
    faults.check(not +world.inside, f"runs of groups at rest: {world.inside}")
    faults.check(not world.ledger.stories, f"unfinished: {world.ledger.stories}")
    while scheduler.stats().stuck and time.monotonic() < end + PATIENCE:
        time.sleep(0.001)  # those that were stuck return soon
    stats = scheduler.stats()
    faults.check(stats.waiting == stats.running == stats.stuck == 0, f"{stats} at rest")
    counts = world.ledger.counts
    ended = stats.done + stats.failed + stats.cancelled
    faults.check(counts[EventKind.SCHEDULED] == ended, f"{counts[EventKind.SCHEDULED]}, {stats}")
    faults.check(counts[EventKind.STARTED] == stats.runs, f"{counts}, {stats}")
    late = stats.lateness
    faults.check(late.queue.count == late.gil.count == stats.runs, f"{stats}")
    faults.check(counts[EventKind.FAILED] == stats.failures, f"{counts}, {stats}")
    runs = counts[EventKind.COMPLETED] + counts[EventKind.FAILED]
    faults.check(runs == stats.runs, f"{counts}, {stats}")
    with world.lock:
        world.tasks.clear()
        world.links.clear()
        world.timed.clear()
        world.endings.clear()


def check_links(world: World) -> None:
    """Who depends on others ran only if all of them were DONE."""
    for task, parents in world.links:
        lost = [parent for parent in parents if parent.state is not TaskState.DONE]
        if lost:
            faults.check(task.cancelled() and task.runs == 0, f"{task!r} in spite of {lost}")


def compare(sizes: list[Size]) -> None:
    """The first quarter of the rounds warms up: caches, the history, the heap's arena."""
    sizes = sizes[len(sizes) // 4 :]
    if len(sizes) < 8:
        return
    third = len(sizes) // 3
    early = sum(size.memory for size in sizes[:third]) / third
    late = sum(size.memory for size in sizes[-third:]) / third
    print(f"memory {early:.1f} MB -> {late:.1f} MB, at rest")
    all_sizes = " ".join(f"{size.memory:.0f}" for size in sizes)
    faults.check(late < early * 1.08 + 2, f"memory grows, in MB: {all_sizes}")
    for name in ("threads", "descriptors"):
        values = [getattr(size, name) for size in sizes]
        faults.check(len(set(values)) == 1, f"{name} at rest: {values}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if arguments.seed is None else arguments.seed
    print(f"seed {seed}, {arguments.minutes:g} minutes", flush=True)

    # A listener's errors are meant to happen; anything else is not.
    def unraisable(what: sys.UnraisableHookArgs) -> None:
        if what.exc_type is not MeantError:
            faults.add(f"unraisable: {what.exc_value!r} in {what.object!r}")

    sys.unraisablehook = unraisable
    world = World(seed)
    end = time.monotonic() + 60 * arguments.minutes
    sizes: list[Size] = []
    number = 0
    while time.monotonic() < end and not faults.found:
        # A hang ends the run with every thread's stack.
        faulthandler.dump_traceback_later(6 * PATIENCE, exit=True)
        try:
            play_round(world, number)
        except BaseException:
            faults.add(traceback.format_exc())
        gc.collect()
        sizes.append(Size.now())
        number += 1
    if not faults.found:
        compare(sizes)
        stats = world.scheduler.stats()
        faults.check(world.scheduler.shutdown(timeout=PATIENCE), "the last shutdown")
        ended = stats.done + stats.failed + stats.cancelled
        calls = sum(world.calls.values())
        stuck = world.ledger.counts[EventKind.STUCK]
        print(f"{number} rounds, {calls} calls, {ended} tasks, {stats.runs} runs, {stuck} stuck")
        print(stats)
    faulthandler.cancel_dump_traceback_later()
    if faults.found:
        print(f"FAILED with seed {seed} in round {number - 1}, {len(faults.found)} faults:")
        for fault in faults.found[:10]:
            print(f"- {fault}")
        return 1
    print(f"no fault; seed {seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
