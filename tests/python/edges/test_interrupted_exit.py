"""A Ctrl-C during the wait at interpreter exit ends it, whatever the job does, and without a crash.

Before Python 3.14 a thread that wants the GIL while the interpreter ends is ended by unwinding its
stack, which must not reach the native frames below a job.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from helpers import PRESS_AT_EXIT

CODE = (
    PRESS_AT_EXIT
    + """
import duetime

started = threading.Event()

def sleeps():
    started.set()
    time.sleep(60)

def computes():
    started.set()
    while True:
        pass

def waits():
    started.set()
    threading.Event().wait(60)

scheduler = duetime.Scheduler(4)
for _ in range({jobs}):
    scheduler.after(0, {job})
started.wait()
threading.Thread(target=press, daemon=True).start()
"""
)


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize("job", ["sleeps", "computes", "waits"])
def test_a_ctrl_c_ends_the_final_wait_without_a_crash(job: str, jobs: int) -> None:
    code = CODE.replace("{jobs}", str(jobs)).replace("{job}", job)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
