"""The public `Scheduler`: the native one, as a `concurrent.futures.Executor`.

The invariant: scheduling is native throughout. Only two things are added here, since they are
about Python objects alone: futures for `submit`, and `every` as a decorator.
"""

from __future__ import annotations

import concurrent.futures
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, overload

from duetime import _native

if TYPE_CHECKING:
    from datetime import datetime

    from typing_extensions import Self, TypeVarTuple, Unpack

    from duetime._native import Task, _TaskOptions
    from duetime._protocols import Job, Recurrence, Seconds

    _Ts = TypeVarTuple("_Ts")

_P = ParamSpec("_P")
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., object])


class _Submitted(concurrent.futures.Future[_T]):
    """The future of a call, whose `_run` is the job of a task.

    The job and a cancel of the task exclude each other, so either `_run` moves the future out of
    its pending state, or `_finish` tells that it was cancelled. How the call ended is told by
    `_finish` too: who waited for the future finds the task ended, told of and counted.
    """

    def __init__(self, call: Callable[[], _T]) -> None:
        super().__init__()
        self._call: Callable[[], _T] | None = call
        self._value: _T | None = None
        self._task: Task | None = None

    def _start(self, task: Task) -> None:
        """Be bound to the task; nobody else has the future yet."""
        self._task = task
        if task._watch(self._finish) is None:
            self._finish(task)  # here, where a Ctrl-C that hits it ends the call that made this

    def _run(self) -> None:
        """Be the task's job: do what ThreadPoolExecutor does with a work item.

        The value goes to the future, not to the task, for which `False` would mean a failure.
        """
        call, self._call = self._call, None
        if call is None or not self.set_running_or_notify_cancel():
            return
        try:
            self._value = call()
        except BaseException:
            # The error's traceback holds this frame, and the future will hold the error.
            self = None  # type: ignore[assignment]  # noqa: PLW0642
            raise

    def cancel(self) -> bool:
        """Cancel the task as well, which lets go of the call. No harm once the task has started."""
        task = self._task
        cancelled = super().cancel()
        if cancelled and task is not None:
            task.cancel()
        return cancelled

    def _finish(self, task: Task) -> None:
        """Tell how the call ended; or, when a shutdown cancelled it, that it did."""
        self._task = None
        if task.cancelled():
            self._call = None
            super().cancel()
            self.set_running_or_notify_cancel()
        elif not self.running():
            return  # the future was cancelled in the moment in which the task started
        elif (error := task.exception(0)) is not None:
            self.set_exception(error)
        else:
            value, self._value = self._value, None
            self.set_result(cast("_T", value))


