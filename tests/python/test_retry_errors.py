"""Which errors a policy is for, and what a job says by raising `RetryAfter` and `GiveUp`."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from helpers import WATCHDOG
from worlds import World

from duetime import DuetimeError, JobReturnedFalse, Scheduler, Task, TaskState, current_run, retry
from duetime.retry import GiveUp, RetryAfter


class BusyError(ConnectionError):
    """A failure that passes."""


def failing(seen: list[float], start: float, *errors: Any) -> Callable[[], Any]:
    """A job that fails with each error in turn, `False` for one that returns it; then succeeds."""
    left = list(errors)

    def job() -> Any:
        run = current_run()
        assert run is not None
        seen.append(run.now - start)
        error = left.pop(0) if left else "done"
        if isinstance(error, BaseException):
            raise error
        return error

    return job


def attempts(sim: World, policy: Any, *errors: Any, **options: Any) -> tuple[list[float], Task]:
    """When the attempts start, and the task, after a long time."""
    seen: list[float] = []
    task = sim.scheduler.after(0, failing(seen, sim.now(), *errors), retry=policy, **options)
    sim.run_until_idle()
    sim.advance(1000)
    return seen, task


@pytest.mark.parametrize(
    "make",
    [
        lambda **filters: retry.FixedDelay(2, 1, **filters),
        lambda **filters: retry.ExponentialBackoff(2, 1, factor=1.0, **filters),
    ],
    ids=["FixedDelay", "ExponentialBackoff"],
)
@pytest.mark.parametrize(
    ("filters", "error", "retried"),
    [
        ({}, KeyboardInterrupt(), True),
        ({"retry_on": Exception}, KeyError(), True),
        ({"retry_on": Exception}, KeyboardInterrupt(), False),
        ({"retry_on": ConnectionError}, BusyError(), True),
        ({"retry_on": BusyError}, ConnectionError(), False),
        ({"retry_on": (KeyError, ConnectionError)}, BusyError(), True),
        ({"retry_on": ()}, BusyError(), False),
        ({"retry_on": JobReturnedFalse}, False, True),
        ({"retry_on": OSError}, False, False),
        ({"give_up_on": OSError}, BusyError(), False),
        ({"give_up_on": (KeyError, OSError)}, BusyError(), False),
        ({"give_up_on": KeyError}, BusyError(), True),
        ({"give_up_on": ()}, BusyError(), True),
        ({"give_up_on": DuetimeError}, False, False),
        ({"retry_on": OSError, "give_up_on": BusyError}, ConnectionError(), True),
        ({"retry_on": OSError, "give_up_on": BusyError}, BusyError(), False),
        ({"retry_on": BusyError, "give_up_on": OSError}, BusyError(), False),
        ({"retry_on": None, "give_up_on": None}, BusyError(), True),
    ],
)
def test_a_policy_is_for_some_errors(
    sim: World, make: Any, filters: dict[str, Any], error: Any, retried: bool
) -> None:
    seen, task = attempts(sim, make(**filters), error, error, error)
    assert seen == ([0, 1, 2] if retried else [0])
    assert task.state is TaskState.FAILED
    assert isinstance(task.exception(), type(error) if error else JobReturnedFalse)


def test_each_failure_is_judged_by_itself(sim: World) -> None:
    policy = retry.FixedDelay(9, 1, retry_on=OSError)
    seen, task = attempts(sim, policy, BusyError(), OSError(), KeyError("final"), BusyError())
    assert seen == [0, 1, 2]
    assert isinstance(task.exception(), KeyError)


class Greedy(type):
    """A metaclass whose classes claim everything, which `except` does not believe."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True

    __subclasscheck__ = __instancecheck__


class GreedyError(Exception, metaclass=Greedy):
    """An error that claims to be every other."""


def test_classes_match_as_in_except(sim: World) -> None:
    policy = retry.FixedDelay(1, 1, retry_on=(GreedyError,))
    assert attempts(sim, policy, GreedyError(), GreedyError())[0] == [0, 1]
    assert attempts(sim, policy, ValueError())[0] == [0]
    with pytest.raises(TypeError):
        retry.FixedDelay(1, 1, retry_on=Greedy("NoError", (), {}))


