"""What was measured with, for whoever reads the figures."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ["duetime", "APScheduler", "schedule", "rust-py-scheduler", "rscheduler"]
CRATES = ["scheduled-thread-pool", "tokio-util"]


def version(package: str) -> str | None:
    """Gives the version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def first_line(*command: str) -> str | None:
    """Gives the first line that a program prints, if it is there."""
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return (done.stdout or done.stderr).splitlines()[0]


def machine() -> str:
    """Gives the kind of machine."""
    cpus = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    kind = "VM" if "hypervisor" in cpus else "machine"
    return f"{os.cpu_count()}-core {platform.machine().replace('_', '-')} {kind}"


def facts(
    root: Path, rounds: int, idle_seconds: str, quick: bool, seconds: float
) -> dict[str, Any]:
    """Gives all that the page says about the run itself."""
    lock = (root / "benches/peers/Cargo.lock").read_text()
    crates = dict(re.findall(r'name = "(.*)"\nversion = "(.*)"', lock))
    versions = [(name, version(name)) for name in PACKAGES]
    versions += [(name, crates.get(name)) for name in CRATES]
    tools = ["CPython " + platform.python_version(), first_line("rustc", "--version")]
    return {
        "machine": machine(),
        "system": platform.system(),
        "date": dt.datetime.now().astimezone().date().isoformat(),
        "rounds": rounds,
        "idle_seconds": idle_seconds,
        "quick": quick,
        "minutes": seconds / 60,
        "versions": [f"{name} {known}" for name, known in versions if known],
        "tools": [tool for tool in [*tools, first_line("java", "-version")] if tool],
    }
