"""How far requests were from an even schedule, judged only by when they were sent.

Pure: numbers in, numbers out. It must not know a tool, a file or a clock.
"""

from math import ceil
from typing import NamedTuple, Sequence

SHARE = 0.99


class Lag(NamedTuple):
    """How late requests were, in microseconds, for the start that is best for the sender."""

    p50_us: float
    p99_us: float
    max_us: float


def lag(sent_ns: Sequence[int], rate_per_s: float) -> Lag:
    """The i-th request to be sent was due at `start + i / rate_per_s`. Only the sender knows the start.

    It is taken to be the one with the narrowest band after it that holds 99 % of the requests; the width of that band
    is the p99. The 1 % outside of it may be early: their distance counts as if they were late. So a sender that is
    late by a constant is not late, one that sends in bursts is late by the time between bursts, and one that sends
    less than it should is later and later. Something must have been sent.
    """
    ordered = sorted(sent_ns)
    off_us = sorted((ns - ordered[0]) / 1e3 - i * 1e6 / rate_per_s for i, ns in enumerate(ordered))
    held = ceil(len(off_us) * SHARE)
    first = min(range(len(off_us) - held + 1), key=lambda i: off_us[i + held - 1] - off_us[i])
    start = off_us[first]
    late_us = sorted(abs(value - start) for value in off_us)
    return Lag(late_us[len(late_us) // 2], off_us[first + held - 1] - start, late_us[-1])
