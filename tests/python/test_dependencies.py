"""Dependencies: how they are named, when their dependents run, and what ends these."""

from __future__ import annotations

import gc
import queue
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Thread
from worlds import World

from duetime import (
    CancelOutcome,
    DependencyCycleError,
    DependencyFailed,
    Event,
    EventKind,
    FixedRate,
    ManualClock,
    Scheduler,
    Task,
    TaskState,
    UnknownTaskError,
    retry,
)


def refuse() -> None:
    raise ValueError("no luck")


def root(task: Task) -> str:
    """What the message of a task's `DependencyFailed` says of it."""
    assert task.cancelled()
    for ask in (task.result, task.exception):
        with pytest.raises(CancelledError) as caught:
            ask()
        assert isinstance(caught.value.__cause__, DependencyFailed)
        assert str(caught.value) == f"the task was cancelled: {caught.value.__cause__}"
    assert isinstance(task.error, DependencyFailed)
    assert task.info().error == str(task.error)
    return str(task.error).removeprefix("it depends on task ")


def test_a_task_runs_after_all_that_it_depends_on(world: World) -> None:
    order: list[str] = []
    with world.hold():
        a = world.scheduler.after(world.step, order.append, "a", id="a")
        b = world.scheduler.after(2 * world.step, order.append, "b")
        world.scheduler.after(0, order.append, "c", depends_on=["a", b], id="c")
        world.scheduler.after(4 * world.step, order.append, "d", depends_on=[a], id="d")
    world.advance(5 * world.step)
    assert order == ["a", "b", "c", "d"]


def test_lateness_counts_from_its_own_due_time(sim: World) -> None:
    log = sim.log()
    start = sim.now()
    a = sim.scheduler.at(start + 5, int)
    b = sim.scheduler.at(start + 2, int, depends_on=[a], id="b")
    sim.advance(10)
    assert (b.due, b.info().started) == (start + 2, start + 5)
    assert [(event.time, event.due) for event in log.of("DUE", "b")] == [(start + 5, start + 2)]
    assert [event.lateness for event in log.of("STARTED", "b")] == [3]


def test_every_way_to_name_them(manual: World) -> None:
    order: list[int] = []

    def step(number: int, **options: Any) -> Task:
        return Task(due=0, job=order.append, args=(number,), **options)

    first = step(1)
    named = step(2, id="named", depends_on=[first])
    by_object = step(3, depends_on=(named,))
    by_id = step(4, depends_on={"named": None}, id=4)
    both = step(5, depends_on=iter([by_object, by_id, by_object, 4]))
    # In whatever order they come.
    manual.scheduler.schedule_all([both, by_object, by_id, named, first])
    manual.advance(0)
    assert order == [1, 2, 3, 4, 5]
    manual.scheduler.every(1, order.append, 6, first=0, max_runs=1, depends_on=[both])
    decorate: Callable[..., Any] = manual.scheduler.every(
        1, first=0, max_runs=1, depends_on=["named"], id="decorated"
    )
    decorate(lambda: order.append(7))
    manual.scheduler.after(0, order.append, 8, depends_on=["decorated"])
    manual.advance(0)
    assert order == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("wrong", ["abc", b"abc", 1, 1.5, [1.5], [True], [None], [["a"]], [b"a"]])
