"""Threads that meet: a cancel and an end, and everything with everything."""

from __future__ import annotations

import concurrent.futures
import contextlib
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from duetime import (
    CancelOutcome,
    DuetimeError,
    Event,
    EventKind,
    ManualClock,
    Scheduler,
    Task,
    TaskState,
    retry,
)

ENDS = [EventKind.COMPLETED, EventKind.FAILED, EventKind.CANCELLED]
STALL_LIMIT = 1.0
PLAIN = ["clock", "name", "workers", "closed", "paused", "executor"]
"""The scheduler's attributes: one call reads them all."""


def check_end(task: Task, answers: list[CancelOutcome], told: list[EventKind], calls: int) -> None:
    """One state, which the answers of both cancels and all that was told agree on."""
    story = f"{task!r}: {answers}, {told}, {calls} callbacks"
    series = task.recurrence.next_due(0.0, 0.0) is not None
    assert task.done() and calls == 1, story
    assert any(answers) is (task.state is TaskState.CANCELLED and not told[:-1]), story
    if series:
        assert task.state is TaskState.CANCELLED and told[-1:] == [EventKind.CANCELLED], story
        assert len(told) <= 2, story  # a run that was stopped says so first
    else:
        assert told == [EventKind[{"DONE": "COMPLETED"}.get(task.state.name, task.state.name)]], (
            story
        )


