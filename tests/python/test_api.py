"""The Python face: names, options, decorators, reprs, values, types."""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib.resources
import inspect
import pickle
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from helpers import WATCHDOG
from worlds import World

import duetime
from duetime import (
    CancelOutcome,
    ControlOutcome,
    Event,
    EventKind,
    FixedDelay,
    FixedRate,
    Lateness,
    ManualClock,
    Missed,
    OneTime,
    Percentiles,
    Run,
    Scheduler,
    Stats,
    Task,
    TaskInfo,
    TaskState,
    current_run,
    retry,
)


def test_every_public_name_is_listed_documented_and_of_this_package() -> None:
    assert set(duetime.__all__) <= set(dir(duetime))
    for name in duetime.__all__:
        value = getattr(duetime, name)
        if inspect.isclass(value) or inspect.isfunction(value) or inspect.isbuiltin(value):
            assert value.__doc__, name
            assert (value.__module__ or "").startswith("duetime"), name


def test_every_public_method_is_documented() -> None:
    for kind in (Scheduler, Task, Run, ManualClock, FixedRate, FixedDelay, OneTime):
        for name, value in vars(kind).items():
            if not name.startswith("_"):
                assert inspect.getdoc(value), f"{kind.__name__}.{name}"


def test_the_package_is_typed() -> None:
    assert importlib.resources.files(duetime).joinpath("py.typed").is_file()


@pytest.mark.parametrize("kind", [TaskState, CancelOutcome, ControlOutcome, EventKind, Missed])
def test_enums_are_enums(kind: Any) -> None:
    assert issubclass(kind, enum.Enum)
    for member in kind:
        assert kind[member.name] is member
        assert pickle.loads(pickle.dumps(member)) is member
        assert member.name in repr(member)


@pytest.mark.parametrize("kind", [Event, TaskInfo, Stats, Lateness, Percentiles])
def test_records_are_frozen_dataclasses(kind: Any) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen


def test_the_fields_of_the_records() -> None:
    def fields(kind: Any) -> list[str]:
        return [field.name for field in dataclasses.fields(kind)]

    assert set(fields(Event)) == {
        "kind", "task_id", "time", "due", "run", "attempt", "lateness", "duration", "error",
        "next_due", "will_retry", "missed", "stack",
    }  # fmt: skip
    assert set(fields(TaskInfo)) == {
        "id", "state", "due", "runs", "failures", "missed", "error", "started", "finished",
            "paused",
    }  # fmt: skip
    assert set(fields(Stats)) == {
        "workers", "waiting", "running", "runs", "failures", "done", "failed", "cancelled",
        "missed", "paused", "crowded", "lateness", "stuck",
    }  # fmt: skip
    assert fields(Lateness) == ["queue", "gil"]
    assert fields(Percentiles) == ["count", "p50", "p90", "p99", "max"]


def test_what_the_constructors_take_by_position() -> None:
    with pytest.raises(TypeError):
        Scheduler(1, ManualClock())
    with pytest.raises(TypeError):
        Task("t", 5.0, print)
    with pytest.raises(TypeError):
        Task("t", job=print)
    with pytest.raises(TypeError):
        Task("t", due=5.0)
    with pytest.raises(TypeError):
        Scheduler(1, colour="red")


def test_a_task_shows_what_it_was_made_with() -> None:
    rule = FixedRate(60)
    task = Task("t", due=5, job=print, args=(1,), recurrence=rule, priority=3)
    assert (task.id, task.priority, task.recurrence) == ("t", 3, rule)
    assert (task.runs, task.failures, task.missed, task.error) == (0, 0, 0, None)
    assert Task(due=5, job=print).recurrence == OneTime()
    for name in ("id", "state", "due", "priority", "recurrence", "runs", "failures", "missed"):
        with pytest.raises(AttributeError):
            setattr(task, name, None)


def test_a_task_is_the_same_however_the_class_is_called() -> None:
    """Where no options are given the call goes another way inside."""
    made = "".join(["d", "ue"])  # not the string that the compiler has for the name
    tasks: list[Any] = [
        Task(due=5, job=pow, args=(2, 3)),
        Task(job=pow, args=[2, 3], due=5),
        Task(None, due=5, job=pow, args=(2, 3)),
        Task(id=None, due=5, job=pow, args=(2, 3)),
        Task(due=5, job=pow, args=(2, 3), recurrence=None),
        Task(**{made: 5, "job": pow, "args": (2, 3)}),
        Task(*[None], due=5, job=pow, args=(2, 3)),
        functools.partial(Task, due=5)(job=pow, args=(2, 3)),
        Task.__new__(Task, due=5, job=pow, args=(2, 3)),
    ]
    clock = ManualClock()
    with Scheduler(clock=clock) as scheduler:
        scheduler.schedule_all(tasks)
        clock.advance(5)
        assert [(task.due, task.result()) for task in tasks] == [(5.0, 8)] * len(tasks)
    assert [Task("t", due=5, job=pow).id, Task(id="t", due=5, job=pow).id] == ["t", "t"]


