"""Blocks of services against themselves, put together to plans of other lengths and judged by the rule of the looks.

Runs are joined in an order drawn anew, each with its sides swapped or not, so neighbours stay neighbours. The boundaries are those of
`crates/stats/src/looks.csv`. Pure, but for that table: log ratios in, verdicts out.
"""

import random
from math import inf, log1p, sqrt
from pathlib import Path
from statistics import NormalDist, mean, stdev
from typing import Iterator, Sequence

from effects import MARGIN
from student import p_two_sided
from tally import BETTER, EQUIVALENT, NONE, WORSE, Share

TABLE = Path(__file__).resolve().parents[2] / "crates" / "stats" / "src" / "looks.csv"
BLOCKS_MIN = 4
PLANS = (6, 10, 15, 30)
REPLAYS = 2000


def boundaries() -> tuple:
    """z of every look, and z of the last block of a run by its number of blocks, for one comparison."""
    line = next(line for line in TABLE.read_text().splitlines() if line.startswith("1,"))
    look, *ends = (float(value) for value in line.split(",")[1:])
    return look, {BLOCKS_MIN + at: z for at, z in enumerate(ends)}


def verdict(logs: Sequence[float], z: float) -> str:
    """What the interval of these blocks says, as the report does: equivalent even if it excludes 1."""
    n, centre, spread = len(logs), mean(logs), stdev(logs) / sqrt(len(logs))
    allowed = 2 * (1 - NormalDist().cdf(z))

    def beyond(value: float) -> bool:
        """Whether the interval lies on one side of this value."""
        t = (centre - value) / spread if spread else inf
        return p_two_sided(t, n - 1) <= allowed

    margin = log1p(MARGIN)
    if -margin < centre < margin and beyond(-margin) and beyond(margin):
        return EQUIVALENT
    if not beyond(0.0):
        return NONE
    return BETTER if centre > 0 else WORSE


def run(logs: Iterator[float], blocks: int, looks: tuple) -> str:
    """A run of so many blocks at most, which ends at the first look that decides."""
    look, ends = looks
    seen: list = []
    for value in logs:
        seen.append(value)
        last = len(seen) == blocks
        if len(seen) >= BLOCKS_MIN and (found := verdict(seen, ends[blocks] if last else look)) != NONE:
            return found
        if last:
            break
    return NONE


def replayed(series: Sequence[Sequence[float]], blocks: int, seed: int, replays: int = REPLAYS) -> Share:
    """How many runs of such a plan find a difference."""
    source, looks = random.Random(f"{seed} {blocks}"), boundaries()

    def joined() -> Iterator[float]:
        while True:
            sign = source.choice((1, -1))
            yield from (sign * value for value in source.choice(series))

    return Share(sum(run(joined(), blocks, looks) in (BETTER, WORSE) for _ in range(replays)), replays)
