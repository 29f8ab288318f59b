"""Fork: the child's copy says so and hangs nowhere; a new one works; the parent goes on.

Each test forks in a program of its own, so that no fork disturbs the test run.
"""

from __future__ import annotations

import os

import pytest
from helpers import REFUSED, clean_run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

SETUP = (
    REFUSED
    + """
import os, sys, threading, warnings
from duetime import *
warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork in a process with threads

def in_child(work):
    "Runs `work` in a forked child that ends as a program does. Returns its exit code."
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        work()
        sys.stdout.flush()
        sys.exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""
)


def program(body: str) -> str:
    return SETUP + body


@pytest.mark.parametrize("started", [True, False], ids=["started", "never started"])
def test_every_call_of_the_childs_copy_is_a_forked_error(started: bool) -> None:
    code = """
scheduler = Scheduler(2)
future = scheduler.submit(int) if STARTED else None
task = scheduler.after(3600, int, id="t") if STARTED else Task(due=0, job=int)

def child():
    for call in (
        lambda: scheduler.schedule(Task(due=0, job=int)),
        lambda: scheduler.schedule_all([Task(due=0, job=int)]),
        lambda: scheduler.after(0, int),
        lambda: scheduler.at(0, int),
        lambda: scheduler.every(1, int),
        lambda: scheduler.submit(int),
        lambda: scheduler.cancel("t"),
        lambda: scheduler.get("t"),
        lambda: scheduler.info("t"),
        lambda: scheduler.tasks(),
        lambda: scheduler.forget("t"),
        lambda: scheduler.now(),
        lambda: scheduler.next_due(),
        lambda: scheduler.wake(),
        lambda: scheduler.wait_idle(),
        lambda: scheduler.stats(),
        lambda: scheduler.add_listener(print),
        lambda: scheduler.remove_listener(print),
        lambda: scheduler.shutdown(),
    ):
        refused(call)
    if STARTED:
        refused(task.result)
        refused(task.exception)
        refused(task.wait)
        refused(task.cancel)
    print("child")

print(in_child(child))
assert scheduler.after(0, lambda: "parent").result() == "parent"
"""
    code = code.replace("STARTED", str(started))
    assert clean_run(program(code)) == "child\n0\n"


def test_a_new_scheduler_in_the_child_works() -> None:
    code = """
scheduler = Scheduler(4)
scheduler.every(0.0001, int)

def child():
    with Scheduler(2) as new:
        assert new.after(0.001, lambda: "ran").result() == "ran"
        assert new.wait_idle()
        series = new.every(0.001, int, max_runs=3)
        assert series.wait()
        assert sorted(t.name for t in threading.enumerate())[0] == "MainThread"
    left = Scheduler(1)
    left.every(0.001, int)
    print("child")

print(in_child(child))
"""
    assert clean_run(program(code)) == "child\n0\n"


def test_the_childs_exit_is_clean_though_it_never_touches_its_copy() -> None:
    code = """
scheduler = Scheduler(4)
scheduler.every(0.0001, int)
inside = threading.Event()
scheduler.after(0, lambda: (inside.set(), current_run().wait(3600)))
inside.wait()
print(in_child(lambda: print("child")))
"""
    assert clean_run(program(code)) == "child\n0\n"


def test_the_childs_copy_may_be_dropped() -> None:
    code = """
import gc
scheduler = Scheduler(2)
task = scheduler.after(3600, int)
def child():
    global scheduler, task
    scheduler = task = None
    gc.collect()
    print("child")
print(in_child(child))
assert not task.done()
"""
    assert clean_run(program(code)) == "child\n0\n"


def test_the_parent_goes_on_unharmed() -> None:
    code = """
scheduler = Scheduler(4)
count = []
series = scheduler.every(0.001, count.append, 1)
task = scheduler.after(0.05, lambda: "still there")
assert in_child(lambda: None) == 0
assert task.result() == "still there"
before = len(count)
scheduler.after(0.05, int).result()
assert len(count) > before
assert series.cancel() or series.wait()
assert scheduler.shutdown()
print("parent")
"""
    assert clean_run(program(code)) == "parent\n"


def test_forks_while_the_parents_threads_contend() -> None:
    code = """
scheduler = Scheduler(4)
over = threading.Event()
def hammer():
    while not over.is_set():
        scheduler.after(0, int)
        scheduler.after(3600, int).cancel()
        scheduler.stats()
threads = [threading.Thread(target=hammer) for _ in range(4)]
for thread in threads:
    thread.start()

def child():
    with Scheduler(2) as new:
        assert new.after(0.001, lambda: "ran").result() == "ran"
    refused(scheduler.stats)

codes = [in_child(child) for _ in range(20)]
over.set()
for thread in threads:
    thread.join()
assert scheduler.after(0, int).result() == 0
print(set(codes))
"""
    assert clean_run(program(code)) == "{0}\n"


def test_a_fork_from_inside_a_job() -> None:
    code = """
scheduler = Scheduler(2)
def job():
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        refused(scheduler.stats)
        with Scheduler(1) as new:
            new.after(0, int).result()
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(scheduler.after(0, job).result())
"""
    assert clean_run(program(code)) == "7\n"


def test_a_childs_child() -> None:
    code = """
scheduler = Scheduler(1)
scheduler.after(0, int).result()
def child():
    with Scheduler(1) as mine:
        mine.after(0, int).result()
        def grandchild():
            refused(scheduler.stats)
            refused(mine.stats)
            with Scheduler(1) as new:
                print(new.after(0, lambda: "grandchild").result())
        pid = os.fork()
        if pid == 0:
            grandchild()
            sys.stdout.flush()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert mine.after(0, int).result() == 0
print(in_child(child))
"""
    assert clean_run(program(code)) == "grandchild\n0\n"


def test_multiprocessing_by_fork() -> None:
    code = """
import multiprocessing
scheduler = Scheduler(2)
scheduler.every(0.001, int)

def child():
    refused(scheduler.stats)
    refused(lambda: scheduler.after(0, int))
    with Scheduler(1) as new:
        assert new.after(0, int).result() == 0

context = multiprocessing.get_context("fork")
process = context.Process(target=child)
process.start()
process.join(20)
print(process.exitcode)
assert scheduler.after(0, int).result() == 0
"""
    assert clean_run(program(code)) == "0\n"


@pytest.mark.parametrize("ends", ["returns", "exits"])
def test_a_fork_in_a_handler_leaves_the_wait_to_the_parent(ends: str) -> None:
    """The child has the same stack and the same descriptors, and no wait of its own."""
    code = """
import signal
scheduler, children = Scheduler(1), []

def handler(*_):
    if pid := os.fork():
        children.append(pid)
    elif ENDS:
        raise SystemExit(7)

signal.signal(signal.SIGUSR1, handler)
for n in range(20):
    gate = threading.Event()
    task = scheduler.after(0, gate.wait)
    threading.Timer(0.01, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1)).start()
    threading.Timer(0.02 + n / 1000, gate.set).start()
    try:
        task.wait()
    except ForkedError:
        os._exit(7)
