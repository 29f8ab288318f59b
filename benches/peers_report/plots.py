"""The plots of the page, as small SVG files that are the same for the same figures."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

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
from peers_report.tables import NAMES

COLOURS = {
    OURS: "#c0392b",
    BATCH: "#e59866",
    "asyncio": "#2471a3",
    "sched": "#7d3c98",
    TIMER: "#b7950b",
    APS: "#1e8449",
    EXECUTOR: "#5d6d7e",
    STP: "#1e8449",
    QUEUE: "#2471a3",
    STPE: "#7d3c98",
}
SIZES = [1_000, 10_000, MANY, 10 * MANY, TEN_MILLION]


def panels(count: int) -> tuple[Any, Any, Any]:
    """Gives pyplot, a figure and its panels."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "duetime",
            "font.family": "sans-serif",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#e5e7e9",
            "legend.frameon": False,
        }
    )
    pyplot = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(1, count, figsize=(4.2 * count, 3.8), layout="constrained")
    return pyplot, figure, axes


def save(pyplot: Any, figure: Any, path: Path) -> None:
    """Writes a figure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)


def label(peer: str) -> str:
    """Names a scheduler in a legend."""
    return NAMES.get(peer, peer).replace("`", "").replace("ScheduledThreadPoolExecutor", "STPE")


def legend(axis: Any) -> None:
    """Names the curves, below them."""
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, fontsize=8)


def lateness(r: Results, path: Path) -> None:
    """Draws which part of the jobs was late by how much at most."""
    pyplot, figure, axes = panels(2)
    sides = [
        ("Python jobs", [(PY, peer) for peer in (OURS, "asyncio", "sched", TIMER, APS)]),
        ("Rust and Java jobs", [(RUST, OURS), (RUST, STP), (RUST, QUEUE), (JAVA, STPE)]),
    ]
    for axis, (title, peers) in zip(axes, sides, strict=True):
        for language, peer in peers:
            late = r.curve("late_us", "beat", language, peer, 1_000)
            part = [n / 2 for n in range(len(late))]
            axis.plot(late, part, color=COLOURS[peer], label=label(peer), linewidth=1.4)
        axis.set(xscale="log", xlim=(5, 10_000), ylim=(0, 100), title=title, xlabel="late by (µs)")
        legend(axis)
    axes[0].set_ylabel("% of 1,000 jobs, 1 ms apart")
    save(pyplot, figure, path)


def throughput(r: Results, path: Path) -> None:
    """Draws jobs a second by the number of workers."""
    pyplot, figure, axes = panels(2)
    sides = [
        ("Python", [(PY, peer) for peer in (BATCH, OURS, EXECUTOR, "asyncio", APS)]),
        ("Rust and Java", [(RUST, peer) for peer in (BATCH, OURS, STP, QUEUE)] + [(JAVA, STPE)]),
    ]
    for axis, (title, peers) in zip(axes, sides, strict=True):
        for language, peer in peers:
            size = MANY // 10 if peer == APS else MANY
            case = ("burst", language, peer, size)
            points = [(w, r.get("per_second", *case, w)) for w in WORKERS]
            known = [(w, rate) for w, rate in points if rate is not None]
            axis.plot(
                *zip(*known, strict=True),
                "o-",
                color=COLOURS[peer],
                label=label(peer),
                markersize=4,
            )
        axis.set(xscale="log", yscale="log", title=title, xlabel="workers")
        axis.set_xticks(WORKERS, [str(w) for w in WORKERS])
        axis.minorticks_off()
        legend(axis)
    axes[0].set_ylabel("no-op jobs a second")
    save(pyplot, figure, path)


def size(r: Results, path: Path) -> None:
    """Draws what a task costs by the number of tasks."""
    pyplot, figure, axes = panels(3)
    peers = [(PY, OURS), (PY, "asyncio"), (RUST, OURS), (RUST, STP), (RUST, QUEUE), (JAVA, STPE)]
    for axis, what in zip(axes, ("schedule", "cancel", "run"), strict=True):
        for language, peer in peers:
            case = ("life", language, peer)
            points = [(n, r.get(f"{what}_us", *case, n)) for n in SIZES]
            known = [(n, cost) for n, cost in points if cost is not None]
            if known:
                style = "o-" if language == PY else "o--"
                colour, name = COLOURS[peer], f"{label(peer)} ({language})"
                axis.plot(*zip(*known, strict=True), style, color=colour, label=name, markersize=4)
        axis.set(xscale="log", yscale="log", title=what, xlabel="tasks")
    axes[0].set_ylabel("µs a task")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    save(pyplot, figure, path)


def draw(results: Results, folder: Path) -> None:
    """Draws all."""
    lateness(results, folder / "lateness.svg")
    throughput(results, folder / "throughput.svg")
    size(results, folder / "size.svg")
