"""Jobs on other processes: the scheduler keeps time and retries, a pool runs them.

python examples/processes.py
"""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from duetime import Scheduler, retry


def pool() -> ProcessPoolExecutor:
    """Make the pool, and make it anew when a job has killed one of its processes."""
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def crash_once(marker: str) -> int:
    """Kill the process at the first attempt."""
    if not Path(marker).exists():
        Path(marker).touch()
        os._exit(1)
    return os.getpid()


if __name__ == "__main__":
    with TemporaryDirectory() as folder, Scheduler(workers=1, executor=pool) as scheduler:
        powers = [scheduler.after(0.01, pow, 3, n) for n in range(5)]
        print([task.result() for task in powers])
        again = retry.FixedDelay(max_retries=1, delay=0)
        task = scheduler.after(0, crash_once, f"{folder}/crashed", retry=again)
        print(task.result() != os.getpid(), task.failures, "failure")
