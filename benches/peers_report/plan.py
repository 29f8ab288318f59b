"""What is measured: one case for each scheduler, measure, size and number of workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

PY, RUST, JAVA = "Python", "Rust", "Java"
OURS = "duetime"
BATCH = "duetime, schedule_all"
STP = "scheduled-thread-pool"
QUEUE = "DelayQueue"
EXECUTOR = "ThreadPoolExecutor"
TIMER = "threading.Timer"
STPE = "ScheduledThreadPoolExecutor"
APS = "APScheduler"

WORKERS = [1, 2, 4, 8]
MANY = 100_000
TEN_MILLION = 10_000_000


@dataclass(frozen=True)
class Case:
    """One measurement, in a process of its own."""

    measure: str
    language: str
    peer: str
    size: int
    workers: int = 4
    extra: str = ""
    """`busy` for both cores busy, `10us` for jobs of that length, seconds for `idle`."""
    rounds: int = 1_000
    """How many rounds are enough; less where one takes long."""

    @property
    def key(self) -> str:
        """Names it in the results."""
        parts = (self.measure, self.language, self.peer, self.size, self.workers, self.extra)
        return "/".join(map(str, parts))


def held(quick: bool) -> Iterator[Case]:
    """Cost and memory beside many waiting tasks."""
    for size in (MANY,) if quick else (MANY, 10 * MANY):
        for peer in (OURS, "asyncio", "sched"):
            yield Case("held", PY, peer, size)
        for peer in (OURS, STP, QUEUE):
            yield Case("held", RUST, peer, size)
    for peer in ("rust-py-scheduler", "rscheduler"):
        yield Case("held", PY, peer, MANY)
    yield Case("held", PY, "schedule", MANY, rounds=1)
    yield Case("held", PY, APS, MANY, rounds=1)
    yield Case("held", JAVA, STPE, MANY)
    if not quick:
        yield Case("held", PY, OURS, TEN_MILLION, rounds=1)


def life(quick: bool, large: bool) -> Iterator[Case]:
    """The cost of a task by the number of tasks."""
    sizes = [1_000, 10_000, MANY] + [10 * MANY] * (not quick) + [TEN_MILLION] * large
    for size in sizes:
        rounds = 1 if size == TEN_MILLION else 1_000
        peers = [(PY, OURS), (PY, "asyncio"), (RUST, OURS), (RUST, STP), (RUST, QUEUE)]
        for language, peer in [*peers, (JAVA, STPE)]:
            yield Case("life", language, peer, size, rounds=rounds)
    for size in sizes[:2]:
        yield Case("life", PY, "sched", size)


def burst(quick: bool) -> Iterator[Case]:
    """Jobs a second, by the number of workers."""
    for workers in WORKERS:
        for language in (PY, RUST):
            for peer in (OURS, BATCH):
                yield Case("burst", language, peer, MANY, workers)
        yield Case("burst", RUST, STP, MANY, workers)
        yield Case("burst", JAVA, STPE, MANY, workers)
        for peer in (OURS, BATCH):
            yield Case("burst", PY, peer, MANY // 5, workers, "10us")
    for workers in [4] if quick else WORKERS:
        yield Case("burst", PY, EXECUTOR, MANY, workers)
        yield Case("burst", PY, EXECUTOR, MANY // 5, workers, "10us")
    yield Case("burst", RUST, QUEUE, MANY, 1)
    yield Case("burst", PY, "asyncio", MANY, 1)
    yield Case("burst", PY, "asyncio", MANY // 5, 1, "10us")
    yield Case("burst", PY, "sched", MANY // 10, 1)
    yield Case("burst", PY, APS, MANY // 10, 4)
    yield Case("burst", PY, TIMER, MANY // 100, 1)


def beat() -> Iterator[Case]:
    """Jobs a millisecond apart."""
    for busy in ("", "busy"):
        for language, peer in [(PY, OURS), (RUST, OURS), (RUST, STP), (JAVA, STPE)]:
            for workers in (4,) if busy else (4, 16):
                yield Case("beat", language, peer, 1_000, workers, busy)
        for peer in ("asyncio", "sched", TIMER, APS):
            yield Case("beat", PY, peer, 1_000, 4, busy)
        yield Case("beat", RUST, QUEUE, 1_000, 4, busy)


def idle(quick: bool) -> Iterator[Case]:
    """Wake-ups while all wait. These disturb nobody, so they run at the same time."""
    seconds = "3" if quick else "10"
    for peer in (OURS, "asyncio", "sched", "schedule", APS, "rust-py-scheduler"):
        yield Case("idle", PY, peer, MANY, 4, seconds)
    for peer in (OURS, STP, QUEUE):
        yield Case("idle", RUST, peer, MANY, 4, seconds)
    yield Case("idle", JAVA, STPE, MANY, 4, seconds)


def plan(quick: bool, large: bool) -> list[Case]:
    """Gives all cases but the idle ones; those of one measure are neighbours."""
    cases = [*beat(), *burst(quick), *held(quick), *life(quick, large)]
    return [*cases, Case("pause", RUST, OURS, MANY * 10 if quick else TEN_MILLION)]
