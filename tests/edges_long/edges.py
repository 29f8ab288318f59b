"""The ends of a process, Ctrl-C, races and memory, at length: a line of figures each.

    python tests/edges_long/edges.py [--quick] [NAME ...]

Runs on whichever Python runs it, and ends with 1 if a check misses what it is to show. Unlike the
tests it has limits of time, so it wants a machine of its own.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time
import traceback

from ends import exits, forks, interrupts
from flat import runs, schedulers
from threads import hammer, races

CHECKS = {
    check.__name__: check for check in (exits, forks, interrupts, races, schedulers, runs, hammer)
}
HUNG = 3600  # seconds for one check, then all threads show where they are


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a twentieth of the full figures")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CHECKS)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(CHECKS):
        parser.error(f"no such check: {', '.join(unknown)}")
    print("CPython", sys.version.partition(" ")[0], "quick" if arguments.quick else "in full")
    missed = 0
    for name in arguments.names or CHECKS:
        faulthandler.dump_traceback_later(HUNG, exit=True)
        began = time.monotonic()
        try:
            figures = f"holds   {CHECKS[name](arguments.quick)}"
        except Exception as error:
            if not isinstance(error, AssertionError):
                traceback.print_exc()
            missed += 1
            figures = f"MISSED  {error!r}"
        print(f"{name:<11} {figures} [{time.monotonic() - began:.0f} s]", flush=True)
    faulthandler.cancel_dump_traceback_later()
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
