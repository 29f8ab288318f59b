# ruff: noqa: D102, PLR2004
"""Jobs of all kinds, which look around themselves while they run."""

from __future__ import annotations

import asyncio
import gc
import random
import time

from world import LIMITS, MeantError, World, faults

from duetime import CancelOutcome, TaskState, current_run, retry


class Run:
    """A run of any kind of job: it overlaps no other of its task, and finds room in its group."""

    def __init__(self, world: World, group: str | None) -> None:
        self.world, self.group = world, group
        self.busy = False
        self.after: list[Task] = []  # what its task depends on

    def __enter__(self) -> None:
        faults.check(not self.busy, "a task overlaps itself")
        self.busy = True
        lost = [task for task in self.after if task.state is not TaskState.DONE]
        faults.check(not lost, f"a task runs before what it depends on: {lost}")
        if self.group:
            with self.world.lock:
                self.world.inside[self.group] += 1
                inside = self.world.inside[self.group]
            faults.check(inside <= LIMITS[self.group], f"{inside} runs of group {self.group}")

    def __exit__(self, *_: object) -> None:
        if self.group:
            with self.world.lock:
                self.world.inside[self.group] -= 1
        self.busy = False


class Job(Run):
    """Looks around, does what it was told to do, and ends as it was told to end."""

    def __init__(self, world: World, rng: random.Random, group: str | None = None) -> None:
        super().__init__(world, group)
        self.takes = rng.choice([0, 0, 0, 0.001, 0.003, rng.random() * 0.02])
        self.deed = rng.choice(["nothing"] * 6 + ["wait", "cancel", "schedule", "collect", "look"])
        bad = ["false", "raises", "exits", "at first raises", "asks", "gives up"]
        self.ends = rng.choice(["well"] * 8 + bad)

    def __call__(self) -> object:
        with self:
            return self.work()

    def work(self) -> object:
        run = current_run()
        scheduler = self.world.scheduler
        now = scheduler.now()
        faults.check(run.now >= run.due, f"{run.id} started at {run.now}, due {run.due}")
        faults.check(now >= run.due, f"{run.id} runs at {now}, due {run.due}")
        if self.takes:
            time.sleep(self.takes)
        if self.deed == "wait":
            run.wait(0.005)
        elif self.deed == "cancel":
            faults.check(scheduler.cancel(run.id) is not CancelOutcome.UNKNOWN, "a run is unknown")
        elif self.deed == "schedule":
            self.world.keep(scheduler.after(0.002, int))
        elif self.deed == "collect":
            gc.collect(0)
        elif self.deed == "look":
            faults.check(scheduler.info(run.id).state is TaskState.RUNNING, "a run does not run")
        if self.ends == "raises" or (self.ends == "at first raises" and run.attempt == 1):
            raise MeantError
        if self.ends == "exits":
            raise SystemExit(3)
        if self.ends == "asks":
            raise retry.RetryAfter(0.002)
        if self.ends == "gives up":
            raise retry.GiveUp
        return self.ends != "false"


class Coroutine(Run):
    """A job that goes on on the event loop."""

    def __init__(self, world: World, rng: random.Random, group: str | None) -> None:
        super().__init__(world, group)
        self.takes = rng.choice([0, 0.001, rng.random() * 0.02])
        self.raises = rng.random() < 0.2

    async def __call__(self) -> str:
        with self:
            await asyncio.sleep(self.takes)
            if self.raises:
                raise MeantError
            return "well"


class Elsewhere(Run):
    """A job that the executor runs."""

    def __init__(self, world: World, rng: random.Random, group: str | None) -> None:
        super().__init__(world, group)
        self.takes, self.raises = rng.random() * 0.004, rng.random() < 0.2

    def __call__(self) -> str:
        with self:
            time.sleep(self.takes)
            if self.raises:
                raise MeantError
            return "well"


class Look:
    """An object as a job: looks at the clock only."""

    def run(self, now: float) -> None:
        due = current_run().due
        faults.check(now >= due, f"started at {now}, due {due}")
