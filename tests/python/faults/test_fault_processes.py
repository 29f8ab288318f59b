"""The ends of whole processes: exit, fork, subinterpreters, imports."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import clean, python, scaled

QUIET_FORK = ("-W", "ignore::DeprecationWarning")  # fork in a process with threads


@pytest.mark.parametrize("works", ["once", "again and again"])
def test_a_job_schedules_while_the_interpreter_ends(works: str) -> None:
    """cpython#113964: threads could no longer be started after main had returned."""
    code = f"""
        import threading, duetime
        scheduler, started = duetime.Scheduler(), threading.Event()
        def job():
            started.set()
            duetime.current_run().wait(30)
            try:
                for _ in range({1 if works == "once" else 1000}):
                    scheduler.after(0, int)
                print("ran", flush=True)
            except duetime.SchedulerClosedError:
                print("refused", flush=True)
        scheduler.after(0, job)
        assert started.wait(30)
    """
    assert clean(python(code)) in (["ran"], ["refused"])


@pytest.mark.parametrize("imported", ["before", "inside"])
def test_a_first_use_inside_atexit_runs_or_is_refused(imported: str) -> None:
    """cpython#113964: the first use of a pool inside an exit handler."""
    code = f"""
        import atexit
        {"import duetime" if imported == "before" else ""}
        @atexit.register
        def late():
            import duetime
            try:
                scheduler = duetime.Scheduler()
                print(scheduler.after(0, lambda: "ran").result(timeout=30), flush=True)
                scheduler.shutdown()
            except RuntimeError as error:
                print("refused", flush=True)
    """
    assert clean(python(code)) in (["ran"], ["refused"])


def test_a_job_that_runs_at_exit_ends_first() -> None:
    """cpython#113964: exit is as shutdown(wait=True): no job is cut in two."""
    code = """
        import threading, time, duetime
        started = threading.Event()
        def job():
            started.set()
            time.sleep(0.1)
            print("whole", flush=True)
        scheduler = duetime.Scheduler()
        scheduler.after(0, job)
        assert started.wait(30)
    """
    assert clean(python(code)) == ["whole"]


@pytest.mark.parametrize(
    "holder",
    [
        "held = make()",
        "class Holder: held = make()",
        "cycle = [make()]; cycle.append(cycle)",
        "cycle = [make()]; cycle.append(cycle); del cycle",
        "in_thread(threading.Thread(target=lambda: globals().update(held=make())))",
        "in_thread(threading.Thread(target=lambda: held.append(make()), daemon=True))",
        "held = make(); sys.modules['elsewhere'] = held",
        "held = make(); held.add_listener(lambda event: held.stats())",
        "held = make(); builtins.held = held; held.after(3600, lambda: held)",
    ],
)
def test_a_scheduler_never_shut_down_does_not_hold_up_the_exit(holder: str) -> None:
    """more-executors#176: the process hung at exit, by where its executor was kept."""
    code = f"""
        import builtins, sys, threading
        import duetime
        held = []
        def make():
            scheduler = duetime.Scheduler(2)
            scheduler.after(3600, print, "never")
            scheduler.every(0.001, int)
            assert scheduler.after(0, int).wait(30)
            return scheduler
        def in_thread(thread):
            thread.start()
            thread.join()
        {holder}
    """
    assert clean(python(code)) == []


FORKED = """
    import multiprocessing, os, sys, threading
    import duetime

    def child(scheduler, task, answers):
        calls = {
            "schedule": lambda: scheduler.schedule(duetime.Task(due=0, job=int)),
            "after": lambda: scheduler.after(0, int),
            "every": lambda: scheduler.every(1, int),
            "submit": lambda: scheduler.submit(int),
            "cancel": lambda: scheduler.cancel(task),
            "task cancel": lambda: task.cancel(),
            "get": lambda: scheduler.get("far"),
            "info": lambda: scheduler.info("far"),
            "tasks": lambda: scheduler.tasks(),
            "forget": lambda: scheduler.forget("far"),
            "stats": lambda: scheduler.stats(),
            "next_due": lambda: scheduler.next_due(),
            "wake": lambda: scheduler.wake(),
            "wait_idle": lambda: scheduler.wait_idle(timeout=5),
            "result": lambda: task.result(timeout=5),
            "wait": lambda: task.wait(timeout=5),
            "add_listener": lambda: scheduler.add_listener(print),
            "shutdown": lambda: scheduler.shutdown(),
        }
        for name, call in calls.items():
            try:
                call()
                answers.append(name + " answered")
            except duetime.ForkedError:
                pass
            except BaseException as error:
                answers.append(name + " " + repr(error))
        with duetime.Scheduler(2) as fresh:
            if fresh.after(0, lambda: "new").result(timeout=30) != "new":
                answers.append("a new scheduler does not work")
"""