@pytest.mark.parametrize("parameter", ["retry_on", "give_up_on"])
@pytest.mark.parametrize(
    "value",
    [
        int,
        object,
        "OSError",
        1,
        True,
        ...,
        OSError(),
        [OSError],
        {OSError},
        (OSError, int),
        ((OSError,),),
        (None,),
    ],
    ids=repr,
)
def test_what_except_would_not_take_is_refused_at_the_call(parameter: str, value: Any) -> None:
    for policy in (retry.FixedDelay, retry.ExponentialBackoff):
        with pytest.raises(TypeError, match=parameter):
            policy(1, 1, **{parameter: value})


def test_the_filters_are_keyword_parameters_only() -> None:
    with pytest.raises(TypeError):
        retry.FixedDelay(1, 1, OSError)
    with pytest.raises(TypeError):
        retry.ExponentialBackoff(1, 1, 2.0, None, 0.0, OSError)


def test_filters_are_part_of_the_value() -> None:
    for make in (retry.FixedDelay, retry.ExponentialBackoff):
        plain: Any = make(3, 5)
        some: Any = make(3, 5, retry_on=OSError, give_up_on=(KeyError, BusyError))
        assert (plain.retry_on, plain.give_up_on) == (None, None)
        assert (some.retry_on, some.give_up_on) == ((OSError,), (KeyError, BusyError))
        assert "retry_on" not in repr(plain)
        assert repr(some).endswith("retry_on=OSError, give_up_on=(KeyError, BusyError))")
        for policy in (plain, some):
            for same in (pickle.loads(pickle.dumps(policy)), copy.copy(policy)):
                assert same == policy
                assert hash(same) == hash(policy)
        assert plain != some
        assert make(3, 5, retry_on=OSError) == make(3, 5, retry_on=(OSError,))
        assert make(3, 5, retry_on=OSError) != make(3, 5, retry_on=())
        assert make(3, 5, retry_on=OSError) != make(3, 5, give_up_on=OSError)
        assert some.delay_after_failure(1) == 5


def test_a_policy_in_a_cycle_is_collected(make_scheduler: Callable[..., Scheduler]) -> None:
    def cycle() -> weakref.ref[Any]:
        class Error(Exception):
            policy: Any
            tasks: Any

        Error.policy = retry.FixedDelay(1, 1, retry_on=Error)
        Error.tasks = [Task(due=0, job=print, retry=Error.policy)]
        return weakref.ref(Error)

    gone = cycle()
    gc.collect()
    assert gone() is None


def test_a_job_sets_the_delay_of_its_next_attempt(sim: World) -> None:
    policy = retry.FixedDelay(3, 100)
    seen, task = attempts(sim, policy, RetryAfter(2.5), RetryAfter(timedelta(seconds=3)), OSError())
    assert seen == [0, 2.5, 5.5, 105.5]
    assert task.result() == "done"
    seen, _ = attempts(sim, policy, RetryAfter(0))
    assert seen == [0, 0]


def test_such_an_attempt_counts_as_any_other(sim: World) -> None:
    errors = [RetryAfter(n) for n in (1, 2, 3)]
    seen, task = attempts(sim, retry.FixedDelay(2, 100), *errors)
    assert seen == [0, 1, 3]
    assert task.exception() is errors[-1]
    assert task.info().error == "RetryAfter: retry after 3 s"


@pytest.mark.parametrize("policy", [None, retry.Never(), retry.FixedDelay(0, 1)], ids=repr)
def test_without_retries_there_is_no_next_attempt(sim: World, policy: Any) -> None:
    seen, task = attempts(sim, policy, RetryAfter(1))
    assert seen == [0]
    assert isinstance(task.exception(), RetryAfter)


