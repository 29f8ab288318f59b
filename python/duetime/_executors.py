"""Jobs on other executors: process pools, clusters, pools of interpreters.

The invariant: a run that was submitted ends once, with its future. What a factory made is the
scheduler's: made when first needed, again after it broke, and shut down with the scheduler.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from duetime._native import _Completion

Factory: TypeAlias = Callable[[], Executor]


class Executors:
    """The executors that one scheduler's jobs run on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[Factory, Executor] = {}

    def launch(
        self,
        given: Executor | Factory,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        completion: _Completion,
    ) -> None:
        """Call a function on an executor; what becomes of it goes to the completion."""
        try:
            made, future = self._submit(given, function, args)
        except BaseException as error:  # noqa: BLE001 - it is the run's, whatever it is
            completion.failed(error)
            return
        # Weakly: a future that its executor lets go of unanswered must end the run.
        completion.on_stop(functools.partial(_give_up, weakref.ref(future)))
        future.add_done_callback(functools.partial(self._land, given, made, completion))

    def _submit(
        self, given: Executor | Factory, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> tuple[Executor, Future[Any]]:
        made = self._get(given)
        try:
            return made, made.submit(function, *args)
        except BrokenExecutor:
            # It broke before, and the job has not begun: a new one will do.
            if made is given:
                raise
            self._discard(given, made)
            made = self._get(given)
            return made, made.submit(function, *args)

    def _land(
        self,
        given: Executor | Factory,
        made: Executor,
        completion: _Completion,
        future: Future[Any],
    ) -> None:
        if future.cancelled():
            completion.stopped(CancelledError("the call was cancelled before it began"))
        elif (error := future.exception()) is not None:
            if isinstance(error, BrokenExecutor):
                self._discard(given, made)
            completion.failed(error)
        elif isinstance(result := future.result(), types.CoroutineType):
            result.close()
            completion.failed(TypeError("a job on an executor cannot be a coroutine"))
        else:
            completion.done(result)

    def _get(self, given: Executor | Factory) -> Executor:
        if not is_factory(given):
            _stay_first()
            return given  # type: ignore[return-value]
        with self._lock:
            made = self._made.get(given)  # type: ignore[arg-type]
            if made is None:
                made = self._made[given] = given()  # type: ignore[operator, index]
        _stay_first()
        return made

    def _discard(self, given: Executor | Factory, made: Executor) -> None:
        with self._lock:
            if self._made.get(given) is not made:  # type: ignore[arg-type]
                return
            del self._made[given]  # type: ignore[arg-type]
        # Not here: a thread of the pool's own calls this, and in Python 3.12 it holds the lock that
        # a shutdown takes.
        threading.Thread(target=made.shutdown, kwargs={"wait": False}, daemon=True).start()

    def close(self) -> None:
        """Be done: the scheduler has ended."""
        with self._lock:
            made, self._made = self._made, {}
        for executor in made.values():
            executor.shutdown(wait=False)


def is_factory(given: Any) -> bool:
    """Tell a callable that makes executors (a class, for one) from an executor."""
    return isinstance(given, type) or not hasattr(given, "submit")


def check(given: Any, job: Any) -> None:
    """Refuse what is neither, and a job that cannot run there."""
    if is_factory(given):
        if not callable(given):
            expected = "an Executor or a callable that makes one"
            raise TypeError(f"executor must be {expected}, not {type(given).__name__}")
        hash(given)  # its executor is found by it
    if is_async(job):
        raise TypeError("executor must be left out for a coroutine function; its place is the loop")


def is_async(job: Any) -> bool:
    """Tell a job that is a coroutine function, and so runs on the event loop."""
    import inspect  # noqa: PLC0415 - it is long to import, and most schedulers need it not

    method = getattr(job, "__call__" if callable(job) else "run", None)
    return inspect.iscoroutinefunction(job) or inspect.iscoroutinefunction(method)


def _give_up(future: weakref.ref[Future[Any]]) -> None:
    if (found := future()) is not None:
        found.cancel()


def _stay_first() -> None:
    """Have our exit hook run before that of process pools, which refuses what we still submit."""
    if "concurrent.futures.process" in sys.modules and not _is_first:
        from duetime import _exit  # noqa: PLC0415 - it needs the native module, and that this one

        _is_first.append(True)
        _exit.register()


_is_first: list[bool] = []
