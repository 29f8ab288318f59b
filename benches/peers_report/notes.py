"""Where a peer is better, by the figures of the run; and what the peers do not do."""

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
    QUEUE,
    RUST,
    STP,
    STPE,
    TIMER,
)
from peers_report.results import Results
from peers_report.tables import named, shown

WHY = {
    "asyncio": "one thread and no lock; a cancel only marks the handle, and the loop clears up",
    QUEUE: "a wheel of milliseconds on one thread, without a pool or a lock",
    STP: "no ids, states or results; what is cancelled stays until it is due",
    STPE: "compiled at run time, with a collector of its own that frees what ends",
    "rscheduler": "a list of periods: no due times, and its scheduling wakes nobody",
    "rust-py-scheduler": "periods of whole seconds; a cancel takes an entry out of a table",
    "sched": "one thread, the caller's; no lock between jobs",
    TIMER: "a thread for each task, already waiting",
    EXECUTOR: "no due times",
    APS: "",
    "schedule": "",
}


@dataclass(frozen=True)
class Contest:
    """One figure in which schedulers of one language compare."""

    what: str
    metric: str
    measure: str
    sizes: tuple[int, ...]
    unit: str
    workers: int = 4
    extra: str = ""
    more_is_better: bool = False


CONTESTS = [
    Contest("schedule", "schedule_us", "held", (MANY,), "µs"),
    Contest("cancel", "cancel_us", "held", (MANY,), "µs"),
    Contest("cancel of all", "cancel_us", "life", (MANY,), "µs"),
    Contest("running a backlog of 100,000", "run_us", "life", (MANY,), "µs a job"),
    Contest("memory", "bytes", "held", (MANY,), "bytes a task"),
    Contest("lateness p50", "p50", "beat", (1_000,), "µs"),
    Contest("lateness p99", "p99", "beat", (1_000,), "µs"),
    Contest("lateness p50, busy", "p50", "beat", (1_000,), "µs", extra="busy"),
    Contest("lateness p99, busy", "p99", "beat", (1_000,), "µs", extra="busy"),
    Contest("CPU of a timed job", "cpu_us", "beat", (1_000,), "µs"),
    Contest("wake-ups of a timed job", "wakes", "beat", (1_000,), ""),
    *(
        Contest(
            f"no-op jobs, workers: {w}",
            "per_second",
            "burst",
            (MANY, MANY // 10),
            "a second",
            workers=w,
            more_is_better=True,
        )
        for w in (1, 4)
    ),
]
LANGUAGES = {
    PY: [(PY, peer) for peer in WHY if peer not in (QUEUE, STP, STPE)],
    RUST: [(RUST, STP), (RUST, QUEUE), (JAVA, STPE)],
}


def figure(r: Results, contest: Contest, language: str, peer: str) -> float | None:
    """Gives a scheduler's figure in a contest."""
    for size in contest.sizes:
        case = (contest.measure, language, peer, size, contest.workers, contest.extra)
        if (found := r.get(contest.metric, *case)) is not None:
            return found
    return None


def better(r: Results) -> Iterator[str]:
    """Says where a peer is better, and why."""
    for contest in CONTESTS:
        sign = -1 if contest.more_is_better else 1
        for language, peers in LANGUAGES.items():
            own = [figure(r, contest, language, peer) for peer in (OURS, BATCH)]
            known = [sign * one for one in own if one is not None]
            if not known:
                continue
            for where, peer in peers:
                # Timer's threads have ended when its wake-ups are read.
                other = figure(r, contest, where, peer)
                if other is None or (peer, contest.metric) == (TIMER, "wakes"):
                    continue
                if sign * other < min(known):
                    figures = f"{shown(other)}, duetime {shown(abs(min(known)))} {contest.unit}"
                    why = f" ({WHY[peer]})" if WHY[peer] else ""
                    yield f"- {contest.what}, {language}: {named(where, peer)} {figures}{why}."


def failures(r: Results) -> list[str]:
    """Says what could not be measured."""
    return [f"- {what}: {why}" for what, why in sorted(r.failed.items())]