@pytest.mark.parametrize("how", ["multiprocessing", "os.fork"])
def test_a_forked_child_gets_a_clear_error_and_ends(how: str) -> None:
    """delta-rs#2744: the child waited for threads that it did not have."""
    code = f"""{FORKED}
    scheduler = duetime.Scheduler(2)
    assert scheduler.after(0, int).wait(30)
    task = scheduler.after(3600, int, id="far")
    def run():
        answers = []
        child(scheduler, task, answers)
        for line in answers:
            print(line)
        sys.stdout.flush()
    if {how == "multiprocessing"}:
        process = multiprocessing.get_context("fork").Process(target=run)
        process.start()
        process.join(30)
        code = process.exitcode
    else:
        number = os.fork()
        if number == 0:
            run()
            sys.exit(0)  # with all that the interpreter does at its exit
        code = os.waitpid(number, 0)[1]
    print("code", code)
    assert scheduler.after(0, int).wait(30)
    assert task.cancel()
    scheduler.shutdown()
    """
    assert clean(python(code, options=QUIET_FORK)) == ["code", "0"]


@pytest.mark.parametrize("leave", ["os._exit(0)", "sys.exit(0)", "return"])
def test_a_fork_under_contention_hangs_neither_side(leave: str) -> None:
    """uwsgi#2387: a lock held by another thread at the fork stayed locked in the child."""
    code = f"""{FORKED}
    scheduler = duetime.Scheduler(4)
    scheduler.every(1e-4, int)
    task, over = scheduler.after(3600, int, id="far"), threading.Event()
    def contend():
        while not over.is_set():
            scheduler.cancel(scheduler.after(0.0001, int))
            scheduler.stats()
    threads = [threading.Thread(target=contend) for _ in range(3)]
    for thread in threads:
        thread.start()
    def run():
        answers = []
        child(scheduler, task, answers)
        if answers:
            print(answers, flush=True)
        {leave}
    codes = []
    for _ in range({scaled(500, 10)}):
        process = multiprocessing.get_context("fork").Process(target=run)
        process.start()
        process.join(30)
        codes.append(process.exitcode)
        if process.exitcode is None:
            process.kill()
    over.set()
    for thread in threads:
        thread.join(30)
    assert scheduler.after(0, int).wait(30)
    scheduler.shutdown()
    print(set(codes))
    """
    assert clean(python(code, options=QUIET_FORK)) == ["{0}"]


@pytest.mark.parametrize("first", [True, False])
def test_an_import_in_a_subinterpreter_is_a_clean_import_error(first: bool) -> None:
    """mod_wsgi#940: state of one interpreter was used from another, and it crashed."""
    code = f"""
        import sys
        if {first}:
            import duetime
            early = duetime.Scheduler()
            assert early.after(0, int).wait(30)
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        inside = '''if True:
            import os
            try:
                import duetime
            except ImportError:
                os.write(1, b"refused ")
        '''
        number = interpreters.create()
        interpreters.run_string(number, inside)
        interpreters.destroy(number)
        import duetime
        scheduler = duetime.Scheduler()
        print(scheduler.after(0, lambda: "works").result(timeout=30))
    """
    assert clean(python(code)) == ["refused", "works"]


def test_a_module_that_waits_for_a_job_that_imports_it_gets_its_timeout(tmp_path: Path) -> None:
    """cpython#155890: the import lock and the wait held each other for ever."""
    (tmp_path / "waits_in_its_body.py").write_text(
        "import concurrent.futures, duetime\n"
        "def job():\n"
        "    import waits_in_its_body\n"
        "    print(waits_in_its_body.finished, flush=True)\n"
        "keep = duetime.Scheduler(1)\n"
        "held = keep.after(0, job)\n"
        "try:\n"
        "    held.result(timeout=1)\n"
        "except (TimeoutError, concurrent.futures.TimeoutError):\n"
        "    print('timeout', flush=True)\n"
        "finished = 'finished'\n"
    )
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    code = "import sys; sys.path.insert(0, '.'); import waits_in_its_body"
    words = clean(python(code, cwd=tmp_path, env=env))
    assert words[0] == "timeout" and set(words[1:]) <= {"finished"} and len(words) >= 2
