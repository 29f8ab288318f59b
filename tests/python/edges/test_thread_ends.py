"""What a thread-local value does when its worker ends, and who waits for it."""

from __future__ import annotations

from helpers import run_python

SETUP = """
import os, signal, threading, time
from duetime import *
here = threading.local()
class Slow:
    def __del__(self): time.sleep(8)
def job(): here.value = Slow()
scheduler = Scheduler(1)
scheduler.after(0, job).wait()
start = time.monotonic()
"""

INTERRUPTED_SHUTDOWN = """
def handler(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.5)
try:
    scheduler.shutdown()
except KeyboardInterrupt:
    pass
print(time.monotonic() - start < 6, flush=True)
os._exit(0)
"""


def test_a_shutdown_with_a_timeout_returns_in_time_while_a_worker_drops_its_local_values() -> None:
    done = run_python(
        SETUP
        + """
scheduler.shutdown(timeout=0.2)
print(time.monotonic() - start < 6, flush=True)
os._exit(0)
"""
    )
    assert done.stdout == "True\n"


def test_ctrl_c_ends_a_shutdown_while_a_worker_drops_its_local_values() -> None:
    done = run_python(SETUP + INTERRUPTED_SHUTDOWN)
    assert done.stdout == "True\n"


DUE = """
import os, signal, threading, time
from duetime import *
inside, gate = threading.Event(), threading.Event()
def listener(event):
    if threading.get_ident() != worker[0]:  # the thread that sends DUE while the worker is busy
        inside.set()
        time.sleep(8)
worker = []
scheduler = Scheduler(1)
busy = scheduler.after(0, lambda: (worker.append(threading.get_ident()), gate.wait()))
while not worker: time.sleep(0.01)
scheduler.add_listener(listener, [EventKind.DUE])
scheduler.after(0.05, int)
inside.wait()
scheduler.shutdown(wait=False)
gate.set()
busy.wait()
start = time.monotonic()
"""


def test_a_shutdown_with_a_timeout_returns_in_time_while_a_due_listener_is_called() -> None:
    done = run_python(
        DUE
        + """
ended = scheduler.shutdown(timeout=0.2)
print(ended, time.monotonic() - start < 6, flush=True)
os._exit(0)
"""
    )
    assert done.stdout == "False True\n"


def test_ctrl_c_ends_a_shutdown_while_a_due_listener_is_called() -> None:
    done = run_python(DUE + INTERRUPTED_SHUTDOWN)
    assert done.stdout == "True\n"


def test_the_thread_that_sends_due_leaves_no_trace_in_threading() -> None:
    done = run_python("""
import threading
from duetime import *
names = []
def listener(event):
    names.append(threading.current_thread().name)  # as logging does
before = threading.enumerate()
for _ in range(5):
    gate = threading.Event()
    with Scheduler(1) as scheduler:
        scheduler.add_listener(listener, [EventKind.DUE])
        scheduler.after(0, gate.wait)
        scheduler.wait_idle(0.05)
        task = scheduler.after(0.01, int)
        scheduler.wait_idle(0.1)
        gate.set()
        task.wait()
print(threading.enumerate() == before, "duetime-due" in names or names)
""")
    assert done.stdout == "True True\n"


def test_local_values_last_from_event_to_event_on_the_thread_that_sends_due() -> None:
    done = run_python("""
import threading
from duetime import *
here, seen, gate = threading.local(), [], threading.Event()
def listener(event):
    here.count = getattr(here, "count", 0) + 1
    seen.append((threading.get_ident(), here.count))
    if len(seen) == 4: gate.set()
with Scheduler(1) as scheduler:
    scheduler.after(0, gate.wait)  # so that the worker is busy
    scheduler.wait_idle(0.05)
    scheduler.add_listener(listener, [EventKind.DUE])
    for n in range(4):
        scheduler.after(0.02 * n + 0.02, int)
    gate.wait(20)
threads = {ident for ident, _ in seen}
counts = {ident: [count for other, count in seen if other == ident] for ident in threads}
print(all(count == list(range(1, 1 + len(count))) for count in counts.values()))
""")
    assert done.stdout == "True\n"


def test_a_sleep_on_a_kept_run_does_not_outlast_the_scheduler() -> None:
    """The run has ended, so nobody tells it to stop; a clock moved by hand may never end it."""
    done = run_python("""
import threading
from duetime import *
clock, kept = ManualClock(), []
scheduler = Scheduler(1, clock=clock)
scheduler.after(0, lambda: kept.append(current_run()))
scheduler.wait_idle()
thread = threading.Thread(target=kept[0].wait, args=(3600,), daemon=True)
thread.start()
thread.join(0.3)
scheduler.shutdown()
thread.join(8)
print(thread.is_alive())
""")
    assert done.stdout == "False\n"
