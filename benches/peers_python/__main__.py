"""Takes one measurement: `python -m peers_python MEASURE PEER SIZE WORKERS [EXTRA]`."""

from __future__ import annotations

import json
import os
import sys

from peers_python import measures, ours, packages, standard

PEERS = {
    "duetime": ours.Duetime,
    "duetime, schedule_all": ours.DuetimeBatch,
    "asyncio": standard.Asyncio,
    "sched": standard.Sched,
    "threading.Timer": standard.Timer,
    "ThreadPoolExecutor": standard.Pool,
    "APScheduler": packages.APScheduler,
    "schedule": packages.Schedule,
    "rust-py-scheduler": packages.RustPyScheduler,
    "rscheduler": packages.RScheduler,
}
MEASURES = {
    "held": measures.held,
    "life": measures.life,
    "burst": measures.burst,
    "beat": measures.beat,
    "idle": measures.idle,
}


def main() -> None:
    """Takes it, and leaves at once: nobody waits for tasks that are due in an hour."""
    measure, peer, *numbers = sys.argv[1:]
    if measure == "calibrate":
        found = {"rounds": measures.calibrate()}
    else:
        found = MEASURES[measure](PEERS[peer], *map(int, numbers))
    sys.stdout.write(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)


main()
