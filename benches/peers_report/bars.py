"""The bars that the scheduler is held to. Each is a figure of ours beside a limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from peers_report.plan import (
    APS,
    BATCH,
    EXECUTOR,
    JAVA,
    MANY,
    OURS,
    PY,
    RUST,
    STP,
    STPE,
    TEN_MILLION,
    TIMER,
)
from peers_report.results import Results


@dataclass(frozen=True)
class Bar:
    """One figure, its limit, and how they are to stand."""

    what: str
    rule: str
    figure: float | None
    limit: float | None
    unit: str
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Tells whether it is met, if both were measured."""
        if self.figure is None or self.limit is None:
            return None
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit


def times(factor: float, figure: float | None) -> float | None:
    """Gives a multiple of what was measured."""
    return None if figure is None else factor * figure


def ratio(one: float | None, other: float | None) -> float | None:
    """Gives how many times the other the one is."""
    return None if one is None or not other else one / other


def costs(r: Results) -> Iterator[Bar]:
    """Scheduling and cancelling."""
    held = ("held", PY)
    ours = r.get("schedule_us", *held, OURS, MANY)
    what = "schedule from Python, 100,000 waiting"
    asyncio = r.get("schedule_us", *held, "asyncio", MANY)
    yield Bar(what, "≤ 1/2 of asyncio `call_later`", ours, times(1 / 2, asyncio), "µs")
    aps = r.get("schedule_us", *held, APS, MANY)
    yield Bar(what, "≤ 1/40 of APScheduler `add_job`", ours, times(1 / 40, aps), "µs")
    what = "schedule from Rust, 100,000 waiting"
    ours = r.get("schedule_us", "held", RUST, OURS, MANY)
    java = r.get("schedule_us", "held", JAVA, STPE, MANY)
    yield Bar(what, "≤ 1/2 of Java's", ours, times(1 / 2, java), "µs")
    stp = r.get("schedule_us", "held", RUST, STP, MANY)
    yield Bar(what, "≤ scheduled-thread-pool's", ours, stp, "µs")
    for what, measure in [
        ("cancel from Python, 10,000 of 110,000", "held"),
        ("cancel from Python, all of 100,000", "life"),
    ]:
        ours = r.get("cancel_us", measure, PY, OURS, MANY)
        asyncio = r.get("cancel_us", measure, PY, "asyncio", MANY)
        yield Bar(what, "≤ asyncio's `handle.cancel`", ours, asyncio, "µs")


def throughput(r: Results) -> Iterator[Bar]:
    """Jobs a second."""

    def rate(
        language: str, peer: str, workers: int, size: int = MANY, extra: str = ""
    ) -> float | None:
        return r.get("per_second", "burst", language, peer, size, workers, extra)

    for peer, how in [(BATCH, "one `schedule_all`"), (OURS, "one `after` each")]:
        what = f"no-op Python jobs, 4 workers, {how}"
        ours = rate(PY, peer, 4)
        for rule, factor, other in [
            ("≥ 20 × ThreadPoolExecutor(4)", 20, rate(PY, EXECUTOR, 4)),
            ("≥ 5 × asyncio `call_later(0)`", 5, rate(PY, "asyncio", 1)),
            ("≥ 80 × APScheduler", 80, rate(PY, APS, 4, MANY // 10)),
        ]:
            yield Bar(what, rule, ours, times(factor, other), "jobs/s", at_least=True)
        eight = ratio(rate(PY, peer, 8), rate(PY, peer, 1))
        what = f"no-op Python jobs, 8 workers against 1, {how}"
        yield Bar(what, "≥ 0.8", eight, 0.8, "×", at_least=True)
        size = MANY // 5
        four = ratio(rate(PY, peer, 4, size, "10us"), rate(PY, peer, 1, size, "10us"))
        what = f"10 µs Python jobs, 4 workers against 1, {how}"
        yield Bar(what, "≥ 0.9", four, 0.9, "×", at_least=True)
        ours = rate(RUST, peer, 4)
        java = rate(JAVA, STPE, 4)
        what = f"no-op Rust jobs, 4 workers, {how.replace('after', 'schedule')}"
        yield Bar(what, "≥ Java's", ours, java, "jobs/s", at_least=True)


def lateness(r: Results) -> Iterator[Bar]:
    """How late, and at what cost."""
    beat = ("beat", PY)
    ours = r.get("p50", "beat", RUST, OURS, 1_000)
    bare = r.get("bare_p50", "beat", RUST, OURS, 1_000)
    what = "lateness p50, Rust job, 1 kHz, idle"
    yield Bar(what, "≤ 1.25 × a bare timed wait", ours, times(1.25, bare), "µs")
    what = "lateness p50, Python job, 1 kHz, idle"
    ours = r.get("p50", *beat, OURS, 1_000)
    peers = {peer: r.get("p50", *beat, peer, 1_000) for peer in ("asyncio", "sched", TIMER, APS)}
    known = [p50 for p50 in peers.values() if p50 is not None]
    yield Bar(what, "the lowest of all peers", ours, min(known, default=None), "µs")
    yield Bar(what, "≤ 1/2 of APScheduler's", ours, times(1 / 2, peers[APS]), "µs")
    yield Bar(what, "≤ 1/2 of asyncio's", ours, times(1 / 2, peers["asyncio"]), "µs")
    for language in (PY, RUST):
        wakes = r.get("wakes", "beat", language, OURS, 1_000, 16)
        yield Bar(f"wake-ups per timed {language} task, 16 workers", "≤ 1.2", wakes, 1.2, "")
    for language in (PY, RUST):
        seconds = r.facts["idle_seconds"]
        wakes = r.get("wakes", "idle", language, OURS, MANY, 4, seconds)
        yield Bar(f"idle wake-ups in {seconds} s, 100,000 waiting, {language}", "0", wakes, 0, "")


def memory(r: Results) -> Iterator[Bar]:
    """Bytes, and what ten million do."""
    for size in (MANY, 10 * MANY):
        ours = r.get("bytes", "held", PY, OURS, size)
        what = f"a waiting Python task, of {size:,}"
        yield Bar(what, "≤ 160", ours, 160, "bytes")
        for peer in ("asyncio", "sched"):
            yield Bar(what, f"below {peer}", ours, r.get("bytes", "held", PY, peer, size), "bytes")
        ours = r.get("bytes", "held", RUST, OURS, size)
        yield Bar(f"a waiting Rust task, of {size:,}", "≤ 110", ours, 110, "bytes")
    total = times(1e-9, r.get("total", "held", PY, OURS, TEN_MILLION))
    yield Bar("10,000,000 waiting Python tasks", "≤ 1.8 GB", total, 1.8, "GB")
    large = r.get("schedule_us", "held", PY, OURS, TEN_MILLION)
    small = r.get("schedule_us", "held", PY, OURS, MANY)
    what = "schedule from Python, 10,000,000 waiting"
    yield Bar(what, "≤ 4 × its cost at 100,000", large, times(4, small), "µs")
    pause = r.get("pause_ms", "pause", RUST, OURS, TEN_MILLION)
    what = "longest pause while 5,000,000 of 10,000,000 are cancelled"
    yield Bar(what, "≤ 10 ms", pause, 10, "ms")


def bars(results: Results) -> list[Bar]:
    """Gives all bars."""
    return [*costs(results), *throughput(results), *lateness(results), *memory(results)]
