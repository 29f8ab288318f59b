"""docs/performance.md."""

from __future__ import annotations

from pathlib import Path

from peers_report import notes, plots, tables
from peers_report.results import Results

PAGE = Path(__file__).with_name("performance.txt")


def page(results: Results, docs: Path) -> None:
    """Writes the page and its plots."""
    facts = results.facts
    failed = notes.failures(results)
    text = PAGE.read_text().format(
        **{name: facts[name] for name in ("machine", "system", "date", "rounds", "minutes")},
        versions="; ".join([*facts["versions"], *facts["tools"]]) + ".",
        bar_table=tables.bar_table(results),
        cost_table=tables.cost_table(results),
        burst_table=tables.burst_table(results),
        work_table=tables.work_table(results),
        late_table=tables.late_table(results),
        wake_table=tables.wake_table(results),
        large_table=tables.large_table(results),
        better="\n".join(notes.better(results)) or "Nowhere, in this run.",
        failures="\n".join(["\n## Not measured\n", *failed, ""]) if failed else "",
    )
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "performance.md").write_text(text)
    plots.draw(results, docs / "plots")
