#!/usr/bin/env python3
"""Compares two services as one does by hand: start one, warm it up, run wrk three times, stop it; then the other.

With --pairs as a careful person does: each side in turn in a process of its own, one run of wrk each, so many times. Side A is the service
as it is; side B the same (--effect none), or with turns of a loop planted (--effect spin-10, by a study's calibration, or --spin). Service
on core 0, wrk on core 1, loopback only. All rates are kept; tables.py evaluates them.
"""

import argparse
import random
import sys
import time
from pathlib import Path

from calibration import calibrated
from effects import EFFECTS, variables
from reuse import CLIENT_CORE, Failed, Load, Tool, all_tools, ended, positive
from study import add_options, add_proofload, command, conduct, in_rounds
from variance import Process, Treatment, steal, steal_since

CONNECTIONS = 16
RUNS = 3
WARM_UP_S = 1
GRACE_S = 15
STARTS_S = 1.5
SPINS = [name for name, effect in EFFECTS.items() if effect.percent is not None]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, count=60)
    parser.add_argument("--effect", nargs="+", choices=["none", *SPINS], default=["none"],
                        help="what side B has [none]")
    parser.add_argument("--calibration", metavar="FILE", type=Path,
                        help="lines of a study, which say how many turns an effect takes; made there if they do not [those of --out]")
    add_proofload(parser)
    parser.add_argument("--pairs", type=positive, metavar="N", help="of fresh processes, one run of wrk each")
    parser.add_argument("--seconds", type=positive, default=2, help="of each run of wrk [2]")
    return parser.parse_args()


def study(options: argparse.Namespace) -> None:
    found_wrk()
    file = options.calibration or options.out
    calibrations = calibrated(file, options.proofload, [EFFECTS[name] for name in options.effect], options.seed)
    envs = {name: variables(EFFECTS[name], calibrations) for name in options.effect}
    runs, pairs = (1, options.pairs) if options.pairs else (RUNS, 1)
    each_s = 2 * pairs * (STARTS_S + WARM_UP_S + runs * options.seconds)
    steps = in_rounds("by-hand-pairs" if options.pairs else "by-hand", {name: each_s for name in envs}, options.count, options.seed)
    conduct(options.out, steps, lambda step: compare(envs[step.effect], pairs, runs, options.seconds, step.seed(options.seed)))


def compare(env: dict, pairs: int, runs: int, seconds: int, seed: int) -> dict:
    """Both sides, one after the other, as people do; the first side of each pair after the first is drawn."""
    random.seed(seed)
    begun, stolen = time.monotonic(), steal()
    sides = ([], [])
    for pair in range(pairs):
        first = random.randrange(2) if pair else 0
        for which in (first, 1 - first):
            sides[which].extend(side(env if which else {}, runs, seconds))
    baseline, candidate = sides
    return {"variables": env, "baseline_rates": baseline, "candidate_rates": candidate,
            "seconds": time.monotonic() - begun, "steal": steal_since(stolen), "seed": seed}


def side(env: dict, runs: int, seconds: int) -> list:
    process = Process("planted", Treatment(), env)
    try:
        wrk_rate(process.port, WARM_UP_S)
        return [wrk_rate(process.port, seconds) for _ in range(runs)]
    finally:
        process.stop()


def found_wrk() -> Tool:
    wrk = next(tool for tool in all_tools("proofload") if tool.name == "wrk")
    if not wrk.find():
        raise Failed(f"wrk is missing: {wrk.install}")
    return wrk


def wrk_rate(port: int, seconds: int) -> float:
    """Responses per second. Raises `Failed` if not all were successful."""
    wrk = found_wrk()
    line = ["taskset", "-c", str(CLIENT_CORE), wrk.find(), *wrk.arguments(Load(port, "/", CONNECTIONS, seconds))]
    code, output, errors = ended(line, seconds + GRACE_S)
    if code != 0 or "Non-2xx" in output or "Socket errors" in output:
        raise Failed(f"wrk: {(errors or output)[-300:].strip()}")
    count = wrk.count(output)
    return count.responses / count.seconds


if __name__ == "__main__":
    sys.exit(command(study, parse_options()))
