"""Rules of one's own: what they are asked, and what becomes of one that misbehaves."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from helpers import WATCHDOG
from worlds import World

from duetime import (
    FixedDelay,
    FixedRate,
    ManualClock,
    OneTime,
    Scheduler,
    Task,
    TaskState,
)

DAYS = 86_400.0


class Rule:
    """A recurrence that answers from a list, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[float, float]] = []

    def next_due(self, due: float, finished: float) -> Any:
        self.asked.append((due, finished))
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def test_a_rule_of_ones_own(sim: World) -> None:
    start = sim.now()
    rule = Rule(start + 2, start + 5, None)
    task = sim.scheduler.every(rule, int, first=1)
    sim.advance(10)
    assert [due - start for due, _ in rule.asked] == [1, 2, 5]
    assert [finished - start for _, finished in rule.asked] == [1, 2, 5]
    assert (task.state, task.runs) == (TaskState.DONE, 3)


def test_a_rule_that_raises_fails_the_task_with_its_error(world: World) -> None:
    error = LookupError("no calendar")
    task = world.scheduler.every(Rule(error), int, first=0)
    assert task.exception(WATCHDOG) is error
    assert (task.state, task.runs) == (TaskState.FAILED, 1)
    assert world.scheduler.after(0, int).result(WATCHDOG) == 0


@pytest.mark.parametrize("back", [0, -1, -1e9, math.nan, math.inf, "soon", True, ...], ids=repr)
def test_a_rule_that_does_not_move_forward_fails_the_task(world: World, back: Any) -> None:
    due = world.past(5)
    answer = due + back if isinstance(back, int | float) and back is not True else back
    task = world.scheduler.schedule(Task(due=due, job=int, recurrence=Rule(answer)))
    assert isinstance(task.exception(WATCHDOG), Exception)
    assert (task.state, task.runs) == (TaskState.FAILED, 1)
    assert world.scheduler.after(0, int).result(WATCHDOG) == 0, "others are unharmed"


@pytest.mark.parametrize("rule", [..., "10", [], print], ids=repr)
def test_what_is_no_rule_is_refused_at_the_call(world: World, rule: Any) -> None:
    with pytest.raises(TypeError):
        world.scheduler.every(rule, print)
    with pytest.raises(TypeError):
        world.scheduler.schedule(Task(due=world.now(), job=print, recurrence=rule))
    assert world.scheduler.tasks() == []


def test_a_rule_may_be_shared_and_says_what_it_is(make_scheduler: Callable[..., Scheduler]) -> None:
    clock = ManualClock()
    scheduler = make_scheduler(1, clock=clock)
    rule = FixedRate(timedelta(minutes=10))
    first, second = scheduler.every(rule, int), scheduler.every(rule, int, first=1)
    clock.advance(1200)
    assert (first.runs, second.runs) == (2, 2)
    assert first.recurrence == rule
    assert repr(rule).startswith("FixedRate(")
    assert repr(FixedDelay(5)).startswith("FixedDelay(")
    assert repr(OneTime()) == "OneTime()"
