"""The figures in README.md: one table, between its two marks."""

from __future__ import annotations

from pathlib import Path

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
from peers_report.tables import Row, shown, table

START, END = "<!-- figures: written by `make bench-peers` -->", "<!-- end of figures -->"

COLUMNS = {
    (PY, OURS): "duetime, Python",
    (PY, "asyncio"): "`asyncio` `call_later`",
    (PY, EXECUTOR): "`ThreadPoolExecutor`",
    (PY, "sched"): "`sched`",
    (PY, TIMER): "`threading.Timer`",
    (PY, APS): "APScheduler",
    (RUST, OURS): "duetime, Rust",
    (RUST, STP): "scheduled-thread-pool",
    (RUST, QUEUE): "tokio-util `DelayQueue`",
    (JAVA, STPE): "Java",
}
# How many jobs, on how many workers, where it is not MANY on four: some have one thread, or are
# so slow that fewer jobs have to do.
BURSTS = {
    APS: (MANY // 10, 4),
    "sched": (MANY // 10, 1),
    TIMER: (MANY // 100, 1),
    "asyncio": (MANY, 1),
    QUEUE: (MANY, 1),
}


def burst(r: Results, language: str, peer: str) -> float | None:
    """Gives no-op jobs a second; of ours, scheduled one by one."""
    size, workers = BURSTS.get(peer, (MANY, 4))
    return r.get("per_second", "burst", language, peer, size, workers)


def rows(r: Results) -> list[Row]:
    """Gives the rows of the table."""

    def row(what: str, metric: str, measure: str, size: int, extra: str = "") -> Row:
        cases = [(measure, *column, size, 4, extra) for column in COLUMNS]
        return [what, *(shown(r.get(metric, *case)) for case in cases)]

    seconds = r.facts["idle_seconds"]
    batch = [burst(r, language, BATCH) if peer == OURS else None for language, peer in COLUMNS]
    return [
        row("schedule, 100,000 waiting (µs)", "schedule_us", "held", MANY),
        row("cancel, 100,000 waiting (µs)", "cancel_us", "held", MANY),
        row("a waiting task (bytes)", "bytes", "held", MANY),
        ["no-op jobs a second", *(shown(burst(r, *column)) for column in COLUMNS)],
        ["… from one `schedule_all`", *map(shown, batch)],
        row("late, p50 (µs)", "p50", "beat", 1_000),
        row("late, p99 (µs)", "p99", "beat", 1_000),
        row("late, p50, both cores busy (µs)", "p50", "beat", 1_000, "busy"),
        # The threads of a Timer have ended before they could be counted.
        [
            "wake-ups of a timed job",
            *(
                "" if peer == TIMER else shown(r.get("wakes", "beat", language, peer, 1_000))
                for language, peer in COLUMNS
            ),
        ],
        row(f"idle wake-ups in {seconds} s", "wakes", "idle", MANY, seconds),
    ]


def update(r: Results, readme: Path) -> None:
    """Puts the table of this run into the README."""
    text = readme.read_text()
    before, rest = text.split(START)
    _, after = rest.split(END)
    facts = f"{r.facts['date']}: {r.facts['machine']}, {r.facts['system']}"
    head = ["", *COLUMNS.values()]
    readme.write_text(f"{before}{START}\n{facts}.\n\n{table(head, rows(r))}\n{END}{after}")
