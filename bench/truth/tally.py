"""Summaries of many comparisons: how often they were wrong, and whether their intervals contain the truth.

Pure: lines in, numbers out. It must not know a file, a clock or a table.
"""

from math import exp, log, sqrt
from statistics import NormalDist, mean
from typing import Callable, NamedTuple, Optional, Sequence

from student import Test, welch

Z = NormalDist().inv_cdf(0.975)
ALPHA = 0.05
# With fewer runs, one run has too much weight in the mean that stands for the truth.
RUNS_FOR_TRUTH_MIN = 5
BETTER, WORSE, EQUIVALENT, NONE = "better", "worse", "equivalent", "none"


class Share(NamedTuple):
    count: int
    of: int

    @property
    def value(self) -> float:
        return self.count / self.of

    def interval(self) -> tuple:
        """Wilson's, at 95 %. Wilson, *Journal of the American Statistical Association* 22, 1927."""
        share, n = self.value, self.of
        middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
        half = Z / (1 + Z * Z / n) * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)


def pooled_ratio(estimates: Sequence[Optional[dict]]) -> Optional[float]:
    """Candidate over baseline over all blocks of all runs; `None` from too few runs.

    Each run counts by its blocks. A mean of the runs' means would be off: runs end early where they look clear.
    """
    present = [one for one in estimates if one]
    if len(present) < RUNS_FOR_TRUTH_MIN:
        return None
    return exp(sum(one["blocks"] * log(one["ratio"]) for one in present) / sum(one["blocks"] for one in present))


def covering(estimates: Sequence[Optional[dict]], truths: Sequence[Optional[float]]) -> Optional[Share]:
    """How many of the intervals contain the truth of their run. Runs without an interval, or without a known truth, do not count."""
    present = [(one, truth) for one, truth in zip(estimates, truths, strict=True) if one and truth is not None]
    if not present:
        return None
    return Share(sum(one["low"] <= truth <= one["high"] for one, truth in present), len(present))


def outcomes(lines: Sequence[dict], *wanted: str) -> Share:
    return Share(sum(line["outcome"] in wanted for line in lines), len(lines))


def by_larger_mean(line: dict, share: float = 0.0) -> str:
    """The verdict by hand if the larger mean wins, by more than `share` of the baseline's."""
    ratio = mean(line["candidate_rates"]) / mean(line["baseline_rates"])
    if 1 / (1 + share) <= ratio <= 1 + share:
        return NONE
    return BETTER if ratio > 1 else WORSE


def by_t_test(line: dict, of: Callable[[Sequence[float], Sequence[float]], Test] = welch) -> str:
    test = of(line["baseline_rates"], line["candidate_rates"])
    if test.p >= ALPHA:
        return NONE
    return BETTER if test.t > 0 else WORSE


def lag_one(series: Sequence[Sequence[float]]) -> Optional[float]:
    """The correlation of neighbours, over runs whose true mean is 0 as nothing differs."""
    neighbours = sum(a * b for run in series for a, b in zip(run, run[1:]))
    scale = sum((a * a + b * b) / 2 for run in series for a, b in zip(run, run[1:]))
    return neighbours / scale if scale else None


class Wrong(NamedTuple):
    """Wrong verdicts: `false_difference` if nothing was planted, else `wrong_sign` and `missed`."""

    false_difference: Share
    wrong_sign: Share
    missed: Share


def wrong(verdicts: Sequence[str]) -> Wrong:
    """Every planted effect is for the worse."""
    better, worse, n = verdicts.count(BETTER), verdicts.count(WORSE), len(verdicts)
    return Wrong(Share(better + worse, n), Share(better, n), Share(n - better - worse, n))
