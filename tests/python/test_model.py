"""A scheduler on a manual clock against a plain model of it, in long random stories."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

sys.path.insert(0, str(Path(__file__).parent))

from helpers import until
from model import TICK, Entry, Model, Policy, Rule, Step

import duetime
from duetime import DuplicateTaskError, FixedDelay, FixedRate, Missed, OneTime, Task, retry

WATCHDOG = 30.0
NAMES: list[Any] = [*"abcdefgh", *range(8)]
TOLD = ("STARTED", "COMPLETED", "FAILED", "CANCELLED", "STUCK")

names = st.sampled_from([None, *NAMES])
delays = st.integers(0, 60)
ends = st.sampled_from(["ok", "ok", "ok", "false", "raise"])
# Few lengths, so that ends, slots, retries and dues often fall together.
lengths = st.sampled_from([4, 6, 8, 12, 20])
policies = st.one_of(
    st.just(Policy()),
    st.builds(Policy, st.integers(0, 4), lengths | st.integers(1, 30)),
    st.builds(Policy, st.integers(0, 6), st.integers(1, 4), lengths),
)
stops = st.sampled_from([False] * 9 + [True])
timeouts = st.none() | st.integers(1, 5)


def scripts(longest: int) -> st.SearchStrategy[list[Step]]:
    """What a job does in its runs, over and over."""
    return st.lists(st.builds(Step, ends, st.integers(0, longest), stops), min_size=1, max_size=5)


def returns(fn: Callable[[float], None], seconds: float) -> None:
    """Call what may hang, so that it fails and says where."""
    thread = threading.Thread(target=fn, args=(seconds,), daemon=True)
    thread.start()
    thread.join(WATCHDOG)
    assert not thread.is_alive(), f"{fn} does not return"


def by_task(log: list[tuple[Any, ...]]) -> dict[Any, list[tuple[Any, ...]]]:
    return {id: [entry for entry in log if entry[1] == id] for id in {entry[1] for entry in log}}


def ticks(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / TICK


class Story(RuleBasedStateMachine):
    """Each rule does one thing to both, each invariant compares them."""

    @initialize(history=st.sampled_from([0, 1, 3, 1000, 1000, 1000]))
    def begin(self, history: int) -> None:
        self.model = Model(history)
        self.clock = duetime.ManualClock()
        self.scheduler = duetime.Scheduler(1, clock=self.clock, history=history)
        self.events: list[Any] = []
        self.scheduler.add_listener(self.events.append)
        self.scheduler.add_listener(self.await_return, kinds=[duetime.EventKind.STUCK])
        self.tasks: dict[Any, tuple[Task, Entry]] = {}

    def teardown(self) -> None:
        if hasattr(self, "scheduler"):
            assert self.scheduler.shutdown(timeout=WATCHDOG)

    def await_return(self, _: duetime.Event) -> None:
        """What is given up returns at once; before that, nobody may be there for the next task."""
        until(lambda: self.scheduler.stats().stuck == 0)

    # Making the real thing of what the model has.

    def job(self, entry: Entry) -> Any:
        def job() -> bool | None:
            run = duetime.current_run()
            step = entry.steps[(run.number - 1) % len(entry.steps)]
            if step.ticks:
                run.wait(step.ticks * TICK)
            if step.stops and not run.stop_requested:
                self.scheduler.cancel(run.id)
            if step.end == "raise":
                raise ValueError("on purpose")
            return False if step.end == "false" else None

        return job

    def real(self, entry: Entry, depends_on: Sequence[Any] = ()) -> Task:
        period, policy = entry.rule.period * TICK, entry.policy
        recurrence = {
            "once": OneTime,
            "skip": lambda: FixedRate(period),
            "catch up": lambda: FixedRate(period, Missed.CATCH_UP),
            "delay": lambda: FixedDelay(period),
        }[entry.rule.kind]()
        if policy.cap is None:
            retries = retry.FixedDelay(policy.retries, policy.delay * TICK)
        else:
            retries = retry.ExponentialBackoff(
                policy.retries, policy.delay * TICK, cap=policy.cap * TICK
            )
        return Task(
            entry.id,
            due=entry.due * TICK,
            job=self.job(entry),
            recurrence=recurrence,
            retry=retries if policy.retries else None,
            priority=entry.priority,
            max_runs=entry.max_runs,
            until=None if entry.until is None else entry.until * TICK,
            depends_on=depends_on,
            timeout=None if entry.timeout is None else entry.timeout * TICK,
            grace=0 if entry.graceless else 3600,
        )

    def move(self, forward: int) -> None:
        """Advance both, to a moment at which no run is under way."""
        before = self.model.now
        after = self.model.advance(forward)
        returns(self.clock.advance, (after - before) * TICK)

    def add(self, entry: Entry, replace: bool = False, depends_on: Sequence[Any] = ()) -> None:
        task = self.real(entry, depends_on)
        if self.model.knows(entry.id) and not replace:
            self.refuse(task)
            return
        assert self.scheduler.schedule(task, replace=replace) is task
        if entry.id is None:
            assert isinstance(task.id, int) and task.id < 0 and not self.model.knows(task.id)
            entry.id = task.id
        self.model.schedule(entry)
        self.tasks[entry.id] = (task, entry)
        self.move(0)

    def refuse(self, task: Task) -> None:
        with pytest.raises(DuplicateTaskError, match=str(task.id)):
            self.scheduler.schedule(task)

    # The rules.

    @rule(
        id=names,
        delay=delays,
        priority=st.integers(-2, 2),
        policy=policies,
        steps=scripts(5),
        timeout=timeouts,
        graceless=st.booleans(),
    )
    def once(
        self,
        id: Any,
        delay: int,
        priority: int,
        policy: Policy,
        steps: list[Step],
        timeout: int | None,
        graceless: bool,
    ) -> None:
        entry = Entry(id, self.model.now + delay, Rule(), policy, steps, priority)
        entry.timeout, entry.graceless = timeout, graceless and self.model.history == 1000
        self.add(entry)

    @precondition(lambda self: self.tasks)
    @rule(
        id=names,
        delay=delays,
        kind=st.sampled_from(["once", "once", "skip", "catch up"]),
        policy=policies,
        steps=scripts(1),
        picks=st.lists(st.tuples(st.integers(0, 1000), st.booleans()), min_size=1, max_size=3),
    )
    def behind(
        self,
        id: Any,
        delay: int,
        kind: str,
        policy: Policy,
        steps: list[Step],
        picks: list[tuple[int, bool]],
    ) -> None:
        """Depends on others, whether they have ended or not, by id or as objects."""
        holders = list(self.tasks.values())
        parents = [holders[index % len(holders)] for index, _ in picks]
        entry = Entry(id, self.model.now + delay, Rule(kind, 4), policy, steps)
        entry.max_runs = None if kind == "once" else 3
        entry.parents = [parent for _, parent in parents]
        known = self.model.known()
        depends_on = [
            parent.id if by_id and parent.id != id and known.get(parent.id) is parent else task
            for (task, parent), (_, by_id) in zip(parents, picks, strict=True)
        ]
        if any(parent.endless and parent.state == "WAITING" for parent in entry.parents):
            with pytest.raises((ValueError, DuplicateTaskError)):
                self.scheduler.schedule(self.real(entry, depends_on))
        else:
            self.add(entry, depends_on=depends_on)

    @rule(id=names, late=st.integers(1, 100), priority=st.integers(-2, 2), policy=policies)
    def once_late(self, id: Any, late: int, priority: int, policy: Policy) -> None:
        self.add(Entry(id, self.model.now - late, Rule(), policy, (Step("false"),), priority))

    @rule(
        id=names,
        kind=st.sampled_from(["skip", "catch up", "delay"]),
        first=delays,
        period=lengths | st.integers(4, 40),
        priority=st.integers(-2, 2),
        policy=policies,
        steps=scripts(1),
        data=st.data(),
    )
    def series(
        self,
        id: Any,
        kind: str,
        first: int,
        period: int,
        priority: int,
        policy: Policy,
        steps: list[Step],
        data: st.DataObject,
    ) -> None:
        if sum(entry.recurring and entry.lasts for entry in self.model.live.values()) >= 2:
            steps = [Step(step.end, 0, step.stops) for step in steps]  # or they never catch up
        entry = Entry(id, self.model.now + first, Rule(kind, period), policy, steps, priority)
        entry.max_runs = data.draw(st.none() | st.integers(1, 6), "max_runs")
        entry.timeout = data.draw(st.none() | st.just(1), "timeout")
        graceless = data.draw(st.sampled_from([False, False, True]), "graceless")
        entry.graceless = graceless and self.model.history == 1000
        if data.draw(st.booleans(), "until"):
            entry.until = entry.due + data.draw(lengths | st.integers(0, 200), "until")
        self.add(entry)

    @precondition(lambda self: self.model.history == 1000)
    @rule(
        id=st.sampled_from(NAMES), delay=st.integers(1, 40), kind=st.sampled_from(["once", "skip"])
    )
    def replace(self, id: Any, delay: int, kind: str) -> None:
        steps = (Step(), Step("false"))
        entry = Entry(
            id, self.model.now + delay, Rule(kind, 4 if kind == "skip" else 0), steps=steps
        )
        self.add(entry, replace=True)

    @rule(forward=st.integers(0, 200))
    def advance(self, forward: int) -> None:
        self.move(forward)

    @rule()
    def advance_to_the_next(self) -> None:
        due = self.model.next_due()
        if due is not None:
            self.move(max(0, due - self.model.now))

    @rule(forward=st.integers(1, 400))
    def jump(self, forward: int) -> None:
        target = self.model.now + forward
        ahead = self.model.foresee()
        ahead.jump(forward)
        if ahead.now == target:  # no run would be under way at the end
            self.model.jump(forward)
            returns(self.clock.jump, forward * TICK)

    @rule(id=st.sampled_from(NAMES), by_task=st.booleans())
    def cancel(self, id: Any, by_task: bool) -> None:
        expected = self.model.cancel(id)
        held = self.tasks.get(id)
        if by_task and held and self.model.knows(id):
            assert held[0].cancel().name == expected
        else:
            assert self.scheduler.cancel(id).name == expected

    @rule(index=st.integers(0, 1000))
    def cancel_any(self, index: int) -> None:
        if self.tasks:
            task, entry = list(self.tasks.values())[index % len(self.tasks)]
            waits = entry.state == "WAITING"
            assert task.cancel().name == ("CANCELLED" if waits else "FINISHED")
            if waits:
                self.model.cancel(entry.id)

    @rule(
        id=st.sampled_from(NAMES),
        call=st.sampled_from(["pause", "pause", "resume", "reschedule", "run_now"]),
        ahead=st.integers(-30, 60),
        by_task=st.booleans(),
    )
    def control(self, id: Any, call: str, ahead: int, by_task: bool) -> None:
        due = self.model.now + ahead
        expected = self.model.control(id, call, *[due] * (call == "reschedule"))
        self.compare_control(id, call, expected, due, by_task)

    @precondition(lambda self: any(entry.paused for entry in self.model.live.values()))
    @rule(index=st.integers(0, 1000), by_task=st.booleans())
    def resume_one(self, index: int, by_task: bool) -> None:
        paused = [id for id, entry in self.model.live.items() if entry.paused]
        id = paused[index % len(paused)]
        self.compare_control(id, "resume", self.model.control(id, "resume"), 0, by_task)

    def compare_control(self, id: Any, call: str, expected: str, due: int, by_task: bool) -> None:
        args = [due * TICK] * (call == "reschedule")
        held = self.tasks.get(id)
        if by_task and held and self.model.knows(id):
            answer = getattr(held[0], call)(*args)
        else:
            name = f"{call}_task" if call in ("pause", "resume") else call
            answer = getattr(self.scheduler, name)(id, *args)
        assert answer.name == expected
        self.move(0)

    @rule(paused=st.booleans())
    def pause_or_resume_all(self, paused: bool) -> None:
        self.model.paused = paused
        self.scheduler.pause() if paused else self.scheduler.resume()
        assert self.scheduler.paused is paused
        self.move(0)

    @precondition(lambda self: self.model.history == 1000)
    @rule(index=st.integers(0, 1000))
    def forget(self, index: int) -> None:
        if self.model.finished:
            id = list(self.model.finished)[index % len(self.model.finished)]
            self.model.forget(id)
            self.scheduler.forget(id)

    # What must agree.

    @invariant()
    def the_clock_and_the_counts_agree(self) -> None:
        assert ticks(self.scheduler.now()) == self.model.now
        assert ticks(self.scheduler.next_due()) == self.model.next_due()
        stats, totals = self.scheduler.stats(), self.model.totals
        assert (stats.waiting, stats.running) == (len(self.model.live), 0)
        live = self.model.live.values()
        assert stats.paused == sum(entry.held or (entry.blocked and entry.paused) for entry in live)
        assert stats.stuck == 0
        for name in ("runs", "failures", "missed", "done", "failed", "cancelled"):
            assert getattr(stats, name) == totals.get(name, 0), name

    @invariant()
    def the_tasks_agree(self) -> None:
        seen = {info.id: info for info in self.scheduler.tasks()}
        known = self.model.known()
        assert seen.keys() == known.keys()
        for id, entry in known.items():
            for view in (seen[id], self.scheduler.info(id)):
                assert view.state.name == entry.state
                assert (view.runs, view.failures) == (entry.runs, entry.failures)
                assert view.missed == entry.missed
                assert view.paused == (entry.paused and entry.state == "WAITING")
                assert (view.error is None) == (entry.error is None)
        for task, entry in self.tasks.values():
            assert task.state.name == entry.state
            assert (task.runs, task.failures) == (entry.runs, entry.failures)
            assert task.missed == entry.missed and task.priority == entry.priority
            assert (task.error and type(task.error).__name__) == entry.error
            assert task.done() is (entry.state != "WAITING") and not task.running()
            if entry.state == "WAITING":
                assert ticks(task.due) == entry.due

    @invariant()
    def the_events_agree(self) -> None:
        told: list[tuple[Any, ...]] = []
        for event in self.events:
            kind = event.kind.name
            if kind not in TOLD:
                continue
            entry: tuple[Any, ...] = (kind, event.task_id, ticks(event.time))
            if kind != "CANCELLED":
                entry += (ticks(event.due), event.run, event.attempt)
            if kind in ("COMPLETED", "FAILED"):
                entry += (ticks(event.next_due),)
            told.append(entry)
        if "STUCK" in (kind for kind, *_ in told):
            # While others are told that a run is stuck, another worker goes on.
            assert by_task(told) == by_task(self.model.log)
        else:
            assert told == self.model.log
        assert self.of("MISSED", "missed") == self.model.misses
        dues = [(id, time, ticks(due)) for id, time, due in self.of("DUE", "due")]
        assert Counter(dues) == Counter(self.model.dues)
        assert Counter(id for id, _, _ in self.of("SCHEDULED", "due")) == self.model.scheduled

    def of(self, kind: str, field: str) -> list[tuple[Any, ...]]:
        return [
            (event.task_id, ticks(event.time), getattr(event, field))
            for event in self.events
            if event.kind.name == kind
        ]


TestStory = Story.TestCase
TestStory.settings = settings(
    max_examples=max(20, int(10_000 * float(os.environ.get("DUETIME_SCALE", "0.02")))),
    stateful_step_count=40,
    # A story is short enough to read as it is, and the watchdog does not wait for a shorter one.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_the_model_itself_tells_the_examples_of_the_contract() -> None:
    """The numbers of the seeds: period 30, third run 60 to 110, then 120 (or 140)."""
    for kind, expected in [("skip", [0, 30, 60, 120]), ("delay", [0, 30, 60, 140])]:
        model = Model()
        steps = [Step(), Step(), Step("ok", 50), Step()]
        model.schedule(Entry("t", 0, Rule(kind, 30), steps=steps))
        model.advance(149)
        assert [row[2] for row in model.log if row[0] == "STARTED"] == expected
    model = Model()
    model.schedule(Entry("t", 0, Rule("catch up", 50), steps=[Step("ok", 180), *[Step()] * 9]))
    model.advance(250)
    assert [row[2] for row in model.log if row[0] == "STARTED"] == [0, 180, 180, 180, 200, 250]


def test_the_same_story_twice_has_the_same_events() -> None:
    """With one worker the order of all events is the same in every run."""

    def story() -> list[tuple[Any, ...]]:
        clock, events = duetime.ManualClock(), []
        with duetime.Scheduler(1, clock=clock) as scheduler:
            for number in range(20):
                due = 1 + number % 3
                scheduler.schedule(
                    Task(
                        number,
                        due=due,
                        job=lambda n=number: n % 4 != 0,
                        recurrence=FixedRate(1 + number % 5),
                        retry=retry.FixedDelay(2, 0.5),
                        priority=number % 2,
                        max_runs=8,
                    )
                )
            scheduler.add_listener(events.append)
            clock.advance(50)
        return [(e.kind.name, e.task_id, e.time, e.run, e.attempt) for e in events]

    first = story()
    assert first and all(story() == first for _ in range(5))