assert len(children) == 20
print({os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children})
"""
    code = code.replace("ENDS", str(ends == "exits"))
    assert clean_run(program(code)) == "{7}\n"


def test_multiprocessing_by_fork_from_a_job() -> None:
    """The worker is the child's main thread, and the child ends as any."""
    code = """
import multiprocessing

def job():
    process = multiprocessing.get_context("fork").Process(target=int)
    process.start()
    process.join()
    return process.exitcode

with Scheduler(2) as scheduler:
    print(scheduler.after(0, job).result(20), scheduler.submit(job).result(20))
"""
    assert clean_run(program(code)) == "0 0\n"


def test_a_manual_clock_in_the_child() -> None:
    code = """
clock = ManualClock()
scheduler = Scheduler(1, clock=clock)
task = scheduler.after(5, int)
def child():
    new_clock = ManualClock()
    with Scheduler(1, clock=new_clock) as new:
        mine = new.after(5, int)
        new_clock.advance(5)
        assert mine.done()
    refused(scheduler.now)
    print("child")
print(in_child(child))
clock.advance(5)
assert task.done()
"""
    assert clean_run(program(code)) == "child\n0\n"


def test_the_message_says_what_to_do() -> None:
    code = """
scheduler = Scheduler(1)
scheduler.after(0, int).result()
def child():
    try:
        scheduler.stats()
    except ForkedError as error:
        assert isinstance(error, (DuetimeError, RuntimeError))
        print("new" in str(error))
print(in_child(child))
"""
    assert clean_run(program(code)) == "True\n0\n"
