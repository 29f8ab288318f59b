"""Timeouts: a slow attempt is tried again, a runaway job interrupted, a stuck one written off."""

from __future__ import annotations

import threading

from duetime import Event, EventKind, Scheduler, TaskStuck, TaskTimeout, current_run, retry

RELEASE = threading.Event()


def fetch() -> str:
    """Find a server that does not answer the first time."""
    if (run := current_run()) and run.attempt == 1 and run.wait(60):
        return "too late"  # told to stop; whatever it returns now, the attempt has failed
    return "a page"


def runaway() -> None:
    """Compute for ever, and never look whether to stop."""
    while True:
        pass


def stuck() -> None:
    """Wait for what never comes: nothing can end this from outside."""
    RELEASE.wait()


def tell(event: Event) -> None:
    """Print where a stuck job is."""
    where = [line.strip() for line in (event.stack or "").splitlines() if "RELEASE" in line]
    print(event.task_id, "is stuck in", *where)


def main() -> None:
    """Run the three on a pool of one."""
    with Scheduler(workers=1) as scheduler:
        scheduler.add_listener(tell, kinds=[EventKind.STUCK])
        policy = retry.FixedDelay(max_retries=1, delay=0)
        page = scheduler.after(0, fetch, timeout=0.05, retry=policy)
        print(page.result(), "in attempt", page.runs)

        error = scheduler.after(0, runaway, timeout=0.05, interrupt=True).exception()
        print(isinstance(error, TaskTimeout), error)

        task = scheduler.after(0, stuck, id="stuck", timeout=0.05, grace=0.05)
        print(scheduler.after(0, lambda: "served by another worker").result())
        print(isinstance(task.exception(), TaskStuck), scheduler.stats().stuck)
        RELEASE.set()


if __name__ == "__main__":
    main()
