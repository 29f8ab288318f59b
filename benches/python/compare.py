"""duetime beside what the standard library has: lateness, cost, memory, cancel, idle wake-ups.

    python benches/python/compare.py [rounds]

Every figure is the median of several rounds (5 by default). Each measurement runs in a process of
its own, and the rounds are interleaved, so that a slow minute of the machine hits all alike. The
result is the table of README.md.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import json
import os
import platform
import random
import resource
import sched
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duetime

Job = Callable[[], object]
now = time.monotonic


class Peer:
    """One scheduler, by the least that the measurements need of it."""

    most = 100_000  # tasks that it can hold

    def schedule(self, due: float, job: Job) -> Any:
        """Schedules one job on `time.monotonic`; gives what `cancel` takes."""
        raise NotImplementedError

    def schedule_all(self, dues: list[float], job: Job) -> list[Any]:
        return [self.schedule(due, job) for due in dues]

    def cancel(self, handle: Any) -> None:
        handle.cancel()

    def run(self, seconds: float) -> None:
        """Lets it work for a while; what is due by then has been run."""
        time.sleep(max(seconds, 0))

    def close(self) -> None:
        """Ends it."""


class Duetime(Peer):
    def __init__(self) -> None:
        self.task = duetime.Task
        self.scheduler = duetime.Scheduler(4, clock=None)
        # The same clock with another zero.
        self.zero = now() - self.scheduler.now()

    def schedule(self, due: float, job: Job) -> Any:
        return self.scheduler.at(due - self.zero, job)

    def close(self) -> None:
        self.scheduler.shutdown()


class DuetimeBatch(Duetime):
    def schedule_all(self, dues: list[float], job: Job) -> list[Any]:
        task, zero = self.task, self.zero
        return self.scheduler.schedule_all([task(due=due - zero, job=job) for due in dues])


class Asyncio(Peer):
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()

    def schedule(self, due: float, job: Job) -> Any:
        return self.loop.call_at(due, job)  # the loop's clock is time.monotonic

    def run(self, seconds: float) -> None:
        self.loop.call_later(seconds, self.loop.stop)
        self.loop.run_forever()

    def close(self) -> None:
        self.loop.close()


class Sched(Peer):
    def __init__(self) -> None:
        self.scheduler = sched.scheduler(now, time.sleep)

    def schedule(self, due: float, job: Job) -> Any:
        return self.scheduler.enterabs(due, 0, job)

    def cancel(self, handle: Any) -> None:
        self.scheduler.cancel(handle)

    def run(self, seconds: float) -> None:
        end = now() + seconds
        self.scheduler.enterabs(end, 0, lambda: None)
        while (wait := self.scheduler.run(blocking=False)) is not None and now() < end:
            time.sleep(wait)


class Timer(Peer):
    most = 1_000  # each is a thread

    def schedule(self, due: float, job: Job) -> Any:
        timer = threading.Timer(due - now(), job)
        timer.daemon = True
        timer.start()
        return timer


class Pool(Peer):
    """Knows no due times: its jobs run at once. Here for what a job costs on a pool."""

    def __init__(self) -> None:
        self.pool = concurrent.futures.ThreadPoolExecutor(4)

    def schedule(self, due: float, job: Job) -> Any:
        return self.pool.submit(job)

    def close(self) -> None:
        self.pool.shutdown()


PEERS: dict[str, type[Peer]] = {
    "duetime": DuetimeBatch,
    "duetime, one by one": Duetime,
    "asyncio": Asyncio,
    "sched": Sched,
    "threading.Timer": Timer,
    "ThreadPoolExecutor": Pool,
}
TIMED = ["duetime", "asyncio", "sched", "threading.Timer"]


def late(peer: Peer) -> list[float]:
    """1,000 jobs, 2 ms apart: how late they start, p50 and p99, in µs."""
    dues = [now() + 0.5 + n * 0.002 for n in range(1_000)]
    found: list[float] = []
    for due in dues:
        peer.schedule(due, functools.partial(lambda due: found.append(now() - due), due))
    peer.run(dues[-1] - now() + 0.2)
    found.sort()
    return [found[500] * 1e6, found[990] * 1e6]


def blocked(peer: Peer) -> list[float]:
    """A job blocks for 100 ms; how late another starts that is due 10 ms into it, in µs."""
    start = now() + 0.1
    times: list[float] = []
    peer.schedule(start, lambda: time.sleep(0.1))
    peer.schedule(start + 0.01, lambda: times.append(now()))
    peer.run(0.4)
    return [(times[0] - start - 0.01) * 1e6]


def cost(peer: Peer, spread: float) -> list[float]:
    """Processor time for one task of many, from the call to the end of an empty job, in µs."""
    count = peer.most
    before = time.process_time()
    start = now() + 0.5
    peer.schedule_all([start + n * spread / count for n in range(count)], int)
    peer.run(start + spread + 0.2 - now())
    peer.close()
    return [(time.process_time() - before) / count * 1e6]


def burst(peer: Peer) -> list[float]:
    """The cost where all are due in one instant."""
    return cost(peer, 0)


def stream(peer: Peer) -> list[float]:
    """The cost where they are due one after the other, over two seconds."""
    return cost(peer, 2)


def cancel(peer: Peer) -> list[float]:
    """One cancel among 10,000 waiting tasks, in µs of wall time."""
    count = min(peer.most, 10_000)
    handles = peer.schedule_all([now() + 3600 + n for n in range(count)], int)
    random.Random(1).shuffle(handles)
    before = now()
    for handle in handles[:1_000]:
        peer.cancel(handle)
    return [(now() - before) / 1_000 * 1e6]


def resident() -> int:
    """Memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(peer: Peer) -> list[float]:
    """Bytes for one waiting task of many, its Task, handle or thread included."""
    count = peer.most
    dues = [now() + 3600 + n for n in range(count)]
    before = resident()
    kept = peer.schedule_all(dues, int)
    return [(resident() - before) / len(kept)]


