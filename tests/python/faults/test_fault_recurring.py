"""Series: their grid, their gaps, their missed slots, and what ends them."""

from __future__ import annotations

import math
import threading
from typing import Any

import pytest
from support import (
    HOUR,
    STATES,
    WATCHDOG,
    CellClock,
    Log,
    Manual,
    exact,
    failing,
    lasting,
    noop,
    scaled,
    switches,
    threads,
    until,
)

import duetime
from duetime import FixedDelay, FixedRate, Missed, Task

CATCH_UP = Missed.CATCH_UP


def test_a_rate_does_not_drift_with_the_length_of_its_job(manual: Manual) -> None:
    """schedule#285: the next run was counted from the end of the last one."""
    runs = scaled(10_000, 300)
    manual.scheduler.every(HOUR, lasting(13), max_runs=runs)
    manual.advance(runs * HOUR + 13)
    assert manual.log.starts() == [HOUR * n for n in range(1, runs + 1)]


def test_a_delay_is_counted_from_the_end_of_the_run(manual: Manual) -> None:
    """schedule#285: and who wants the gap, not the grid, gets exactly the gap."""
    runs = scaled(10_000, 300)
    manual.scheduler.every(FixedDelay(HOUR), lasting(13), max_runs=runs)
    manual.advance(runs * (HOUR + 13))
    assert manual.log.starts() == [HOUR * n + 13 * (n - 1) for n in range(1, runs + 1)]


@pytest.mark.parametrize(
    "rule",
    [FixedRate(60), FixedRate(60, CATCH_UP), FixedDelay(60)],
    ids=["skip", "catch up", "delay"],
)
def test_reading_the_due_does_not_move_it(manual: Manual, rule: Any) -> None:
    """hermes#113286: the next run that was shown depended on when one looked."""
    seen: list[tuple[float, ...]] = []
    announced: list[float] = []
    held: list[Task] = []

    def job() -> None:
        for _ in range(3):
            run, info = duetime.current_run(), manual.scheduler.info("s")
            seen.append((run.due, held[0].due, info.due))
        run.wait(7)

    def listener(event: Any) -> None:
        if event.kind.name == "COMPLETED":
            announced.append(event.next_due)

    manual.scheduler.add_listener(listener)
    held.append(manual.scheduler.every(rule, job, id="s"))
    for run in range(1, 6):
        manual.advance(manual.scheduler.next_due() - manual.scheduler.now() + 7)
        for _ in range(3):
            assert held[0].due == manual.scheduler.info("s").due == announced[-1]
            assert manual.scheduler.next_due() == announced[-1]
        assert manual.log.dues() == [seen[0][0], *announced[:-1]]
        assert seen[3 * run - 3 :] == [(manual.log.dues()[-1],) * 3] * 3


@pytest.mark.parametrize(
    ("rule", "took", "starts", "missed"),
    [
        (FixedRate(50, CATCH_UP), 180, [0, 180, 180, 180, 200, 250], 0),
        (FixedRate(50), 180, [0, 200, 250], 3),
        (FixedRate(50, CATCH_UP), 200, [0, 200, 200, 200, 200, 250], 0),
        (FixedRate(50), 200, [0, 200, 250], 3),
        (FixedRate(50), 201, [0, 250], 4),
        (FixedRate(50), 50, [0, 50, 100, 150, 200, 250], 0),
        (FixedDelay(50), 180, [0, 230], 0),
        (FixedDelay(50), 200, [0, 250], 0),
    ],
)
def test_a_slow_first_run_and_the_slots_it_passed(
    manual: Manual, rule: Any, took: float, starts: list[float], missed: int
) -> None:
    """tokio#3721: an interval burst, skipped or delayed otherwise than was written."""
    begin = 1000.0

    def job() -> None:
        if duetime.current_run().number == 1:
            duetime.current_run().wait(took)

    task = manual.scheduler.every(rule, job, first=begin, id="s")
    manual.advance(begin + 250)
    assert [start - begin for start in manual.log.starts()] == starts
    assert (task.missed, manual.scheduler.info("s").missed) == (missed, missed)
    assert sum(event.missed for event in manual.log.of("MISSED")) == missed


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("rule", ["skip", "catch up"])
def test_a_minute_job_that_takes_61_seconds(make_manual: Any, rule: str, workers: int) -> None:
    """apscheduler#977: every second run vanished without a word."""
    bench = make_manual(workers=workers)
    running, most = [0], [0]

    def job() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        duetime.current_run().wait(61)
        running[0] -= 1

    recurrence = FixedRate(60) if rule == "skip" else FixedRate(60, CATCH_UP)
    task = bench.scheduler.every(recurrence, job, max_runs=20)
    bench.advance(3 * HOUR)
    slots = [60 * n for n in range(1, 21)]
    if rule == "skip":
        assert bench.log.starts() == bench.log.dues() == [60 + 120 * n for n in range(20)]
        # After the last run there is no slot left to miss.
        assert task.missed == len(bench.log.of("MISSED")) == 19
    else:
        assert bench.log.dues() == slots
        assert bench.log.starts() == [60 + 61 * n for n in range(20)]
        assert task.missed == 0
    assert (most, task.state) == ([1], STATES.DONE)


