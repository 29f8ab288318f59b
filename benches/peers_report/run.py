"""Runs cases, each in a process of its own, and keeps what they found."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from peers_report.plan import JAVA, PY, RUST, Case

BENCHES = Path(__file__).resolve().parent.parent
MODULES = {
    "APScheduler": "apscheduler",
    "schedule": "schedule",
    "rust-py-scheduler": "rust_py_scheduler",
    "rscheduler": "rscheduler",
}
TIMEOUT = 300

Found = dict[str, list[dict[str, Any]]]


def build(target: Path) -> Path:
    """Builds the Rust side; gives its program."""
    manifest = BENCHES / "peers" / "Cargo.toml"
    command = ["cargo", "build", "--release", "--locked", "--manifest-path", str(manifest)]
    subprocess.run([*command, "--target-dir", str(target)], check=True)
    return target / "release" / "duetime-peers"


@contextlib.contextmanager
def busy_cores(wanted: bool) -> Iterator[None]:
    """Keeps every core busy with a process."""
    command = [sys.executable, "-S", "-c", "while True: pass"]
    spinners = [subprocess.Popen(command) for _ in range((os.cpu_count() or 1) * wanted)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


class Runner:
    """Runs cases and collects what they found, and what could not be run and why."""

    def __init__(self, rust: Path) -> None:
        self.rust = rust
        self.found: Found = {}
        self.failed: dict[str, str] = {}
        self.spins = json.loads(self.child([sys.executable, "-m", "peers_python", "calibrate", ""]))

    def child(self, command: list[str]) -> str:
        """Gives what a child process prints."""
        environment = {**os.environ, "PYTHONPATH": str(BENCHES)}
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=TIMEOUT, env=environment
        )
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
        return done.stdout

    def command(self, case: Case) -> list[str]:
        """Gives the command of a case."""
        program = {
            PY: [sys.executable, "-m", "peers_python"],
            RUST: [str(self.rust)],
            JAVA: ["java", str(BENCHES / "java" / "Peers.java")],
        }[case.language]
        extra = str(self.spins["rounds"]) if case.extra == "10us" else case.extra
        numbers = [str(case.size), str(case.workers), *([extra] if extra.isdigit() else [])]
        return [*program, case.measure, case.peer, *numbers]

    def available(self, case: Case) -> bool:
        """Tells whether the machine has what the case needs; else says so once."""
        module = MODULES.get(case.peer)
        if case.language == JAVA and shutil.which("javac") is None:
            self.failed[case.peer] = "no JDK on this machine"
        elif module is not None and importlib.util.find_spec(module) is None:
            self.failed[case.peer] = "no usable wheel for this interpreter"
        return case.peer not in self.failed

    def run(self, case: Case) -> None:
        """Runs one case once."""
        if not self.available(case) or case.key in self.failed:
            return
        try:
            with busy_cores(case.extra == "busy"):
                found = json.loads(self.child(self.command(case)))
        except (RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
            self.failed[case.key] = str(error)
        else:
            self.found.setdefault(case.key, []).append(found)

    def run_together(self, cases: list[Case]) -> None:
        """Runs cases at the same time."""
        with ThreadPoolExecutor(len(cases)) as pool:
            list(pool.map(self.run, cases))