class Scheduler(_native.Scheduler, concurrent.futures.Executor):
    """Runs one-off and recurring tasks at their due time, on a pool of native worker threads.

    An idle worker sleeps until the next task is due. Used in a `with` block, a scheduler shuts
    down at its end. It is an `Executor` too: `submit` and `map` work as on a thread pool, and so
    does everything that takes an executor.

    Args:
        workers: The number of threads, from 1 to 1024. They start with the first task.
        clock: Where the time comes from: the monotonic clock by default, a `ManualClock`, or any
            zero-argument callable that gives seconds.
        history: How many finished tasks are remembered as `TaskInfo`.
        name: What the threads are called: name-0, name-1 and so on.
        loop: Where coroutine jobs run: a running event loop of yours, or a callable that makes one
            for the scheduler. By default the scheduler makes its own, in a thread of its own, with
            the first coroutine job.
        executor: What runs the jobs instead of the workers: a `concurrent.futures.Executor`, or a
            callable that makes one, which is then shut down with the scheduler, and made anew
            after it broke.
        limits: How many tasks of a group run at once, at most, by the group's name; a task says by
            `group` which it is of.

    Raises:
        ValueError: A number is out of its bounds.
        TypeError: An argument is of the wrong type.

    Example:
        >>> from duetime import ManualClock, Scheduler
        >>> clock = ManualClock()
        >>> with Scheduler(clock=clock) as scheduler:
        ...     ticks = []
        ...     task = scheduler.every(600, lambda: ticks.append(clock.now()))
        ...     clock.advance(1800)
        ...     ticks
        [600.0, 1200.0, 1800.0]
    """

    async def __aenter__(self) -> Self:
        """Be used in an `async with` block; its end shuts down without blocking the loop."""
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        import asyncio  # noqa: PLC0415 - whoever is here has imported it

        await asyncio.to_thread(self.shutdown)

    def submit(
        self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> concurrent.futures.Future[_T]:
        """Call a function as soon as a worker is free.

        Args:
            fn: What to call; it is due now and waits its turn behind what is due already.
            *args: Its positional arguments.
            **kwargs: Its keyword arguments.

        Returns:
            The future of the call. Cancelling it before the call starts cancels the task and lets
            go of the function and its arguments; a shutdown before the call starts cancels it.

        Raises:
            TypeError: `fn` is not callable.
            SchedulerClosedError: The scheduler is shut down.
            ForkedError: The scheduler is the parent process's.

        Example:
            >>> from duetime import Scheduler
            >>> with Scheduler() as scheduler:
            ...     scheduler.submit(pow, 2, 10).result()
            1024
        """
        if not callable(fn):
            raise TypeError(f"fn must be callable, not {fn!r} ({type(fn).__name__})")
        call: Callable[[], _T] = functools.partial(fn, *args, **kwargs) if args or kwargs else fn
        future = _Submitted(call)
        # A call is for the workers, whatever runs the jobs.
        options: _TaskOptions = {} if self.executor is None else {"executor": self}
        future._start(super().after(0, future._run, **options))
        return future

    @overload
    def every(
        self,
        rule: Seconds | Recurrence,
        job: None = None,
        /,
        *,
        first: Seconds | datetime | None = None,
        **options: Unpack[_TaskOptions],
    ) -> Callable[[_F], _F]: ...
    @overload
    def every(
        self,
        rule: Seconds | Recurrence,
        job: Job,
        /,
        *,
        first: Seconds | datetime | None = None,
        **options: Unpack[_TaskOptions],
    ) -> Task: ...
    @overload
    def every(
        self,
        rule: Seconds | Recurrence,
        job: Callable[[Unpack[_Ts]], object],
        /,
        *args: Unpack[_Ts],
        first: Seconds | datetime | None = None,
        **options: Unpack[_TaskOptions],
    ) -> Task: ...
    def every(  # type: ignore[misc]  # mypy does not match *args with an unpacked TypeVarTuple
        self,
        rule: Seconds | Recurrence,
        job: Any = None,
        /,
        *args: Any,
        first: Seconds | datetime | None = None,
        **options: Any,
    ) -> Any:
        """Run a job again and again; without a job, be a decorator that does.

        Args:
            rule: A period in seconds or as a `timedelta`, or a `Recurrence`.
            job: What to run.
            *args: What to call it with.
            first: When the first run is due: a delay, or an aware datetime. One period from now
                by default.
            **options: Keyword parameters of `Task`.

        Returns:
            The task. As a decorator: the function, unchanged.

        Raises:
            ValueError: A time is out of its bounds, or a datetime is naive.
            TypeError: An argument is of the wrong type.
            DuplicateTaskError: The `id` is taken.
            UnknownTaskError: It depends on a task that the scheduler does not know.
            SchedulerClosedError: The scheduler is shut down.
            ForkedError: The scheduler is the parent process's.

        Example:
            >>> from duetime import Scheduler
            >>> with Scheduler() as scheduler:
            ...
            ...     @scheduler.every(600, id="refresh", first=0)
            ...     def refresh():
            ...         return "fresh"
            ...
            ...     refresh()
            'fresh'
        """
        if job is not None:
            return super().every(rule, job, *args, first=first, **options)

        super()._check_every(rule, first=first, **options)

        def decorate(function: _F) -> _F:
            super(Scheduler, self).every(rule, function, first=first, **options)
            return function

        return decorate

    def shutdown(  # type: ignore[override]  # an Executor's gives None, ours says how it went
        self,
        wait: bool = True,
        *,
        drain: bool = False,
        timeout: Seconds | None = None,
        cancel_futures: bool = False,
    ) -> bool:
        """Refuse new tasks, tell running jobs to stop, cancel waiting tasks.

        Args:
            wait: Return only when the running jobs have ended.
            drain: Run the tasks that are due already before the end.
            timeout: The longest time to wait.
            cancel_futures: As on any Executor: cancel also what is due already, whatever `drain`
                says.

        Returns:
            Whether the running jobs have ended; with `wait`, `False` only if `timeout` came first.

        Raises:
            ForkedError: The scheduler is the parent process's.

        Example:
            >>> from duetime import Scheduler
            >>> scheduler = Scheduler()
            >>> task = scheduler.after(3600, print)
            >>> scheduler.shutdown()
            True
            >>> task.cancelled()
            True
        """
        if not isinstance(cancel_futures, bool):
            raise TypeError(
                f"cancel_futures must be a bool, not {cancel_futures!r} "
                f"({type(cancel_futures).__name__})"
            )
        return super().shutdown(wait, drain=False if cancel_futures else drain, timeout=timeout)
