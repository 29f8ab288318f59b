"""The end of the interpreter: without a shutdown it behaves as shutdown(wait=True) would.

Each test runs a whole program; it must end with exit code 0 and an empty stderr.
"""

from __future__ import annotations

import sys

import pytest
from helpers import clean_run, run_python

SETUP = """
import atexit, gc, sys, threading, time
from duetime import *
"""


def program(body: str) -> str:
    return SETUP + body


def test_an_import_and_nothing_else() -> None:
    assert clean_run("import duetime") == ""


def test_a_scheduler_that_never_ran() -> None:
    assert clean_run(program("scheduler = Scheduler()")) == ""


def test_a_task_that_waits() -> None:
    code = """
scheduler = Scheduler()
task = scheduler.after(3600, print, "never")
series = scheduler.every(3600, print, "never")
task.add_done_callback(lambda task: print(task.state.name))
"""
    assert clean_run(program(code)) == "CANCELLED\n"


def test_a_running_job_is_waited_for() -> None:
    code = """
scheduler = Scheduler()
inside = threading.Event()
def job():
    inside.set()
    current_run().wait(3600)  # until the end has begun
    threading.Event().wait(0.2)  # and then it takes its time
    print("job ends")
scheduler.after(0, job)
inside.wait()
print("main ends")
"""
    assert clean_run(program(code)) == "main ends\njob ends\n"


def test_a_running_job_is_told_to_stop() -> None:
    code = """
scheduler = Scheduler()
inside = threading.Event()
def job():
    inside.set()
    print(current_run().wait(3600))
scheduler.after(0, job)
inside.wait()
"""
    assert clean_run(program(code)) == "True\n"


def test_tasks_that_schedule_themselves_for_ever() -> None:
    code = """
scheduler = Scheduler(2)
ran = threading.Event()
def job():
    ran.set()
    try:
        scheduler.after(0, job)
    except SchedulerClosedError:
        pass
for _ in range(8):
    scheduler.after(0, job)
ran.wait()
"""
    assert clean_run(program(code)) == ""


def test_series_that_run_all_the_time() -> None:
    code = """
scheduler = Scheduler(4)
ran = threading.Event()
for n in range(20):
    scheduler.every(0.0001, ran.set, id=n)
ran.wait()
"""
    assert clean_run(program(code)) == ""


@pytest.mark.parametrize(
    "holder",
    [
        "class App:\n    scheduler = Scheduler()\nApp.scheduler.every(0.001, int)",
        "cycle = [Scheduler()]\ncycle.append(cycle)\ncycle[0].every(0.001, int)\ndel cycle",
        "import builtins\nbuiltins.kept = Scheduler()\nkept.every(0.001, int)",
        "s = Scheduler()\ns.every(0.001, lambda s=s: s.now())\ndel s",
        "Scheduler().after(3600, int)",
        "task = Scheduler().after(3600, int)",
        "s = Scheduler()\ns.add_listener(lambda event: s.stats())\ns.every(0.001, int)",
        "sys.modules['kept'] = Scheduler()\nsys.modules['kept'].every(0.001, int)",
    ],
    ids=["class", "cycle", "builtins", "own job", "dropped", "task only", "listener", "module"],
)
def test_wherever_it_is_kept(holder: str) -> None:
    assert clean_run(program(holder)) == ""


def test_one_made_in_a_thread() -> None:
    code = """
def work():
    local.scheduler = Scheduler()
    local.scheduler.every(0.001, int)
local = threading.local()
thread = threading.Thread(target=work)
thread.start()
thread.join()
def stay():
    scheduler = Scheduler()
    scheduler.every(0.001, int)
    threading.Event().wait()
threading.Thread(target=stay, daemon=True).start()
"""
    assert clean_run(program(code)) == ""


def test_first_use_inside_atexit_is_run_or_refused() -> None:
    code = """
@atexit.register
def late():
    try:
        with Scheduler(1) as scheduler:
            scheduler.after(0, int).result()
    except RuntimeError:
        pass
    print("late")
"""
    assert clean_run(program(code)) == "late\n"


