"""Fixtures of the contract tests: worlds with every kind of clock, and bare schedulers."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers import WATCHDOG
from worlds import KINDS, ManualWorld, World

from duetime import Scheduler

# A shell that starts something in the background has it ignore Ctrl-C, and all that it starts in
# turn. What is handled here, though, is at its default in the programs that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=KINDS)
def make_world(request: pytest.FixtureRequest) -> Iterator[Callable[..., World]]:
    """Makes worlds of each kind of clock: `make_world(workers=4)`."""
    made: list[World] = []

    def make(workers: int = 1, **options: Any) -> World:
        made.append(KINDS[request.param](workers, **options))
        return made[-1]

    yield make
    for world in made:
        world.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """A scheduler with one worker, on each kind of clock."""
    return make_world()


@pytest.fixture(params=["manual", "callable"])
def sim(request: pytest.FixtureRequest) -> Iterator[World]:
    """A scheduler with one worker on a simulated clock: times are exact."""
    made = KINDS[request.param](1)
    yield made
    made.close()


@pytest.fixture
def manual() -> Iterator[World]:
    """A scheduler with one worker on a manual clock."""
    made = ManualWorld(1)
    yield made
    made.close()


@pytest.fixture
def make_scheduler() -> Iterator[Callable[..., Scheduler]]:
    """Makes schedulers that are shut down at the end of the test."""
    made: list[Scheduler] = []

    def make(*args: Any, **options: Any) -> Scheduler:
        made.append(Scheduler(*args, **options))
        return made[-1]

    yield make
    for scheduler in made:
        assert scheduler.shutdown(timeout=WATCHDOG)


@pytest.fixture
def real(make_scheduler: Callable[..., Scheduler]) -> Scheduler:
    """A scheduler with four workers on the real clock."""
    return make_scheduler(4)


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """The exceptions that went to sys.unraisablehook."""
    seen: list[BaseException] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: seen.append(args.exc_value))
    return seen
