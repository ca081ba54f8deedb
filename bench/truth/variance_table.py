#!/usr/bin/env python3
"""Tables of what variance.py measured: how much two processes of one service differ under each treatment.

    python3 bench/truth/variance_table.py FILE...
"""

import sys
from math import log, sqrt
from statistics import mean, median, variance
from typing import NamedTuple, Optional, Sequence

from reuse import section
from study import print_tables

REFERENCE = "as it is"
# Of a normal distribution the median distance from the middle is 1 / 1.4826 standard deviations.
MEDIAN_TO_SD = 1.4826
METRICS = {
    "throughput": lambda slices: mean(one["throughput"] for one in slices),
    "CPU per request": lambda slices: sum(one["throughput"] * cpu_us(one) for one in slices)
    / sum(one["throughput"] for one in slices),
}
OF_A_SLICE = {"throughput": lambda one: one["throughput"], "CPU per request": lambda one: cpu_us(one)}
HEADER = ["treatment", "pairs", "rms", "by the median", "within", "a pair", "variance × time", "by the median"]


def cpu_us(slice_: dict) -> float:
    return slice_["main_us"] + slice_["helpers_us"]


class Pair(NamedTuple):
    """The slices of two processes of one service, and the seconds it took to have them."""

    first: list
    second: list
    seconds: float


class Spread(NamedTuple):
    """Standard deviations of log ratios: between processes by two estimates, and between slices of one process."""

    pairs: int
    rms: float
    by_median: float
    within: Optional[float]
    seconds: float

    @property
    def costs(self) -> tuple:
        """Variance times time, proportional to the time that a comparison takes for the same precision."""
        return self.rms**2 * self.seconds, self.by_median**2 * self.seconds


def pairs_of(lines: Sequence[dict]) -> dict:
    """Whole pairs by service and treatment. Slices of one that was cut off are followed by another pair's."""
    found, open_key, slices = {}, None, ([], [])
    for line in lines:
        key = line["service"], line["treatment"], line["pair"]
        if key != open_key:
            open_key, slices = key, ([], [])
        if "pair_s" not in line:
            slices[line["process"]].append(line)
            continue
        if all(slices):
            found.setdefault(key[:2], []).append(Pair(*slices, line["pair_s"]))
        open_key = None
    return found


def spread(pairs: Sequence[Pair], metric: str) -> Spread:
    """The processes are alike, so the true log ratio is 0 and no mean is subtracted."""
    of_process, of_slice = METRICS[metric], OF_A_SLICE[metric]
    ratios = [log(of_process(pair.second) / of_process(pair.first)) for pair in pairs]
    inner = [variance([log(of_slice(one)) for one in side])
             for pair in pairs for side in (pair.first, pair.second) if len(side) > 1]
    return Spread(len(pairs), sqrt(mean(ratio**2 for ratio in ratios)),
                  MEDIAN_TO_SD * median(abs(ratio) for ratio in ratios),
                  sqrt(mean(inner)) if inner else None, mean(pair.seconds for pair in pairs))


def table(service: str, metric: str, by_treatment: dict) -> str:
    spreads = {name: spread(pairs, metric) for name, pairs in by_treatment.items()}
    reference = spreads.get(REFERENCE)
    rows = [HEADER] + [_row(name, one, reference) for name, one in spreads.items()]
    return section(f"{service}: {metric}", rows, [])


def _row(name: str, one: Spread, reference: Optional[Spread]) -> list:
    of_reference = reference.costs if reference else (0.0, 0.0)
    costs = [f"{cost / of:.2f}" if of else "–" for cost, of in zip(one.costs, of_reference)]
    within = "–" if one.within is None else f"{one.within:.2%}"
    return [name, str(one.pairs), f"{one.rms:.2%}", f"{one.by_median:.2%}", within, f"{one.seconds:.1f} s", *costs]


def tables(lines: Sequence[dict]) -> str:
    by_service = {}
    for (service, treatment), pairs in pairs_of(lines).items():
        by_service.setdefault(service, {})[treatment] = pairs
    return "\n\n".join(table(service, metric, dict(sorted(by_treatment.items(), key=lambda one: one[0] != REFERENCE)))
                       for service, by_treatment in by_service.items() for metric in METRICS)


if __name__ == "__main__":
    sys.exit(print_tables(__doc__.splitlines()[0], "of variance.py", tables))