def test_use_inside_atexit_is_refused() -> None:
    code = """
scheduler = Scheduler()
scheduler.after(0, int).result()
@atexit.register
def late():
    try:
        scheduler.after(0, int)
    except SchedulerClosedError:
        print("closed")
    print(scheduler.stats().done, scheduler.shutdown())
"""
    assert clean_run(program(code)) == "closed\n1 True\n"


def test_a_job_that_schedules_after_main_has_returned() -> None:
    code = """
scheduler = Scheduler(1)
inside = threading.Event()
def job():
    inside.set()
    current_run().wait(3600)
    try:
        scheduler.after(0, print, "never")
    except SchedulerClosedError:
        print("refused")
scheduler.after(0, job)
inside.wait()
"""
    assert clean_run(program(code)) == "refused\n"


def test_a_job_may_use_its_own_executor_at_the_end() -> None:
    code = """
import concurrent.futures
scheduler = Scheduler(1)
inside = threading.Event()
def job():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        inside.set()
        current_run().wait(3600)
        print(pool.submit(lambda: "pool works").result())
scheduler.after(0, job)
inside.wait()
"""
    assert clean_run(program(code)) == "pool works\n"


def test_callbacks_and_listeners_of_the_end_are_called() -> None:
    code = """
scheduler = Scheduler()
scheduler.add_listener(lambda event: print(event.kind.name), kinds=[EventKind.CANCELLED])
task = scheduler.after(3600, int)
task.add_done_callback(lambda task: print("callback"))
"""
    assert sorted(clean_run(program(code)).split()) == ["CANCELLED", "callback"]


def test_a_manual_clock_and_a_custom_one() -> None:
    code = """
manual = Scheduler(2, clock=ManualClock())
manual.every(1, int)
custom = Scheduler(2, clock=time.monotonic)
custom.every(0.001, int)
custom.after(0, int).result()
"""
    assert clean_run(program(code)) == ""


def test_many_schedulers_at_once() -> None:
    code = """
all_of_them = [Scheduler(2) for _ in range(20)]
for scheduler in all_of_them:
    scheduler.every(0.001, int)
all_of_them[0].after(0.01, int).result()
"""
    assert clean_run(program(code)) == ""


@pytest.mark.parametrize("code", ["sys.exit(3)", "raise SystemExit(3)"])
def test_the_exit_code_is_the_programs(code: str) -> None:
    done = run_python(program(f"s = Scheduler()\ns.every(0.001, int)\n{code}"))
    assert (done.returncode, done.stderr) == (3, "")


def test_the_traceback_is_the_programs() -> None:
    done = run_python(program("s = Scheduler()\ns.every(0.001, int)\nraise LookupError('mine')"))
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert done.stderr.rstrip().endswith("LookupError: mine")
    assert done.stderr.count("Traceback") == 1


def test_a_failing_job_does_not_change_the_exit_code() -> None:
    code = """
scheduler = Scheduler()
for error in (SystemExit(9), KeyboardInterrupt(), ValueError("quiet")):
    def job(error=error):
        raise error
    scheduler.after(0, job).wait()
"""
    done = run_python(program(code))
    assert done.returncode == 0
    assert "PanicException" not in done.stderr
    assert done.stdout == ""


def test_os_exit_is_not_held_up() -> None:
    code = "import os\ns = Scheduler()\ns.after(0, threading.Event().wait)\nos._exit(5)"
    done = run_python(program(code))
    assert (done.returncode, done.stderr) == (5, "")


def test_without_stderr_at_all() -> None:
    code = """
sys.stderr = None
scheduler = Scheduler()
scheduler.every(0.001, int)
scheduler.after(0, int).result()
"""
    assert clean_run(program(code)) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="dev mode of a POSIX build")
def test_in_development_mode_with_all_warnings_as_errors() -> None:
    code = """
scheduler = Scheduler()
scheduler.every(0.001, int)
scheduler.after(0.01, int).result()
"""
    assert clean_run(program(code), options=("-X", "dev", "-W", "error")) == ""


def test_the_end_while_threads_still_schedule() -> None:
    code = """
scheduler = Scheduler(2)
def hammer():
    while True:
        try:
            scheduler.after(0, int)
        except SchedulerClosedError:
            return
threads = [threading.Thread(target=hammer, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
scheduler.after(0.05, int).result()
"""
    assert clean_run(program(code)) == ""
