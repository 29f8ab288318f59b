# ruff: noqa: BLE001, D102, PLR2004
"""One thread's calls, as chance has it, and how each must be answered."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc
import random
import threading
import time
import traceback
from collections import Counter

from jobs import Coroutine, Elsewhere, Job, Look, Run, Spin, Timed, TimedCoroutine
from world import LIMITS, PATIENCE, MeantError, World, faults

from duetime import (
    CancelOutcome,
    ControlOutcome,
    DuplicateTaskError,
    Event,
    EventKind,
    FixedDelay,
    FixedRate,
    Missed,
    OneTime,
    Scheduler,
    SchedulerClosedError,
    Task,
    TaskState,
    TaskTimeout,
    UnknownTaskError,
    retry,
)


class Client:
    """One thread's calls in one round."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world = world
        self.scheduler = world.scheduler
        self.rng = rng
        self.mine: list[Task] = []
        self.listeners: list[object] = []
        self.calls: Counter[str] = Counter()

    def play(self, until: float) -> None:
        moves = [
            (self.once, 12),
            (self.series, 4),
            (self.reused, 4),
            (self.batch, 2),
            (self.cancel, 6),
            (self.forget, 3),
            (self.submit, 3),
            (self.elsewhere, 4),
            (self.timed, 4),
            (self.chain, 4),
            (self.control, 5),
            (self.hold, 2),
            (self.pause, 1),
            (self.wait, 4),
            (self.look, 3),
            (self.listen, 2),
            (self.other_scheduler, 1),
        ]
        methods = [move for move, _ in moves]
        weights = [weight for _, weight in moves]
        try:
            while time.monotonic() < until and not faults.found:
                move = self.rng.choices(methods, weights)[0]
                self.calls[move.__name__] += 1
                move()
                time.sleep(self.rng.choice([0, 0, 0.0005, 0.002]))
            for listener in self.listeners:
                self.scheduler.remove_listener(listener)
        except BaseException:
            faults.add(traceback.format_exc())

    def options(self) -> dict[str, object]:
        rng = self.rng
        options: dict[str, object] = {"priority": rng.randint(-1, 1)}
        policy = rng.randrange(4)
        if policy == 1:
            options["retry"] = retry.FixedDelay(rng.randint(1, 3), rng.random() * 0.01)
        elif policy == 2:
            options["retry"] = retry.ExponentialBackoff(3, 0.001, cap=0.01, jitter=0.5)
        return options

    def keep(self, task: Task) -> None:
        self.mine.append(self.world.keep(task))

    def once(self) -> None:
        delay = self.rng.choice([0, 0, 0.001, self.rng.random() * 0.1, self.rng.random(), 3600])
        group = self.group()
        job = Job(self.world, self.rng, group)
        options = {"group": group, "id": self.world.new_id(), **self.options()}
        self.keep(self.scheduler.after(delay, job, **options))

    def group(self) -> str | None:
        return self.rng.choice([None, None, None, *LIMITS])

    def elsewhere(self) -> None:
        """A job that does not run on a worker."""
        group, options = self.group(), self.options()
        if self.rng.random() < 0.5:
            job: Run = Coroutine(self.world, self.rng, group)
        else:
            job = Elsewhere(self.world, self.rng, group)
            options["executor"] = self.world.executor
        options |= {"group": group, "id": self.world.new_id()}
        if self.rng.random() < 0.3:
            self.keep(self.scheduler.every(0.005, job, max_runs=5, **options))
        else:
            self.keep(self.scheduler.after(self.rng.random() * 0.01, job, **options))

    def timed(self) -> None:
        """A job with a timeout: in time, late, interrupted, or stuck for a moment."""
        rng, world, group = self.rng, self.world, self.group()
        options = {"group": group, "id": world.new_id(), **self.options()}
        options |= {"timeout": Timed.TIMEOUT, "grace": rng.choice([0, 0.01, 0.01, 60])}
        kind = rng.randrange(6)
        if kind == 0:
            job: Timed = Spin(world, rng)
            options |= {"interrupt": True, "grace": 60, "group": None}
        elif kind == 1:
            job = TimedCoroutine(world, rng, group)
        else:
            job = Timed(world, rng, group)
            if kind == 2:
                options["executor"] = world.executor
        world.timed[options["id"]] = job
        self.keep(self.scheduler.after(rng.random() * 0.01, job, **options))

    def chain(self) -> None:
        """Tasks that depend on each other, in any order, and on one that was there before."""
        rng, world = self.rng, self.world
        tasks, links, before = [], [], [rng.choice(self.mine)] if self.mine else []
        for _ in range(rng.randint(1, 6)):
            job = Job(world, rng)
            parents = [rng.choice([*before, *tasks])] if before or tasks else []
            if tasks and rng.random() < 0.3:
                parents.append(rng.choice(tasks))
            job.after = parents
            due = self.scheduler.now() + rng.random() * 0.01
            task = Task(world.new_id(), due=due, job=job, depends_on=parents, **self.options())
            tasks.append(task)
            links.append((task, parents))
        given = rng.sample(tasks, len(tasks))
        try:
            for task in self.scheduler.schedule_all(given):
                self.keep(task)
        except ValueError:  # what was there before is a series without an end
            faults.check(before and before[0].recurrence != OneTime(), f"refused: {before}")
        else:
            with world.lock:
                world.links += links

    def control(self) -> None:
        """Run control over a task in any state."""
        if not self.mine:
            return
        task = self.rng.choice(self.mine)
        calls = [task.pause, task.resume, task.resume, task.run_now]
        calls.append(lambda: task.reschedule(self.scheduler.now() + self.rng.random() * 0.02))
        ended = task.done()
        answer = self.rng.choice(calls)()
        if ended:
            faults.check(answer is ControlOutcome.FINISHED, f"an ended task's control: {answer}")

    def hold(self) -> None:
        """A task that is paused does not run; let go, it does."""
        ran = threading.Event()
        task = self.scheduler.after(0.003, ran.set, id=self.world.new_id())
        self.keep(task)
        held = task.pause()
        if held is not ControlOutcome.APPLIED:
            return
        time.sleep(0.006)
        faults.check(not ran.is_set() and task.runs == 0, f"it was paused, and ran: {task!r}")
        if self.rng.random() < 0.8:
            faults.check(task.resume(), f"it was paused, and is not resumed: {task!r}")

    def pause(self) -> None:
        """Stops all for a moment; another client may let it go on before."""
        self.scheduler.pause()
        time.sleep(self.rng.random() * 0.003)
        self.scheduler.resume()

    def series(self) -> None:
        rng = self.rng
        period = rng.choice([0.001, 0.005, 0.02, 0.3])
        missed = rng.choice(list(Missed))
        rule = rng.choice([period, FixedRate(period, missed), FixedDelay(period)])
        options = self.options()
        if rng.random() < 0.7:
            options["max_runs"] = rng.randint(1, 20)
        job = Job(self.world, rng)
        if rng.random() < 0.3:
            options["jitter"] = period * rng.random()
        if rng.random() < 0.3:
            options["until"] = self.scheduler.now() + period + rng.random() * 0.2
        self.keep(self.scheduler.every(rule, job, id=self.world.new_id(), **options))

    def reused(self) -> None:
        """One of a few ids, with or without replacing who holds it."""
        replace = self.rng.random() < 0.5
        now = self.scheduler.now()
        task = Task(
            self.rng.randrange(6),
            due=now + self.rng.choice([-1, 0, 0.005, 0.05]),
            job=Job(self.world, self.rng),
            **self.options(),
        )
        try:
            self.keep(self.scheduler.schedule(task, replace=replace))
        except DuplicateTaskError:
            faults.check(not task.done() and not task.running(), "a refused task was touched")

    def batch(self) -> None:
        now = self.scheduler.now()
        ids = [self.world.new_id() for _ in range(self.rng.randint(0, 8))]
        refused = self.rng.random() < 0.2 and ids
        if refused:
            ids.append(ids[0])
        tasks = [Task(id, due=now + self.rng.random() * 0.02, job=Look()) for id in ids]
        try:
            for task in self.scheduler.schedule_all(tasks):
                self.keep(task)
            faults.check(not refused, "a batch with an id twice was accepted")
        except DuplicateTaskError:
            faults.check(refused, f"a batch was refused: {ids}")

    def cancel(self) -> None:
        if not self.mine:
            return
        task = self.rng.choice(self.mine)
        ended = task.done()
        answer = self.rng.choice([task.cancel, lambda: self.scheduler.cancel(task)])()
        if ended:
            faults.check(answer is CancelOutcome.FINISHED, f"an ended task's cancel: {answer}")
        if answer:
            faults.check(task.wait(PATIENCE), f"cancelled, but it does not end: {task!r}")
            faults.check(task.cancelled(), f"cancelled, but it ends otherwise: {task!r}")

    def forget(self) -> None:
        with contextlib.suppress(UnknownTaskError, ValueError):
            self.scheduler.forget(self.rng.randrange(6))

    def submit(self) -> None:
        future = self.scheduler.submit(pow, 2, 10)
        if self.rng.random() < 0.2 and future.cancel():
            return
        if self.rng.random() < 0.2:
            faults.check(list(self.scheduler.map(abs, [-1, 2])) == [1, 2], "map")
        faults.check(future.result(PATIENCE) == 1024, "submit")

    def wait(self) -> None:
        if not self.mine:
            return
        task = self.rng.choice(self.mine)
        timeout = self.rng.choice([0, 0.001, 0.02])
        began = time.monotonic()
        try:
            task.result(timeout)
            faults.check(task.done(), "a result before the end")
        except concurrent.futures.CancelledError:
            faults.check(task.cancelled(), f"CancelledError, but {task!r}")
        except TaskTimeout:
            faults.check(task.done(), f"TaskTimeout before the end of {task!r}")
        except concurrent.futures.TimeoutError:
            waited = time.monotonic() - began
            faults.check(waited >= timeout, f"a timeout of {timeout} after {waited}")
        except (Exception, SystemExit):
            faults.check(task.done() and task.error is not None, f"an error, but {task!r}")
        self.scheduler.wait_idle(self.rng.choice([0, 0.001, 0.01]))

    def look(self) -> None:
        scheduler = self.scheduler
        stats = scheduler.stats()
        faults.check(0 <= stats.paused <= stats.waiting, f"{stats}")
        scheduler.next_due()
        for info in scheduler.tasks(self.rng.choice([None, *TaskState])):
            faults.check(info.failures <= info.runs or info.state is TaskState.RUNNING, f"{info}")
        if self.mine:
            repr(self.rng.choice(self.mine))
        if self.rng.random() < 0.1:
            gc.collect()

    def listen(self) -> None:
        if self.listeners and self.rng.random() < 0.6:
            self.scheduler.remove_listener(self.listeners.pop())
            return
        scheduler, kind = self.scheduler, self.rng.randrange(3)

        def listener(event: Event) -> None:
            if event.kind is EventKind.DUE:
                faults.check(event.time >= event.due, f"early: {event}")
            if kind == 1:
                scheduler.stats()
            elif kind == 2:
                raise MeantError

        kinds = self.rng.choice([None, [EventKind.DUE], self.rng.sample(list(EventKind), 2)])
        scheduler.add_listener(listener, kinds=kinds)
        self.listeners.append(listener)

    def other_scheduler(self) -> None:
        """A second scheduler is made, used, and ended in one of many ways."""
        rng = self.rng
        other = Scheduler(rng.randint(1, 3), name="other")
        if rng.random() < 0.3:
            other.add_listener(lambda event: time.sleep(0.001))
        tasks = [other.after(rng.random() * 0.02, int) for _ in range(rng.randint(0, 20))]
        tasks += [other.every(0.003, int, first=0) for _ in range(rng.randint(0, 2))]
        time.sleep(rng.random() * 0.02)
        how = rng.randrange(5)
        if how == 0:
            faults.check(other.shutdown(), "shutdown()")
        elif how == 1:
            faults.check(other.shutdown(drain=True), "shutdown(drain=True)")
        elif how == 2:
            other.shutdown(wait=False, drain=rng.random() < 0.5)
            faults.check(other.shutdown(timeout=PATIENCE), "the second shutdown")
        elif how == 3:
            with other:
                tasks.append(other.after(0, other.shutdown))
        else:
            del other
        for task in tasks:
            if not task.wait(PATIENCE):
                faults.add(f"after a shutdown ({how=}) this never ends: {task!r}")
        if how < 4:
            try:
                other.after(0, int)
                faults.add("a closed scheduler accepts a task")
            except SchedulerClosedError:
                pass