class Race:
    """Some tasks, due at once, that two threads cancel while they run."""

    SIZE = 200

    def __init__(
        self, scheduler: Scheduler, told: dict[object, list[EventKind]], seed: int
    ) -> None:
        self.rng = random.Random(seed)
        self.told = told
        self.callbacks: Counter[int] = Counter()
        told.clear()
        self.tasks = []
        for number in range(self.SIZE):
            if number % 8:
                task = scheduler.after(0, time.sleep, 0)
            else:
                task = scheduler.every(1e-6, int, first=0)
            task.add_done_callback(lambda task: self.callbacks.update([id(task)]))
            self.tasks.append(task)
        self.answers: list[list[CancelOutcome]] = [[] for _ in self.tasks]

    def cancel(self, order: list[int]) -> None:
        for number in order:
            self.answers[number].append(self.tasks[number].cancel())

    def run(self) -> Counter[CancelOutcome]:
        # The one goes with the workers, the other against them.
        orders = [list(range(self.SIZE)), list(range(self.SIZE - 1, -1, -1))]
        time.sleep(self.rng.random() * 0.002)
        threads = [threading.Thread(target=self.cancel, args=(order,)) for order in orders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for task in self.tasks:
            assert task.wait(30), f"it does not end: {task!r}"
        return Counter(answers[0] for answers in self.answers)

    def check(self) -> None:
        for task, answers in zip(self.tasks, self.answers, strict=True):
            check_end(task, answers, self.told[task.id], self.callbacks[id(task)])


def races(quick: bool) -> str:
    """A cancel races the end: one terminal state, one terminal event, one callback."""
    rounds, seen = (10_000 if quick else 100_000) // Race.SIZE, Counter[CancelOutcome]()
    told: dict[object, list[EventKind]] = {}
    with Scheduler(2, history=1000) as scheduler:

        def hear(event: Event) -> None:
            if event.next_due is None:
                told.setdefault(event.task_id, []).append(event.kind)

        scheduler.add_listener(hear, kinds=ENDS)
        for seed in range(rounds):
            race = Race(scheduler, told, seed)
            seen += race.run()
            assert scheduler.wait_idle(30)
            race.check()
    answers = ", ".join(
        f"{outcome.name} {count}" for outcome, count in sorted(seen.items(), key=str)
    )
    assert len(seen) == 3, f"it did not race: {answers}"
    return f"{rounds * Race.SIZE} tasks, 2 cancels each: one end each; {answers}"


def fails() -> None:
    raise ValueError


def brief() -> None:
    """The life of another scheduler."""
    clock = ManualClock()
    with Scheduler(1, clock=clock) as other:
        other.after(1, int)
        clock.advance(1)
        clock.jump(1)
    other.shutdown(wait=False, drain=True)


class Hammer:
    """One thread's calls, of every public method, in a random order."""

    def __init__(self, scheduler: Scheduler, seed: int) -> None:
        self.scheduler, self.rng, self.beats = scheduler, random.Random(seed), 0
        self.last = time.monotonic()
        self.longest = 0.0
        self.tasks = [scheduler.after(0, int)]

    def calls(self) -> dict[str, Callable[[], object]]:
        scheduler, tasks, rng = self.scheduler, self.tasks, self.rng
        keep, some = tasks.append, lambda: rng.choice(tasks)
        reused = partial(rng.randint, 0, 5)
        return {
            "after": lambda: keep(scheduler.after(rng.random() * 0.002, int)),
            "after, again": lambda: keep(scheduler.after(0, int, id=reused())),
            "after, fails": lambda: keep(
                scheduler.after(0, fails, retry=retry.FixedDelay(1, 0.001))
            ),
            "at": lambda: keep(scheduler.at(scheduler.now() - 1, int)),
            "every": lambda: keep(scheduler.every(0.001, int, max_runs=3)),
            "schedule": lambda: scheduler.schedule(Task("one", due=0, job=int), replace=True),
            "schedule_all": lambda: scheduler.schedule_all(
                [Task(due=0, job=int) for _ in range(3)]
            ),
            "submit": lambda: scheduler.submit(int, "7").result(0.01),
            "map": lambda: list(scheduler.map(abs, [1, 2], timeout=0.01)),
            "cancel": lambda: (scheduler.cancel(some()), scheduler.cancel(reused())),
            "get": lambda: scheduler.get("one"),
            "info": lambda: (scheduler.info("one"), some().info()),
            "tasks": scheduler.tasks,
            "forget": lambda: scheduler.forget(reused()),
            "now": scheduler.now,
            "next_due": scheduler.next_due,
            "stats": scheduler.stats,
            "wake": scheduler.wake,
            "wait_idle": lambda: scheduler.wait_idle(timeout=0.001),
            "add_listener": lambda: scheduler.add_listener(self.listen),
            "remove_listener": lambda: scheduler.remove_listener(self.listen),
            "shutdown": brief,
            "pause": lambda: (scheduler.pause(), scheduler.resume()),
            "resume": scheduler.resume,
            "pause_task": lambda: (scheduler.pause_task(some()), scheduler.pause_task(reused())),
            "resume_task": lambda: (scheduler.resume_task(some()), scheduler.resume_task(reused())),
            "run_now": lambda: (scheduler.run_now(some()), scheduler.run_now(reused())),
            "reschedule": lambda: scheduler.reschedule(some(), scheduler.now()),
            "clock": lambda: [getattr(scheduler, name) for name in PLAIN],
            "Task.cancel": lambda: some().cancel(),
            "Task.pause": lambda: some().pause(),
            "Task.resume": lambda: some().resume(),
            "Task.run_now": lambda: some().run_now(),
            "Task.reschedule": lambda: some().reschedule(scheduler.now() + 0.001),
            "Task.preview": lambda: some().preview(3),
            "Task.wait": lambda: some().wait(0.001),
            "Task.result": lambda: some().result(0.001),
            "Task.exception": lambda: some().exception(0.001),
            "Task.add_done_callback": lambda: some().add_done_callback(repr),
            "Task.done": lambda: [(t.done(), t.running(), t.cancelled()) for t in (some(), some())],
            "Task.state": lambda: [(t.id, t.state, t.due, t.runs, t.missed) for t in (some(),)],
        }

    def listen(self, _event: Event) -> None:
        self.scheduler.stats()

    def work(self, over: threading.Event) -> None:
        calls = list(self.calls().values())
        expected = (DuetimeError, ValueError, concurrent.futures.TimeoutError)
        while not over.is_set():
            with contextlib.suppress(*expected, concurrent.futures.CancelledError):
                self.rng.choice(calls)()
            del self.tasks[1:-50]
            now = time.monotonic()
            self.longest, self.last = max(self.longest, now - self.last), now
            self.beats += 1


def untouched(calls: set[str]) -> set[str]:
    """The public methods that no call is named for."""
    named = {name.partition(",")[0] for name in calls}
    of_task = {"running", "cancelled", "info"}  # see "Task.done" and "info"
    scheduler = {name for name in vars(Scheduler) | vars(Scheduler.__base__) if name[0] != "_"}
    task = {f"Task.{n}" for n in vars(Task) if n[0] != "_" and callable(getattr(Task, n))}
    return (scheduler - set(PLAIN) - named) | (task - {f"Task.{name}" for name in of_task} - named)


def hammer(quick: bool) -> str:
    """8 threads call every public method, at a switch interval of 1 µs; none stalls."""
    scheduler, over = Scheduler(8, history=100), threading.Event()
    hammers = [Hammer(scheduler, seed) for seed in range(8)]
    left_out = untouched(set(hammers[0].calls()))
    assert not left_out, f"nobody calls {left_out}"
    threads = [threading.Thread(target=each.work, args=(over,), daemon=True) for each in hammers]
    seconds, interval = 5 if quick else 30, sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.1)
            stalled = [time.monotonic() - each.last for each in hammers]
            assert max(stalled) < 10 * STALL_LIMIT, f"stalled, in s: {stalled}"
        over.set()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive(), "a thread hangs"
    finally:
        over.set()
        sys.setswitchinterval(interval)
    assert scheduler.wait_idle(30), "it does not come to rest"
    assert scheduler.shutdown(timeout=30), "it does not end"
    calls, longest = sum(each.beats for each in hammers), max(each.longest for each in hammers)
    assert longest < STALL_LIMIT, f"a thread stalled for {longest:.2f} s"
    return f"{calls} calls in {seconds} s from 8 threads; longest {1000 * longest:.0f} ms"
