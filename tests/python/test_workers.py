"""Workers: how many, their names, what they keep from job to job, and how deeply they sleep."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Thread, voluntary_switches, worker_tids

from duetime import ManualClock, Scheduler, Task

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.parametrize(
    ("workers", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (1025, ValueError),
        (10**9, ValueError),
        (10**400, ValueError),
        (True, TypeError),
        (1.0, TypeError),
        ("4", TypeError),
        (None, TypeError),
    ],
    ids=lambda value: repr(value)[:12],
)
def test_workers_are_1_to_1024(workers: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="workers"):
        Scheduler(workers)


def test_the_default_is_four(make_scheduler: Callable[..., Scheduler]) -> None:
    assert make_scheduler().stats().workers == 4
    assert make_scheduler(workers=1024).stats().workers == 1024


@pytest.mark.parametrize("workers", [1, 3, 16])
def test_n_jobs_run_at_once(make_scheduler: Callable[..., Scheduler], workers: int) -> None:
    scheduler = make_scheduler(workers)
    together = threading.Barrier(workers)
    tasks = [scheduler.after(0, together.wait, WATCHDOG) for _ in range(workers)]
    assert sorted(task.result(WATCHDOG) for task in tasks) == list(range(workers))


def test_never_more_than_n_jobs_run_at_once(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler = make_scheduler(3)
    gate = Gate()
    tasks = [scheduler.after(0, gate) for _ in range(10)]
    for _ in range(3):
        gate.entered()
    assert scheduler.stats().running == 3
    assert scheduler.stats().waiting == 7
    gate.open()
    assert [task.result(WATCHDOG) for task in tasks] == ["through"] * 10
    names = {scheduler.after(0, thread_name).result(WATCHDOG) for _ in range(20)}
    assert names <= {"duetime-0", "duetime-1", "duetime-2"}


def thread_name() -> str:
    return threading.current_thread().name


@linux
def test_workers_start_with_the_first_task(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler = make_scheduler(2, name="lazy")
    scheduler.add_listener(print, kinds=[])
    scheduler.stats()
    scheduler.now()
    assert scheduler.wait_idle(WATCHDOG)
    assert worker_tids("lazy-") == {}
    scheduler.after(3600, int)
    gate = Gate()
    for _ in range(2):
        scheduler.after(0, gate)
    for _ in range(2):
        gate.entered()
    assert sorted(worker_tids("lazy-").values()) == ["lazy-0", "lazy-1"]
    gate.open()


@linux
def test_the_names_for_the_os_and_for_python(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler = make_scheduler(4)
    before = set(worker_tids())
    together = threading.Barrier(4)

    def job() -> tuple[str, int]:
        together.wait(WATCHDOG)
        return thread_name(), threading.get_native_id()

    found = dict(task.result(WATCHDOG) for task in [scheduler.after(0, job) for _ in range(4)])
    assert sorted(found) == [f"duetime-{n}" for n in range(4)]
    names = {tid: name for tid, name in worker_tids().items() if tid not in before}
    assert names == {tid: name for name, tid in found.items()}


def test_a_name_of_ones_own(make_scheduler: Callable[..., Scheduler]) -> None:
    assert make_scheduler(1, name="cron").after(0, thread_name).result(WATCHDOG) == "cron-0"


def test_thread_local_state_lasts(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler = make_scheduler(1)
    local = threading.local()

    def job() -> int:
        local.count = getattr(local, "count", 0) + 1
        return local.count

    assert [scheduler.after(0, job).result(WATCHDOG) for _ in range(5)] == [1, 2, 3, 4, 5]
    idents = {scheduler.after(0, threading.get_ident).result(WATCHDOG) for _ in range(5)}
    currents = {id(scheduler.after(0, threading.current_thread).result(WATCHDOG)) for _ in range(5)}
    assert (len(idents), len(currents)) == (1, 1)
    assert not hasattr(local, "count")


@pytest.fixture
def hooks() -> Iterator[None]:
    trace, profile = threading.gettrace(), threading.getprofile()
    yield
    threading.settrace(trace)
    threading.setprofile(profile)


@pytest.mark.usefixtures("hooks")
@pytest.mark.parametrize("hook", ["settrace", "setprofile"])
def test_hooks_for_threads_apply_to_workers(
    make_scheduler: Callable[..., Scheduler], hook: str
) -> None:
    seen: list[tuple[str, str]] = []

    def watch(frame: Any, event: str, _arg: Any) -> None:
        if event == "call":
            seen.append((frame.f_code.co_name, threading.current_thread().name))

    def traced_job() -> str:
        return "ran"

    getattr(threading, hook)(watch)
    scheduler = make_scheduler(1)
    for _ in range(2):
        assert scheduler.after(0, traced_job).result(WATCHDOG) == "ran"
    getattr(threading, hook)(None)
    assert [name for name, _ in seen].count("traced_job") == 2
    assert ("traced_job", "duetime-0") in seen


variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="default")


def test_a_job_runs_in_the_context_it_was_scheduled_in(
    make_scheduler: Callable[..., Scheduler],
) -> None:
    scheduler = make_scheduler(1)
    token = variable.set("caller's")
    gate = Gate()
    scheduler.after(0, gate)
    task = scheduler.after(0, variable.get)
    scheduled = scheduler.schedule(Task(due=scheduler.now(), job=variable.get))
    future = scheduler.submit(variable.get)
    variable.reset(token)
    unset = scheduler.after(0, variable.get)
    gate.open()
    assert task.result(WATCHDOG) == scheduled.result(WATCHDOG) == "caller's"
    assert future.result(WATCHDOG) == "caller's"
    assert unset.result(WATCHDOG) == "default", "nothing leaks from job to job"


def test_each_run_has_a_fresh_copy(make_scheduler: Callable[..., Scheduler]) -> None:
    clock = ManualClock()
    scheduler = make_scheduler(1, clock=clock)
    seen: list[str] = []

    def job() -> None:
        seen.append(variable.get())
        variable.set("the job's")

    context = contextvars.copy_context()
    context.run(variable.set, "caller's")
    context.run(scheduler.every, 10, job)
    clock.advance(30)
    assert seen == ["caller's"] * 3
    assert context[variable] == "caller's"
    assert variable.get() == "default"


@linux
def test_an_idle_pool_sleeps(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler = make_scheduler(8, name="idle")
    together = threading.Barrier(8)
    for task in [scheduler.after(0, together.wait, WATCHDOG) for _ in range(8)]:
        assert task.wait(WATCHDOG)
    scheduler.schedule_all(Task(due=scheduler.now() + 3600 + n, job=int) for n in range(10_000))
    watch = make_scheduler(1, name="watch")
    assert watch.after(0.1, int).wait(WATCHDOG)
    tids = worker_tids("idle-")
    assert len(tids) == 8
    before = voluntary_switches(tids)
    assert watch.after(0.5, int).wait(WATCHDOG)
    assert voluntary_switches(tids) - before == 0


@linux
def test_a_new_earliest_task_wakes_one_sleeper(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler = make_scheduler(32, name="herd")
    together = threading.Barrier(32)
    for task in [scheduler.after(0, together.wait, WATCHDOG) for _ in range(32)]:
        assert task.wait(WATCHDOG)
    tids = worker_tids("herd-")
    before = voluntary_switches(tids)
    for _ in range(200):
        assert scheduler.after(0.0005, int).wait(WATCHDOG)
    assert (voluntary_switches(tids) - before) / 200 < 8, "not all 32 of them"


def test_an_earlier_task_is_not_held_up_by_a_later_one(
    make_scheduler: Callable[..., Scheduler],
) -> None:
    scheduler = make_scheduler(1)
    scheduler.after(3600, int)
    for _ in range(100):
        assert scheduler.after(0.001, int).wait(WATCHDOG)


def test_a_slow_job_holds_up_no_other(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler = make_scheduler(2)
    gate = Gate()
    slow = scheduler.after(0, gate)
    gate.entered()
    for n in range(100):
        assert scheduler.after(0.0001, lambda n=n: n).result(WATCHDOG) == n
    assert slow.running()
    gate.open()


def test_python_runs_while_workers_wait(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler = make_scheduler(4)
    scheduler.after(0, int).result(WATCHDOG)
    scheduler.after(3600, int)
    assert Thread(sum, range(100_000)).outcome() == sum(range(100_000))
