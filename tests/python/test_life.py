"""A task's life: WAITING, RUNNING, and one of DONE, FAILED, CANCELLED; what failing means."""

from __future__ import annotations

import concurrent.futures
import enum
import threading
from collections.abc import Callable
from typing import Any

import pytest
from helpers import WATCHDOG, Gate
from worlds import World

from duetime import JobReturnedFalse, Scheduler, Task, TaskState, current_run, retry


class OwnBaseException(BaseException):
    """Not even an Exception."""


def raising(error: BaseException) -> Callable[[], Any]:
    def job() -> Any:
        raise error

    return job


def test_the_five_states() -> None:
    assert issubclass(TaskState, enum.Enum)
    assert {state.name for state in TaskState} == {
        "WAITING",
        "RUNNING",
        "DONE",
        "FAILED",
        "CANCELLED",
    }


def test_waiting_then_running_then_done(world: World) -> None:
    gate = Gate()
    task = world.scheduler.schedule(Task("t", due=world.now() + 3600, job=gate))
    assert task.state is TaskState.WAITING
    assert task.cancel()
    assert task.state is TaskState.CANCELLED

    task = world.scheduler.after(0, gate)
    gate.entered()
    assert task.state is TaskState.RUNNING
    gate.open()
    assert task.result(WATCHDOG) == "through"
    assert task.state is TaskState.DONE


def test_a_series_waits_again_after_each_run(world: World) -> None:
    task = world.scheduler.every(3600, lambda: "again", first=0)
    world.run_until_idle()
    assert (task.state, task.runs) == (TaskState.WAITING, 1)


def test_a_retry_waits_again(world: World) -> None:
    task = world.scheduler.after(0, raising(ValueError()), retry=retry.FixedDelay(1, 3600))
    world.run_until_idle()
    assert (task.state, task.runs, task.failures) == (TaskState.WAITING, 1, 1)


@pytest.mark.parametrize("answer", [None, True, 0, 0.0, "", [], (), "text"], ids=repr)
def test_any_answer_but_false_is_success(world: World, answer: Any) -> None:
    task = world.scheduler.after(0, lambda: answer)
    assert task.result(WATCHDOG) is answer
    assert task.state is TaskState.DONE
    assert task.exception() is None
    assert (task.runs, task.failures) == (1, 0)


def test_false_is_failure(world: World) -> None:
    task = world.scheduler.after(0, lambda: False)
    assert isinstance(task.exception(WATCHDOG), JobReturnedFalse)
    assert task.state is TaskState.FAILED
    assert (task.runs, task.failures) == (1, 1)
    with pytest.raises(JobReturnedFalse):
        task.result()


