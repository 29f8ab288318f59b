"""Run control: a series is paused for a while, moved, and run by hand."""

from __future__ import annotations

from duetime import ManualClock, Scheduler

MINUTE = 60


def main() -> None:
    """Tell the story of a backup."""
    clock = ManualClock()
    runs: list[float] = []
    with Scheduler(workers=1, clock=clock) as scheduler:
        backup = scheduler.every(
            10 * MINUTE, lambda: runs.append(clock.now() / MINUTE), id="backup"
        )
        clock.advance(20 * MINUTE)
        print("backups at", runs)

        backup.pause()  # the disk is being changed
        clock.advance(45 * MINUTE)
        print("paused:", backup, "idle:", scheduler.wait_idle())
        backup.resume()
        print("missed", backup.missed, "slots, next at", (backup.due or 0) / MINUTE)

        scheduler.run_now("backup")  # by id, and without changing the grid
        scheduler.wait_idle()
        clock.advance(5 * MINUTE)
        print("backups at", runs)

        backup.reschedule(73 * MINUTE)  # from now on at 73, 83, 93 ...
        clock.advance(20 * MINUTE)
        print("backups at", runs)

        print("of an unknown task:", scheduler.pause_task("restore").name)


if __name__ == "__main__":
    main()