def idle(peer: Peer) -> list[float]:
    """With 10,000 tasks waiting, 1,000 for threads: wake-ups in 2 s, those of the caller less."""
    count = min(peer.most, 10_000)
    kept = peer.schedule_all([now() + 3600 + n for n in range(count)], int)
    peer.run(0.2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    peer.run(2)
    found = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before - 1
    del kept
    return [found]


MEASURES: dict[str, tuple[Callable[[Peer], list[float]], list[str], str]] = {
    "late": (late, TIMED, "late, p50 / p99 (µs)"),
    "blocked": (blocked, TIMED, "late beside a job that blocks (µs)"),
    "burst": (burst, list(PEERS), "a task of a burst (µs of CPU)"),
    "stream": (stream, TIMED, "a task of a stream (µs of CPU)"),
    "cancel": (cancel, TIMED, "a cancel (µs)"),
    "memory": (memory, TIMED, "a waiting task (bytes)"),
    "idle": (idle, TIMED, "idle wake-ups in 2 s"),
}


def measure(name: str, peer: str) -> list[float]:
    """Takes one measurement in a process of its own."""
    command = [sys.executable, __file__, "--one", name, peer]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    found: list[float] = json.loads(done.stdout)
    return found


def table(rounds: int) -> str:
    """Measures all, and shows the medians as Markdown."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    for _ in range(rounds):
        for name, (_function, peers, _head) in MEASURES.items():
            for peer in peers:
                found.setdefault((name, peer), []).append(measure(name, peer))

    def cell(name: str, peer: str) -> str:
        if (name, peer) not in found:
            return ""
        medians = [statistics.median(column) for column in zip(*found[name, peer], strict=True)]
        return " / ".join(
            f"{max(median, 0):,.{1 if median < 100 and median % 1 else 0}f}" for median in medians
        )

    heads = ["", *(head for _function, _peers, head in MEASURES.values())]
    rows = [heads, ["---", *["--:"] * len(MEASURES)]]
    rows += [[peer, *(cell(name, peer) for name in MEASURES)] for peer in PEERS]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Takes one measurement, or all of them."""
    if sys.argv[1:2] == ["--one"]:
        peer = PEERS[sys.argv[3]]()
        sys.stdout.write(json.dumps(MEASURES[sys.argv[2]][0](peer)))
        sys.stdout.flush()
        os._exit(0)  # nobody waits for timers that are due in an hour
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    machine = f"{platform.system()}, {os.cpu_count()} cores, CPython {platform.python_version()}"
    sys.stdout.write(f"{machine}; medians of {rounds} rounds\n\n{table(rounds)}\n")


if __name__ == "__main__":
    main()
