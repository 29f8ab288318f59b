"""The guide's recipes for servers that fork, in a server that forks: a parent and two workers.

The parent loads the application, and uses its scheduler before and while the workers serve. Each
worker serves one connection at a time, so that two connections reach both.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers import clean_run

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide.md"

SERVER = """
import contextlib, os, signal, socket, sys, types, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: fork in a process with threads

def load(name, text):
    module = sys.modules[name] = types.ModuleType(name)
    exec(text, vars(module))
    return module

app = load("app", APP)
conf = load("conf", CONF)

def answer(request):
    if request == "pid":
        return str(os.getpid())
    try:
        return str(get().after(0.001, pow, int(request), 2).result())
    except RuntimeError as error:
        return type(error).__name__

def get():
    return app.get_scheduler() if hasattr(app, "get_scheduler") else app.scheduler

def serve(listener):
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw") as lines:
            for line in lines:
                lines.write(answer(line.strip()) + "\\n")
                lines.flush()

def work(listener):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # as gunicorn's workers end
    if hasattr(conf, "post_fork"):
        conf.post_fork(None, None)
    serve(listener)

listener = socket.create_server(("127.0.0.1", 0))
assert answer("3") == "9"
get().every(0.001, int)
workers = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        work(listener)
    workers.append(pid)

with contextlib.ExitStack() as stack:
    asked = []
    for _ in workers:
        client = stack.enter_context(socket.create_connection(listener.getsockname()))
        lines = stack.enter_context(client.makefile("rw"))
        asked.append([])
        for request in ("pid", "7", "8"):
            lines.write(request + "\\n")
            lines.flush()
            asked[-1].append(lines.readline().strip())
assert {int(pid) for pid, *_ in asked} == set(workers), "both have answered"
print({tuple(answers) for _, *answers in asked})
for pid in workers:
    os.kill(pid, signal.SIGTERM)
print({os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in workers})
assert answer("4") == "16"
"""


def recipe(name: str) -> str:
    """The block of the guide with this name behind its language."""
    [block] = re.findall(
        rf"^```python {name}\n(.*?)^```$",
        GUIDE.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    return block


def serve(app: str, conf: str = "") -> list[str]:
    return clean_run(f"APP = {app!r}\nCONF = {conf!r}\n{SERVER}").splitlines()


@pytest.mark.parametrize("name", ["preload-hook", "preload-lazy"])
def test_a_recipe_of_the_application(name: str) -> None:
    assert serve(recipe(name)) == ["{('49', '64')}", "{0}"]


def test_the_recipe_of_the_server() -> None:
    hook = recipe("preload-hook")
    app, registers, _ = hook.partition("os.register_at_fork")
    assert registers
    app += "def refresh():\n    pass\n"
    assert serve(app, recipe("preload-server")) == ["{('49', '64')}", "{0}"]


def test_without_a_recipe_the_workers_are_told() -> None:
    app = "from duetime import Scheduler\nscheduler = Scheduler()\n"
    assert serve(app) == ["{('ForkedError', 'ForkedError')}", "{0}"]
