"""Fixtures of the fault tests. Every scheduler made through them is shut down afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from support import Manual, gone

import duetime


@pytest.fixture
def manual() -> Iterator[Manual]:
    """One worker on a manual clock that starts at 0, with a log of its events."""
    with Manual() as bench:
        yield bench


@pytest.fixture
def make_manual() -> Iterator[Callable[..., Manual]]:
    """Make benches of any shape: `make_manual(workers=4, start=10.0)`."""
    benches: list[Manual] = []

    def make(**options: Any) -> Manual:
        benches.append(Manual(**options))
        return benches[-1]

    yield make
    for bench in benches:
        bench.close()


@pytest.fixture
def make() -> Iterator[Callable[..., duetime.Scheduler]]:
    """Make schedulers on the real clock, or on any other."""
    made: list[duetime.Scheduler] = []

    def build(workers: int = 2, **options: Any) -> duetime.Scheduler:
        made.append(duetime.Scheduler(workers, **options))
        return made[-1]

    yield build
    for scheduler in made:
        gone(scheduler)


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """The exceptions that reached `sys.unraisablehook`."""
    seen: list[BaseException] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: seen.append(args.exc_value))
    return seen
