"""Clocks that jump, wall clocks that are set, and times of day that come twice or never."""

from __future__ import annotations

import shutil
import subprocess
import time
import zoneinfo
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import pytest
from support import DAY, HOUR, STATES, WATCHDOG, Log, Manual, clean, exact, noop, python

from duetime import FixedDelay, FixedRate, Missed

SUMMER, WINTER = timedelta(hours=2), timedelta(hours=1)


class Berlin(tzinfo):
    """Central European time around the end of summer time on 27 October 2030, fold and all."""

    def utcoffset(self, when: datetime | None) -> timedelta:
        assert when is not None
        wall = when.replace(tzinfo=None)
        if wall >= datetime(2030, 10, 27, 3) or wall < datetime(2030, 3, 31, 2):
            return WINTER
        if wall < datetime(2030, 3, 31, 3):  # the hour that does not exist
            return SUMMER if when.fold else WINTER
        if wall >= datetime(2030, 10, 27, 2):  # the hour that comes twice
            return WINTER if when.fold else SUMMER
        return SUMMER

    def dst(self, when: datetime | None) -> timedelta:
        return self.utcoffset(when) - WINTER

    def tzname(self, when: datetime | None) -> str:
        return "CET"


def test_skip_after_a_leap_is_one_late_run_and_the_old_grid(manual: Manual) -> None:
    """robfig/cron#26: after a suspend every missed run was started at once."""
    task = manual.scheduler.every(5, noop)
    manual.jump(HOUR + 2)
    assert (manual.log.dues(), manual.log.starts()) == ([5], [HOUR + 2])
    assert (manual.scheduler.next_due(), task.missed) == (HOUR + 5, 719)
    assert [event.missed for event in manual.log.of("MISSED")] == [719]
    manual.advance(13)
    assert manual.log.starts()[1:] == [HOUR + 5, HOUR + 10, HOUR + 15]


def test_catch_up_after_a_leap_runs_every_slot_with_its_own_due(manual: Manual) -> None:
    """robfig/cron#26: who asks for all the runs gets each of them, and its slot."""
    task = manual.scheduler.every(FixedRate(5, Missed.CATCH_UP), noop)
    manual.jump(HOUR)
    assert manual.log.dues() == [5 * n for n in range(1, 721)]
    assert set(manual.log.starts()) == {HOUR}
    assert (task.missed, manual.scheduler.next_due()) == (0, HOUR + 5)


