"""Looking ahead, and spreading out: when a series is due next, and jitter around its slots."""

from __future__ import annotations

from duetime import FixedRate, ManualClock, Scheduler, Task

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


class OfficeHours:
    """A recurrence of one's own: every two hours from nine to five. Only its arguments count."""

    def next_due(self, due: float, finished: float) -> float:
        """Give the next full slot, tomorrow's first after today's last."""
        day, time = divmod(due, DAY)
        return due + 2 * HOUR if time < 17 * HOUR else (day + 1) * DAY + 9 * HOUR


def wall(due: float) -> str:
    """Give an instant as a day and a wall-clock time."""
    minutes, seconds = divmod(round(due), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"day {days}, {hours:02}:{minutes:02}:{seconds:02}"


def main() -> None:
    """Preview two series before they run, and spread a hundred pollers over half a minute."""
    # Before anything is scheduled: is the rule the one that was meant?
    report = Task(due=15 * HOUR, job=print, recurrence=OfficeHours())
    print("the report:", *map(wall, report.preview(4)), sep="\n  ")

    clock = ManualClock()
    with Scheduler(clock=clock) as scheduler:
        backup = scheduler.schedule(
            Task("backup", due=0, job=int, recurrence=FixedRate(6 * HOUR), max_runs=4)
        )
        clock.advance(HOUR)
        print("what is left of the backups:", *map(wall, backup.preview(10)), sep="\n  ")

        # A hundred devices are polled each minute, but not all in one instant.
        polls = [scheduler.every(MINUTE, int, first=0, jitter=30) for _ in range(100)]
        for _ in range(3):
            first, *_, last = sorted(poll.preview(1)[0] for poll in polls)
            apart = last - first > 20  # by chance, but a safe bet
            print(f"the polls of {wall(first // MINUTE * MINUTE)} are far apart: {apart}")
            clock.advance(MINUTE)


if __name__ == "__main__":
    main()
