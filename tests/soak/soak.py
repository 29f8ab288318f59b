# ruff: noqa: BLE001, D101, D102, D103, PLR2004, PTH123, PTH208, S311, T201
"""Everything at once, for minutes: random calls from several threads on real clocks.

    python tests/soak/soak.py [--minutes 10] [--seed 1]

Rounds of two seconds. In each, several threads schedule, cancel, replace, forget, submit, wait and
listen as chance has it, on one scheduler that lives through all rounds; meanwhile others are made
and shut down, garbage is collected, and the process forks. Then everything comes to rest, and all
must add up:

- each task ended once, and whoever waited was told once;
- for each task the events came in the order of its life;
- a task that depends on others ran after all of them, and not at all if one was not DONE;
- of a group no more ran at once than its limit, and nothing that was paused;
- no run started before its due time, and none while the same task ran;
- one worker starts what is due together in the order due, priority, adding;
- every call answered as the contract says, and within its timeout;
- memory, threads and descriptors are what they were.

The seed of a failure repeats the calls, but not the moments at which the threads meet.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import contextlib
import faulthandler
import gc
import os
import random
import resource
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field

from duetime import (
    CancelOutcome,
    ControlOutcome,
    DuplicateTaskError,
    Event,
    EventKind,
    FixedDelay,
    FixedRate,
    ForkedError,
    Missed,
    OneTime,
    Scheduler,
    SchedulerClosedError,
    Task,
    TaskState,
    UnknownTaskError,
    current_run,
    retry,
)

CLIENTS = 4
ROUND = 2.0
LIMITS = {"one": 1, "two": 2}
ELSEWHERE = 2  # threads of the executor
THREADS = CLIENTS + ELSEWHERE + 3  # with the main one, the one that sends DUE, and the event loop's
PATIENCE = 20.0  # far above what any wait here takes
TOLD = [kind for kind in EventKind if kind is not EventKind.DUE]


class Faults:
    """What was found wrong."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.found: list[str] = []

    def add(self, text: str) -> None:
        with self.lock:
            self.found.append(text)

    def check(self, holds: object, text: str) -> None:
        if not holds:
            self.add(text)


faults = Faults()


class MeantError(Exception):
    pass


@dataclass
class Story:
    """Where a task is in its life, by what was told of it."""

    place: str = "waiting"
    told: list[str] = field(default_factory=list)


class Ledger:
    """Hears all events, and follows each task from its start to its end."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stories: dict[object, Story] = {}
        self.counts: Counter[EventKind] = Counter()

    def hear(self, event: Event) -> None:
        with self.lock:
            self.counts[event.kind] += 1
            if not str(event.task_id).startswith("once-"):
                return  # an id that is used again and again: its tasks' events may overlap
            self.follow(event)

    def follow(self, event: Event) -> None:
        kind = event.kind
        story = self.stories.get(event.task_id)
        if kind is EventKind.SCHEDULED:
            fits = story is None
            story = self.stories[event.task_id] = Story()
        elif story is None:
            faults.add(f"{event} of a task that has ended or never was")
            return
        elif kind is EventKind.STARTED:
            fits = story.place == "waiting" and event.time >= event.due
            story.place = "runs"
        elif kind in {EventKind.COMPLETED, EventKind.FAILED}:
            fits = story.place == "runs"
            story.place = "ended by its run" if event.next_due is None else "waiting"
        elif kind is EventKind.CANCELLED:
            fits = story.place in {"waiting", "ended by its run"}
            story.place = "ended"
        else:  # MISSED
            fits = story.place == "waiting"
        story.told = [*story.told[-9:], f"{kind.name} run {event.run}"]
        faults.check(fits, f"{event} does not follow: {story}")

    def end(self, task_id: object) -> None:
        """Its waiters are told, and the listeners were told before."""
        with self.lock:
            story = self.stories.pop(task_id, None)
        ended = story is not None and story.place.startswith("ended")
        faults.check(ended, f"{task_id} ended, but its story is {story}")


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


class World:
    """The scheduler that lives through all rounds, and all that is known of its tasks."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.ledger = Ledger()
        self.scheduler = Scheduler(CLIENTS, history=500, limits=LIMITS)
        self.executor = concurrent.futures.ThreadPoolExecutor(ELSEWHERE)
        self.inside: Counter[str] = Counter()  # runs of each group
        self.links: list[tuple[Task, list[Task]]] = []  # of this round: who depends on whom
        self.scheduler.add_listener(self.ledger.hear, kinds=TOLD)
        self.lock = threading.Lock()
        self.tasks: list[Task] = []  # of this round
        self.endings: Counter[int] = Counter()
        self.made = 0
        self.calls: Counter[str] = Counter()

    def keep(self, task: Task) -> Task:
        """Notes a task that was scheduled."""
        with self.lock:
            self.tasks.append(task)
        task.add_done_callback(self.ended)
        return task

    def ended(self, task: Task) -> None:
        faults.check(task.done(), f"{task!r} is not done, but its callback is called")
        with self.lock:
            self.endings[id(task)] += 1
        if str(task.id).startswith("once-"):
            self.ledger.end(task.id)

    def new_id(self) -> str:
        with self.lock:
            self.made += 1
            return f"once-{self.made}"


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


