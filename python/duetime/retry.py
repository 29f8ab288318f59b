"""Retry policies: whether and when a failed attempt is made again.

The invariant: a policy is an immutable value and a pure function of the number of failed attempts,
so one may be shared by any number of tasks.

Any object with `delay_after_failure(failures)` will do; see `duetime.RetryPolicy`.

Example:
    >>> from duetime import retry
    >>> policy = retry.ExponentialBackoff(max_retries=4, base=1, cap=5)
    >>> [policy.delay_after_failure(failures) for failures in range(1, 6)]
    [1.0, 2.0, 4.0, 5.0, None]
"""

from duetime._native import ExponentialBackoff, Never
from duetime._native import RetryFixedDelay as FixedDelay

__all__ = ["ExponentialBackoff", "FixedDelay", "Never"]
