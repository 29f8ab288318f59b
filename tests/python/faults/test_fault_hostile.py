"""Objects of the user that refuse to be shown, compared, hashed or asked for their truth."""

from __future__ import annotations

from typing import Any

import pytest
from support import STATES, WATCHDOG, failing, noop

import duetime
from duetime import Task, retry


class Hostile:
    """Nothing can be asked of it."""

    def refuse(self, *_args: Any) -> Any:
        raise RuntimeError("do not touch")

    __repr__ = __str__ = __eq__ = __ne__ = __hash__ = __bool__ = __len__ = __lt__ = refuse
    __int__ = __float__ = __index__ = __iter__ = refuse


class HostileJob(Hostile):
    def __call__(self, *_args: Any) -> str:
        return "ran"


class HostileError(Exception):
    __repr__ = __str__ = __eq__ = __hash__ = __bool__ = Hostile.refuse  # type: ignore[assignment]


class HostileId(str):
    __slots__ = ()
    __repr__ = __str__ = __eq__ = __hash__ = __bool__ = Hostile.refuse  # type: ignore[assignment]


def looked_at(scheduler: duetime.Scheduler, task: Task) -> None:
    """Everything that shows a task, shows it."""
    assert isinstance(repr(task), str)
    info = scheduler.info(task.id)
    assert isinstance(repr(info), str) and isinstance(repr(scheduler.tasks()), str)
    assert info.error is None or isinstance(info.error, str)
    assert isinstance(repr(scheduler), str)


def test_hostile_jobs_arguments_and_results_are_left_alone(manual: Any) -> None:
    """distributed#342: formatting the result for a log line raised, and lost the task."""
    value = Hostile()
    tasks = [
        manual.scheduler.after(1, HostileJob(), id="job"),
        manual.scheduler.after(1, lambda *_args: "ran", value, id="args"),
        manual.scheduler.after(1, lambda: value, id="result"),
        manual.scheduler.every(1, lambda *_args: value, value, id="series", max_runs=3),
    ]
    for task in tasks:
        looked_at(manual.scheduler, task)
    manual.advance(5)
    for task in tasks:
        looked_at(manual.scheduler, task)
        assert task.state is STATES.DONE
    assert tasks[1].result(WATCHDOG) == "ran"
    assert tasks[2].result(WATCHDOG) is value


def test_a_result_is_false_only_if_it_is_false(manual: Any) -> None:
    """distributed#342: a result is never compared and never asked for its truth."""
    for value in (0, 0.0, "", [], None, Hostile()):
        task = manual.scheduler.after(1, lambda value=value: value)
        manual.advance(1)
        assert task.state is STATES.DONE and task.result(WATCHDOG) is value


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_hostile_exception_fails_its_task_only(manual: Any, rounds: int) -> None:
    """distributed#342: str() of the exception raised inside the error handling."""
    error = HostileError("hidden")
    task = manual.scheduler.after(1, failing(error), id="t", retry=retry.FixedDelay(rounds - 1, 1))
    manual.advance(9)
    looked_at(manual.scheduler, task)
    assert (task.runs, task.state) == (rounds, STATES.FAILED)
    assert task.exception(WATCHDOG) is error
    assert manual.scheduler.after(0, noop).wait(WATCHDOG)


def test_a_hostile_id_is_taken_as_its_text_or_refused(manual: Any) -> None:
    """distributed#342: the id is the key of everything; its own methods must not matter."""
    try:
        task = manual.scheduler.after(1, noop, id=HostileId("name"))
    except TypeError:
        task = manual.scheduler.after(1, noop, id="name")
    looked_at(manual.scheduler, task)
    manual.advance(1)
    assert task.state is STATES.DONE
    assert manual.scheduler.info("name").state is STATES.DONE
