"""Ctrl-C: every blocking call gives way at once, and the scheduler can be used afterwards.

A helper thread sends the signal. Should it arrive a moment before the main thread blocks, the
test says the same. What the call waits for cannot happen before the test lets it.
"""

from __future__ import annotations

import ctypes
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers import WATCHDOG, CellClock, Gate, Thread, clean_run

from duetime import ManualClock, Run, Scheduler, Task, current_run

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="signals are sent to a thread with pthread_kill"
)


@pytest.fixture(autouse=True)
def _ctrl_c_raises() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class CtrlC:
    """Presses Ctrl-C a moment after `ready` is called."""

    def __init__(self, number: signal.Signals = signal.SIGINT) -> None:
        self._ready = threading.Event()
        self._thread = Thread(self._press, threading.main_thread().ident, number)

    def _press(self, main: int, number: signal.Signals) -> None:
        assert self._ready.wait(WATCHDOG)
        threading.Event().wait(0.05)  # most likely the main thread blocks by then
        signal.pthread_kill(main, number)

    def ready(self) -> None:
        self._ready.set()


@pytest.mark.parametrize("wait", ["result", "exception", "wait", "wait_idle", "shutdown"])
@pytest.mark.parametrize("timeout", [None, 3600], ids=["no timeout", "timeout"])
def test_a_blocking_call_is_interrupted(wait: str, timeout: float | None) -> None:
    scheduler, gate, ctrl_c = Scheduler(2), Gate(), CtrlC()
    task = scheduler.after(0, gate)
    gate.entered()
    call = getattr(scheduler if wait in ("wait_idle", "shutdown") else task, wait)
    with pytest.raises(KeyboardInterrupt):
        ctrl_c.ready()
        call(timeout=timeout)
    assert task.running(), "the job was not touched"
    if wait != "shutdown":
        assert scheduler.after(0, lambda: "usable").result(WATCHDOG) == "usable"
        assert scheduler.after(3600, int).cancel()
    gate.open()
    assert task.result(WATCHDOG) == "through"
    assert scheduler.shutdown(timeout=WATCHDOG) is True


def test_with_gives_way_too() -> None:
    gate, ctrl_c = Gate(), CtrlC()
    with pytest.raises(KeyboardInterrupt), Scheduler(1) as scheduler:
        task = scheduler.after(0, gate)
        gate.entered()
        ctrl_c.ready()
    gate.open()
    assert scheduler.shutdown(timeout=WATCHDOG) is True
    assert task.result(0) == "through"


