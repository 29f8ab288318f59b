"""Events: which, when, in which order, on which thread, and what a listener may do."""

from __future__ import annotations

import dataclasses
import enum
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Log, Thread
from worlds import World

from duetime import CancelOutcome, Event, EventKind, FixedRate, Scheduler, Task, current_run, retry


def test_the_kinds() -> None:
    assert issubclass(EventKind, enum.Enum)
    assert {kind.name for kind in EventKind} == {
        "SCHEDULED",
        "DUE",
        "STARTED",
        "COMPLETED",
        "FAILED",
        "CANCELLED",
        "MISSED",
        "STUCK",
    }


def test_the_order_for_one_run(world: World) -> None:
    log = world.log()
    world.scheduler.after(world.step, int, id="t")
    world.advance(world.step)
    assert log.lines() == ["SCHEDULED t", "DUE t", "STARTED t", "COMPLETED t"]


def test_the_order_for_a_failing_run(world: World) -> None:
    log = world.log()
    world.scheduler.after(0, lambda: False, id="t")
    world.run_until_idle()
    assert log.lines() == ["SCHEDULED t", "DUE t", "STARTED t", "FAILED t"]


def test_the_order_for_a_stopped_series(world: World) -> None:
    log = world.log()
    world.scheduler.every(0.001, lambda: world.scheduler.cancel("t"), first=0, id="t")
    world.advance(world.step)
    assert log.lines() == ["SCHEDULED t", "DUE t", "STARTED t", "COMPLETED t", "CANCELLED t"]


def test_every_attempt_is_told_and_whether_another_follows(sim: World) -> None:
    start, log = sim.now(), sim.log()
    sim.scheduler.after(1, lambda: 1 / 0, id="t", retry=retry.FixedDelay(2, 5))
    sim.advance(100)
    assert log.kinds("t") == ["SCHEDULED", *["DUE", "STARTED", "FAILED"] * 3]
    failed = log.of("FAILED")
    assert [event.attempt for event in failed] == [1, 2, 3]
    assert [event.run for event in failed] == [1, 2, 3]
    assert [event.time - start for event in failed] == [1, 6, 11]
    assert [event.next_due and event.next_due - start for event in failed] == [6, 11, None]
    assert [event.will_retry for event in failed] == [True, True, False]
    assert all("division" in str(event.error) for event in failed)


def test_a_failed_run_of_a_series_says_when_it_goes_on(sim: World) -> None:
    start, log = sim.now(), sim.log()
    sim.scheduler.every(10, lambda: False, id="t", max_runs=2)
    sim.advance(100)
    failed = log.of("FAILED")
    assert [event.next_due and event.next_due - start for event in failed] == [20, None]
    assert [(event.run, event.attempt) for event in failed] == [(1, 1), (2, 1)]
    assert [event.will_retry for event in failed] == [False, False]


def test_of_a_series_a_failure_says_whether_its_slot_is_tried_again(sim: World) -> None:
    start, log = sim.now(), sim.log()

    def job() -> None:
        if current_run().due - start == 20:
            raise retry.GiveUp
        raise OSError

    sim.scheduler.every(10, job, max_runs=3, retry=retry.FixedDelay(2, 4))
    sim.advance(100)
    failed = log.of("FAILED")
    told = [(event.due - start, event.next_due and event.next_due - start) for event in failed]
    assert told == [(10, 14), (14, 18), (18, 20), (20, 30), (30, 34), (34, 38), (38, None)]
    of_series = [event.will_retry for event in failed]
    assert of_series == [True, True, False, False, True, True, False]


def test_only_a_failure_says_whether_it_is_retried(sim: World) -> None:
    log = sim.log()
    sim.scheduler.every(10, int, max_runs=2)
    sim.scheduler.after(10, int).cancel()
    sim.advance(20)
    assert {event.will_retry for event in log.events} == {None}


def test_what_an_event_says(sim: World) -> None:
    start, log = sim.now(), sim.log()
    sim.scheduler.after(7, int, id="t")
    sim.advance(7)
    events = [event for event in log.events if event.task_id == "t"]
    assert all(type(event) is Event for event in events)
    assert [event.time - start for event in events] == [0, 7, 7, 7]
    assert {event.due - start for event in events} == {7}
    started, completed = log.of("STARTED")[0], log.of("COMPLETED")[0]
    assert (started.run, started.attempt, started.lateness) == (1, 1, 0)
    assert (completed.run, completed.attempt, completed.duration) == (1, 1, 0)
    assert (completed.error, completed.next_due) == (None, None)


