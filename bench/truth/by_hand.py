#!/usr/bin/env python3
"""Compares two services as one does by hand: start one, warm it up, run wrk three times, stop it; then the other.

Side A is the service as it is; side B the same (--effect none), or with turns of a loop planted (--effect spin-10, by
the calibration that planted.py made, or --spin). Service on core 0, wrk on core 1, loopback only. All rates are kept;
tables.py evaluates them.
"""

import argparse
import random
import sys
import time
from pathlib import Path

from effects import EFFECTS, calibration_in, variables
from reuse import CLIENT_CORE, Failed, Load, all_tools, ended, positive
from study import add_options, command, conduct, in_rounds, read
from variance import Process, Treatment, steal

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
                        help="lines of planted.py, which say how many turns an effect takes")
    parser.add_argument("--spin", metavar="TURNS", type=positive, help="so many instead, with one effect to name it")
    parser.add_argument("--seconds", type=positive, default=2, help="of each run of wrk [2]")
    options = parser.parse_args()
    spins = [name for name in options.effect if name != "none"]
    if options.spin and len(spins) != 1:
        parser.error("--spin: say with --effect under which one name the comparisons are kept")
    if spins and not (options.spin or options.calibration):
        parser.error(f"--effect {spins[0]}: how many turns? --calibration FILE or --spin TURNS")
    return options


def planted(name: str, options: argparse.Namespace) -> dict:
    if name == "none":
        return {}
    if options.spin:
        return {"SPIN": str(options.spin)}
    return variables(EFFECTS[name], calibration_in(read(options.calibration)))


def study(options: argparse.Namespace) -> None:
    envs = {name: planted(name, options) for name in options.effect}
    each_s = 2 * (STARTS_S + WARM_UP_S + RUNS * options.seconds)
    steps = in_rounds("by-hand", {name: each_s for name in envs}, options.count, options.seed)
    conduct(options.out, steps, lambda step: compare(envs[step.effect], options.seconds, step.seed(options.seed)))


def compare(env: dict, seconds: int, seed: int) -> dict:
    """Both sides, one after the other, as people do."""
    random.seed(seed)
    begun, (stolen, of) = time.monotonic(), steal()
    baseline = side({}, seconds)
    candidate = side(env, seconds)
    stolen_after, of_after = steal()
    return {"variables": env, "baseline_rates": baseline, "candidate_rates": candidate,
            "seconds": time.monotonic() - begun, "steal": (stolen_after - stolen) / max(1, of_after - of), "seed": seed}


def side(env: dict, seconds: int) -> list:
    process = Process("planted", Treatment(), env)
    try:
        wrk_rate(process.port, WARM_UP_S)
        return [wrk_rate(process.port, seconds) for _ in range(RUNS)]
    finally:
        process.stop()


def wrk_rate(port: int, seconds: int) -> float:
    """Responses per second. Raises `Failed` if not all were successful."""
    wrk = next(tool for tool in all_tools("proofload") if tool.name == "wrk")
    if not wrk.find():
        raise Failed(f"wrk is missing: {wrk.install}")
    line = ["taskset", "-c", str(CLIENT_CORE), wrk.find(), *wrk.arguments(Load(port, "/", CONNECTIONS, seconds))]
    code, output, errors = ended(line, seconds + GRACE_S)
    if code != 0 or "Non-2xx" in output or "Socket errors" in output:
        raise Failed(f"wrk: {(errors or output)[-300:].strip()}")
    count = wrk.count(output)
    return count.responses / count.seconds


if __name__ == "__main__":
    asked = parse_options()
    sys.exit(command(lambda: study(asked)))
