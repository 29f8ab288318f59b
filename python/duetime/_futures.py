"""A task as a future, and as something to await.

The invariant: the task alone decides how it ends. A future and a wait follow it, as many as there
are, on whatever thread it ends; one that nobody can be told of any more harms nobody.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from duetime._native import Task


class TaskFuture(concurrent.futures.Future[Any]):
    """The whole life of a task as a `concurrent.futures.Future`; got from `Task.future`."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self._task: Task | None = task
        task.add_done_callback(self._follow)

    def cancel(self) -> bool:
        """Cancel the task if it waits; say whether it is cancelled."""
        task = self._task
        if task is not None and (task.cancel() or task.cancelled()):
            return super().cancel()
        return self.cancelled()

    def running(self) -> bool:
        """Tell whether the job is being run."""
        task = self._task
        return task is not None and task.running()

    def _follow(self, task: Task) -> None:
        self._task = None  # it keeps its future: together they would be a circle
        if task.cancelled():
            super().cancel()
            self.set_running_or_notify_cancel()
        elif (error := task.exception(0)) is not None:
            self.set_exception(error)
        else:
            self.set_result(task.result(0))


async def wait(task: Task) -> Any:
    """Be what `await task` does."""
    import asyncio  # noqa: PLC0415 - whoever awaits has imported it; whoever does not need not

    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    unwatch = task._watch(functools.partial(_tell, loop, waiter))
    if unwatch is not None:
        try:
            await waiter
        finally:
            unwatch()
    if task.cancelled():
        raise asyncio.CancelledError("the task was cancelled")
    return task.result(0)


def _tell(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None], _task: Task) -> None:
    with contextlib.suppress(RuntimeError):  # the loop was closed, and with it went whoever waited
        loop.call_soon_threadsafe(_wake, waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