def test_what_is_no_task_and_no_id_is_refused_at_once(manual: World, wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^depends_on must be"):
        Task(due=0, job=int, depends_on=wrong)
    with pytest.raises(TypeError, match=r"^depends_on must be"):
        manual.scheduler.after(0, int, depends_on=wrong)
    with pytest.raises(ValueError, match="64 bits"):
        Task(due=0, job=int, depends_on=[2**70])


def test_none_of_them_is_no_dependency(manual: World) -> None:
    empty: tuple[Task, ...] = ()
    task = manual.scheduler.after(0, lambda: 42, depends_on=empty)
    manual.advance(0)
    assert task.result() == 42


def test_a_failure_cancels_all_that_depend_on_it(world: World) -> None:
    log = world.log()
    with world.hold():
        world.scheduler.after(world.step, refuse, id="a")
        b = world.scheduler.after(0, int, depends_on=["a"], id="b")
        c = world.scheduler.after(0, int, depends_on=[b], id="c")
        done: list[Task] = []
        c.add_done_callback(done.append)
    world.advance(2 * world.step)
    for task in (b, c):
        assert root(task) == "'a', which failed: ValueError: no luck"
        assert task.runs == task.failures == 0
        assert log.kinds(task.id) == ["SCHEDULED", "CANCELLED"]
        [event] = log.of("CANCELLED", task.id)
        assert isinstance(event.error, DependencyFailed)
        assert str(event.error) == str(task.error)
    assert done == [c]
    # The same for one that comes too late.
    late = world.scheduler.after(0, int, depends_on=["c"], id="late")
    assert root(late) == "'a', which failed: ValueError: no luck"
    assert log.kinds("late") == ["SCHEDULED", "CANCELLED"]
    assert late.cancel() is CancelOutcome.FINISHED


def test_a_cancel_is_passed_on_and_names_who_was_cancelled(manual: World) -> None:
    a = manual.scheduler.after(5, int)
    b = manual.scheduler.after(0, int, depends_on=[a], id="b")
    c = manual.scheduler.after(0, int, depends_on=[b])
    assert b.cancel()
    assert root(c) == "'b', which was cancelled"
    assert b.error is None
    with pytest.raises(CancelledError) as caught:
        b.result()
    assert caught.value.__cause__ is None
    manual.advance(5)
    assert a.state is TaskState.DONE


def test_a_retry_is_not_the_end(manual: World) -> None:
    attempts: list[int] = []

    def third_time() -> bool:
        attempts.append(1)
        return len(attempts) == 3

    a = manual.scheduler.after(0, third_time, retry=retry.FixedDelay(5, 10))
    b = manual.scheduler.after(0, len, attempts, depends_on=[a])
    manual.advance(19)
    assert b.state is TaskState.WAITING
    manual.advance(1)
    assert b.result() == 3


def test_unknown_tasks_are_refused_and_nothing_changes(manual: World) -> None:
    scheduler = manual.scheduler
    with pytest.raises(UnknownTaskError, match="'nobody'"):
        scheduler.after(0, int, id="a", depends_on=["nobody"])
    loose, named = Task(due=0, job=int), Task("n", due=0, job=int)
    for task in (loose, named):
        child = Task(due=0, job=int, depends_on=[task])
        with pytest.raises(UnknownTaskError, match=r"(task|task 'n'), which .* not scheduled"):
            scheduler.schedule_all([Task("a", due=0, job=int), child])
        assert scheduler.stats().waiting == 0
        scheduler.schedule_all([child, task])
        manual.advance(0)
    with Scheduler(clock=ManualClock()) as other:
        foreign = other.after(5, int, id="f")
        with pytest.raises(ValueError, match="a task of this scheduler, not 'f'"):
            scheduler.after(0, int, depends_on=[foreign])
    assert scheduler.stats().done == 4


def test_circles_are_refused_with_their_path(manual: World) -> None:
    scheduler = manual.scheduler
    x = Task("x", due=0, job=int)
    a = Task("a", due=0, job=int, depends_on=["c", x])
    b = Task(due=0, job=int, depends_on=[a])
    c = Task("c", due=0, job=int, depends_on=[b])
    with pytest.raises(DependencyCycleError, match=r"circle: 'a' → 'c' → tasks\[2\] → 'a'$"):
        scheduler.schedule_all([x, a, b, c])
    assert scheduler.tasks() == []
    with pytest.raises(DependencyCycleError, match=r"'a' → 'a'$"):
        scheduler.schedule(Task("a", due=0, job=int, depends_on=["a"]))
    with pytest.raises(DependencyCycleError, match=r"'a' → 'a'$"):
        scheduler.after(0, int, id="a", depends_on=["a"])
    # What was refused can be scheduled otherwise.
    scheduler.schedule_all([x, Task("c", due=0, job=int)])
    scheduler.schedule_all([a, b])
    manual.advance(0)
    assert b.done()


def test_a_series_without_an_end_is_refused(manual: World) -> None:
    scheduler = manual.scheduler
    scheduler.every(10, int, id="tick")
    with pytest.raises(ValueError, match=r"a task that ends, .* not 'tick'"):
        scheduler.after(0, int, depends_on=["tick"])

    start = manual.now()

    class Twice:
        def next_due(self, due: float, _finished: float) -> float | None:
            return due + 5 if due < start + 10 else None

    ends = [
        scheduler.every(10, int, max_runs=1),
        scheduler.every(10, int, until=start + 15),
        scheduler.every(Twice(), int, first=5),
    ]
    task = scheduler.after(0, int, depends_on=ends)
    manual.advance(9)
    assert not task.done()
    manual.advance(1)
    assert task.done()


def test_who_is_replaced_takes_its_dependents_along(manual: World) -> None:
    scheduler = manual.scheduler
    scheduler.after(5, int, id="a")
    child = scheduler.after(0, int, depends_on=["a"])
    new = Task("a", due=1, job=int)
    follower = Task(due=0, job=int, depends_on=["a"])
    scheduler.schedule_all([follower, new], replace=True)
    assert root(child) == "'a', which was cancelled"
    manual.advance(1)
    assert follower.done() and not follower.cancelled()


def test_a_blocked_task_counts_as_waiting(manual: World) -> None:
    scheduler = manual.scheduler
    a = scheduler.after(5, int)
    b = scheduler.after(0, int, depends_on=[a], id="b")
    assert b.state is TaskState.WAITING and not b.running() and not b.done()
    assert scheduler.stats().waiting == 2
    assert scheduler.next_due() == manual.now() + 5
    assert scheduler.get("b") is b
    assert scheduler.info("b").state is TaskState.WAITING
    assert scheduler.wait_idle(0)
    assert "WAITING" in repr(b)


@pytest.mark.parametrize("drain", [False, True])
def test_a_shutdown_cancels_blocked_tasks(make_world: Callable[..., World], drain: bool) -> None:
    world = make_world()
    gate = Gate()
    a = world.scheduler.after(0, gate)
    b = world.scheduler.after(0, int, depends_on=[a])
    waiter = Thread(b.result)
    gate.entered()
    world.scheduler.shutdown(wait=False, drain=drain)
    with pytest.raises(CancelledError):
        waiter.outcome()
    assert b.error is None
    gate.open()
    assert a.result(WATCHDOG) == "through"


def test_a_job_may_schedule_what_depends_on_it(manual: World) -> None:
    def job() -> Task:
        return manual.scheduler.after(0, lambda: "after", depends_on=["parent"])

    task = manual.scheduler.after(0, job, id="parent")
    manual.advance(0)
    assert task.result().result() == "after"


def test_listeners_hear_the_parent_first(manual: World) -> None:
    heard: list[tuple[str, Any, TaskState]] = []
    scheduler = manual.scheduler

    def listen(event: Event) -> None:
        heard.append((event.kind.name, event.task_id, scheduler.info("c").state))

    scheduler.add_listener(listen, kinds=[EventKind.FAILED, EventKind.CANCELLED])
    tasks = [
        Task("a", due=0, job=refuse),
        Task("b", due=0, job=int, depends_on=["a"]),
        Task("c", due=0, job=int, depends_on=["b"]),
    ]
    scheduler.schedule_all(tasks)
    manual.advance(0)
    names = [("FAILED", "a"), ("CANCELLED", "b"), ("CANCELLED", "c")]
    # All are cancelled in the moment in which the first fails.
    assert heard == [(*name, TaskState.CANCELLED) for name in names]


def test_what_a_blocked_task_held_is_let_go(manual: World) -> None:
    class Big:
        def __call__(self) -> None: ...

    parent = manual.scheduler.after(5, refuse)
    big, other = Big(), Big()
    dead, other_dead = weakref.ref(big), weakref.ref(other)
    child = manual.scheduler.after(0, big, depends_on=[parent])
    cancelled = manual.scheduler.after(0, other, depends_on=[parent])
    del big, other
    assert cancelled.cancel()
    assert other_dead() is None and dead() is not None
    manual.advance(5)
    assert child.cancelled()
    assert dead() is None


def test_circles_of_objects_are_collected() -> None:
    class App:
        def __init__(self) -> None:
            self.scheduler = Scheduler(1, clock=ManualClock())
            self.first = self.scheduler.after(60, int)
            self.second = self.scheduler.after(0, self.work, depends_on=[self.first])
            loose = Task(due=0, job=self.work)
            self.loose = Task(due=0, job=self.work, depends_on=[loose, self.second])

        def work(self) -> None: ...

    app = App()
    dead = weakref.ref(app)
    del app
    gc.collect()
    assert dead() is None


def test_a_long_chain_and_a_long_circle(manual: World) -> None:
    count = 10_000

    def chain(first: list[int]) -> list[Task]:
        jobs: list[Callable[[], object]] = [refuse, *[int] * (count - 1)]
        parents = [first, *([n] for n in range(count - 1))]
        return [
            Task(n, due=1, job=job, depends_on=needs)
            for n, (job, needs) in enumerate(zip(jobs, parents, strict=True))
        ]

    with pytest.raises(DependencyCycleError, match=r"^tasks depend .* 0 → 9999 → .* → 1 → 0$"):
        manual.scheduler.schedule_all(chain([count - 1]))
    tasks = manual.scheduler.schedule_all(chain([]))
    manual.advance(1)
    assert tasks[0].state is TaskState.FAILED
    assert {task.state for task in tasks[1:]} == {TaskState.CANCELLED}
    assert root(tasks[-1]) == "0, which failed: ValueError: no luck"


def test_no_end_is_missed_by_a_child_that_comes(real: Scheduler) -> None:
    ran: list[int] = []
    parents: queue.SimpleQueue[Task] = queue.SimpleQueue()

    def schedule_children() -> list[Task]:
        return [
            real.after(0, ran.append, n, depends_on=[parents.get(timeout=WATCHDOG)])
            for n in range(2000)
        ]

    thread = Thread(schedule_children)
    for _ in range(2000):
        parents.put(real.after(0, int))
    assert all(task.wait(WATCHDOG) for task in thread.outcome())
    assert sorted(ran) == list(range(2000))


def test_a_recurring_child_waits_before_its_first_slot(manual: World) -> None:
    a = manual.scheduler.after(25, int)
    task = manual.scheduler.every(FixedRate(10), int, first=0, depends_on=[a])
    manual.advance(40)
    assert (task.runs, task.missed) == (3, 2)
