"""The scheduler with one worker on a manual clock, as a plain simulation: no threads, no heap.

Time is counted in ticks of a quarter of a second, which floats and nanoseconds both hold exactly.
What the model decides is what `Scheduler` must decide; `test_model.py` compares the two.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

TICK = 0.25


@dataclass(frozen=True)
class Rule:
    """A recurrence: "once", "skip", "catch up" or "delay"."""

    kind: str = "once"
    period: int = 0

    def next_slot(self, slot: int, finished: int) -> tuple[int | None, int]:
        """The slot after this one, and how many between them are missed."""
        if self.kind == "once":
            return None, 0
        if self.kind == "delay":
            return finished + self.period, 0
        if self.kind == "catch up" or finished <= slot:
            return slot + self.period, 0
        steps = max(1, self.steps(slot, finished))
        return slot + steps * self.period, steps - 1

    def steps(self, slot: int, now: int) -> int:
        """How many periods from this slot to the first that is not before now."""
        return -((slot - now) // self.period)


@dataclass(frozen=True)
class Policy:
    """A retry policy: a fixed delay, or one that doubles up to a cap."""

    retries: int = 0
    delay: int = 1
    cap: int | None = None

    def after(self, failures: int) -> int | None:
        if failures > self.retries:
            return None
        if self.cap is None:
            return self.delay
        return min(self.cap, self.delay * 2 ** (failures - 1))


@dataclass(frozen=True)
class Step:
    """What a job does in one run: it takes `ticks`, may cancel its own task, and ends.

    If it has no timeout, or ends before that.
    """

    end: str = "ok"  # or "false", "raise"
    ticks: int = 0
    stops: bool = False


@dataclass(eq=False)
class Entry:
    """A task, and all that is known of it."""

    id: Any
    due: int
    rule: Rule = Rule()
    policy: Policy = Policy()
    steps: Sequence[Step] = (Step(),)
    priority: int = 0
    max_runs: int | None = None
    until: int | None = None
    parents: Sequence[Entry] = ()
    timeout: int | None = None
    graceless: bool = False
    state: str = "WAITING"
    runs: int = 0
    failures: int = 0
    missed: int = 0
    slot: int = 0
    slots: int = 1
    slot_failures: int = 0
    added: int = 0
    told_due: bool = False
    paused: bool = False
    held: bool = False
    extra: bool = False
    passes: bool = False
    number: int = 0
    error: str | None = None

    @property
    def recurring(self) -> bool:
        return self.rule.kind != "once"

    @property
    def lasts(self) -> bool:
        return any(step.ticks for step in self.steps)

    @property
    def endless(self) -> bool:
        return self.recurring and self.max_runs is None and self.until is None

    @property
    def blocked(self) -> bool:
        """It waits for another, and is in no queue."""
        waits = self.state == "WAITING"
        return waits and any(parent.state in {"WAITING", "RUNNING"} for parent in self.parents)

    @property
    def lost(self) -> bool:
        """What it depends on ended otherwise than as DONE."""
        return any(parent.state in {"FAILED", "CANCELLED"} for parent in self.parents)

    def allows(self, due: int) -> bool:
        return self.until is None or due <= self.until

    def skip(self, now: int) -> tuple[int, int] | None:
        """The first slot that has not passed, if others have, and how many."""
        if self.rule.kind != "skip" or now <= self.slot:
            return None
        steps = self.rule.steps(self.slot, now)
        slot = self.slot + steps * self.rule.period
        return (slot, steps) if self.allows(slot) else None

    def order(self) -> tuple[int, int, int]:
        return self.due, -self.priority, self.added


@dataclass
class Model:
    """All tasks, the clock, and the log of what happened."""

    history: int = 10_000
    now: int = 0
    live: dict[Any, Entry] = field(default_factory=dict)
    finished: dict[Any, Entry] = field(default_factory=dict)
    log: list[tuple[Any, ...]] = field(default_factory=list)
    dues: list[tuple[Any, ...]] = field(default_factory=list)
    misses: list[tuple[Any, ...]] = field(default_factory=list)
    scheduled: dict[Any, int] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    sequence: int = 0
    paused: bool = False

    # What a caller does.

    def knows(self, id: Any) -> bool:
        return id in self.live or id in self.finished

    def schedule(self, entry: Entry) -> None:
        """Add a task; a holder of its id is cancelled or forgotten first."""
        if entry.id in self.live:
            self._cancelled(self.live[entry.id])
        self.finished.pop(entry.id, None)
        self.live[entry.id] = entry
        entry.slot = entry.due
        entry.number = sum(self.scheduled.values())
        self.scheduled[entry.id] = self.scheduled.get(entry.id, 0) + 1
        if entry.lost:
            self._falls(entry)
        elif not entry.blocked:
            self._queue(entry, entry.due)

    def cancel(self, id: Any) -> str:
        if id in self.live:
            self._cancelled(self.live[id])
            return "CANCELLED"
        return "FINISHED" if id in self.finished else "UNKNOWN"

    def control(self, id: Any, call: str, *args: int) -> str:
        """Between two runs: a task that lives waits."""
        if id not in self.live:
            return "FINISHED" if id in self.finished else "UNKNOWN"
        getattr(self, f"_{call}")(self.live[id], *args)
        return "APPLIED"

    def _pause(self, entry: Entry) -> None:
        entry.paused, entry.passes, entry.held = True, False, not entry.blocked

    def _resume(self, entry: Entry) -> None:
        entry.paused = entry.passes = False
        if not entry.held:
            return
        due, first = entry.due, not entry.slot_failures and not entry.extra
        skipped = entry.skip(self.now) if first and due < self.now else None
        if skipped:
            due, missed = skipped
            entry.slot = due
            self._missed(entry, missed)
        self._queue(entry, due)

    def _reschedule(self, entry: Entry, due: int) -> None:
        if not entry.slot_failures:
            entry.slot, entry.extra = due, False
        if entry.held or entry.blocked:
            entry.due = due
        else:
            self._enter(entry, due)

    def _run_now(self, entry: Entry) -> None:
        due = entry.due
        if due > self.now:
            due = self.now
            entry.extra |= entry.recurring and not entry.slot_failures
        if entry.blocked:
            entry.due, entry.passes = due, True
        elif due != entry.due or entry.held:
            self._enter(entry, due)

    def forget(self, id: Any) -> None:
        del self.finished[id]

    def advance(self, ticks: int) -> int:
        """Move on step by step; as far as the last run that began needs, if that is further."""
        target = self.now + ticks
        while not self.paused and (entry := self._head()) and entry.due <= max(target, self.now):
            self._move(max(self.now, entry.due))
            self._run(entry)
        self._move(max(self.now, target))
        return self.now

    def jump(self, ticks: int) -> None:
        """Move in one leap; nothing that takes time may fall due in it."""
        self._move(self.now + ticks, leap=True)
        self.advance(0)

    def foresee(self) -> Model:
        """A copy to try things on."""
        return copy.deepcopy(self)

    # What a caller sees.

    def next_due(self) -> int | None:
        head = self._head()
        return head.due if head else None

    def known(self) -> dict[Any, Entry]:
        return {**self.finished, **self.live}

    # What happens inside.

    def _head(self) -> Entry | None:
        queued = [entry for entry in self.live.values() if not entry.held and not entry.blocked]
        return min(queued, key=Entry.order, default=None)

    def _queue(self, entry: Entry, due: int) -> None:
        if entry.paused and not entry.passes:
            entry.due, entry.state, entry.held = due, "WAITING", True
        else:
            self._enter(entry, due)

    def _enter(self, entry: Entry, due: int) -> None:
        self.sequence += 1
        entry.added, entry.due, entry.state, entry.told_due = self.sequence, due, "WAITING", False
        entry.held = entry.passes = False
        self._tell_due(entry)

    def _tell_due(self, entry: Entry) -> None:
        waits = entry.state == "WAITING" and not entry.held and not entry.blocked
        if waits and not entry.told_due and entry.due <= self.now:
            entry.told_due = True
            self.dues.append((entry.id, self.now, entry.due))

    def _move(self, target: int, leap: bool = False) -> None:
        waiting = sorted(self.live.values(), key=Entry.order)
        for entry in waiting:
            if entry.due <= target:
                if not leap:
                    self.now = max(self.now, entry.due)
                else:
                    self.now = target
                self._tell_due(entry)
        self.now = target

    def _count(self, name: str, number: int = 1) -> None:
        self.totals[name] = self.totals.get(name, 0) + number

    def _tell(self, kind: str, entry: Entry, *more: Any) -> None:
        self.log.append((kind, entry.id, self.now, *more))

    def _end(self, entry: Entry, state: str) -> None:
        entry.state = state
        del self.live[entry.id]
        self.finished[entry.id] = entry
        self._count(state.lower())
        while len(self.finished) > self.history:
            del self.finished[next(iter(self.finished))]

    def _cancelled(self, entry: Entry) -> None:
        self._end(entry, "CANCELLED")
        self._tell("CANCELLED", entry)
        self._follow(entry)

    def _falls(self, entry: Entry) -> None:
        entry.error = "DependencyFailed"
        self._end(entry, "CANCELLED")
        self._tell("CANCELLED", entry)

    def _follow(self, ended: Entry) -> None:
        """What becomes of those that depend on a task which has ended."""
        behind = self._behind(ended)
        if ended.state == "DONE":
            for entry in behind:
                if not entry.blocked:
                    self._queue(entry, entry.due)
        while behind and ended.state != "DONE":
            entry = behind.pop(0)
            if entry.id in self.live:
                self._falls(entry)
                behind += self._behind(entry)

    def _behind(self, parent: Entry) -> list[Entry]:
        children = [entry for entry in self.live.values() if parent in entry.parents]
        return sorted(children, key=lambda entry: entry.number)

    def _run(self, entry: Entry) -> None:
        step = entry.steps[entry.runs % len(entry.steps)]
        entry.state, entry.runs, attempt = "RUNNING", entry.runs + 1, entry.slot_failures + 1
        run = (entry.due, entry.runs, attempt)
        self._count("runs")
        self._tell("STARTED", entry, *run)
        late = entry.timeout is not None and step.ticks >= entry.timeout
        stuck = late and entry.graceless
        self._move(self.now + (entry.timeout if late else step.ticks))
        good, stops = step.end == "ok" and not late, step.stops and not late
        if not good:
            entry.failures += 1
            self._count("failures")
            reason = {"raise": "ValueError", "false": "JobReturnedFalse"}.get(step.end)
            entry.error = "TaskStuck" if stuck else "TaskTimeout" if late else reason
        if stuck:
            self._tell("STUCK", entry, *run)
        following, missed, retries = self._following(entry, good, stops or stuck)
        self._tell("COMPLETED" if good else "FAILED", entry, *run, following)
        self._missed(entry, missed)
        if following is None:
            stopped = stops and entry.recurring
            self._end(entry, "CANCELLED" if stopped else "DONE" if good else "FAILED")
            if stopped:
                self._tell("CANCELLED", entry)
            self._follow(entry)
            return
        if retries:
            entry.slot_failures += 1
        else:
            entry.slot, entry.slot_failures = following, 0
            entry.slots += not entry.extra
            entry.extra = False
        self._queue(entry, following)

    def _missed(self, entry: Entry, missed: int) -> None:
        if missed:
            entry.missed += missed
            self._count("missed", missed)
            self.misses.append((entry.id, self.now, missed))

    def _following(self, entry: Entry, good: bool, stops: bool) -> tuple[int | None, int, bool]:
        """When the task runs next, the slots missed until then, and whether that is a retry."""
        if stops:
            return None, 0, False
        slot, missed = entry.rule.next_slot(entry.slot, self.now)
        if entry.extra:
            slot, missed = entry.skip(self.now) or (entry.slot, 0)
        elif slot is not None and (entry.slots == entry.max_runs or not entry.allows(slot)):
            slot, missed = None, 0
        delay = None if good else entry.policy.after(entry.slot_failures + 1)
        if delay is None or not entry.allows(self.now + delay):
            return slot, missed, False
        retries = slot is None or self.now + delay < slot
        return (self.now + delay, 0, True) if retries else (slot, missed, False)
