"""A worker as the `threading` module sees it.

The invariant: while a worker lives, `threading.current_thread()` has its name there, and the trace
and profile functions that `threading.settrace` and `setprofile` announced are on; afterwards
`threading.enumerate()` is as it was.
"""

import contextlib
import os
import sys
import threading
import traceback


def enter(name: str) -> None:
    """Make the calling native thread known under its name."""
    # A thread that Python did not start becomes a _DummyThread when it first asks who it is.
    threading.current_thread().name = name
    # What threading does for the threads that it starts itself.
    if trace := threading.gettrace():
        sys.settrace(trace)
    if profile := threading.getprofile():
        sys.setprofile(profile)


def settle() -> None:
    """Be where an exception is raised that was set for this thread, and is for nobody now."""


def stack(thread: int) -> str | None:
    """Tell what a thread is doing, as a traceback shows it; `None` if it is gone."""
    frame = sys._current_frames().get(thread)
    return None if frame is None else "".join(traceback.format_stack(frame))


def leave() -> None:
    """Forget the calling thread: it ends."""
    sys.settrace(None)
    sys.setprofile(None)
    # Before Python 3.13 a _DummyThread stays listed when its thread is gone.
    active = threading._active  # type: ignore[attr-defined]
    with threading._active_limbo_lock:  # type: ignore[attr-defined]
        active.pop(threading.get_ident(), None)
    # And since then something among the thread's local values takes it off the list, once more. It
    # goes now: a user's value there may hold up the thread's end until that module is taken apart.
    if local := getattr(threading, "_thread_local_info", None):
        vars(local).clear()


def _forked() -> None:
    """Be a main thread, in a child that was forked on a worker.

    Before Python 3.13 the end of the interpreter, and of a child of `multiprocessing`, expects that
    the main thread has a lock, which a _DummyThread has not.
    """
    main = threading.main_thread()
    if isinstance(main, threading._DummyThread) and getattr(main, "_tstate_lock", True) is None:
        main._set_tstate_lock()  # type: ignore[attr-defined]


with contextlib.suppress(AttributeError):  # where there is no fork
    os.register_at_fork(after_in_child=_forked)
