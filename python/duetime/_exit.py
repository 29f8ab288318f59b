"""Interpreter exit: a scheduler that nobody shut down ends as by `shutdown(wait=True)`.

The invariant: our hook runs while everything that a job may use still works. `threading` runs such
hooks in the reverse order of their registration, so those of `concurrent.futures` have to register
theirs first; then executors that jobs use outlive our join. `atexit` is the second net, for where
the first cannot be had. The hook may run any number of times.
"""

import atexit
import contextlib
import importlib
import threading

from duetime import _coroutines, _native


def _end() -> None:
    _native._shutdown_all()
    _coroutines.join_all()


def register() -> None:
    """Have our hook run before those that were registered so far."""
    try:
        for executor in ("thread", "process"):
            # Where there are no processes there is no hook either.
            with contextlib.suppress(ImportError):
                importlib.import_module(f"concurrent.futures.{executor}")
        threading._register_atexit(_end)  # type: ignore[attr-defined]
    except RuntimeError:
        # Imported for the first time while the interpreter is exiting: threading takes no more
        # hooks, neither ours nor theirs.
        pass


register()
atexit.register(_end)
