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

from calibration import DRIVER, SLICE_S, WARM_UP
from reuse import positive, progress
from study import add_proofload, append, command, duration, read
from variance import Process, client, finished, measure

COSTS = ({}, {"SPIN": "26650"}, {"WORK": "38"})  # each about half a request
PARTS = 5


def table(rounds: list) -> str:
    """One row for each part of the rounds, the quietest first: a round is as busy as all its processes say together."""
    typical = [median(side) for side in zip(*rounds)]
    ordered = sorted(rounds, key=lambda one: mean(log(us / of) for us, of in zip(one, typical)))
    rows = ["| rounds | request, µs | with SPIN | with WORK |", "|---|--:|--:|--:|"]
    for part in range(PARTS):
        sides = [mean(side) for side in zip(*ordered[part * len(ordered) // PARTS:(part + 1) * len(ordered) // PARTS])]
        ratios = " | ".join(f"×{side / sides[0]:.3f}" for side in sides[1:])
        rows.append(f"| {part + 1} of {PARTS} | {sides[0]:.0f} | {ratios} |")
    return "\n".join(rows)


def study(options: argparse.Namespace) -> None:
    random.seed(options.seed)
    processes = []
    try:
        for env in COSTS:
            processes.append(Process("planted", WARM_UP, env))
            finished(client(options.proofload, processes[-1].port, 3, driver=DRIVER))
        until = time.monotonic() + options.seconds
        while (left := until - time.monotonic()) > 0:
            order = random.sample(range(len(processes)), len(processes))
            us = [[] for _ in processes]
            for which in order + order[::-1]:
                slice_ = measure(options.proofload, processes, which, SLICE_S, DRIVER)
                us[which].append(slice_["main_us"] + slice_["helpers_us"])
            append(options.out, {"kind": "round", "us": [round(mean(side), 1) for side in us]})
            progress(f"about {duration(left)} left\n")
    finally:
        for process in processes:
            process.stop()
    print(table([line["us"] for line in read(options.out)]))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_proofload(parser)
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help="JSON lines are appended here")
    parser.add_argument("--seconds", type=positive, default=330, help="how long [330]")
    parser.add_argument("--seed", type=int, default=20261128)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(command(study, parse_options()))