@pytest.mark.parametrize(
    ("args", "keywords", "message"),
    [
        ((), {}, "missing 2 required keyword arguments: 'due' and 'job'"),
        (("t",), {"due": 5}, "missing 1 required keyword argument: 'job'"),
        (("t", 5), {"job": pow}, "takes from 0 to 1 positional arguments but 2 were given"),
        (("t",), {"id": "t", "due": 5, "job": pow}, "got multiple values for argument 'id'"),
        ((), {"due": 5, "job": pow, "jobs": 5}, "got an unexpected keyword argument 'jobs'"),
    ],
)
def test_a_call_of_the_class_that_does_not_fit_says_why(
    args: Any, keywords: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(f'Task.__new__() {message}')}"):
        Task(*args, **keywords)


def test_after_at_and_every_take_the_options_of_a_task(world: World) -> None:
    policy = retry.FixedDelay(2, 60)
    options: dict[str, Any] = {"priority": 7, "retry": policy}
    tasks = [
        world.scheduler.after(3600, print, 1, id="after", **options),
        world.scheduler.at(world.now() + 3600, print, 1, id="at", **options),
        world.scheduler.every(3600, print, 1, id="every", max_runs=3, **options),
        world.scheduler.every(3600, print, id="until", until=world.now() + 9000, **options),
    ]
    assert [task.id for task in tasks] == ["after", "at", "every", "until"]
    assert all(task.priority == 7 for task in tasks)
    assert all(type(task) is Task for task in tasks)
    for call in (world.scheduler.after, world.scheduler.at, world.scheduler.every):
        with pytest.raises(TypeError):
            call(3600, print, colour="red")


def test_schedule_returns_the_task_it_was_given(world: World) -> None:
    task = Task("t", due=world.now() + 3600, job=print)
    assert world.scheduler.schedule(task) is task
    assert world.scheduler.get("t") is task


def test_every_is_a_decorator(sim: World) -> None:
    seen: list[str] = []

    def job() -> None:
        seen.append("ran")

    decorated = sim.scheduler.every(10, id="t", max_runs=2)(job)
    assert decorated is job
    assert sim.scheduler.info("t").state is TaskState.WAITING
    sim.advance(30)
    assert seen == ["ran", "ran"]
    decorated()
    assert len(seen) == 3, "the function is still a function"


def test_a_decorator_with_a_first_and_a_rule(sim: World) -> None:
    @sim.scheduler.every(FixedDelay(timedelta(seconds=10)), first=1, id="t")
    def job() -> None: ...

    assert sim.scheduler.info("t").due - sim.now() == 1


def test_the_repr_says_what_a_person_wants_to_know(
    make_scheduler: Callable[..., Scheduler],
) -> None:
    clock = ManualClock()
    scheduler = make_scheduler(1, clock=clock)
    task = scheduler.every(600, lambda: current_run().number != 2, id="report")
    clock.advance(2148)
    assert repr(task) == "<Task 'report' WAITING due in 4m12s, every 10m, 3 runs, 1 failure>"


def test_a_task_tells_its_group_and_what_it_depends_on(
    make_scheduler: Callable[..., Scheduler],
) -> None:
    clock = ManualClock()
    scheduler = make_scheduler(1, clock=clock, limits={"db": 1})
    parent = Task(due=5, job=int)
    child = Task("c", due=60, job=int, depends_on=[parent, "other"], group="db")
    assert (child.group, child.depends_on) == ("db", (parent, "other"))
    assert (parent.group, parent.depends_on) == (None, ())
    other = Task("other", due=0, job=int, group="db")
    scheduler.schedule_all([child, parent, other])
    assert (other.group, other.depends_on) == ("db", ())
    for held in (child, scheduler.get("c")):
        assert held is not None
        assert (held.group, held.depends_on) == ("db", (parent.id, "other"))
    after = f"after {parent.id} and 'other', group 'db'"
    assert repr(child) == f"<Task 'c' WAITING due in 1m, {after}>"
    clock.advance(60)
    assert repr(child) == f"<Task 'c' DONE {after}, 1 run>"
    many = scheduler.after(1, int, depends_on=[other, other, other, other])
    assert "after 4 tasks" in repr(many)


