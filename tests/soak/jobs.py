# ruff: noqa: D102, PLR2004
"""Jobs of all kinds, which look around themselves while they run."""

from __future__ import annotations

import asyncio
import gc
import random
import time

from world import LIMITS, MeantError, World, faults

from duetime import CancelOutcome, Task, TaskState, current_run, retry


class Run:
    """A run of any kind of job: it overlaps no other of its task, and finds room in its group."""

    def __init__(self, world: World, group: str | None) -> None:
        self.world, self.group = world, group
        self.busy = False
        self.counts = False  # in its group
        self.stuck = False
        self.after: list[Task] = []  # what its task depends on

    def __enter__(self) -> None:
        faults.check(not self.busy, "a task overlaps itself")
        self.busy = True
        lost = [task for task in self.after if task.state is not TaskState.DONE]
        faults.check(not lost, f"a task runs before what it depends on: {lost}")
        with self.world.lock:
            self.counts = self.group is not None and not self.stuck
            if self.counts:
                self.world.inside[self.group] += 1
            inside = self.world.inside[self.group]
        if self.counts:
            faults.check(inside <= LIMITS[self.group], f"{inside} runs of group {self.group}")

    def __exit__(self, *_: object) -> None:
        with self.world.lock:
            self.leave()
        self.busy = False

    def leave(self) -> None:
        if self.counts:
            self.counts = False
            self.world.inside[self.group] -= 1

    def give_up(self) -> None:
        """It is stuck: it has no place in its group any more."""
        with self.world.lock:
            self.stuck = True
            self.leave()


class Timed(Run):
    """A job of a task with a timeout, and how it takes that."""

    TIMEOUT = 0.01

    def __init__(self, world: World, rng: random.Random, group: str | None) -> None:
        super().__init__(world, group)
        self.takes = self.TIMEOUT * rng.choice([0, 0.5, 0.95, 1, 1.05, 2])
        self.way = rng.choice(["waits", "waits", "watches", "watches", "sleeps", "at first sleeps"])
        self.overstayed = False  # its last attempt, if that is over

    def __call__(self) -> None:
        run = current_run()
        self.overstayed = False
        with self:
            if self.way == "waits":
                run.wait(self.takes)
            elif self.way == "watches":
                until = run.now + self.takes
                while self.world.scheduler.now() < until and not run.stop_requested:
                    time.sleep(0.0005)
            elif self.way == "sleeps" or run.attempt == 1:
                time.sleep(self.TIMEOUT * 4)
        self.overstayed = self.world.scheduler.now() >= run.deadline


class TimedCoroutine(Timed):
    """The same on the event loop, where it is cancelled, and heeds that or not."""

    async def __call__(self) -> None:
        run = current_run()
        self.overstayed = False
        try:
            with self:
                await asyncio.sleep(self.takes)
        except asyncio.CancelledError:
            if self.way != "sleeps":
                raise
            await asyncio.sleep(self.TIMEOUT)
        self.overstayed = self.world.scheduler.now() >= run.deadline


class Spin(Timed):
    """Goes on until it is interrupted, which may be anywhere: so it counts nothing."""

    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(world, rng, None)
        self.overstayed = True

    def __call__(self) -> None:
        while True:
            time.sleep(0.0002)


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
