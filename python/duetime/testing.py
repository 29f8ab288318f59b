"""Helpers for testing code that schedules: no sleeping, the same order in every run.

The invariant: nothing here reads a real clock, and what was made is shut down at the end of its
`with` block, also when the test fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from duetime._native import ManualClock
from duetime._records import Event, EventKind
from duetime._scheduler import Scheduler

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from concurrent.futures import Executor

__all__ = ["recorded", "virtual_time"]


@contextmanager
def virtual_time(
    workers: int = 1,
    start: float = 0.0,
    *,
    history: int = 10_000,
    loop: AbstractEventLoop | Callable[[], AbstractEventLoop] | None = None,
    executor: Executor | Callable[[], Executor] | None = None,
    limits: dict[str, int] | None = None,
) -> Iterator[tuple[Scheduler, ManualClock]]:
    """Make a scheduler on a clock that only the test moves.

    Args:
        workers: The size of the pool. With one worker the order of all events is the same in
            every run.
        start: What the clock shows at first, in seconds.
        history: This and the following as for `Scheduler`.
        loop: Where coroutine jobs run.
        executor: What runs the jobs instead of the workers.
        limits: How many tasks of a group run at once.

    Yields:
        The scheduler, which is shut down at the end of the block, and its clock.

    Example:
        >>> from duetime.testing import virtual_time
        >>> with virtual_time() as (scheduler, clock):
        ...     task = scheduler.every(600, lambda: None)
        ...     clock.advance(3600)
        ...     task.runs
        6
    """
    clock = ManualClock(start)
    with Scheduler(
        workers, clock=clock, history=history, loop=loop, executor=executor, limits=limits
    ) as scheduler:
        yield scheduler, clock


@contextmanager
def recorded(
    scheduler: Scheduler, kinds: Iterable[EventKind] | None = None
) -> Iterator[list[Event]]:
    """Collect what happens on a scheduler during a block.

    Args:
        scheduler: Whose events to collect.
        kinds: Which kinds; all of them by default.

    Yields:
        A list that grows as events are sent.

    Example:
        >>> from duetime.testing import recorded, virtual_time
        >>> with virtual_time() as (scheduler, clock), recorded(scheduler) as events:
        ...     task = scheduler.after(5, lambda: None)
        ...     clock.advance(5)
        ...     [event.kind.name for event in events]
        ['SCHEDULED', 'DUE', 'STARTED', 'COMPLETED']
    """
    if not isinstance(scheduler, Scheduler):
        raise TypeError(
            f"scheduler must be a Scheduler, not {scheduler!r} ({type(scheduler).__name__})"
        )
    events: list[Event] = []
    # One bound method: the scheduler removes a listener by equality or by identity.
    listener = events.append
    scheduler.add_listener(listener, kinds)
    try:
        yield events
    finally:
        scheduler.remove_listener(listener)
