"""Order among due tasks: due, then priority, then the order of adding; and none is dropped."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from helpers import WATCHDOG
from worlds import World

from duetime import FixedRate, Missed, Task, current_run, retry


def test_the_earlier_due_runs_first(world: World) -> None:
    order: list[int] = []
    dues = random.Random(1).sample(range(20), 20)
    with world.hold():
        for k in dues:
            world.scheduler.at(world.past(k), order.append, k)
    world.run_until_idle()
    assert order == list(range(20))


def test_at_equal_due_the_higher_priority_runs_first(world: World) -> None:
    order: list[int] = []
    priorities = [0, 5, -7, 1, -1, 2**31 - 1, -(2**31)]
    with world.hold():
        for priority in priorities:
            world.scheduler.at(world.past(1), order.append, priority, priority=priority)
    world.run_until_idle()
    assert order == sorted(priorities, reverse=True)


def test_no_priority_is_priority_zero(world: World) -> None:
    order: list[str] = []
    with world.hold():
        low = world.scheduler.at(world.past(1), order.append, "low", priority=-1)
        none = world.scheduler.at(world.past(1), order.append, "none")
        high = world.scheduler.at(world.past(1), order.append, "high", priority=1)
    world.run_until_idle()
    assert order == ["high", "none", "low"]
    assert [task.priority for task in (low, none, high)] == [-1, 0, 1]


def test_equals_run_in_the_order_of_adding(world: World) -> None:
    order: list[int] = []
    with world.hold():
        for n in range(500):
            world.scheduler.at(world.past(1), order.append, n)
    world.run_until_idle()
    assert order == list(range(500))


def test_schedule_all_adds_in_the_order_of_its_list(world: World) -> None:
    order: list[int] = []
    with world.hold():
        world.scheduler.schedule_all(
            Task(due=world.past(1), job=order.append, args=(n,)) for n in range(50)
        )
        world.scheduler.at(world.past(1), order.append, 50)
    world.run_until_idle()
    assert order == list(range(51))


def test_due_counts_before_priority_before_adding(world: World) -> None:
    order: list[tuple[int, int, int]] = []
    chance = random.Random(3)
    keys = [(chance.randrange(5), -chance.randrange(3), n) for n in range(300)]
    with world.hold():
        for key in keys:
            world.scheduler.at(world.past(key[0]), order.append, key, priority=-key[1])
    world.run_until_idle()
    assert order == sorted(keys)


def test_cancelling_every_second_leaves_the_order_of_the_rest(world: World) -> None:
    order: list[int] = []
    with world.hold():
        tasks = [world.scheduler.at(world.past(1), order.append, n) for n in range(300)]
        for task in tasks[::2]:
            assert task.cancel()
    world.run_until_idle()
    assert order == list(range(1, 300, 2))


def test_a_recurring_task_goes_behind_its_equals(world: World) -> None:
    order: list[str] = []
    rule = FixedRate(0.001, missed=Missed.CATCH_UP)
    with world.hold():
        world.scheduler.schedule(
            Task(
                due=world.past(1),
                job=order.append,
                args=("series",),
                recurrence=rule,
                max_runs=3,
            )
        )
        for k in (1, 2, 3):
            world.scheduler.at(world.past(k), order.append, f"once {k}")
    world.run_until_idle()
    assert order == ["series", "once 1", "once 2", "series", "once 3", "series"]


def test_a_retry_goes_behind_its_equals(sim: World) -> None:
    order: list[str] = []
    attempts = iter([False, True])

    def flaky() -> bool:
        order.append(f"attempt {current_run().attempt}")
        return next(attempts)

    start = sim.now()
    sim.scheduler.at(start + 1, flaky, retry=retry.FixedDelay(1, 2))
    sim.scheduler.at(start + 3, order.append, "equal")
    sim.advance(3)
    assert order == ["attempt 1", "equal", "attempt 2"]


def test_priority_counts_for_a_retry_too(sim: World) -> None:
    order: list[str] = []

    def flaky() -> bool:
        order.append("flaky")
        return len(order) > 1

    start = sim.now()
    sim.scheduler.at(start + 1, flaky, retry=retry.FixedDelay(1, 2), priority=1)
    sim.scheduler.at(start + 3, order.append, "equal")
    sim.advance(3)
    assert order == ["flaky", "flaky", "equal"]


def test_due_tasks_wait_for_a_worker_and_none_is_dropped(
    make_world: Callable[..., World],
) -> None:
    world = make_world(workers=3)
    log = world.log()
    seen: list[int] = []
    with world.hold():
        tasks = [world.scheduler.at(world.past(n % 20), seen.append, n) for n in range(1000)]
        assert not any(task.done() for task in tasks)
    world.run_until_idle()
    assert sorted(seen) == list(range(1000))
    assert all(event.lateness > 0 for event in log.of("STARTED") if event.due < world.past(20))
    assert world.scheduler.stats().waiting == 0


@pytest.mark.parametrize("priority", [1.0, "1", None, True], ids=repr)
def test_a_priority_is_an_int(world: World, priority: Any) -> None:
    with pytest.raises(TypeError):
        world.scheduler.after(1, print, priority=priority)
    assert world.scheduler.tasks() == []


def test_the_same_function_may_be_scheduled_many_times(world: World) -> None:
    order: list[None] = []

    def job() -> None:
        order.append(None)

    tasks = [world.scheduler.after(0, job) for _ in range(3)]
    for task in tasks:
        assert task.wait(WATCHDOG)
    assert len({task.id for task in tasks}) == 3
    assert len(order) == 3
