"""duetime beside other schedulers: the same work for all, in one run.

    python benches/peers.py [--quick] [--rounds N] [--only MEASURE] [--show]

`make bench-peers` prepares the environment. Each measurement runs in a process of its own, the
rounds are interleaved, and every figure is the median of the rounds. A full run writes
docs/performance.md, docs/plots and the figures of README.md; a quick or partial one writes the
first two below target/peers.
`BENCH_LARGE=1` adds ten million tasks to the costs by size.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from peers_report.facts import facts
from peers_report.page import page
from peers_report.plan import idle, plan
from peers_report.readme import update
from peers_report.results import Results
from peers_report.run import Runner, build

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "peers"


def arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two minutes, for trying")
    parser.add_argument("--rounds", type=int, help="3 by default; 1 if quick")
    parser.add_argument("--only", help="this measure alone")
    parser.add_argument("--show", action="store_true", help="show the last run again")
    return parser.parse_args()


def say(text: str) -> None:
    """Tells who waits."""
    sys.stderr.write(f"{text}\n")


def measure(options: argparse.Namespace) -> dict[str, object]:
    """Takes all measurements."""
    rounds = options.rounds or (1 if options.quick else 3)
    large = bool(os.environ.get("BENCH_LARGE"))
    runner = Runner(build(TARGET))
    start = time.monotonic()
    waiting = list(idle(options.quick))
    if options.only in (None, "idle"):
        runner.run_together(waiting)
    for number in range(rounds):
        cases = [case for case in plan(options.quick, large) if number < case.rounds]
        for case in cases:
            if options.only in (None, case.measure):
                runner.run(case)
        say(f"round {number + 1} of {rounds}, {time.monotonic() - start:.0f} s")
    known = facts(ROOT, rounds, waiting[0].extra, options.quick, time.monotonic() - start)
    return {"facts": known, "found": runner.found, "failed": runner.failed}


def main() -> None:
    """Measures and shows."""
    options = arguments()
    results = TARGET / "results.json"
    if not options.show:
        kept = measure(options)
        results.parent.mkdir(parents=True, exist_ok=True)
        results.write_text(json.dumps(kept))
    kept = json.loads(results.read_text())
    partial = options.quick or options.only or kept["facts"]["quick"]
    docs = TARGET / "docs" if partial else ROOT / "docs"
    page(Results(kept), docs)
    if not partial:
        update(Results(kept), ROOT / "README.md")
    say(f"written: {docs / 'performance.md'}")


if __name__ == "__main__":
    main()
