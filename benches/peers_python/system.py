"""What the system tells of this process."""

from __future__ import annotations

import os
import time
from pathlib import Path

now = time.monotonic


def resident() -> int:
    """Gives the memory of this process that is in RAM, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def wakeups() -> int:
    """Gives how often the threads of this process went to sleep of their own accord."""
    total = 0
    for status in Path("/proc/self/task").glob("*/status"):
        try:
            lines = status.read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has ended meanwhile
        total += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary"))
    return total


def sleep_until(end: float) -> None:
    """Sleeps until then; not at all if that is past."""
    time.sleep(max(end - now(), 0))
