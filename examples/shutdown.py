"""The end of a scheduler: what runs is told to stop, what waits is cancelled or drained."""

from __future__ import annotations

import threading

from duetime import Scheduler, current_run


def careful(started: threading.Event) -> str:
    """Work in small steps, and look between them whether to stop."""
    run = current_run()
    steps = 0
    started.set()
    # wait() is a sleep that a shutdown, or a cancel, ends at once.
    while run is not None and not run.wait(0.01):
        steps += 1
    return "stopped between two steps"


def stop() -> None:
    """Shut down while one job runs and another waits."""
    scheduler = Scheduler(workers=2)
    started = threading.Event()
    running = scheduler.after(0, careful, started)
    waiting = scheduler.after(3600, print, "never printed")
    started.wait()

    print("all ended:", scheduler.shutdown(timeout=10))
    print("running:", running.state.name, "-", running.result())
    print("waiting:", waiting.state.name)


def drain() -> None:
    """Shut down, but first run what is due already."""
    scheduler = Scheduler(workers=1)
    started = threading.Event()
    go_on = threading.Event()

    def hold() -> None:
        started.set()
        go_on.wait()

    scheduler.after(0, hold)
    started.wait()
    due = [scheduler.after(0, pow, 2, n) for n in range(3)]
    later = scheduler.after(3600, print, "never printed")

    scheduler.shutdown(wait=False, drain=True)
    go_on.set()
    print("due:", [task.result(timeout=10) for task in due])
    print("later:", later.state.name)


def main() -> None:
    """Show both ways. A `with` block ends as the first."""
    stop()
    drain()


if __name__ == "__main__":
    main()
