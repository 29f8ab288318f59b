"""A tour of duetime: one morning in virtual time, then 100,000 tasks on the real clock."""

from __future__ import annotations

import sys
import time

from duetime import (
    CancelOutcome,
    Event,
    EventKind,
    ManualClock,
    Scheduler,
    Task,
    current_run,
    retry,
)

MINUTE = 60
HOUR = 60 * MINUTE

# ----------------------------------------------------------------------------------------------
# Part one: a morning, from 08:58 to 09:20, on a clock that is moved by hand.


def wall(seconds: float) -> str:
    """Show seconds since midnight as a wall-clock time."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"


def tell(event: Event) -> None:
    """Print one event as one line."""
    match event.kind:
        case EventKind.SCHEDULED:
            detail = f"due at {wall(event.due)}"
        case EventKind.STARTED:
            detail = f"run {event.run}"
        case EventKind.COMPLETED:
            detail = f"after {event.duration:g} s"
            detail += f", next at {wall(event.next_due)}" if event.next_due is not None else ""
        case EventKind.FAILED:
            detail = str(event.error)
            detail += f", again at {wall(event.next_due)}" if event.next_due is not None else ""
        case _:
            detail = ""
    print(f"{wall(event.time)}  {event.kind.name:<9}  {event.task_id:<8}  {detail}".rstrip())


def report() -> str:
    """Fail once: the printer has no paper at nine."""
    run = current_run()
    if run is not None and run.attempt == 1:
        raise OSError("the printer has no paper")
    return "12 pages"


def index() -> str:
    """Take a minute and a half, unless told to stop."""
    run = current_run()
    stopped = run is not None and run.wait(90)
    return "half an index" if stopped else "an index"


def answered(scheduler: Scheduler, task_id: str) -> CancelOutcome:
    """Cancel a task, and print the answer below the events that the cancel led to."""
    answer = scheduler.cancel(task_id)
    scheduler.wait_idle()
    print(f'{"":10}cancel("{task_id}") answers {answer.name}, which is {bool(answer)}')
    return answer


def morning() -> None:
    """Tell the story of the report that is due at 9:00."""
    nine = 9 * HOUR
    clock = ManualClock(nine - 2 * MINUTE)
    with Scheduler(workers=4, clock=clock) as scheduler:
        # DUE is left out: here a worker is always free, so STARTED follows at once.
        scheduler.add_listener(tell, kinds=[kind for kind in EventKind if kind.name != "DUE"])

        policy = retry.FixedDelay(max_retries=3, delay=5 * MINUTE)
        task = scheduler.schedule(Task("report", due=nine, job=report, retry=policy))
        scheduler.at(nine, print, "mail", id="mail")
        scheduler.at(nine + 30, index, id="index")
        scheduler.every(10 * MINUTE, lambda: None, first=4 * MINUTE, id="refresh", max_runs=2)

        clock.advance(1 * MINUTE)  # 08:59: the mail has not started, so it never will
        answered(scheduler, "mail")
        clock.advance(2 * MINUTE)  # 09:01: the index runs; it is told to stop, and does
        answered(scheduler, "index")
        clock.advance(5 * MINUTE)  # 09:06: the report was made at the second attempt
        answered(scheduler, "report")
        clock.advance(14 * MINUTE)  # 09:20
        print(f"{'':10}{task!r} gave {task.result()!r}")


# ----------------------------------------------------------------------------------------------
# Part two: 100,000 tasks that fall due over 5 seconds, on 4 workers.

TASKS = 100_000
SECONDS = 5.0
COLUMN = 22


class Flaky:
    """A job that fails twice, then succeeds."""

    def __init__(self) -> None:
        self.left = 2

    def run(self, now: float) -> bool:
        """Fail by returning False while there are failures left."""
        self.left -= 1
        return self.left < 0


def crowd() -> None:
    """Start 100,000 tasks, and measure how late each of them starts."""
    late: list[float] = []
    failed: list[Event] = []

    def measured() -> None:
        # Asking for the run costs about 0.3 microseconds: it is there already, and two of its
        # numbers are read. A STARTED listener costs about 2.3: it is given a whole new Event.
        run = current_run()
        if run is not None:
            late.append(run.now - run.due)

    with Scheduler(workers=4) as scheduler:
        # Failures are few, so here a listener costs nothing worth counting.
        scheduler.add_listener(failed.append, kinds=[EventKind.FAILED])

        before = time.perf_counter()
        start = scheduler.now() + 0.5
        step = SECONDS / TASKS
        tasks = [Task(due=start + n * step, job=measured) for n in range(TASKS)]
        scheduler.schedule_all(tasks)
        took = time.perf_counter() - before
        print(f"{TASKS:,} tasks made and scheduled in {took:.2f} s; they fall due over 5 s")
        cpu = time.process_time()

        # Beside them: one that fails and is retried, one that is cancelled before it is due, and
        # one that recurs, which is what writes the progress line.
        scheduler.at(start + 1, Flaky(), retry=retry.FixedDelay(3, delay=0.5))
        unwanted = scheduler.at(start + 4, print, "this is never printed")
        scheduler.at(start + 2, scheduler.cancel, unwanted)
        live = sys.stdout.isatty()

        def progress() -> None:
            seen = len(late)
            line = f"started {seen:>7,}  waiting {scheduler.stats().waiting:>7,}"
            print(f"\r{line}" if live else line, end="" if live else "\n", flush=True)

        series = scheduler.every(0.2 if live else 1.0, progress, first=0.5)

        tasks[-1].wait()  # asleep until then: nothing here polls
        series.cancel()
        scheduler.wait_idle()
        progress()
        stats = scheduler.stats()
        cpu = time.process_time() - cpu

    if live:
        print()
    late.sort()
    retried = sum(event.next_due is not None for event in failed)
    rows = {
        "started": f"{len(late):,} of {TASKS:,}",
        "late, p50": f"{late[len(late) // 2] * 1e3:.3f} ms",
        "late, p99": f"{late[len(late) * 99 // 100] * 1e3:.3f} ms",
        "late, max": f"{late[-1] * 1e3:.3f} ms",
        "attempts failed": f"{stats.failures}",
        "attempts retried": f"{retried}",
        "tasks failed": f"{stats.failed}",
        "tasks cancelled": f"{stats.cancelled} (the unwanted one, and the progress line)",
        "processor time": f"{cpu:.2f} s in {SECONDS + 0.5:g} s",
    }
    print()
    for name, value in rows.items():
        print(f"{name:<{COLUMN}}{value}")


def main() -> None:
    """Walk through both parts."""
    print("A morning in virtual time\n")
    morning()
    print("\nA crowd on the real clock\n")
    crowd()


if __name__ == "__main__":
    main()
