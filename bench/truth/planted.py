#!/usr/bin/env python3
"""Plants effects of known size in a service and looks for them by `proofload run`.

First the loop is calibrated: how many turns make a request cost 1 % more CPU. The calibration is a line of its own in
the file, and a study keeps to it. Service on core 0, client on core 1, loopback only.
"""

import argparse
import random
import sys
from math import exp, log
from statistics import mean, stdev

from effects import EFFECTS, calibration_in, variables
from experiment import Variants, run
from reuse import Failed, positive, progress
from study import Step, add_options, add_proofload, append, command, conduct, in_rounds, read
from variance import Process, Treatment, client, finished, measure

# About half as much again as the request costs: the more, the less the noise is of it.
SPIN = 50_000
SLICE_S = 0.2
SLICES = 10  # of each process of a pair


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, count=10)
    add_proofload(parser)
    parser.add_argument("--effect", nargs="+", choices=list(EFFECTS), default=list(EFFECTS), help="which [all]")
    parser.add_argument("--pairs", type=positive, default=20, help="of processes for the calibration [20]")
    parser.add_argument("--calibrate-only", action="store_true", help="end after the calibration")
    return parser.parse_args()


def study(options: argparse.Namespace) -> None:
    chosen = {name: EFFECTS[name] for name in options.effect}
    calibration = calibration_in(read(options.out))
    needed = options.calibrate_only or any(effect.percent is not None for effect in chosen.values())
    if needed and calibration is None:
        calibration = calibrate(options.proofload, options.pairs, options.seed)
        append(options.out, calibration)
    if options.calibrate_only:
        return

    def attempt(step: Step) -> dict:
        effect = chosen[step.effect]
        sides = Variants({"NOT_READ": "1"}, variables(effect, calibration))
        return run(options.proofload, step.effect, sides, effect, step.seed(options.seed))

    seconds = {name: effect.budget_s for name, effect in chosen.items()}
    conduct(options.out, in_rounds("planted", seconds, options.count, options.seed), attempt)


def calibrate(proofload: str, pairs: int, seed: int) -> dict:
    """The line that says how many turns make one per cent. Raises `Failed` if the loop costs nothing."""
    random.seed(seed)
    measured = []
    for number in range(pairs):
        progress(f"calibration, pair {number + 1} of {pairs}\n")
        measured.append(pair(proofload))
    return calibration_of(measured)


def calibration_of(measured: list) -> dict:
    """From pairs of CPU time per request, in microseconds, without the loop and with `SPIN` turns of it."""
    logs = [log(spun / plain) for plain, spun in measured]
    ratio = exp(mean(logs))
    if ratio <= 1:
        raise Failed(f"{SPIN} turns of the loop cost nothing: the CPU time per request is {ratio:.3f} of that without")
    percent = 100 * (ratio - 1)
    # To first order: d(ratio) = ratio * d(log ratio).
    error = 100 * ratio * stdev(logs) / len(logs) ** 0.5 if len(logs) > 1 else None
    return {"kind": "calibration", "spin": SPIN, "plain_us": mean(plain for plain, _ in measured),
            "spun_us": mean(spun for _, spun in measured), "percent": percent, "percent_standard_error": error,
            "turns_per_percent": SPIN / percent, "pairs": measured}


def pair(proofload: str) -> tuple:
    """CPU time per request without and with the loop, in slices A B B A, so that drift hits both."""
    used = ([], [])
    processes = []
    try:
        for env in ({}, {"SPIN": str(SPIN)}):
            processes.append(Process("planted", Treatment(), env))
        for process in processes:
            finished(client(proofload, process.port, process.treatment.warm_s))
        while len(used[0]) < SLICES:
            first = random.randrange(2)
            for which in (first, 1 - first, 1 - first, first):
                slice_ = measure(proofload, processes, which, SLICE_S)
                used[which].append((slice_["throughput"], slice_["main_us"] + slice_["helpers_us"]))
    finally:
        for process in processes:
            process.stop()
    return per_request(used[0]), per_request(used[1])


def per_request(slices: list) -> float:
    """Over slices of one length: each counts by its requests."""
    return sum(rate * us for rate, us in slices) / sum(rate for rate, _ in slices)


if __name__ == "__main__":
    asked = parse_options()
    sys.exit(command(lambda: study(asked)))
