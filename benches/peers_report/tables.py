"""The tables of the page, one for each thing measured."""

from __future__ import annotations

from collections.abc import Iterator

from peers_report.bars import bars
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
    TEN_MILLION,
    TIMER,
    WORKERS,
)
from peers_report.results import Results

Row = list[str]
WORKER_HEADS = [f"{w} worker{'s' * (w > 1)}" for w in WORKERS]

NAMES = {
    STPE: "Java `ScheduledThreadPoolExecutor`",
    QUEUE: "tokio-util `DelayQueue`",
    "asyncio": "asyncio `call_later`",
    BATCH: "duetime, one `schedule_all`",
}
TIMED = [
    *((PY, peer) for peer in (OURS, "asyncio", "sched", TIMER, APS)),
    *((RUST, peer) for peer in (OURS, STP, QUEUE)),
    (JAVA, STPE),
]


def shown(figure: float | None, unit: str = "") -> str:
    """Gives a figure with three digits or all before the point."""
    if figure is None:
        return ""
    digits = 0 if abs(figure) >= 100 or figure == int(figure) else 1 if abs(figure) >= 10 else 2
    if 0 < abs(figure) < 0.1:
        digits = 3
    return f"{figure:,.{digits}f} {unit}".strip()


def named(language: str, peer: str) -> str:
    """Names a scheduler in its row."""
    name = NAMES.get(peer, peer)
    return name if language == JAVA else f"{name} ({language})"


def table(head: Row, rows: list[Row]) -> str:
    """Gives a Markdown table of figures, without the rows that show none."""
    rule = ["---", *["--:"] * (len(head) - 1)]
    full = [row for row in rows if any(row[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *full])


def bar_table(r: Results) -> str:
    """Gives the figures against the bars."""
    rows = ["| | bar | limit | measured | |", "|---|---|--:|--:|---|"]
    verdicts = {True: "met", False: "**missed**", None: "not measured"}
    for bar in bars(r):
        figures = [shown(bar.limit, bar.unit), shown(bar.figure, bar.unit)]
        rows.append(f"| {bar.what} | {bar.rule} | {' | '.join(figures)} | {verdicts[bar.met]} |")
    return "\n".join(rows)


def cost_table(r: Results) -> str:
    """Gives cost and memory with many waiting."""
    peers = [
        *((PY, peer) for peer in (OURS, "asyncio", "sched", "schedule", APS)),
        *((PY, peer) for peer in ("rust-py-scheduler", "rscheduler")),
        *((RUST, peer) for peer in (OURS, STP, QUEUE)),
        (JAVA, STPE),
    ]
    head = [
        "",
        "fill (µs)",
        "schedule (µs)",
        "cancel (µs)",
        "bytes a task",
        "bytes a task of 1,000,000",
    ]
    rows = []
    for language, peer in peers:
        metrics = [
            ("fill_us", MANY),
            ("schedule_us", MANY),
            ("cancel_us", MANY),
            ("bytes", MANY),
            ("bytes", 10 * MANY),
        ]
        cells = [shown(r.get(name, "held", language, peer, size)) for name, size in metrics]
        rows.append([named(language, peer), *cells])
    return table(head, rows)


def burst_rows(r: Results, peers: list[tuple[str, str, int]], extra: str) -> Iterator[Row]:
    """Gives jobs a second by the number of workers."""
    for language, peer, size in peers:
        figures = [r.get("per_second", "burst", language, peer, size, w, extra) for w in WORKERS]
        yield [named(language, peer), *map(shown, figures)]


def burst_table(r: Results) -> str:
    """Gives what empty jobs show."""
    python = [(BATCH, MANY), (OURS, MANY), (EXECUTOR, MANY), ("asyncio", MANY)]
    python += [("sched", MANY // 10), (APS, MANY // 10), (TIMER, MANY // 100)]
    peers = [(PY, peer, size) for peer, size in python]
    peers += [(RUST, peer, MANY) for peer in (BATCH, OURS, STP, QUEUE)]
    head = ["no-op jobs a second", *WORKER_HEADS]
    return table(head, list(burst_rows(r, [*peers, (JAVA, STPE, MANY)], "")))


def work_table(r: Results) -> str:
    """Gives what jobs of 10 µs show."""
    peers = [(PY, peer, MANY // 5) for peer in (BATCH, OURS, EXECUTOR, "asyncio")]
    head = ["10 µs Python jobs a second", *WORKER_HEADS]
    return table(head, list(burst_rows(r, peers, "10us")))


def late_table(r: Results) -> str:
    """Gives how late jobs start."""
    head = ["late by (µs)", "p50", "p90", "p99", "busy: p50", "p90", "p99"]
    quantiles = ["p50", "p90", "p99"]
    rows = []
    for language, peer in TIMED:
        cells = [
            shown(r.get(name, "beat", language, peer, 1_000, 4, extra))
            for extra in ("", "busy")
            for name in quantiles
        ]
        rows.append([named(language, peer), *cells])
    bare = [
        shown(r.get(f"bare_{name}", "beat", RUST, OURS, 1_000, 4, extra))
        for extra in ("", "busy")
        for name in quantiles
    ]
    return table(head, [*rows, ["a bare timed wait (Rust)", *bare]])


def wake_table(r: Results) -> str:
    """Gives what a timed job costs, and what waiting does."""
    seconds = r.facts["idle_seconds"]
    head = ["", "wake-ups a task", "16 workers", "CPU a task (µs)", "16 workers"]
    rows = []
    for language, peer in [*TIMED, (PY, "schedule"), (PY, "rust-py-scheduler")]:
        metrics = [(name, w) for name in ("wakes", "cpu_us") for w in (4, 16)]
        # Threads that have ended are not counted any more.
        metrics = [(name, w) for name, w in metrics if (peer, name) != (TIMER, "wakes")]
        cells = [shown(r.get(name, "beat", language, peer, 1_000, w)) for name, w in metrics]
        idle = shown(r.get("wakes", "idle", language, peer, MANY, 4, seconds))
        rows.append([named(language, peer), *[""] * (4 - len(cells)), *cells, idle])
    return table([*head, f"idle wake-ups in {seconds} s"], rows)


def large_table(r: Results) -> str:
    """Gives what ten million tasks do."""
    rows = []
    total = r.get("total", "held", PY, OURS, TEN_MILLION)
    rows.append(["memory, Python", shown(total and total / 1e9, "GB")])
    rows.append(
        ["schedule, Python", shown(r.get("schedule_us", "held", PY, OURS, TEN_MILLION), "µs")]
    )
    for name, what in [
        ("pause_ms", "longest call beside 5,000,000 cancels, Rust"),
        ("alone_ms", "the same beside a thread that only computes"),
    ]:
        rows.append([what, shown(r.get(name, "pause", RUST, OURS, TEN_MILLION), "ms")])
    return table(["10,000,000 waiting tasks", ""], rows)