def test_lateness_and_duration(manual: World) -> None:
    log = manual.log()
    manual.scheduler.after(5, lambda: str(current_run().wait(4)), id="t")
    manual.clock.jump(8)
    manual.clock.advance(10)
    assert log.of("STARTED")[0].lateness == 3
    assert log.of("COMPLETED")[0].duration == 4


def test_events_are_immutable_and_picklable(world: World) -> None:
    log = world.log()
    world.scheduler.after(0, int, id="t")
    world.run_until_idle()
    for event in log.events:
        assert dataclasses.is_dataclass(event)
        with pytest.raises(dataclasses.FrozenInstanceError):
            event.kind = None
        assert pickle.loads(pickle.dumps(event)) == event


def test_missed_comes_once_after_the_run_that_missed(manual: World) -> None:
    log = manual.log()
    manual.scheduler.every(10, int, id="t")
    manual.clock.jump(45)
    kinds = log.kinds("t")
    assert kinds.count("MISSED") == 1
    assert kinds.index("MISSED") > kinds.index("STARTED")
    assert log.of("MISSED")[0].missed == 3
    manual.clock.advance(5)
    assert log.kinds("t")[len(kinds) :] == ["DUE", "STARTED", "COMPLETED"]


def test_due_is_told_on_time_though_every_worker_is_busy(world: World) -> None:
    told = threading.Event()
    log = world.log()

    def listen(event: Any) -> None:
        if event.task_id == "t" and event.kind is EventKind.DUE:
            told.set()

    world.scheduler.add_listener(listen)
    with world.hold():
        task = world.scheduler.after(world.step, int, id="t")
        # The leap of a simulated clock then waits for the held job: another thread makes it.
        mover = Thread(world.leap, world.step)
        assert told.wait(WATCHDOG)
        assert not task.running()
        assert log.kinds("t") == ["SCHEDULED", "DUE"]
    mover.outcome()
    assert task.wait(WATCHDOG)
    world.run_until_idle()
    assert log.kinds("t") == ["SCHEDULED", "DUE", "STARTED", "COMPLETED"]


def test_listeners_are_called_where_the_move_was_made(world: World) -> None:
    where: dict[str, str] = {}

    def listen(event: Any) -> None:
        if event.task_id in ("t", "u"):
            where[event.kind.name] = threading.current_thread().name

    world.scheduler.add_listener(listen)
    world.scheduler.after(0, int, id="t")
    world.scheduler.after(3600, int, id="u").cancel()
    world.run_until_idle()
    caller = threading.current_thread().name
    assert (where["SCHEDULED"], where["CANCELLED"]) == (caller, caller)
    assert where["STARTED"] == where["COMPLETED"] == "duetime-0"


def test_only_the_kinds_asked_for(world: World) -> None:
    some, all_of_them, none = Log(), Log(), Log()
    world.scheduler.add_listener(some, kinds=[EventKind.STARTED, EventKind.FAILED])
    world.scheduler.add_listener(all_of_them, kinds=None)
    world.scheduler.add_listener(none, kinds=[])
    world.scheduler.after(0, int, id="t")
    world.scheduler.after(0, lambda: False, id="u")
    world.run_until_idle()
    assert some.lines() == ["STARTED t", "STARTED u", "FAILED u"]
    assert len(all_of_them.lines()) == 8
    assert none.lines() == []


def test_a_removed_listener_hears_no_more(world: World) -> None:
    log, other = world.log(), world.log()
    world.scheduler.after(0, int, id="t")
    world.run_until_idle()
    world.scheduler.remove_listener(log)
    world.scheduler.after(0, int, id="u")
    world.run_until_idle()
    assert len(log.lines()) == 4
    assert len(other.lines()) == 8


@pytest.mark.parametrize("nonsense", [None, 5, "print", ...], ids=repr)
def test_a_listener_is_callable(world: World, nonsense: Any) -> None:
    with pytest.raises(TypeError):
        world.scheduler.add_listener(nonsense)


def test_kinds_are_kinds(world: World) -> None:
    for nonsense in ("STARTED", ["STARTED"], 5, [None]):
        with pytest.raises(TypeError):
            world.scheduler.add_listener(print, kinds=nonsense)


