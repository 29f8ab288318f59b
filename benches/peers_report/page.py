"""docs/performance.md."""

from __future__ import annotations

from pathlib import Path

from peers_report import notes, plots, tables
from peers_report.results import Results

PAGE = """# Performance

What duetime costs beside other schedulers, all of them given the same work in one run: {machine}, {system}, {date};
medians of {rounds} interleaved rounds, {minutes:.0f} minutes. Each measurement ran in a process of its own. Yours:

```sh
make bench-peers                # this page and its plots
make bench-peers BENCH=--quick  # two minutes; writes below target/peers
BENCH_LARGE=1 make bench-peers  # with ten million tasks in the costs by size
```

{versions}

A virtual machine shares its cores with others: compare figures of one run, not of two.

## Against the bars

The limits that others set are computed from their figures in this run.

{bar_table}

## A task among 100,000 waiting

{cost_table}

*Schedule* and *cancel*: the median time of a call, over 10,000 calls, with 100,000 tasks waiting. The job is shared and
has no arguments, due times lie between one and two hours ahead in no order, and what a call gives back is dropped;
what is cancelled was kept for it. *Bytes*: the growth of resident memory. `sched` and `schedule` search for what they
cancel. `schedule`, `rust-py-scheduler` and `rscheduler` know only periods, the first two of whole seconds; `rscheduler`
runs a task at once when it is added, so it was not started. `duetime` counts all: id, state, queue entry, job.

## Jobs that are due at once

{burst_table}

From the first call that schedules to the end of the last of 100,000 jobs that do nothing (10,000 for APScheduler and
`sched`, 1,000 for `threading.Timer`); asyncio, `sched` and `DelayQueue` have one thread, the caller's. `Timer` has one
for each job. The jobs of `scheduled-thread-pool` count themselves, since it cannot say when it is done.

{work_table}

20,000 jobs, each a loop in Python of 10 µs. Python code runs on one core at a time, so that more workers cannot be
faster here; the question is what they cost.

![No-op jobs a second by workers](plots/throughput.svg)

## Lateness

{late_table}

1,000 jobs, 1 ms apart, 4 workers: from the due time to the first line of the job. *Busy*: as many processes as there
are cores compute beside it. *A bare timed wait*: a thread that sleeps until each instant and does nothing else, with
1 ns of timer slack, in the same process and run, in turns with the jobs. asyncio and `DelayQueue` round to
milliseconds.

![Lateness](plots/lateness.svg)

## Wake-ups and processor time

{wake_table}

Of the same 1,000 jobs: voluntary context switches of all threads, from /proc/self/task/*/status, the caller's one wait
less, and processor time of the process. *Idle*: with 100,000 tasks waiting; `schedule` in the loop of its
documentation. A Java machine has timers of its own. The threads of `threading.Timer` are gone before they could be
counted.

## By the number of tasks

![Cost of a task by the number of tasks](plots/size.svg)

*Schedule* and *cancel* all, in no order; *run* when all are due at once, scheduled before: time divided by the number
of tasks, 4 workers.

{large_table}

The longest call: a thread schedules and cancels tasks of its own, one after the other, while another cancels half of
ten million; the time of its longest single call. The same beside a thread that only computes shows what of it is the
machine's.

## Where another is better

{better}
{failures}"""


def page(results: Results, docs: Path) -> None:
    """Writes the page and its plots."""
    facts = results.facts
    failed = notes.failures(results)
    text = PAGE.format(
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