class Look:
    """An object as a job: looks at the clock only."""

    def run(self, now: float) -> None:
        due = current_run().due
        faults.check(now >= due, f"started at {now}, due {due}")


def check_order(rng: random.Random) -> None:
    """With one worker: what is due together starts in the order due, priority, adding."""
    with Scheduler(1) as scheduler:
        gate = threading.Event()
        held = scheduler.after(0, gate.wait)
        while not held.running():
            time.sleep(0)
        began, now = [], scheduler.now()
        expected = []
        for n in range(rng.randint(1, 40)):
            due, priority = now + rng.randrange(-3, 8) / 1000, rng.randint(-2, 2)
            expected.append((due, -priority, n))
            scheduler.schedule(Task(due=due, priority=priority, job=began.append, args=(n,)))
        while scheduler.now() < now + 0.008:
            time.sleep(0.001)
        gate.set()
        faults.check(scheduler.wait_idle(PATIENCE), "the order's tasks never end")
        faults.check(began == [n for *_, n in sorted(expected)], f"order {began} of {expected}")


def fork(world: World) -> None:
    """The child's copy says so, a new scheduler works there, and the child ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork in a process with threads
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            try:
                world.scheduler.after(0, int)
            except ForkedError:
                with Scheduler(2) as scheduler:
                    code = 0 if scheduler.submit(pow, 2, 3).result(PATIENCE) == 8 else 2
        finally:
            os._exit(code)
    end = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            faults.check(status == 0, f"a forked child ended with status {status}")
            return
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    faults.add("a forked child hangs")


@dataclass
class Size:
    """What the process holds at rest."""

    memory: float
    threads: int
    descriptors: int | None

    @classmethod
    def now(cls) -> Size:
        try:
            with open("/proc/self/statm") as statm:
                memory = int(statm.read().split()[1]) * resource.getpagesize() / 1e6
            # A thread that was joined may be a moment longer on its way out of the kernel.
            end = time.monotonic() + 1
            threads = len(os.listdir("/proc/self/task"))
            while time.monotonic() < end and threads > THREADS:
                time.sleep(0.01)
                threads = len(os.listdir("/proc/self/task"))
            return cls(memory, threads, len(os.listdir("/proc/self/fd")))
        except FileNotFoundError:  # no /proc here
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            return cls(peak / 1e6, threading.active_count(), None)


def play_round(world: World, number: int) -> None:
    until = time.monotonic() + ROUND
    clients = [
        Client(world, random.Random(f"{world.seed} {number} {client}")) for client in range(CLIENTS)
    ]
    threads = [threading.Thread(target=client.play, args=(until,)) for client in clients]
    for thread in threads:
        thread.start()
    rng = random.Random(f"{world.seed} {number}")
    try:
        if rng.random() < 0.5:
            time.sleep(rng.random() * ROUND / 2)
            fork(world)
        gc.collect()
        check_order(rng)
    finally:
        for thread in threads:
            thread.join()
    for client in clients:
        world.calls.update(client.calls)
    rest(world)


def rest(world: World) -> None:
    """Ends what goes on, and looks whether all adds up."""
    scheduler = world.scheduler
    scheduler.resume()
    end = time.monotonic() + 0.2  # some may end by themselves
    while time.monotonic() < end and scheduler.stats().waiting:
        time.sleep(0.01)
    # A job may still schedule one more task while the others are cancelled.
    for _ in range(3):
        with world.lock:
            tasks = list(world.tasks)
        for task in tasks:
            task.cancel()
        for task in tasks:
            if not task.wait(PATIENCE):
                faults.add(f"it never ends: {task!r}, {task.info()}")
                return
    faults.check(scheduler.wait_idle(PATIENCE), "the scheduler does not come to rest")
    with world.lock:
        tasks = list(world.tasks)
        endings = [world.endings[id(task)] for task in tasks]
    faults.check(set(endings) <= {1}, f"callbacks a task: {Counter(endings)}")
    check_links(world)
    faults.check(not +world.inside, f"runs of groups at rest: {world.inside}")
    faults.check(not world.ledger.stories, f"unfinished: {world.ledger.stories}")
    stats = scheduler.stats()
    faults.check(stats.waiting == stats.running == 0, f"{stats} at rest")
    counts = world.ledger.counts
    ended = stats.done + stats.failed + stats.cancelled
    faults.check(counts[EventKind.SCHEDULED] == ended, f"{counts[EventKind.SCHEDULED]}, {stats}")
    faults.check(counts[EventKind.STARTED] == stats.runs, f"{counts}, {stats}")
    late = stats.lateness
    faults.check(late.queue.count == late.gil.count == stats.runs, f"{stats}")
    faults.check(counts[EventKind.FAILED] == stats.failures, f"{counts}, {stats}")
    runs = counts[EventKind.COMPLETED] + counts[EventKind.FAILED]
    faults.check(runs == stats.runs, f"{counts}, {stats}")
    with world.lock:
        world.tasks.clear()
        world.links.clear()
        world.endings.clear()


def check_links(world: World) -> None:
    """Who depends on others ran only if all of them were DONE."""
    for task, parents in world.links:
        lost = [parent for parent in parents if parent.state is not TaskState.DONE]
        if lost:
            faults.check(task.cancelled() and task.runs == 0, f"{task!r} in spite of {lost}")


def compare(sizes: list[Size]) -> None:
    """The first quarter of the rounds warms up: caches, the history, the heap's arena."""
    sizes = sizes[len(sizes) // 4 :]
    if len(sizes) < 8:
        return
    third = len(sizes) // 3
    early = sum(size.memory for size in sizes[:third]) / third
    late = sum(size.memory for size in sizes[-third:]) / third
    print(f"memory {early:.1f} MB -> {late:.1f} MB, at rest")
    all_sizes = " ".join(f"{size.memory:.0f}" for size in sizes)
    faults.check(late < early * 1.08 + 2, f"memory grows, in MB: {all_sizes}")
    for name in ("threads", "descriptors"):
        values = [getattr(size, name) for size in sizes]
        faults.check(len(set(values)) == 1, f"{name} at rest: {values}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if arguments.seed is None else arguments.seed
    print(f"seed {seed}, {arguments.minutes:g} minutes", flush=True)

    # A listener's errors are meant to happen; anything else is not.
    def unraisable(what: sys.UnraisableHookArgs) -> None:
        if what.exc_type is not MeantError:
            faults.add(f"unraisable: {what.exc_value!r} in {what.object!r}")

    sys.unraisablehook = unraisable
    world = World(seed)
    end = time.monotonic() + 60 * arguments.minutes
    sizes: list[Size] = []
    number = 0
    while time.monotonic() < end and not faults.found:
        # A hang ends the run with every thread's stack.
        faulthandler.dump_traceback_later(6 * PATIENCE, exit=True)
        try:
            play_round(world, number)
        except BaseException:
            faults.add(traceback.format_exc())
        gc.collect()
        sizes.append(Size.now())
        number += 1
    if not faults.found:
        compare(sizes)
        stats = world.scheduler.stats()
        faults.check(world.scheduler.shutdown(timeout=PATIENCE), "the last shutdown")
        ended = stats.done + stats.failed + stats.cancelled
        calls = sum(world.calls.values())
        print(f"{number} rounds, {calls} calls, {ended} tasks, {stats.runs} runs: {stats}")
    faulthandler.cancel_dump_traceback_later()
    if faults.found:
        print(f"FAILED with seed {seed} in round {number - 1}, {len(faults.found)} faults:")
        for fault in faults.found[:10]:
            print(f"- {fault}")
        return 1
    print(f"no fault; seed {seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