@pytest.mark.parametrize("kind", list(EventKind), ids=lambda kind: kind.name)
def test_a_listener_may_call_any_method(world: World, kind: EventKind) -> None:
    scheduler = world.scheduler
    answers: list[Any] = []

    def listen(event: Any) -> None:
        scheduler.remove_listener(listen)
        answers.append(scheduler.schedule(Task("from listener", due=event.time, job=int)).id)
        scheduler.schedule_all([Task("batch", due=event.time, job=int)])
        scheduler.after(0, int)
        scheduler.at(event.time, int)
        scheduler.every(3600, int, id="series")
        scheduler.submit(int)
        answers.append(scheduler.cancel("series"))
        answers.append(scheduler.get("series") is None or scheduler.get("series").done())
        answers.append(scheduler.info("series").state.name)
        answers.append(len(scheduler.tasks()) > 3)
        scheduler.forget("series")
        answers.append(scheduler.now() >= event.time)
        scheduler.next_due()
        scheduler.wake()
        scheduler.stats()
        scheduler.add_listener(print, kinds=[])
        with pytest.raises(RuntimeError):
            scheduler.wait_idle()
        answers.append("through")

    scheduler.add_listener(listen, kinds=[kind])
    rule = FixedRate(0.001)
    seen: list[int] = []
    gate = Gate()
    if kind is EventKind.STUCK:
        scheduler.after(0, gate, timeout=world.step, grace=0)
        gate.entered()
        world.leap(world.step)
        gate.open()

    def job() -> bool:  # twice: a success that comes late, then a failure
        seen.append(1)
        return len(seen) < 2

    world.scheduler.schedule(Task("t", due=world.past(0), job=job, recurrence=rule, max_runs=2))
    world.scheduler.after(3600, int, id="cancelled").cancel()
    world.advance(world.step)
    assert answers == [
        "from listener",
        CancelOutcome.CANCELLED,
        True,
        "CANCELLED",
        True,
        True,
        "through",
    ]


def test_a_listener_may_shut_down(make_world: Callable[..., World]) -> None:
    world = make_world()
    answers: list[Any] = []
    world.scheduler.add_listener(
        lambda _: answers.append(world.scheduler.shutdown(wait=True)), kinds=[EventKind.STARTED]
    )
    task = world.scheduler.after(0, lambda: "ran")
    assert task.result(WATCHDOG) == "ran"
    assert world.scheduler.shutdown(timeout=WATCHDOG)
    assert len(answers) == 1


@pytest.mark.parametrize(
    "error", [ValueError("boom"), SystemExit(2), KeyboardInterrupt()], ids=repr
)
def test_a_listener_that_raises_is_reported_and_harms_nobody(
    world: World, unraisable: list[BaseException], error: BaseException
) -> None:
    def bad(event: Any) -> None:
        if event.task_id == "t":
            raise error

    before, after = world.log(), Log()
    world.scheduler.add_listener(bad)
    world.scheduler.add_listener(after)
    task = world.scheduler.after(0, lambda: "ran", id="t")
    assert task.result(WATCHDOG) == "ran"
    world.run_until_idle()
    assert unraisable == [error] * 4
    assert before.lines() == after.lines()
    assert len(after.lines()) == 4


def test_each_move_is_told_once_under_load(make_world: Callable[..., World]) -> None:
    world = make_world(workers=4)
    log = world.log()
    for n in range(300):
        world.scheduler.after(0, (lambda: False) if n % 3 else int, id=n)
    world.run_until_idle()
    for n in range(300):
        ending = "FAILED" if n % 3 else "COMPLETED"
        assert log.kinds(n) == ["SCHEDULED", "DUE", "STARTED", ending]


def test_a_listener_hears_of_tasks_scheduled_before_it_came(world: World) -> None:
    gate = Gate()
    world.scheduler.after(0, gate, id="t")
    gate.entered()
    log = world.log()
    gate.open()
    world.run_until_idle()
    assert log.lines() == ["COMPLETED t"]


def test_shutdown_tells_of_what_it_cancels(real: Scheduler) -> None:
    log = Log()
    real.add_listener(log)
    real.after(3600, int, id="t")
    assert real.shutdown(timeout=WATCHDOG)
    assert log.lines() == ["SCHEDULED t", "CANCELLED t"]