def test_a_repr_for_every_state(world: World) -> None:
    new = Task("new", due=5, job=print)
    done = world.scheduler.after(0, int, id="done")
    failed = world.scheduler.after(0, lambda: False, id=7)
    cancelled = world.scheduler.after(3600, int, id="cancelled")
    cancelled.cancel()
    world.run_until_idle()
    assert repr(new).startswith("<Task 'new'")
    assert repr(done).startswith("<Task 'done' DONE")
    assert repr(failed).startswith("<Task 7 FAILED")
    assert repr(cancelled).startswith("<Task 'cancelled' CANCELLED")
    assert "1 run" in repr(done)
    assert "1 failure" in repr(failed)


def test_the_other_reprs(world: World) -> None:
    assert "Scheduler" in repr(world.scheduler)
    assert "ManualClock" in repr(ManualClock(5))
    assert repr(world.scheduler.stats()).startswith("Stats(")

    def job() -> str:
        return repr(current_run())

    assert "'t'" in world.scheduler.after(0, job, id="t").result(WATCHDOG)


def test_a_run_says_what_it_is(sim: World) -> None:
    start = sim.now()
    seen: list[Any] = []

    def job() -> bool:
        run = current_run()
        assert type(run) is Run
        seen.append((run.id, run.due - start, run.now - start, run.attempt, run.number))
        return run.number != 2

    assert current_run() is None
    sim.scheduler.every(10, job, id="t", retry=retry.FixedDelay(1, 3))
    sim.advance(30)
    assert seen == [
        ("t", 10, 10, 1, 1),
        ("t", 20, 20, 1, 2),
        ("t", 23, 23, 2, 3),
        ("t", 30, 30, 1, 4),
    ]


@pytest.mark.parametrize("kind", ["manual", "real"])
def test_a_run_that_slept_its_time_was_not_stopped(
    make_scheduler: Callable[..., Scheduler], kind: str
) -> None:
    clock = ManualClock() if kind == "manual" else None
    scheduler = make_scheduler(1, clock=clock)

    def job() -> tuple[bool, bool, bool]:
        run, before = current_run(), scheduler.now()
        answers = run.wait(0.01), run.wait(0)
        return *answers, scheduler.now() - before >= 0.01

    task = scheduler.after(0, job)
    if clock is not None:
        clock.advance(1)
    assert task.result(WATCHDOG) == (False, False, True)


def test_rules_are_values() -> None:
    for rule, same, other in (
        (FixedRate(60), FixedRate(timedelta(minutes=1)), FixedRate(61)),
        (FixedRate(60), FixedRate(60, missed=Missed.SKIP), FixedRate(60, missed=Missed.CATCH_UP)),
        (FixedDelay(60), FixedDelay(60.0), FixedDelay(61)),
        (OneTime(), OneTime(), FixedDelay(60)),
    ):
        assert rule == same
        assert rule != other
        assert hash(rule) == hash(same)
        assert pickle.loads(pickle.dumps(rule)) == rule


def test_stats_count_everything(sim: World) -> None:
    sim.scheduler.after(0, int)
    sim.scheduler.after(0, lambda: False)
    sim.scheduler.after(3600, int).cancel()
    sim.scheduler.every(10, int, first=0)
    sim.run_until_idle()
    assert sim.scheduler.stats() == Stats(
        workers=1,
        waiting=1,
        running=0,
        runs=3,
        failures=1,
        done=1,
        failed=1,
        cancelled=1,
        missed=0,
        lateness=Lateness(Percentiles(3), Percentiles(3)),
    )


def test_records_have_just_the_fields_that_are_declared(real: Scheduler) -> None:
    """The native module fills them by name, past their own `__init__`."""
    events: list[Event] = []
    real.add_listener(events.append)
    task = real.after(0, int)
    assert task.wait(WATCHDOG) and real.wait_idle(WATCHDOG)
    stats = real.stats()
    parts = (stats.lateness, stats.lateness.queue, stats.lateness.gil)
    for record in (*events, task.info(), stats, *parts):
        names = [field.name for field in dataclasses.fields(record)]
        assert list(vars(record)) == names
        assert dataclasses.replace(record) == record
