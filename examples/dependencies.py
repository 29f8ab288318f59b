"""Dependencies: a pipeline whose steps wait for each other, and what one failure does to it."""

from __future__ import annotations

from duetime import DependencyFailed, ManualClock, Scheduler, Task, retry


def main() -> None:
    """Run one pipeline that works at the second attempt, and one that does not."""
    clock = ManualClock()
    with Scheduler(clock=clock) as scheduler:
        attempts: list[float] = []

        def extract(region: str) -> str:
            attempts.append(clock.now())
            if len(attempts) == 1 or region == "south":
                raise ConnectionError(f"no answer from {region}")
            return f"{region}.csv"

        def pipeline(region: str) -> list[Task]:
            # In any order: a task is named as an object or by its id. A retry is no end, so that
            # the others wait for it.
            first = Task(
                f"extract {region}",
                due=clock.now(),
                job=extract,
                args=(region,),
                retry=retry.FixedDelay(max_retries=1, delay=30),
            )
            load = Task(due=clock.now(), job=lambda: f"loaded {first.result()}", depends_on=[first])
            return [load, first]

        north, south = pipeline("north"), pipeline("south")
        scheduler.schedule_all([*north, *south])
        # Each task keeps its own due time too.
        report = scheduler.after(3600, north[0].result, depends_on=[north[0]])
        everything = scheduler.after(0, print, "never printed", depends_on=[report, *south])
        clock.advance(3600)

        print(f"report at {report.info().started:g} s: {report.result()}")
        if isinstance(everything.error, DependencyFailed):
            print(f"everything: {everything.state.name}, {everything.error}")


if __name__ == "__main__":
    main()
