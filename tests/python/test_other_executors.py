"""Jobs on other executors: the scheduler keeps time, state and retries, and holds no worker."""

from __future__ import annotations

import concurrent.futures
import gc
import multiprocessing
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest
from helpers import WATCHDOG, Gate, Log, clean_run
from worlds import World

from duetime import (
    CancelOutcome,
    JobReturnedFalse,
    ManualClock,
    Scheduler,
    Task,
    TaskState,
    retry,
)


class HandExecutor(Executor):
    """An executor whose calls end when the test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[Future[Any], Any, tuple[Any, ...]]] = []
        self._submitted = threading.Semaphore(0)
        self.is_shut = False

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls.append((future, fn, args))
        self._submitted.release()
        return future

    def next(self) -> Future[Any]:
        assert self._submitted.acquire(timeout=WATCHDOG), "nothing was submitted"
        return self.calls[-1][0]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.is_shut = True


def spawned(workers: int = 1) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2, thread_name_prefix="pool") as made:
        yield made


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with spawned(2) as made:
        yield made


# ------------------------------------------------------------------------------ like any run


def where() -> str:
    return threading.current_thread().name


def test_it_runs_where_it_is_told(real: Scheduler, pool: ThreadPoolExecutor) -> None:
    assert real.after(0, where, executor=pool).result(WATCHDOG).startswith("pool")
    assert real.at(real.now(), where, executor=pool).result(WATCHDOG).startswith("pool")
    assert real.every(1, where, first=0, max_runs=1, executor=pool).result(WATCHDOG)[:4] == "pool"
    task = real.schedule(Task(due=0, job=pow, args=(2, 10), executor=pool))
    assert task.result(WATCHDOG) == 1024
    assert real.after(0, where, executor=None).result(WATCHDOG).startswith("duetime")


def test_a_job_object_is_run_there(manual: World, pool: ThreadPoolExecutor) -> None:
    class Report:
        def run(self, now: float) -> tuple[float, str]:
            return now, where()

    task = manual.scheduler.after(5, Report(), executor=pool)
    manual.advance(5)
    now, name = task.result(0)
    assert now == task.due and name.startswith("pool")


def test_no_worker_is_held(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler = make_scheduler(1)
    hand = HandExecutor()
    tasks = [scheduler.after(0, list, executor=hand) for _ in range(100)]
    futures = [hand.next() for _ in tasks]
    assert scheduler.after(0, lambda: "free").result(WATCHDOG) == "free"
    assert scheduler.stats().running >= 100 and all(task.running() for task in tasks)
    assert not scheduler.wait_idle(0.001)
    for future, _, _ in hand.calls:
        future.set_result("done")
    assert len(futures) == 100 and scheduler.wait_idle(WATCHDOG)
    assert {task.result(0) for task in tasks} == {"done"}


def test_the_scheduler_keeps_retries_and_slots(manual: World) -> None:
    log = Log()
    manual.scheduler.add_listener(log)
    failures = iter([ValueError("no"), None, None])

    class AtOnce(HandExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future = super().submit(fn, *args)
            error = next(failures)
            future.set_exception(error) if error else future.set_result(fn(*args))
            return future

    task = manual.scheduler.every(
        60, pow, 2, 3, first=0, max_runs=2, retry=retry.FixedDelay(1, 5), executor=AtOnce(), id="t"
    )
    manual.advance(60)
    assert task.result(0) == 8 and (task.runs, task.failures) == (3, 1)
    run = ("DUE", "STARTED", "COMPLETED")
    assert log.kinds("t") == ["SCHEDULED", "DUE", "STARTED", "FAILED", *run, *run]


def test_false_and_errors_are_failures(real: Scheduler, pool: ThreadPoolExecutor) -> None:
    task = real.after(0, bool, 0, executor=pool)
    assert isinstance(task.exception(WATCHDOG), JobReturnedFalse)
    assert isinstance(real.after(0, int, "x", executor=pool).exception(WATCHDOG), ValueError)


def test_advance_waits_for_it(pool: ThreadPoolExecutor) -> None:
    clock = ManualClock()
    with Scheduler(clock=clock) as scheduler:
        task = scheduler.after(1, pow, 2, 2, executor=pool)
        clock.advance(1)
        assert task.result(0) == 4


def test_a_refused_submission_is_a_failed_run(real: Scheduler) -> None:
    shut = ThreadPoolExecutor(1)
    shut.shutdown()
    task = real.after(0, list, executor=shut)
    with pytest.raises(RuntimeError, match="after shutdown"):
        task.result(WATCHDOG)


def test_a_future_that_is_lost_is_a_failed_run(real: Scheduler) -> None:
    class Loses(HandExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            return Future()

    task = real.after(0, list, executor=Loses())
    assert task.exception(WATCHDOG) is not None
    assert task.state is TaskState.FAILED


def test_a_coroutine_from_an_executor_is_a_failure(
    real: Scheduler, pool: ThreadPoolExecutor
) -> None:
    async def job() -> None:
        raise AssertionError("nobody runs it")

    task = real.after(0, lambda: job(), executor=pool)  # noqa: PLW0108 - so that it shows late
    assert isinstance(task.exception(WATCHDOG), TypeError)
    gc.collect()  # nothing was left unawaited


# ------------------------------------------------------------------------------------- stops


def test_a_stop_cancels_a_call_that_has_not_begun(real: Scheduler) -> None:
    hand = HandExecutor()
    task = real.after(0, list, executor=hand)
    future = hand.next()
    assert task.cancel() is CancelOutcome.STOPPING
    assert future.cancelled() and task.wait(WATCHDOG) and task.cancelled()


def test_a_call_that_has_begun_finishes(real: Scheduler, pool: ThreadPoolExecutor) -> None:
    gate = Gate()
    task = real.after(0, gate, executor=pool)
    gate.entered()
    assert task.cancel() is CancelOutcome.STOPPING
    assert not task.wait(0.001)
    gate.open()
    assert task.result(WATCHDOG) == "through"


def test_a_call_that_its_executor_cancels_has_failed(real: Scheduler) -> None:
    hand = HandExecutor()
    task = real.after(0, list, executor=hand)
    hand.next().cancel()
    hand.calls[0][0].set_running_or_notify_cancel()
    assert isinstance(task.exception(WATCHDOG), concurrent.futures.CancelledError)


def test_a_shutdown_cancels_what_has_not_begun_and_waits_for_the_rest() -> None:
    with ThreadPoolExecutor(1) as pool:
        scheduler = Scheduler()
        gate = Gate()
        begun = scheduler.after(0, gate, executor=pool)
        gate.entered()
        queued = scheduler.after(0, list, executor=pool)
        while not queued.running():
            pass
        scheduler.after(0, list).result(WATCHDOG)
        assert scheduler.shutdown(timeout=0.001) is False
        assert queued.wait(WATCHDOG) and queued.cancelled()
        gate.open()
        assert scheduler.shutdown(timeout=WATCHDOG)
        assert begun.result(0) == "through"
        assert pool.submit(pow, 2, 2).result(WATCHDOG) == 4, "an instance stays the caller's"


# ------------------------------------------------------------------------- the scheduler's own


def test_the_scheduler_has_an_executor_for_all_its_jobs(pool: ThreadPoolExecutor) -> None:
    async def job() -> str:
        return where()

    with Scheduler(executor=pool) as scheduler:
        assert scheduler.executor is pool
        assert scheduler.after(0, where).result(WATCHDOG).startswith("pool")
        task = scheduler.schedule(Task(due=0, job=where))
        assert task.result(WATCHDOG).startswith("pool")
        assert scheduler.after(0, where, executor=scheduler).result(WATCHDOG)[:7] == "duetime"
        assert scheduler.submit(where).result(WATCHDOG).startswith("duetime")
        assert scheduler.after(0, job).result(WATCHDOG) == "duetime-loop"
    assert Scheduler().executor is None


def test_another_scheduler_is_an_executor(real: Scheduler) -> None:
    with Scheduler(name="other") as other:
        assert real.after(0, where, executor=other).result(WATCHDOG).startswith("other")


def test_a_factory_is_called_once_and_what_it_made_is_shut_down() -> None:
    made: list[HandExecutor] = []

    def make() -> HandExecutor:
        made.append(HandExecutor())
        return made[-1]

    with Scheduler() as scheduler:
        tasks = [scheduler.after(0, list, executor=make) for _ in range(3)]
        while not made:
            pass
        for _ in tasks:
            made[0].next()
        for future, _, _ in made[0].calls:
            future.set_result(1)
        assert [task.result(WATCHDOG) for task in tasks] == [1, 1, 1]
        assert len(made) == 1 and not made[0].is_shut
    assert made[0].is_shut


def test_a_factory_that_fails_fails_the_run(real: Scheduler) -> None:
    def make() -> Executor:
        raise OSError("no pool today")

    assert isinstance(real.after(0, list, executor=make).exception(WATCHDOG), OSError)


@pytest.mark.parametrize("executor", [3, "pool", object()])
def test_what_is_no_executor_is_refused(real: Scheduler, executor: Any) -> None:
    with pytest.raises(TypeError, match="executor"):
        real.after(0, list, executor=executor)
    with pytest.raises(TypeError, match="executor"):
        Task(due=0, job=list, executor=executor)
    with pytest.raises(TypeError, match="executor"):
        Scheduler(executor=executor)


def test_a_coroutine_function_takes_no_executor(real: Scheduler, pool: ThreadPoolExecutor) -> None:
    async def job() -> None: ...

    with pytest.raises(TypeError, match="executor"):
        real.after(0, job, executor=pool)


def test_a_waiting_task_is_collected_with_its_executor() -> None:
    class App:
        def __init__(self) -> None:
            self.scheduler = Scheduler(executor=self.make)
            self.scheduler.after(3600, list)
            self.scheduler.after(0, pow, 2, 2).result(WATCHDOG)

        def make(self) -> Executor:
            return ThreadPoolExecutor(1)

    app = App()
    app.scheduler.wait_idle(WATCHDOG)
    dead = weakref.ref(app)
    del app
    for _ in range(100):
        gc.collect()
        if dead() is None:
            break
        threading.Event().wait(0.01)
    assert dead() is None


# --------------------------------------------------------------------------------- processes


def kill_itself() -> None:
    os._exit(1)


def own_pid(_: int = 0) -> int:
    return os.getpid()


def test_a_process_pool_runs_it(real: Scheduler, processes: ProcessPoolExecutor) -> None:
    pids = [real.after(0, own_pid, executor=processes) for _ in range(4)]
    assert os.getpid() not in {task.result(WATCHDOG) for task in pids}
    assert real.after(0, pow, 2, 100, executor=processes).result(WATCHDOG) == 2**100


def test_what_cannot_be_pickled_is_a_failed_run(
    real: Scheduler, processes: ProcessPoolExecutor
) -> None:
    task = real.after(0, lambda: 1, executor=processes)
    assert task.exception(WATCHDOG) is not None and task.state is TaskState.FAILED
    assert real.after(0, pow, 2, 2, executor=processes).result(WATCHDOG) == 4


def test_a_broken_pool_is_a_failed_run_and_the_next_one_works() -> None:
    with Scheduler(executor=spawned) as scheduler:
        task = scheduler.after(0, kill_itself)
        assert isinstance(task.exception(WATCHDOG), BrokenProcessPool)
        assert scheduler.after(0, pow, 2, 2).result(WATCHDOG) == 4


def test_a_series_goes_on_after_it_killed_its_process(tmp_path: Any) -> None:
    with Scheduler() as scheduler:
        task = scheduler.every(
            0.01, die_once, str(tmp_path / "died"), first=0, max_runs=2, executor=spawned
        )
        assert task.result(WATCHDOG) == "lives"
        assert (task.runs, task.failures) == (2, 1)


def die_once(path: str) -> str:
    if not os.path.exists(path):
        open(path, "w").close()
        os._exit(1)
    return "lives"


def test_a_pool_that_was_broken_before_is_replaced_unnoticed() -> None:
    class Breaks(HandExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            if len(self.calls) == 1:
                raise BrokenProcessPool("it broke while nothing ran")
            future = super().submit(fn, *args)
            future.set_result(fn(*args))
            return future

    with Scheduler(executor=Breaks) as scheduler:
        for _ in range(5):
            assert scheduler.after(0, pow, 2, 2).result(WATCHDOG) == 4


def test_an_instance_that_broke_stays_broken(real: Scheduler) -> None:
    with spawned() as pool:
        for _ in range(2):
            task = real.after(0, kill_itself, executor=pool)
            assert isinstance(task.exception(WATCHDOG), BrokenProcessPool)


def test_the_interpreter_exits_with_a_pool_at_work() -> None:
    clean_run("""
        import multiprocessing, time
        from concurrent.futures import ProcessPoolExecutor
        from duetime import Scheduler

        def make():
            return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

        if __name__ == "__main__":
            scheduler = Scheduler(executor=make)
            task = scheduler.after(0, time.sleep, 0.1)
            scheduler.every(0.01, pow, 2, 2)
            scheduler.after(0, pow, 2, 2).result(30)
    """)


# ------------------------------------------------------------------------------------ others


def test_interpreters_run_it(real: Scheduler) -> None:
    if sys.version_info < (3, 14):
        pytest.skip("Python has no InterpreterPoolExecutor before 3.14")
    with concurrent.futures.InterpreterPoolExecutor(2) as pool:
        tasks = [real.after(0, pow, 2, n, executor=pool) for n in range(10)]
        assert [task.result(WATCHDOG) for task in tasks] == [2**n for n in range(10)]


def test_a_dask_cluster_runs_a_thousand(real: Scheduler) -> None:
    distributed = pytest.importorskip("distributed")
    # None would still ask for port 8787, which may be taken, as by this test on another Python.
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        tasks = [real.after(0.01, pow, 2, n, executor=executor) for n in range(1000)]
        assert [task.result(WATCHDOG * 3) for task in tasks] == [2**n for n in range(1000)]
        failing = real.after(0, int, "x", executor=executor)
        assert isinstance(failing.exception(WATCHDOG), ValueError)
