"""Bounds: a message names the one that was broken, and an int and a float mean one instant."""

import pytest

from duetime import ManualClock, Scheduler


def test_a_history_that_is_too_large_is_told_the_bound_that_it_breaks():
    with pytest.raises((ValueError, OverflowError)) as caught:
        Scheduler(history=10**30)
    assert "at least 0" not in str(caught.value)


@pytest.mark.parametrize("due", [9_200_000_000, -9_200_000_000])
def test_one_instant_is_one_answer_as_int_and_as_float(due):
    """9.2e9 s are 291.5 years; the message says "within 292 years"."""
    scheduler = Scheduler(1, clock=ManualClock())
    assert scheduler.at(due, int)
    assert scheduler.at(float(due), int)


def test_max_runs_that_is_too_large_is_told_the_bound_that_it_breaks():
    with pytest.raises(ValueError) as caught:
        Scheduler(1, clock=ManualClock()).every(1, int, max_runs=10**30)
    assert "at least 1," not in str(caught.value)


class Evil(int):
    """Cannot be compared. As an id, a count or a priority it is read without that."""

    def __lt__(self, other):
        raise RuntimeError("compared")


@pytest.mark.parametrize("value", [Evil(10**30), Evil(-(10**30))], ids=["large", "small"])
def test_a_number_is_read_without_its_own_methods(value):
    scheduler = Scheduler(1, clock=ManualClock())
    with pytest.raises(ValueError):
        scheduler.after(value, int)
    with pytest.raises(ValueError):
        scheduler.at(value, int)