@pytest.mark.parametrize("period", [1e-6, 0.001, 0.1, 7, DAY])
@pytest.mark.parametrize("years", [1, 10, 99])
def test_the_length_of_a_leap_costs_nothing(manual: Manual, period: float, years: int) -> None:
    """robfig/cron#26: the next slot was found by stepping through all the missed ones."""
    task = manual.scheduler.every(period, noop)
    leap = years * 365 * DAY
    manual.jump(leap)
    step, now = exact(period), exact(leap)
    ran = [exact(due) // step for due in manual.log.dues()]
    assert ran[0] == 1 and len(ran) <= 2
    following = now // step + 1
    assert abs(exact(manual.scheduler.next_due()) - following * step) < 1000  # a float's grain
    assert task.missed == following - 1 - len(ran)


@pytest.mark.parametrize(
    "rule",
    [FixedRate(10), FixedRate(10, Missed.CATCH_UP), FixedDelay(10)],
    ids=["skip", "catch up", "delay"],
)
def test_after_a_leap_the_next_due_is_within_one_period(make_manual: Any, rule: Any) -> None:
    """gocron#438: after a leap the next run was in the past, or two periods ahead."""
    for leaps in range(101):
        bench = make_manual()
        bench.scheduler.every(rule, noop)
        bench.jump(timedelta(seconds=10 * leaps))
        bench.jump(1e-9)
        now, due = exact(bench.scheduler.now()), exact(bench.scheduler.next_due())
        assert now < due <= now + 10 * 10**9
        if isinstance(rule, FixedRate):
            assert due == (leaps + 1) * 10 * 10**9
        bench.close()


def test_a_wall_clock_seen_from_python_has_no_say(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apscheduler#339, cpython#75450: time.time() decided when relative tasks ran."""
    true_time, skew = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: true_time() + skew[0])
    scheduler = make()
    log = Log(scheduler)
    once = scheduler.after(0.03, noop)
    series = scheduler.every(0.01, noop, max_runs=10, id="series")
    for skew[0] in (2 * HOUR, -2 * HOUR, 0.0):
        assert scheduler.after(0, noop).wait(WATCHDOG)
    assert once.wait(WATCHDOG) and series.wait(WATCHDOG)
    dues = [exact(due) for due in log.dues("series")]
    assert all((due - dues[0] + 500) % 10**7 < 1000 for due in dues)  # a float's grain
    assert all(event.lateness >= 0 for event in log.of("STARTED"))


def test_a_wall_clock_that_is_set_has_no_say(tmp_path: Path) -> None:
    """robfig/cron#480: the system's time was set by 2 hours, there and back."""
    compiler, library = shutil.which("cc"), tmp_path / "skew.so"
    env = {"SKEW": ""}
    if compiler:
        source = Path(__file__).with_name("skew.c")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
        env = {"SKEW": str(library), "LD_PRELOAD": str(library)}
    code = """
        import ctypes, os, time
        import duetime
        set_skew = ctypes.CDLL(os.environ["SKEW"]).skew_set if os.environ["SKEW"] else int
        true = time.time()
        scheduler = duetime.Scheduler(2)
        for hours in (2, 0, -2, 0):
            begun = time.monotonic()
            once = scheduler.after(0.05, lambda: time.monotonic() - begun)
            series = scheduler.every(0.01, lambda: None, max_runs=5)
            set_skew(3600 * hours)
            if os.environ["SKEW"]:
                assert abs(time.time() - true - 3600 * hours) < 600, "the wall clock did not move"
            assert once.result(timeout=30) >= 0.05
            assert series.wait(timeout=30)
            assert (series.runs, series.missed > 1000) == (5, False)
        scheduler.shutdown()
        print("steady")
    """
    assert clean(python(code, env=env)) == ["steady"]


def due_of(bench: Manual, when: datetime) -> float:
    return bench.scheduler.at(when, noop).due


@pytest.mark.parametrize("zone", [Berlin(), "Europe/Berlin"], ids=["own", "zoneinfo"])
def test_the_two_meanings_of_a_folded_hour_are_an_hour_apart(manual: Manual, zone: Any) -> None:
    """apscheduler#116: in the hour that comes twice the fold was thrown away."""
    if isinstance(zone, str):
        try:
            zone = zoneinfo.ZoneInfo(zone)
        except zoneinfo.ZoneInfoNotFoundError:
            zone = Berlin()
    first = datetime(2030, 10, 27, 2, 30, tzinfo=zone)
    apart = due_of(manual, first.replace(fold=1)) - due_of(manual, first)
    assert apart == pytest.approx(HOUR, abs=60)


@pytest.mark.parametrize("fold", [0, 1])
def test_a_time_of_day_that_does_not_exist_is_taken_as_python_takes_it(
    manual: Manual, fold: int
) -> None:
    """apscheduler#1021: in the hour that is left out a job hung or was dropped."""
    when = datetime(2030, 3, 31, 2, 30, tzinfo=Berlin(), fold=fold)
    same = datetime.fromtimestamp(when.timestamp(), timezone.utc)
    assert due_of(manual, when) == pytest.approx(due_of(manual, same), abs=60)


def test_one_instant_in_three_zones_is_one_due(manual: Manual) -> None:
    """apscheduler#133: the same instant, written in three zones."""
    instant = datetime(2031, 1, 1, 12, tzinfo=timezone.utc)
    zones = [timezone.utc, timezone(timedelta(hours=-11)), timezone(timedelta(hours=5, minutes=45))]
    dues = [due_of(manual, instant.astimezone(zone)) for zone in zones]
    assert max(dues) - min(dues) < 60


def test_a_datetime_in_the_past_runs_at_once(manual: Manual) -> None:
    """apscheduler#116: an instant that is already over is late, not an error."""
    task = manual.scheduler.at(datetime.now(timezone.utc) - timedelta(days=1), noop)
    assert task.wait(WATCHDOG) and task.state is STATES.DONE
