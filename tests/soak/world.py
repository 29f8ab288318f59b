# ruff: noqa: D101, D102
"""What is known of all that goes on: who was told what, and what was found wrong."""

from __future__ import annotations

import concurrent.futures
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime import Event, EventKind, Scheduler, Task, TaskState, TaskStuck, TaskTimeout

if TYPE_CHECKING:
    from jobs import Timed

CLIENTS = 4
LIMITS = {"one": 1, "two": 2}
ELSEWHERE = 2  # threads of the executor
PATIENCE = 20.0  # far above what any wait here takes
TOLD = [kind for kind in EventKind if kind is not EventKind.DUE]


class Faults:
    """What was found wrong."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.found: list[str] = []

    def add(self, text: str) -> None:
        with self.lock:
            self.found.append(text)

    def check(self, holds: object, text: str) -> None:
        if not holds:
            self.add(text)


faults = Faults()


class MeantError(Exception):
    pass


@dataclass
class Story:
    """Where a task is in its life, by what was told of it."""

    place: str = "waiting"
    told: list[str] = field(default_factory=list)


class Ledger:
    """Hears all events, and follows each task from its start to its end."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stories: dict[object, Story] = {}
        self.counts: Counter[EventKind] = Counter()

    def hear(self, event: Event) -> None:
        with self.lock:
            self.counts[event.kind] += 1
            if not str(event.task_id).startswith("once-"):
                return  # an id that is used again and again: its tasks' events may overlap
            self.follow(event)

    def follow(self, event: Event) -> None:
        kind = event.kind
        story = self.stories.get(event.task_id)
        if kind is EventKind.SCHEDULED:
            fits = story is None
            story = self.stories[event.task_id] = Story()
        elif story is None:
            faults.add(f"{event} of a task that has ended or never was")
            return
        elif kind is EventKind.STARTED:
            fits = story.place == "waiting" and event.time >= event.due
            story.place = "runs"
        elif kind is EventKind.STUCK:
            fits = story.place == "runs"
            story.place = "is stuck"
        elif story.place == "is stuck":
            stuck = kind is EventKind.FAILED and isinstance(event.error, TaskStuck)
            fits = stuck and event.next_due is None
            story.place = "ended by its run"
        elif kind in {EventKind.COMPLETED, EventKind.FAILED}:
            fits = story.place == "runs" and not isinstance(event.error, TaskStuck)
            story.place = "ended by its run" if event.next_due is None else "waiting"
        elif kind is EventKind.CANCELLED:
            fits = story.place in {"waiting", "ended by its run"}
            story.place = "ended"
        else:  # MISSED
            fits = story.place == "waiting"
        story.told = [*story.told[-9:], f"{kind.name} run {event.run}"]
        faults.check(fits, f"{event} does not follow: {story}")

    def end(self, task_id: object) -> None:
        """Its waiters are told, and the listeners were told before."""
        with self.lock:
            story = self.stories.pop(task_id, None)
        ended = story is not None and story.place.startswith("ended")
        faults.check(ended, f"{task_id} ended, but its story is {story}")


class World:
    """The scheduler that lives through all rounds, and all that is known of its tasks."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.ledger = Ledger()
        self.scheduler = Scheduler(CLIENTS, history=500, limits=LIMITS)
        self.executor = concurrent.futures.ThreadPoolExecutor(ELSEWHERE)
        self.inside: Counter[str] = Counter()  # runs of each group, but for those that are stuck
        self.timed: dict[object, Timed] = {}  # of this round, the jobs of tasks with a timeout
        self.links: list[tuple[Task, list[Task]]] = []  # of this round: who depends on whom
        self.scheduler.add_listener(self.give_up, kinds=[EventKind.STUCK])
        self.scheduler.add_listener(self.ledger.hear, kinds=TOLD)
        self.lock = threading.Lock()
        self.tasks: list[Task] = []  # of this round
        self.endings: Counter[int] = Counter()
        self.made = 0
        self.calls: Counter[str] = Counter()

    def keep(self, task: Task) -> Task:
        """Notes a task that was scheduled."""
        with self.lock:
            self.tasks.append(task)
        task.add_done_callback(self.ended)
        return task

    def ended(self, task: Task) -> None:
        faults.check(task.done(), f"{task!r} is not done, but its callback is called")
        with self.lock:
            self.endings[id(task)] += 1
        if str(task.id).startswith("once-"):
            self.ledger.end(task.id)
        late = isinstance(task.error, (TaskTimeout, TaskStuck))
        timed = self.timed.get(task.id)
        faults.check(timed or not late, f"{task!r} has no timeout, but {task.error!r}")
        if timed and (timed.overstayed or timed.stuck) and not task.cancelled():
            failed = task.state is TaskState.FAILED and late
            faults.check(failed, f"{task!r} outlived its timeout, but {task.error!r}")

    def give_up(self, event: Event) -> None:
        """A run is stuck: from now on it has no place in its group."""
        timed = self.timed.get(event.task_id)
        faults.check(timed, f"{event} of a task without a timeout")
        if timed:
            timed.give_up()

    def new_id(self) -> str:
        with self.lock:
            self.made += 1
            return f"once-{self.made}"