@pytest.mark.parametrize("late", [1, 300, 86_400])
@pytest.mark.parametrize("how", ["jump", "given late", "busy"])
def test_a_one_off_that_is_found_late_still_runs(manual: Manual, how: str, late: float) -> None:
    """apscheduler#182: a date job that was a little late was dropped as a misfire."""
    manual.advance(86_400)
    if how == "busy":
        manual.scheduler.after(1, lasting(late))
    task = manual.scheduler.after(1, noop, id="t") if how != "given late" else None
    if how == "jump":
        manual.jump(1 + late)
    elif how == "busy":
        manual.advance(1 + late)
    else:
        task = manual.scheduler.at(86_400 - late, noop, id="t")
    assert task and task.wait(WATCHDOG) and task.state is STATES.DONE
    assert [event.lateness for event in manual.log.of("STARTED", id="t")] == [late]


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("took", [0, 10, 20, 30])
@pytest.mark.parametrize("missed", [Missed.SKIP, CATCH_UP], ids=["skip", "catch up"])
def test_a_slot_at_the_end_of_a_run_is_taken_once(
    make_manual: Any, missed: Missed, took: float, workers: int
) -> None:
    """paseo#2819: the end of a run and a slot fell together, and it ran twice or never."""
    bench = make_manual(workers=workers)
    bench.scheduler.every(FixedRate(10, missed), lasting(took), max_runs=10)
    bench.advance(1000)
    step = 10 if missed is CATCH_UP else max(10, took)
    assert bench.log.dues() == [10 + step * n for n in range(10)]
    assert bench.log.starts() == [10 + max(10, took) * n for n in range(10)]


def test_replacing_an_unchanged_series_can_keep_its_phase(manual: Manual) -> None:
    """jac#7625: each reload of an unchanged spec began the period anew; it never ran."""
    held = manual.scheduler.every(60, noop, id="s")
    for _ in range(30):
        manual.advance(10)
        same = Task("s", due=held.due, job=noop, recurrence=FixedRate(60))
        held = manual.scheduler.schedule(same, replace=True)
    assert manual.log.starts("s") == [60, 120, 180, 240, 300]
    assert [info.id for info in manual.scheduler.tasks(STATES.WAITING)] == ["s"]


def test_replacing_a_series_without_a_first_begins_a_new_period(manual: Manual) -> None:
    """jac#7625: what `first` says by default: one period from the call, and only one series."""
    for _ in range(30):
        manual.scheduler.schedule(
            Task("s", due=manual.scheduler.now() + 60, job=noop, recurrence=FixedRate(60)),
            replace=True,
        )
        manual.advance(10)
    assert manual.log.starts("s") == []
    manual.advance(50)
    assert manual.log.starts("s") == [350]


class Odd:
    """A recurrence of somebody else: two good slots, then `answer`."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.calls = 0

    def next_due(self, due: float, finished: float) -> Any:
        self.calls += 1
        assert self.calls < 100, "it spins"
        if self.calls < 3:
            return due + 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return due + self.answer if isinstance(self.answer, float) else self.answer


@pytest.mark.parametrize(
    "answer",
    [
        *(-1e-9, 0.0, -1.0, -1e6, math.nan, math.inf, -math.inf, 1e300),
        *("soon", b"", [], 10**400, -(10**400), True, 1j),
        *(KeyError("mine"), SystemExit(3), KeyboardInterrupt(), RecursionError()),
    ],
    ids=lambda answer: repr(answer)[:12],
)
def test_a_recurrence_that_does_not_move_forward_fails_its_task(
    manual: Manual, answer: Any
) -> None:
    """robfig/cron#311: a schedule that answered the past made the loop spin for ever."""
    rule = Odd(answer)
    task = manual.scheduler.every(rule, noop, first=1.0, id="odd")
    other = manual.scheduler.every(1, noop, id="other")
    manual.advance(10)
    assert (task.runs, rule.calls, task.state) == (3, 3, STATES.FAILED)
    if isinstance(answer, BaseException):
        assert task.exception(WATCHDOG) is answer
    else:
        assert isinstance(task.exception(WATCHDOG), Exception)
    assert manual.log.dues("other") == list(range(1, 11))
    assert other.state is STATES.WAITING


