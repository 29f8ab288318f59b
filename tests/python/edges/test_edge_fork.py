"""Forks, beyond what test_fork asks: what the child inherits must not hold up what it makes."""

from __future__ import annotations

import os
import sys

import pytest
from helpers import run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

SETUP = """
import builtins, gc, os, sys, threading, time, traceback, warnings
from duetime import *
warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork in a process with threads

def in_child(work, seconds=10):
    "What `work` returned in a forked child, as text; 'hangs' if it does not come back."
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = repr(work())
        except BaseException:
            answer = traceback.format_exc()
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    end = time.monotonic() + seconds
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            return "hangs"
        time.sleep(0.002)
    with os.fdopen(reader) as answer:
        return answer.read()
"""


def answer(code: str) -> str:
    done = run_python(SETUP + code)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_parents_scheduler_goes_before_the_childs_own() -> None:
    """The child's threads may get the stacks of the parent's, which do not exist here."""
    code = """
old = [Scheduler(4)]
old[0].after(0, int).wait()
def child():
    new = Scheduler(4)
    ran = new.after(0, int).result(5)
    old.clear()
    gc.collect()
    return ran, new.shutdown()
print(in_child(child))
old[0].shutdown()
"""
    assert answer(code) == "(0, True)"


@pytest.mark.parametrize("state", ["idle", "running", "due"])
def test_a_clock_that_the_parents_scheduler_reads_too(state: str) -> None:
    code = f"""
state = {state!r}
clock = ManualClock()
old = Scheduler(1, clock=clock)
over, inside = threading.Event(), threading.Event()
def job():
    inside.set()
    over.wait()
if state != "idle":
    old.after(0, job)
    inside.wait()
if state == "due":
    old.after(0, int)
old.after(5, int)
def child():
    new = Scheduler(1, clock=clock)
    task = new.after(1, lambda: "ran")
    clock.advance(10)
    return task.result(1), clock.now(), new.shutdown()
print(in_child(child))
over.set()
old.shutdown()
"""
    assert answer(code) == "('ran', 10.0, True)"


def test_a_child_of_a_job_is_not_inside_that_job() -> None:
    code = """
scheduler = Scheduler(1)
def child():
    new = Scheduler(2)
    slow = new.after(0, time.sleep, 0.1)
    idle = new.wait_idle(5)
    last = new.after(0, time.sleep, 0.1)
    while not last.running():
        pass
    ended = new.shutdown()
    clock = ManualClock()
    manual = Scheduler(1, clock=clock)
    task = manual.after(1, int)
    clock.advance(2)
    return idle, slow.done(), ended, last.done(), task.done(), current_run()
print(scheduler.submit(in_child, child).result())
scheduler.shutdown()
"""
    assert answer(code) == "(True, True, True, True, True, None)"


def test_a_child_of_a_listener_is_not_inside_that_listener() -> None:
    code = """
scheduler = Scheduler(1)
def child():
    new = Scheduler(2)
    slow = new.after(0, time.sleep, 0.1)
    return new.wait_idle(5), slow.done(), new.shutdown()
answers = []
scheduler.add_listener(lambda event: answers.append(in_child(child)), [EventKind.STARTED])
scheduler.after(0, int).wait()
print(*answers)
scheduler.shutdown()
"""
    assert answer(code) == "(True, True, True)"


def test_a_fork_while_another_thread_uses_something_for_the_first_time() -> None:
    """What is looked up once, on first use, must not stay 'being looked up' in the child."""
    code = """
scheduler = Scheduler(1)
scheduler.after(3600, int, id="taken")
def duplicate(scheduler):
    try:
        scheduler.after(3600, int, id="taken")
    except DuplicateTaskError:
        return "refused"
usual, looking, forked = builtins.__import__, threading.Event(), threading.Event()
main = threading.current_thread()
def slowly(name, *args, **kwargs):
    if name.startswith("duetime._errors") and threading.current_thread() is not main:
        looking.set()
        forked.wait(5)
    return usual(name, *args, **kwargs)
builtins.__import__ = slowly
thread = threading.Thread(target=duplicate, args=(scheduler,))
thread.start()
looking.wait(0.5)  # if it is never reached, all was looked up before: as good
def child():
    new = Scheduler(1)
    new.after(3600, int, id="taken")
    return duplicate(new), new.shutdown()
print(in_child(child))
forked.set()
thread.join()
scheduler.shutdown()
"""
    assert answer(code) == "('refused', True)"


@pytest.mark.skipif(sys.platform != "linux", reason="slow elsewhere")
def test_a_fork_in_the_moment_in_which_workers_start() -> None:
    code = """
def child():
    with Scheduler(2) as new:
        return new.submit(lambda: "ran").result(5)
schedulers = [Scheduler(4) for _ in range(4)]
for scheduler in schedulers:
    for _ in range(8):
        scheduler.after(0, int)
print({in_child(child) for _ in range(5)})
"""
    rounds = max(5, int(200 * float(os.environ.get("DUETIME_SCALE", "0.02"))))
    for _ in range(rounds):
        assert answer(code) == "{\"'ran'\"}"
