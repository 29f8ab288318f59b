"""Coroutine jobs: the event loop of a scheduler, and the runs that are on it.

The invariant: a run that was launched here ends once, as its coroutine ends or, when its loop can
run it no more, with an error that says so. asyncio is imported with the first of them.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import threading
import weakref
from contextvars import Context, ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from duetime._native import _Completion

CURRENT: ContextVar[_Completion | None] = ContextVar("duetime_run", default=None)
"""The run that a coroutine, and whatever has a copy of its context, is part of."""

_YEAR = 365 * 86_400.0
_ending: set[threading.Thread] = set()


class EventLoop:
    """The loop on which a scheduler's coroutine jobs run.

    Args:
        name: The scheduler's.
        given: The caller's loop; or what makes one, which then is the scheduler's own, as is the
            default one. It runs in a thread from the first coroutine job to the scheduler's end.
    """

    def __init__(
        self,
        name: str,
        given: asyncio.AbstractEventLoop | Callable[[], asyncio.AbstractEventLoop] | None,
    ) -> None:
        self._name = name
        self._given = given
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._anchor: Callable[[], _Anchor | None] = _nothing

    @property
    def is_own(self) -> bool:
        """Whether it runs in a thread of the scheduler's."""
        return self._given is None or not hasattr(self._given, "call_soon_threadsafe")

    def launch(
        self, coroutine: Coroutine[Any, Any, Any], context: Context, completion: _Completion
    ) -> None:
        """Run a coroutine in a context, from any thread; its end goes to the completion."""
        flight = _Flight(self, coroutine, completion)
        try:
            flight.loop = self._open()
            completion.on_stop(functools.partial(_stop, weakref.ref(flight)))
            flight.loop.call_soon_threadsafe(flight.begin, context=context)
        except BaseException as error:  # noqa: BLE001 - it is the run's, whatever it is
            closed = flight.loop is not None and flight.loop.is_closed()
            flight.abandon(_closed() if closed else error)

    def anchor(self) -> _Anchor:
        """Give what holds the runs of the loop; called on the loop."""
        anchor = self._anchor()
        if anchor is None:
            anchor = _Anchor()
            anchor.drop(self._loop)
            self._anchor = weakref.ref(anchor)
        return anchor

    def is_here(self) -> bool:
        """Tell whether the calling thread is the one that runs the loop, and so must not wait."""
        loop = self._loop if self.is_own else self._given
        if loop is None:
            return False
        import asyncio  # noqa: PLC0415 - there is a loop, so it was imported

        return asyncio._get_running_loop() is loop

    def close(self) -> None:
        """Be done: the scheduler has ended. Called once, on any thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
        if thread is not None and not self.stuck():
            _ending.add(thread)
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # somebody closed it
                loop.call_soon_threadsafe(loop.stop if self.is_own else self._weigh)

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread, after `close`."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread() and not self.stuck():
            thread.join(timeout)

    def stuck(self) -> list[_Flight]:
        """Give the runs that were given up, and may keep the loop's thread for ever."""
        anchor = self._anchor()
        flights = () if anchor is None else list(anchor.flights)
        return [flight for flight in flights if flight.stuck]

    def _open(self) -> asyncio.AbstractEventLoop:
        import asyncio  # noqa: PLC0415 - most schedulers need none

        with self._lock:
            if self._loop is None:
                if not self.is_own:
                    self._loop = self._given  # type: ignore[assignment]
                else:
                    make = self._given or asyncio.new_event_loop
                    loop = make()  # type: ignore[operator]
                    if not hasattr(loop, "call_soon_threadsafe"):
                        raise TypeError(f"loop must make an event loop, not {loop!r}")
                    self._thread = _start(loop, f"{self._name}-loop", self.stuck)
                    self._loop = loop
            if self._loop.is_closed():  # type: ignore[union-attr]
                raise _closed()
            return self._loop  # type: ignore[return-value]

    def _weigh(self) -> None:
        anchor = self._anchor()
        if anchor is not None:
            anchor.weigh()


