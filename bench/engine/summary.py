"""Summaries of many rounds: medians, ratios, and an interval that assumes no distribution.

Pure: numbers in, numbers out. It must not know a tool, a file or a clock.
"""

from math import comb
from statistics import median
from typing import NamedTuple, Optional, Sequence

LEVEL_ASKED = 0.95


class Interval(NamedTuple):
    """Between two of the sorted values. `level` is the exact confidence that the median lies in it."""

    low: float
    high: float
    level: float


class Estimate(NamedTuple):
    median: float
    interval: Interval


def median_interval(values: Sequence[float], level_asked: float = LEVEL_ASKED) -> Interval:
    """The narrowest interval from the k-th smallest to the k-th largest value that has the level asked for, or more.

    The number of values below the true median is binomial with p = 1/2, whatever their distribution, so that

        level(k) = 1 - 2 * P(Binomial(n, 1/2) < k)

    Where n is so small that not even the extremes have the level (n < 6 for 95 %), they are returned with the level
    that they have. David and Nagaraja, *Order Statistics*, 2003, section 7.1.
    """
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    count = len(ordered)
    rank = 1
    while rank + 1 <= (count + 1) // 2 and _level(count, rank + 1) >= level_asked:
        rank += 1
    return Interval(ordered[rank - 1], ordered[count - rank], _level(count, rank))


def _level(count: int, rank: int) -> float:
    below = sum(comb(count, i) for i in range(rank))
    return max(0.0, 1 - 2 * below / 2**count)


def estimate(values: Sequence[float]) -> Estimate:
    return Estimate(median(values), median_interval(values))


def ratios(tool: dict, baseline: dict) -> list:
    """Value over baseline, round by round; rounds without one of them do not count."""
    return [tool[number] / baseline[number] for number in sorted(tool) if baseline.get(number)]


def counts_differ(own: int, server: int, in_flight_max: int, share: float = 0.001) -> Optional[float]:
    """How far a tool's own count is from the server's, as a share of it; None where that is no more than `share`.

    Up to `in_flight_max` requests may have reached the server without their responses being waited for.
    """
    excess = max(0, abs(own - server) - in_flight_max)
    return (own - server) / server if excess > share * server else None
