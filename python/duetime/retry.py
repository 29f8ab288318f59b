"""Retry policies, and the errors by which a job has a say in them.

The invariant: a policy is an immutable value, and its delay a pure function of the number of failed
attempts, so one may be shared by any number of tasks. The policy says how many attempts there are
and after which errors; a job may raise `RetryAfter` to say when, and `GiveUp` to say no.

Any object with `delay_after_failure(failures)` will do; see `duetime.RetryPolicy`.

Example:
    >>> from duetime import retry
    >>> policy = retry.ExponentialBackoff(max_retries=4, base=1, cap=5, give_up_on=KeyError)
    >>> [policy.delay_after_failure(failures) for failures in range(1, 6)]
    [1.0, 2.0, 4.0, 5.0, None]
"""

from duetime._errors import GiveUp, RetryAfter
from duetime._native import ExponentialBackoff, Never
from duetime._native import RetryFixedDelay as FixedDelay

__all__ = ["ExponentialBackoff", "FixedDelay", "GiveUp", "Never", "RetryAfter"]

# A traceback, a repr and a pickle name the public place, not the file.
GiveUp.__module__ = RetryAfter.__module__ = __name__