class _Anchor:
    """What holds the runs of a loop for as long as the loop may run them.

    asyncio holds its tasks weakly, so somebody must hold them; and a loop that is closed under its
    tasks tells nobody. But it lets go of its timers then. So a timer of the loop holds the anchor,
    and when the anchor goes, so does the hope of its runs.
    """

    def __init__(self) -> None:
        self.flights: set[_Flight] = set()
        self._timer: Callable[[], asyncio.TimerHandle | None] = _nothing

    def drop(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Be held by the loop from now on."""
        assert loop is not None  # noqa: S101 - it is called on it
        # Not in the context of the first run, which would live as long.
        timer = loop.call_later(_YEAR, self.drop, loop, context=Context())
        self._timer = weakref.ref(timer)  # weakly, or they would hold each other

    def weigh(self) -> None:
        """Be held no more."""
        if (timer := self._timer()) is not None:
            timer.cancel()

    def __del__(self) -> None:
        for flight in self.flights:
            flight.abandon(_closed())


class _Flight:
    """One run of a coroutine job."""

    def __init__(
        self, owner: EventLoop, coroutine: Coroutine[Any, Any, Any], completion: _Completion
    ) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self._owner = owner
        self._coroutine = coroutine
        self._completion = completion
        self._task: asyncio.Task[Any] | None = None
        self._exit: BaseException | None = None
        self._stopped = False
        self._over = False

    def begin(self) -> None:
        """Start; called on the loop, in the run's context."""
        if self._over:
            return
        if self._stopped:
            self._end(self._completion.stopped, _cancelled())
            return
        CURRENT.set(self._completion)
        try:
            name = f"duetime-{self._completion.run.id}"
            self._task = self.loop.create_task(self._fly(), name=name)  # type: ignore[union-attr]
        except BaseException as error:  # noqa: BLE001 - as above
            self._end(self._completion.failed, error)
            return
        self._owner.anchor().flights.add(self)
        self._task.add_done_callback(self._land)

    async def _fly(self) -> Any:
        try:
            return await self._coroutine
        except (KeyboardInterrupt, SystemExit) as error:
            # asyncio would raise it out of the loop, and end what else is there.
            if isinstance(error, KeyboardInterrupt) and _is_main_thread():
                raise  # the user's Ctrl-C
            self._exit = error

    def _land(self, task: asyncio.Task[Any]) -> None:
        self._owner.anchor().flights.discard(self)
        if task.cancelled():
            self._end(self._completion.stopped, _cancelled())
        elif self._exit is not None:
            self._end(self._completion.failed, self._exit)
        elif (error := task.exception()) is not None:
            self._end(self._completion.failed, error)
        else:
            self._end(self._completion.done, task.result())

    def _end(self, how: Callable[[Any], None], what: Any) -> None:
        self._over = True
        self._task = self._exit = None
        # Of no effect on one that ended; one that never began would complain.
        with contextlib.suppress(ValueError, RuntimeError):
            self._coroutine.close()
        how(what)

    @property
    def stuck(self) -> bool:
        """Whether the run was given up."""
        return self._completion.stuck

    def leave(self) -> asyncio.Task[Any] | None:
        """Give the task that nobody waits for any more."""
        if self._task is not None:
            self._task._log_destroy_pending = False  # type: ignore[attr-defined]  # STUCK told of it
        return self._task

    def stop(self) -> None:
        """Be told to stop, on any thread."""
        self._stopped = True
        loop = self.loop
        try:
            assert loop is not None  # noqa: S101 - who is told was launched
            loop.call_soon_threadsafe(self._cancel)
            if self._owner.is_own or loop.is_running():
                return
        except RuntimeError:
            pass
        self.abandon(_idle())

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def abandon(self, why: BaseException) -> None:
        """End the run: the loop will not."""
        task = self._task
        if self._over:
            return
        if task is None:
            self._end(self._completion.failed, why)
        else:
            self._over = True
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # the run's error says it
            self._completion.failed(why)

    def __del__(self) -> None:
        self.abandon(_closed())


def _stop(flight: weakref.ref[_Flight]) -> None:
    if (found := flight()) is not None:
        found.stop()


def _nothing() -> None:
    return None


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _cancelled() -> BaseException:
    return concurrent.futures.CancelledError("the coroutine was cancelled")


def _closed() -> BaseException:
    return RuntimeError("the event loop of the scheduler was closed, so its coroutine cannot run")


def _idle() -> BaseException:
    return RuntimeError("the event loop of the scheduler does not run, so its coroutine cannot end")


def _start(
    loop: asyncio.AbstractEventLoop, name: str, stuck: Callable[[], list[_Flight]]
) -> threading.Thread:
    thread = threading.Thread(target=_live, args=(loop, stuck), name=name, daemon=True)
    thread.start()
    return thread


def _live(loop: asyncio.AbstractEventLoop, stuck: Callable[[], list[_Flight]]) -> None:
    import asyncio  # noqa: PLC0415 - there is a loop, so it was imported

    asyncio.set_event_loop(loop)
    try:
        while True:
            # What a job left on the loop may raise a SystemExit out of it; it is not the loop's.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                loop.run_forever()
                break
        # As asyncio.run does at its end, but for those that would never end.
        if left := asyncio.all_tasks(loop) - {flight.leave() for flight in stuck()}:
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
        _ending.discard(threading.current_thread())


def join_all() -> None:
    """Wait for the loops of schedulers that have ended, before the interpreter does."""
    for thread in list(_ending):
        if thread.is_alive():  # not so in a forked child
            thread.join()
