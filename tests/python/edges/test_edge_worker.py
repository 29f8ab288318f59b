"""Code that a worker runs: as deep as on any thread of Python's, and never waiting for itself."""

from __future__ import annotations

import pytest
from helpers import clean_run, run_python


@pytest.mark.parametrize(
    "depth",
    [
        "def deep(n):\n    return n and sorted([n - 1], key=deep) and 1",
        "import functools\ndef deep(n):\n    return n and functools.reduce(lambda a, b: deep(n - 1), [1, 2]) and 1",
        "import re\ndef deep(n):\n    return n and re.sub('a', lambda m: str(deep(n - 1)), 'a') and 1",
    ],
    ids=["sorted", "reduce", "re.sub"],
)
def test_a_deep_recursion_ends_as_it_does_on_a_thread_of_pythons(depth: str) -> None:
    code = f"""
{depth}
from concurrent.futures import ThreadPoolExecutor
from duetime import Scheduler
def job():
    try:
        return deep(950)
    except RecursionError:
        return "too deep"
with ThreadPoolExecutor(1) as pool, Scheduler(1) as scheduler:
    print(pool.submit(job).result() == scheduler.submit(job).result())
"""
    done = run_python(code)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_a_high_recursion_limit_serves_a_worker_as_it_serves_a_thread() -> None:
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
from duetime import Scheduler
sys.setrecursionlimit(12_000)
def deep(n):
    return n and 1 + deep(n - 1)
with ThreadPoolExecutor(1) as pool, Scheduler(1) as scheduler:
    print(pool.submit(deep, 10_000).result() == scheduler.submit(deep, 10_000).result())
"""
    done = run_python(code)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize(
    "wait",
    ["scheduler.shutdown()", "scheduler.wait_idle()", "scheduler.__exit__(None, None, None)"],
    ids=["shutdown", "wait_idle", "exit"],
)
@pytest.mark.parametrize(
    "start",
    [
        "scheduler.after(0, Last().work)",
        "scheduler.after(0, lambda last: None, Last())",
        "scheduler.after(0, Last)",
        "scheduler.after(0, lambda: 1 / 0, retry=Last())",
        "scheduler.every(0.001, int, max_runs=2).add_done_callback(lambda task, last=Last(): None)",
    ],
    ids=["job", "argument", "result", "policy", "callback"],
)
def test_the_last_reference_goes_on_a_worker(start: str, wait: str) -> None:
    """An application that shuts its scheduler down in `__del__`, dropped by its own last job."""
    code = f"""
import threading
from duetime import *
scheduler = Scheduler(1)
gone = threading.Event()
class Last:
    def work(self):
        pass
    def delay_after_failure(self, failures):
        return None
    def __del__(self):
        try:
            {wait}
        except RuntimeError:
            pass  # refused inside a job
        gone.set()
{start}
print(gone.wait(5))
if not gone.is_set():
    import os
    os._exit(1)
print(scheduler.shutdown())
"""
    assert clean_run(code) == "True\nTrue\n"