@pytest.mark.parametrize(
    "error",
    [
        ValueError("boom"),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        StopIteration(),
        concurrent.futures.CancelledError(),
        OwnBaseException(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_job_raises_fails_it_and_nothing_else(
    world: World, error: BaseException
) -> None:
    bad = world.scheduler.after(0, raising(error))
    good = world.scheduler.after(0, threading.get_ident)
    other = world.scheduler.after(0, threading.get_ident)
    assert bad.exception(WATCHDOG) is error
    assert bad.state is TaskState.FAILED
    assert (bad.runs, bad.failures) == (1, 1)
    assert good.result(WATCHDOG) == other.result(WATCHDOG), "the one worker lives"


def test_a_function_is_called_with_its_args(world: World) -> None:
    seen: list[Any] = []
    task = world.scheduler.schedule(
        Task(due=world.now(), job=lambda *args: seen.extend(args), args=(1, "two", [3]))
    )
    assert task.wait(WATCHDOG)
    world.scheduler.after(0, lambda *args: seen.extend(args), 4, 5).result(WATCHDOG)
    assert seen == [1, "two", [3], 4, 5]


def test_a_job_object_is_run_with_the_clocks_seconds(world: World) -> None:
    class Report:
        def __init__(self) -> None:
            self.now: Any = None

        def run(self, now: float) -> str:
            self.now = now
            return "made"

    report = Report()
    before = world.now()
    assert world.scheduler.after(0, report).result(WATCHDOG) == "made"
    assert type(report.now) is float
    assert before <= report.now <= world.now()


def test_a_job_object_that_answers_false_has_failed(world: World) -> None:
    class Broken:
        def run(self, now: float) -> bool:
            return now < 0

    assert isinstance(world.scheduler.after(0, Broken()).exception(WATCHDOG), JobReturnedFalse)


class NoJob:
    run = "not callable"

    def __repr__(self) -> str:
        return "NoJob()"


@pytest.mark.parametrize("job", [None, 5, "print", ..., NoJob()], ids=repr)
def test_what_cannot_be_called_is_refused_at_the_call(world: World, job: Any) -> None:
    for call in (
        lambda: world.scheduler.after(1, job),
        lambda: world.scheduler.at(world.now(), job),
        lambda: world.scheduler.schedule(Task(due=world.now(), job=job)),
        lambda: world.scheduler.submit(job),
    ):
        with pytest.raises(TypeError):
            call()
    assert world.scheduler.tasks() == []


class _ThreeMoreSoon:
    """Three more slots at once, then one in an hour."""

    def __init__(self) -> None:
        self.left = 3

    def next_due(self, due: float, finished: float) -> float:
        self.left -= 1
        return due + 0.001 if self.left >= 0 else finished + 3600


def test_counts_and_the_last_error_are_kept(world: World) -> None:
    errors = [ValueError("one"), KeyError("two")]
    outcomes = iter([None, errors[0], None, errors[1]])

    def job() -> None:
        if (outcome := next(outcomes)) is not None:
            raise outcome

    rule = _ThreeMoreSoon()
    task = world.scheduler.schedule(Task("t", due=world.past(0), job=job, recurrence=rule))
    world.run_until_idle()
    assert (task.runs, task.failures, task.missed) == (4, 2, 0)
    assert task.error is errors[1]
    info = world.scheduler.info("t")
    assert (info.runs, info.failures, info.state) == (4, 2, TaskState.WAITING)
    assert "two" in info.error


def test_a_task_that_never_ran_has_counted_nothing(world: World) -> None:
    task = world.scheduler.after(3600, print)
    assert (task.runs, task.failures, task.missed, task.error) == (0, 0, 0, None)


def test_a_failure_harms_no_other_task(make_world: Callable[..., World]) -> None:
    world = make_world(workers=2)
    tasks = [
        world.scheduler.after(0, raising(SystemExit()) if n % 2 else (lambda n=n: n))
        for n in range(200)
    ]
    world.run_until_idle()
    assert [task.result() for task in tasks[::2]] == list(range(0, 200, 2))
    assert all(isinstance(task.exception(), SystemExit) for task in tasks[1::2])
    stats = world.scheduler.stats()
    assert (stats.done, stats.failed, stats.runs, stats.failures) == (100, 100, 200, 100)


def test_of_start_and_cancel_exactly_one_wins(real: Scheduler) -> None:
    def race() -> None:
        started: list[int] = []
        due = real.now() + 0.001
        tasks = [real.at(due, lambda n=n: started.append(n), priority=-n) for n in range(20)]
        while real.now() < due:
            pass
        cancelled = {n for n, task in enumerate(tasks) if task.cancel()}
        for task in tasks:
            assert task.wait(WATCHDOG)
        assert cancelled.isdisjoint(started)
        assert sorted([*cancelled, *started]) == list(range(20))
        for n, task in enumerate(tasks):
            assert task.state is (TaskState.CANCELLED if n in cancelled else TaskState.DONE)

    for _ in range(100):
        race()


def test_the_state_is_running_inside_the_job(world: World) -> None:
    def job() -> tuple[Any, ...]:
        run = current_run()
        info = world.scheduler.info("self")
        return info.state, run.id, run.attempt, run.number, run.stop_requested

    task = world.scheduler.after(0, job, id="self")
    assert task.result(WATCHDOG) == (TaskState.RUNNING, "self", 1, 1, False)
    assert current_run() is None
