#!/usr/bin/env python3
"""Whether a busy host slows a planted cost as much as a request: their ratio in its quietest rounds and in its busiest.

One process without and one with each cost, loaded in turns all the time, so that all see the same host. Loopback only.
"""

import argparse
import random
import sys
import time
from math import log
from pathlib import Path
from statistics import mean, median

from calibration import in_turns, per_request, ratio_of, warmed_up
from reuse import Failed, positive, progress
from study import add_proofload, append, command, duration, read

COSTS = ({}, {"SPIN": "26650"}, {"WORK": "38"})  # each about half a request
PARTS = 5
ROUNDS_MIN = 2 * PARTS + 2  # two in each part, and the first and the last, which are in none


def table(rounds: list) -> str:
    """One row for each part of the rounds, the quietest first. How busy a round was is told by those before and after it: by its own figures a
    round would be called busy whose request happened to take long."""
    typical = [median(side) for side in zip(*rounds)]
    busy = [mean(log(us / of) for us, of in zip(one, typical)) for one in rounds]
    inner = sorted(range(1, len(rounds) - 1), key=lambda at: busy[at - 1] + busy[at + 1])
    names = [name for env in COSTS[1:len(typical)] for name in env]
    rows = ["| rounds | request, µs | " + " | ".join(f"with {name}" for name in names) + " |", "|---|--:|" + "--:|" * len(names)]
    for part in range(PARTS):
        sides = list(zip(*(rounds[at] for at in inner[part * len(inner) // PARTS:(part + 1) * len(inner) // PARTS])))
        ratios = [ratio_of(list(zip(sides[0], side))) for side in sides[1:]]
        cells = " | ".join(f"×{ratio:.3f} ± {ratio * error:.3f}" for ratio, error in ratios)
        rows.append(f"| {part + 1} of {PARTS} | {mean(sides[0]):.0f} | {cells} |")
    return "\n".join(rows)


def study(options: argparse.Namespace) -> None:
    random.seed(options.seed)
    with warmed_up(options.proofload, COSTS) as processes:
        until = time.monotonic() + options.seconds
        while (left := until - time.monotonic()) > 0:
            us = [per_request(slices) for slices in in_turns(options.proofload, processes)]
            append(options.out, {"kind": "round", "us": [round(one, 1) for one in us]})
            progress(f"about {duration(left)} left\n")
    rounds = [line["us"] for line in read(options.out)]
    if len(rounds) < ROUNDS_MIN:
        raise Failed(f"{len(rounds)} rounds are too few, {ROUNDS_MIN} would do: --seconds {options.seconds} is too short")
    print(table(rounds))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_proofload(parser)
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help="JSON lines are appended here")
    parser.add_argument("--seconds", type=positive, default=330, help="how long [330]")
    parser.add_argument("--seed", type=int, default=20261128)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(command(study, parse_options()))
