"""What must be let go: of a run, a task, a scheduler, an application."""

from __future__ import annotations

import contextvars
import gc
import sys
import threading
import weakref
from typing import Any

import pytest
from support import (
    HOUR,
    STATES,
    WATCHDOG,
    CellClock,
    failing,
    noop,
    resident_kb,
    scaled,
    threads,
    until,
    within,
)

import duetime
from duetime import FixedDelay, FixedRate, Missed, Scheduler, Task, retry


class Big:
    """Something whose end can be seen."""

    def __init__(self) -> None:
        self.payload = bytes(100_000)

    def method(self, *_args: Any) -> None:
        pass


def dead(*references: weakref.ref[Any]) -> bool:
    gc.collect()
    return all(reference() is None for reference in references)


@pytest.mark.parametrize("rule", ["rate", "catch up", "delay"])
@pytest.mark.parametrize("listen", [False, True])
def test_a_series_of_many_runs_is_flat(make_manual: Any, rule: str, listen: bool) -> None:
    """ldap3#529: each run of a long-lived strategy left an entry behind."""
    bench = make_manual()
    bench.scheduler.remove_listener(bench.log.append)
    if listen:
        bench.scheduler.add_listener(noop)

    def job() -> None:
        if duetime.current_run().number % 2:
            raise ValueError("on purpose")

    recurrence = {
        "rate": FixedRate(1),
        "catch up": FixedRate(1, Missed.CATCH_UP),
        "delay": FixedDelay(1),
    }[rule]
    task = bench.scheduler.every(recurrence, job)
    runs = scaled(1_000_000, 10_000)
    move = bench.jump if rule == "catch up" else bench.advance
    move(runs // 2)
    blocks, kilobytes = sys.getallocatedblocks(), resident_kb()
    move(runs // 2)
    assert (task.runs, task.failures) == (runs, runs // 2)
    assert sys.getallocatedblocks() - blocks < runs // 20
    assert resident_kb() - kilobytes < 4_000


@pytest.mark.parametrize("end", ["done", "failed", "cancelled", "retried"])
def test_finished_tasks_are_forgotten_in_the_end(make_manual: Any, end: str) -> None:
    """ldap3#529: the same for very many tasks that live once."""
    bench = make_manual(history=100)
    bench.scheduler.remove_listener(bench.log.append)
    tasks = scaled(500_000, 10_000)

    def half() -> None:
        for _ in range(tasks // 20):
            for _ in range(10):
                if end == "cancelled":
                    bench.scheduler.cancel(bench.scheduler.after(HOUR, noop))
                elif end == "retried":
                    bench.scheduler.after(1, failing(), retry=retry.FixedDelay(1, 1))
                else:
                    bench.scheduler.after(1, noop if end == "done" else failing())
            if end != "cancelled":
                bench.clock.advance(2)

    within(half)
    blocks, kilobytes = sys.getallocatedblocks(), resident_kb()
    within(half)
    assert len(bench.scheduler.tasks()) == 100
    assert sys.getallocatedblocks() - blocks < tasks // 20
    assert resident_kb() - kilobytes < 4_000


class Application:
    """Holds the scheduler that holds it."""

    def __init__(self, clock: Any = None) -> None:
        self.scheduler = Scheduler(2, clock=clock)
        self.task = self.scheduler.every(HOUR, self.tick)
        self.once = self.scheduler.after(HOUR, self.tick, self)
        self.scheduler.add_listener(self.listen)
        self.once.add_done_callback(self.listen)
        assert self.scheduler.after(0, self.tick).wait(WATCHDOG)

    def tick(self, *_args: Any) -> None:
        pass

    def listen(self, _event: Any) -> None:
        pass


@pytest.mark.parametrize("clock", ["real", "custom", "manual"])
def test_an_application_and_its_scheduler_are_collected_together(clock: str) -> None:
    """ompl#1442: a cycle through a callback was never freed, and its threads went on."""
    before = threads()
    clocks = {"real": lambda: None, "custom": CellClock, "manual": duetime.ManualClock}
    application = Application(clocks[clock]())
    assert threads() - before
    reference = weakref.ref(application)
    del application
    until(lambda: dead(reference), "the application is collected")
    until(lambda: not threads() - before, "its threads have ended")


def test_a_scheduler_in_its_own_task_is_collected() -> None:
    """ompl#1442: the shortest cycle: scheduler, task, job, scheduler."""
    before = threads()
    held: dict[str, Any] = {"scheduler": Scheduler(1), "big": Big()}
    reference = weakref.ref(held["big"])
    held["task"] = held["scheduler"].every(HOUR, held.clear)
    del held
    until(lambda: dead(reference), "the cycle is collected")
    until(lambda: not threads() - before, "its thread has ended")


@pytest.mark.parametrize(
    "how", ["cancel", "other thread", "shutdown", "replace", "forget the ends"]
)
def test_what_a_task_held_is_free_after_its_end(make: Any, how: str) -> None:
    """PyO3#4095: references dropped without the GIL were put off for ever."""
    scheduler = make()
    count = scaled(100_000, 1000)
    things = [Big.__new__(Big) for _ in range(count)]
    references = [weakref.ref(thing) for thing in things]
    tasks = [
        scheduler.after(HOUR, thing.method, thing, id=number) for number, thing in enumerate(things)
    ]
    del things
    if how == "cancel":
        assert all(scheduler.cancel(number) for number in range(count))
    elif how == "other thread":
        within(lambda: [task.cancel() for task in tasks])
    elif how == "shutdown":
        within(scheduler.shutdown)
    elif how == "replace":
        for number in range(count):
            scheduler.schedule(Task(number, due=HOUR, job=noop), replace=True)
    else:
        for task in tasks:
            task.cancel()
            scheduler.forget(task.id)
    scheduler.stats()  # the next call after the cancels
    assert dead(*references)
    assert tasks[0].state is STATES.CANCELLED


@pytest.mark.parametrize("end", ["done", "failed", "cancelled", "shutdown", "series", "retry"])
def test_the_context_of_a_task_is_free_after_its_end(make: Any, end: str) -> None:
    """llama-agents#486: a finished handler kept its context, and all that it held."""
    scheduler, variable = make(), contextvars.ContextVar("variable", default=None)
    references: list[weakref.ref[Any]] = []

    def schedules() -> Task:
        big = Big()
        references.append(weakref.ref(big))
        variable.set(big)
        if end in ("done", "failed"):
            return scheduler.after(0, noop if end == "done" else failing())
        if end == "series":
            return scheduler.every(0.001, noop, max_runs=3)
        if end == "retry":
            return scheduler.after(0, failing(), retry=retry.FixedDelay(2, 0.001))
        return scheduler.after(HOUR, noop)

    task = contextvars.copy_context().run(schedules)
    if end == "cancelled":
        assert task.cancel()
    elif end == "shutdown":
        within(scheduler.shutdown)
    assert task.wait(WATCHDOG)
    if end in ("cancelled", "shutdown"):
        assert dead(*references)
    until(lambda: dead(*references), "the context is free")


@pytest.mark.parametrize("end", ["done", "failed"])
def test_an_idle_worker_holds_nothing_of_its_last_job(make: Any, end: str) -> None:
    """llama-agents#486: the last job of a worker stayed alive until its next one."""
    scheduler, big = make(workers=1), Big()
    reference = weakref.ref(big)

    def job(big: Big) -> Big:
        if end == "failed":
            raise ValueError(big)
        return big

    task = scheduler.after(0, job, big)
    assert task.wait(WATCHDOG)
    del task, big, job
    until(lambda: dead(reference), "the argument is free")
    assert scheduler.after(0, noop).wait(WATCHDOG)


def test_a_finalizer_may_use_the_scheduler(make: Any) -> None:
    """PyO3#4095: what is dropped may call back: `__del__` in every place of a drop."""
    scheduler, calls = make(workers=2), []

    class Last:
        def __init__(self, name: str) -> None:
            self.name = name

        def __del__(self) -> None:
            scheduler.after(0, noop)
            calls.append((self.name, scheduler.stats().workers >= 0, scheduler.next_due()))

        def job(self) -> None:
            pass

    assert scheduler.cancel(scheduler.after(HOUR, Last("cancel").job))
    assert scheduler.after(0, Last("run").job).wait(WATCHDOG)
    scheduler.after(HOUR, Last("replace").job, id="r")
    scheduler.schedule(Task("r", due=scheduler.now() + HOUR, job=noop), replace=True)
    with pytest.raises(duetime.DuplicateTaskError):
        scheduler.after(HOUR, Last("refused").job, id="r")
    gc.collect()
    names = ["cancel", "refused", "replace", "run"]
    until(lambda: sorted(call[0] for call in calls) == names, "the finalizers")


def test_threads_that_only_schedule_leave_nothing(make: Any) -> None:
    """PyO3#4095: references made on threads that are gone."""
    scheduler, references = make(), []

    def schedules() -> None:
        big = Big()
        references.append(weakref.ref(big))
        scheduler.after(HOUR, big.method, id=threading.get_ident()).cancel()
        scheduler.forget(threading.get_ident())

    for _ in range(scaled(1000, 20)):
        within(schedules)
    assert dead(*references)


@pytest.mark.parametrize("wait", ["result", "exception", "wait", "wait_idle"])
def test_waits_with_a_long_timeout_leave_nothing(make: Any, wait: str) -> None:
    """wpull#166: the deadline of each wait stayed in a queue until it was due."""
    scheduler, rounds = make(history=100), scaled(200_000, 4000)

    def waits() -> None:
        for _ in range(rounds // 2):
            task = scheduler.after(0, noop)
            getattr(scheduler if wait == "wait_idle" else task, wait)(timeout=HOUR)

    within(waits)
    blocks, kilobytes = sys.getallocatedblocks(), resident_kb()
    within(waits)
    assert within(scheduler.wait_idle)
    assert (scheduler.next_due(), scheduler.tasks(STATES.WAITING)) == (None, [])
    assert sys.getallocatedblocks() - blocks < rounds // 20
    assert resident_kb() - kilobytes < 4_000


@pytest.mark.parametrize("options", [{"timeout": HOUR}, {"timeout": HOUR, "interrupt": True}])
def test_tasks_with_a_long_timeout_leave_nothing(make: Any, options: Any) -> None:
    """wpull#166: the same, of the deadlines of tasks that end at once."""
    scheduler, rounds = make(history=100), scaled(200_000, 4000)

    def runs() -> None:
        for _ in range(rounds // 2):
            scheduler.after(0, noop, **options)
        assert scheduler.wait_idle(WATCHDOG)

    within(runs)
    blocks, kilobytes = sys.getallocatedblocks(), resident_kb()
    within(runs)
    assert scheduler.stats().stuck == 0
    assert sys.getallocatedblocks() - blocks < rounds // 20
    assert resident_kb() - kilobytes < 4_000