class Twice:
    """A policy of our own."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def delay_after_failure(self, failures: int) -> float | None:
        self.asked.append(failures)
        return 10 if failures <= 2 else None


def test_a_policy_of_ones_own_still_says_how_often(sim: World) -> None:
    policy = Twice()
    assert attempts(sim, policy, *[RetryAfter(1)] * 5)[0] == [0, 1, 2]
    assert policy.asked == [1, 2, 3]
    policy.asked.clear()
    assert attempts(sim, policy, OSError(), GiveUp("enough"))[0] == [0, 10]
    assert policy.asked == [1], "who gives up asks for no delay"


@pytest.mark.parametrize("filters", [{"retry_on": ()}, {"give_up_on": BaseException}], ids=repr)
def test_a_job_that_asks_is_not_filtered(sim: World, filters: Any) -> None:
    policy = retry.FixedDelay(3, 1, **filters)
    assert attempts(sim, policy, RetryAfter(2))[0] == [0, 2]
    assert attempts(sim, policy, OSError())[0] == [0]


def test_subclasses_ask_as_well(sim: World) -> None:
    class Limited(RetryAfter):
        def __init__(self, reply: dict[str, float]) -> None:
            super().__init__(reply["Retry-After"])

    class NoSuchCityError(GiveUp, LookupError):
        pass

    policy = retry.FixedDelay(3, 1, retry_on=Exception)
    seen, task = attempts(sim, policy, Limited({"Retry-After": 4}), NoSuchCityError("Atlantis"))
    assert seen == [0, 4]
    assert isinstance(task.exception(), NoSuchCityError)


@pytest.mark.parametrize("seconds", [math.nan, -1, "soon", ...], ids=repr)
def test_a_delay_that_was_tampered_with_fails_the_task(world: World, seconds: Any) -> None:
    error = RetryAfter(1)
    error.seconds = seconds
    task = world.scheduler.after(0, failing([], 0, error), retry=retry.FixedDelay(3, 0))
    assert isinstance(task.exception(WATCHDOG), (ValueError, TypeError))
    assert (task.state, task.runs) == (TaskState.FAILED, 1)


def test_who_gives_up_is_not_retried_and_keeps_the_cause(world: World) -> None:
    def job() -> None:
        try:
            int("x")
        except ValueError as error:
            raise GiveUp("no number") from error

    policy = retry.FixedDelay(3, 0, retry_on=Exception)
    task = world.scheduler.after(0, job, retry=policy)
    error = task.exception(WATCHDOG)
    assert (task.state, task.runs) == (TaskState.FAILED, 1)
    assert isinstance(error, GiveUp)
    assert isinstance(error.__cause__, ValueError)
    assert task.info().error == "GiveUp: no number"
    with pytest.raises(GiveUp, match="no number"):
        task.result()


def test_a_bare_give_up_will_do(world: World) -> None:
    task = world.scheduler.after(0, failing([], 0, GiveUp()), retry=retry.FixedDelay(3, 0))
    assert isinstance(task.exception(WATCHDOG), GiveUp)
    assert (task.runs, task.info().error) == (1, "GiveUp")


def test_a_series_that_gives_up_goes_on_with_its_next_slot(sim: World) -> None:
    seen: list[float] = []
    job = failing(seen, sim.now(), GiveUp("not now"), OSError(), GiveUp("again"))
    task = sim.scheduler.every(10, job, first=0, retry=retry.FixedDelay(9, 1), max_runs=3)
    sim.run_until_idle()
    sim.advance(100)
    assert seen == [0, 10, 11, 20]
    assert (task.state, task.failures) == (TaskState.DONE, 3)


@pytest.mark.parametrize(
    ("delay", "starts"), [(9, [0, 9, 10]), (10, [0, 10]), (15, [0, 10])], ids=str
)
def test_a_retry_that_a_job_asks_for_gives_way_to_the_next_slot(
    sim: World, delay: float, starts: list[float]
) -> None:
    seen: list[float] = []
    job = failing(seen, sim.now(), RetryAfter(delay))
    sim.scheduler.every(10, job, first=0, retry=retry.FixedDelay(9, 1))
    sim.run_until_idle()
    sim.advance(10)
    assert seen == starts


def test_events_say_whether_another_attempt_follows(sim: World) -> None:
    log = sim.log()
    start = sim.now()
    attempts(sim, retry.FixedDelay(9, 1), RetryAfter(5), GiveUp("enough"))
    assert [(event.time - start, event.next_due) for event in log.of("FAILED")] == [
        (0, start + 5),
        (5, None),
    ]


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (-1, ValueError),
        (math.nan, ValueError),
        (math.inf, ValueError),
        (1e300, ValueError),
        (10**400, ValueError),
        (timedelta(-1), ValueError),
        ("1", TypeError),
        (None, TypeError),
        (True, TypeError),
    ],
    ids=repr,
)
def test_a_delay_out_of_bounds_is_refused_where_it_is_made(
    seconds: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="seconds must be"):
        RetryAfter(seconds)


def test_the_errors_are_values() -> None:
    after = pickle.loads(pickle.dumps(RetryAfter(seconds=timedelta(minutes=1))))
    assert (type(after), after.seconds, str(after)) == (RetryAfter, 60.0, "retry after 60 s")
    gave_up = pickle.loads(pickle.dumps(GiveUp("why")))
    assert (type(gave_up), str(gave_up)) == (GiveUp, "why")
    assert RetryAfter.__module__ == GiveUp.__module__ == "duetime.retry"