def test_a_drain_gives_way(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler, gate, ctrl_c = make_scheduler(1), Gate(), CtrlC()
    scheduler.after(0, gate)
    gate.entered()
    due = scheduler.after(0, lambda: "drained")
    with pytest.raises(KeyboardInterrupt):
        ctrl_c.ready()
        scheduler.shutdown(drain=True)
    gate.open()
    assert scheduler.shutdown(drain=True, timeout=WATCHDOG) is True
    assert due.result(0) == "drained"


@pytest.mark.parametrize("move", ["advance", "jump"])
def test_a_move_of_the_clock_gives_way(make_scheduler: Callable[..., Scheduler], move: str) -> None:
    clock, gate, ctrl_c = ManualClock(), Gate(), CtrlC()
    scheduler = make_scheduler(1, clock=clock)
    task = scheduler.after(1, gate)
    with pytest.raises(KeyboardInterrupt):
        ctrl_c.ready()
        getattr(clock, move)(5)
    gate.open()
    clock.advance(5)
    assert task.result(WATCHDOG) == "through"


def test_the_future_of_a_submit_gives_way(real: Scheduler) -> None:
    gate, ctrl_c = Gate(), CtrlC()
    future = real.submit(gate)
    gate.entered()
    with pytest.raises(KeyboardInterrupt):
        ctrl_c.ready()
        future.result()
    gate.open()
    assert future.result(WATCHDOG) == "through"


def test_again_and_again(real: Scheduler) -> None:
    gate = Gate()
    task = real.after(0, gate)
    gate.entered()
    for call in (task.result, real.wait_idle, task.wait, task.exception):
        ctrl_c = CtrlC()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c.ready()
            call()
    gate.open()
    assert task.result(WATCHDOG) == "through"
    assert real.wait_idle(WATCHDOG)


def test_ctrl_c_reaches_no_job(real: Scheduler) -> None:
    inside, stop = threading.Event(), threading.Event()

    def job() -> bool:
        inside.set()
        while not stop.is_set():
            current_run().wait(0.001)
        return True

    task, ctrl_c = real.after(0, job), CtrlC()
    assert inside.wait(WATCHDOG)
    with pytest.raises(KeyboardInterrupt):
        ctrl_c.ready()
        task.result()
    stop.set()
    assert task.result(WATCHDOG) is True
    assert task.failures == 0


def test_a_handler_runs_during_a_wait_and_may_call_the_scheduler(real: Scheduler) -> None:
    gate, heard = Gate(), []

    def handler(_number: int, _frame: Any) -> None:
        heard.append(real.after(3600, int, id="from the handler").state.name)
        heard.append(bool(real.cancel("from the handler")))
        heard.append(real.stats().running)
        gate.open()

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        task = real.after(0, gate)
        gate.entered()
        CtrlC(signal.SIGUSR1).ready()
        assert task.result(WATCHDOG) == "through"
        assert real.wait_idle(WATCHDOG)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == ["WAITING", True, 1]


def test_a_handler_that_shuts_down_ends_the_wait(make_scheduler: Callable[..., Scheduler]) -> None:
    scheduler = make_scheduler(1)
    before = signal.signal(signal.SIGUSR1, lambda *_: scheduler.shutdown(wait=False))
    try:
        task = scheduler.after(3600, int)
        CtrlC(signal.SIGUSR1).ready()
        assert task.wait(WATCHDOG)
        assert task.cancelled()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_clock_that_is_moved_in_many_small_steps_is_interrupted() -> None:
    clock, ctrl_c = ManualClock(), CtrlC()
    with Scheduler(1, clock=clock) as scheduler:
        ticks = scheduler.every(1e-9, int, first=0)
        with pytest.raises(KeyboardInterrupt):
            ctrl_c.ready()
            clock.advance(3600)
        assert ticks.cancel()


def test_a_ctrl_c_during_a_long_close_is_not_lost() -> None:
    scheduler, gate = Scheduler(1), Gate()
    scheduler.after(0, gate)
    gate.entered()
    # It arrives in the middle of the close, before the wait begins, and not in Python code.
    press = ctypes.pythonapi.PyErr_SetInterrupt
    press.argtypes, press.restype = [ctypes.py_object], None
    scheduler.after(3600, int).add_done_callback(press)
    for _ in range(1000):
        scheduler.after(3600, int)
    with pytest.raises(KeyboardInterrupt):
        scheduler.shutdown()
    gate.open()
    assert scheduler.shutdown(timeout=WATCHDOG)


@pytest.fixture
def kept(real: Scheduler) -> Iterator[tuple[Run, Task]]:
    """A run that goes on, and that the main thread got hold of."""
    gate, runs = Gate(), []

    def job() -> Any:
        runs.append(current_run())
        return gate()

    task = real.after(0, job)
    gate.entered()
    yield runs[0], task
    gate.open()
    assert task.result(WATCHDOG) == "through"


@pytest.mark.parametrize("clock", ["monotonic", "manual", "callable"])
def test_a_wait_on_a_kept_run_is_interrupted(clock: str) -> None:
    clocks: dict[str, Any] = {"manual": ManualClock(), "callable": CellClock()}
    ctrl_c, runs, gate = CtrlC(), [], Gate()
    with Scheduler(1, clock=clocks.get(clock)) as scheduler:
        task = scheduler.after(0, lambda: (runs.append(current_run()), gate()))
        gate.entered()
        with pytest.raises(KeyboardInterrupt):
            ctrl_c.ready()
            runs[0].wait(3600)
        assert task.running() and not runs[0].stop_requested
        assert runs[0].wait(0) is False, "it can be used again"
        gate.open()


def test_a_handler_that_cancels_wakes_who_waits_on_a_kept_run(kept: tuple[Run, Task]) -> None:
    run, task = kept
    before = signal.signal(signal.SIGUSR1, lambda *_: task.cancel())
    try:
        CtrlC(signal.SIGUSR1).ready()
        assert run.wait(3600) is True
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_handler_that_returns_lets_the_wait_on_a_kept_run_go_on(kept: tuple[Run, Task]) -> None:
    (run, task), heard = kept, []

    def handler(*_: Any) -> None:
        heard.append(run.stop_requested)
        if len(heard) == 3:
            task.cancel()
        else:
            CtrlC(signal.SIGUSR1).ready()

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        CtrlC(signal.SIGUSR1).ready()
        assert run.wait(3600) is True
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [False] * 3


@pytest.mark.parametrize("name", ["manual", "callable"])
def test_a_clock_that_is_moved_ends_the_main_threads_wait_on_a_kept_run(name: str) -> None:
    manual, cell, runs, awake = ManualClock(), CellClock(), [], threading.Event()
    clock: Any = manual if name == "manual" else cell

    def move() -> None:
        while not awake.wait(0.001):
            if name == "manual":
                manual.advance(10)
            else:
                cell.seconds += 10
                scheduler.wake()

    with Scheduler(1, clock=clock) as scheduler:
        scheduler.after(0, lambda: runs.append(current_run())).wait(WATCHDOG)
        before, mover = scheduler.now(), Thread(move)
        assert runs[0].wait(65) is False
        assert scheduler.now() >= before + 65
        awake.set()
        mover.outcome()


@pytest.fixture
def usr1() -> Iterator[Callable[[Callable[..., object]], object]]:
    """Sets what SIGUSR1 does, until the end of the test."""
    before = signal.getsignal(signal.SIGUSR1)
    yield lambda handler: signal.signal(signal.SIGUSR1, handler)
    signal.signal(signal.SIGUSR1, before)


def test_no_signal_is_missed_whenever_it_comes(real: Scheduler, usr1: Any) -> None:
    """A lock of Python's misses one that comes after the last look and before the sleep."""
    rounds, go, main = 5_000, threading.Semaphore(0), threading.main_thread().ident
    assert main is not None

    def press() -> None:
        for _ in range(rounds):
            go.acquire()
            signal.pthread_kill(main, signal.SIGUSR1)

    presses = Thread(press)
    for _ in range(rounds):
        task = real.after(3600, int)
        usr1(lambda *_, task=task: task.cancel())
        go.release()
        assert task.wait(WATCHDOG), "the signal was not seen"
    presses.join(WATCHDOG)


@pytest.fixture
def wakeups() -> Iterator[socket.socket]:
    """What a program that listens for the numbers of signals reads."""
    listens, written = socket.socketpair()
    written.setblocking(False)
    before = signal.set_wakeup_fd(written.fileno())
    yield listens
    assert signal.set_wakeup_fd(before) == written.fileno(), "as if no wait had been"
    listens.close()
    written.close()


def test_whoever_listens_for_numbers_of_signals_hears_them(
    real: Scheduler, usr1: Any, wakeups: socket.socket
) -> None:
    """An event loop on the main thread does: it hears what came while a callback waited."""
    task = real.after(3600, int)
    usr1(lambda *_: task.cancel())
    CtrlC(signal.SIGUSR1).ready()
    assert task.wait(WATCHDOG)
    with pytest.raises(KeyboardInterrupt):
        CtrlC().ready()
        real.after(3600, int).wait()
    wakeups.settimeout(WATCHDOG)
    numbers = wakeups.recv(1) + wakeups.recv(1)
    assert list(numbers) == [signal.SIGUSR1, signal.SIGINT]


def test_a_handler_may_listen_elsewhere_from_then_on(real: Scheduler, usr1: Any) -> None:
    listens, written = socket.socketpair()
    written.setblocking(False)
    task, before = real.after(3600, int), []

    def handler(*_: Any) -> None:
        if not before:
            before.append(signal.set_wakeup_fd(written.fileno()))
            CtrlC(signal.SIGUSR1).ready()
        else:
            task.cancel()

    usr1(handler)
    CtrlC(signal.SIGUSR1).ready()
    with listens, written:
        try:
            assert task.wait(WATCHDOG)
        finally:
            assert signal.set_wakeup_fd(-1) == written.fileno()
        listens.settimeout(WATCHDOG)
        assert list(listens.recv(1)) == [signal.SIGUSR1]


def test_waits_within_waits_are_all_interrupted(real: Scheduler, usr1: Any) -> None:
    outer, depth = real.after(3600, int), []

    def handler(*_: Any) -> None:
        if len(depth) == 3:
            outer.cancel()
            return
        depth.append(real.after(3600, int))
        CtrlC(signal.SIGUSR1).ready()
        assert outer.wait(WATCHDOG)

    usr1(handler)
    CtrlC(signal.SIGUSR1).ready()
    assert outer.wait(WATCHDOG)
    assert len(depth) == 3
    assert signal.set_wakeup_fd(-1) == -1


def test_a_process_without_descriptors_waits_all_the_same() -> None:
    code = """
        import os, resource, duetime
        scheduler = duetime.Scheduler(1)
        task = scheduler.after(0, lambda: "came")
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
        print(task.result(30), scheduler.after(0.05, lambda: "again").result(30))
    """
    assert clean_run(code).split() == ["came", "again"]


def test_a_number_is_written_before_its_handler_runs(
    real: Scheduler, usr1: Any, wakeups: socket.socket
) -> None:
    wakeups.setblocking(False)
    task, read = real.after(3600, int), []

    def handler(*_: Any) -> None:
        read.append(wakeups.recv(10))
        task.cancel()

    usr1(handler)
    CtrlC(signal.SIGUSR1).ready()
    assert task.wait(WATCHDOG)
    assert read == [bytes([signal.SIGUSR1])]


@pytest.mark.parametrize("how", ["closed", "kept"])
def test_no_wait_passes_numbers_on_to_itself(real: Scheduler, usr1: Any, how: str) -> None:
    """What was set before is closed meanwhile; or a handler keeps what is set during a wait."""
    listens, written = socket.socketpair()
    written.setblocking(False)
    signal.set_wakeup_fd(written.fileno() if how == "closed" else -1)
    task, kept = real.after(3600, int), []

    def handler(*_: Any) -> None:
        kept.append(written.close() if how == "closed" else signal.set_wakeup_fd(-1))
        task.cancel()

    usr1(handler)
    CtrlC(signal.SIGUSR1).ready()
    assert task.wait(WATCHDOG)
    if how == "kept":
        assert signal.set_wakeup_fd(kept[0]) == -1
        assert real.after(3600, int).wait(0.01) is False
    assert signal.set_wakeup_fd(-1) == -1
    listens.close()
    written.close()


def test_a_ctrl_c_in_a_submit_ends_it(real: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the call has ended by then, and its future is told on the main thread."""
    submitted: Any = type(real.submit(int))
    start, told = submitted._start, submitted.set_result

    def late(future: Any, task: Task) -> None:
        assert task.wait(WATCHDOG)
        start(future, task)

    def interrupted(future: Any, value: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        told(future, value)

    monkeypatch.setattr(submitted, "_start", late)
    monkeypatch.setattr(submitted, "set_result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        real.submit(int)