def test_a_recurrence_that_answers_none_is_done(manual: Manual) -> None:
    """robfig/cron#311: no next time is an end, not an error."""
    task = manual.scheduler.every(Odd(None), noop, first=1.0)
    manual.advance(10)
    assert (task.runs, task.failures, task.state) == (3, 0, STATES.DONE)
    assert manual.scheduler.next_due() is None


@pytest.mark.parametrize("stuck", [1, 3])
def test_a_job_that_never_returns_leaves_the_others_their_grid(make: Any, stuck: int) -> None:
    """illospace#566: one hung job, and nothing else ran any more."""
    clock, gate, ran = CellClock(), threading.Event(), threading.Semaphore(0)
    scheduler = make(workers=stuck + 1, clock=clock)
    log = Log(scheduler)
    for _ in range(stuck):
        scheduler.after(0, gate.wait, WATCHDOG)
    for name in ("a", "b"):
        scheduler.every(FixedRate(HOUR, CATCH_UP), ran.release, id=name)
    try:
        for slot in range(1, 21):
            clock.moved(scheduler, HOUR * slot)
            assert ran.acquire(timeout=WATCHDOG) and ran.acquire(timeout=WATCHDOG)
        assert log.starts("a") == log.starts("b") == [HOUR * slot for slot in range(1, 21)]
    finally:
        gate.set()


@pytest.mark.parametrize("stuck", [1, 3])
def test_a_job_that_never_returns_is_given_up_and_replaced(make: Any, stuck: int) -> None:
    """illospace#566: the same, where every worker hangs, but has a timeout."""
    clock, gate, ran = CellClock(), threading.Event(), threading.Semaphore(0)
    scheduler = make(workers=stuck, clock=clock)
    log = Log(scheduler)
    hung = [scheduler.after(0, gate.wait, WATCHDOG, timeout=60, grace=60) for _ in range(stuck)]
    scheduler.every(FixedRate(HOUR, CATCH_UP), ran.release, id="a")
    try:
        for task in hung:
            until(task.running, "the hung job")
        for slot in range(1, 21):
            clock.moved(scheduler, HOUR * slot)
            assert ran.acquire(timeout=WATCHDOG)
        assert log.starts("a") == [HOUR * slot for slot in range(1, 21)]
        assert scheduler.stats().stuck == stuck
        assert all(isinstance(task.exception(), duetime.TaskStuck) for task in hung)
    finally:
        gate.set()


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), SystemExit(1), KeyboardInterrupt(), GeneratorExit(), MemoryError()],
    ids=repr,
)
@pytest.mark.parametrize("bad", [1, 3])
def test_a_series_goes_on_after_a_run_that_raises(
    manual: Manual, bad: int, error: BaseException
) -> None:
    """shenyu#6608: after one exception a periodic task was never heard of again."""

    def job() -> None:
        if duetime.current_run().number == bad:
            raise error

    task = manual.scheduler.every(10, job)
    manual.advance(60)
    assert (task.runs, task.failures, task.state) == (6, 1, STATES.WAITING)
    assert [event.next_due for event in manual.log.of("FAILED")] == [10 * bad + 10]


def test_a_series_goes_on_though_every_run_fails(manual: Manual) -> None:
    """shenyu#6608: however often."""
    task = manual.scheduler.every(1, failing())
    manual.advance(1000)
    assert (task.runs, task.failures, task.state) == (1000, 1000, STATES.WAITING)


def test_a_crowd_due_in_one_instant_starts_in_order(manual: Manual) -> None:
    """celery#4493: one task was taken at each tick, the others waited for the next."""
    ran: list[int] = []
    for number in range(1000):
        manual.scheduler.after(1, ran.append, number)
    manual.advance(1)
    assert ran == list(range(1000))
    assert set(manual.log.starts()) == {1}


def test_a_crowd_due_in_one_instant_is_one_wake_up(make: Any) -> None:
    """celery#4493: on the real clock nobody goes to sleep between the first and the last."""
    before = threads()
    scheduler = make(workers=1)
    assert scheduler.after(0, noop).wait(WATCHDOG)
    workers = threads() - before
    ran: list[int] = []
    due = scheduler.now() + 0.3
    crowd = [Task(due=due, job=ran.append, args=(number,)) for number in range(1000)]
    scheduler.schedule_all(crowd)
    slept = switches(workers)
    assert crowd[-1].wait(WATCHDOG)
    assert ran == list(range(1000))
    assert switches(workers) - slept <= 100
    assert {exact(task.due) for task in crowd} == {exact(due)}
