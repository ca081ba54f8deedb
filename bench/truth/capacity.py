#!/usr/bin/env python3
"""Measures the capacity of real services whose queue is known (targets/queue) by `proofload capacity`, and says how far it is off.

A response comes when a simulated server is done with it, so that theory says which rate keeps p99 < 50 ms. Loopback only. Needs Go.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from math import exp, log
from pathlib import Path
from statistics import mean, stdev

from reuse import ROOT, Failed, positive
from study import Step, add_options, add_proofload, append, command, conduct, in_rounds, read

# Settings of targets/queue, and the rate that keeps p99 < 50 ms: of one server with exponential service µ − ln(100) / 50 ms, of the others by
# simulation of some million requests.
SERVICES = {
    "M/M/1, 1 ms": ({}, 907.9),
    "M/D/1, 1 ms": ({"DISTRIBUTION": "constant"}, 954.1),
    "M/M/2, 2 ms": ({"SERVICE_MS": "2", "SERVERS": "2"}, 906.7),
    "pauses of 25 ms": ({"DISTRIBUTION": "pauses"}, 788.0),
}
SLO = "p99 < 50ms"
REPORTED = (0, 4)  # exit codes with a report: an invalid measurement has one too
GRACE_S = 90


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, count=5)
    add_proofload(parser)
    parser.add_argument("--budget", type=positive, metavar="S", default=180, help="of each run in seconds [180]")
    return parser.parse_args()


def study(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-truth-") as folder:
        queue = Path(folder) / "queue"
        built = subprocess.run(["go", "build", "-o", queue, "."], cwd=ROOT / "targets" / "queue", check=False)
        if built.returncode != 0:
            raise Failed("targets/queue cannot be built: is Go installed?")

        def attempt(step: Step) -> dict:
            variables = [f"{name}={value}" for name, value in SERVICES[step.effect][0].items()]
            words = [options.proofload, "capacity", " ".join([*variables, str(queue)]), "--slo", SLO, "--budget", f"{options.budget}s",
                     "--seed", str(step.seed(options.seed)), "--format", "json", "--out", str(Path(folder) / f"record-{step.key}")]
            ended = subprocess.run(words, capture_output=True, text=True, timeout=options.budget + GRACE_S, check=False)
            if ended.returncode not in REPORTED:
                raise Failed(f"{' '.join(words)} ended with {ended.returncode}: {ended.stderr[-500:]}")
            report = json.loads(ended.stdout)
            return {key: report["capacities"][0][key] for key in ("per_s", "interval", "limited_by")} | {"blocks": report["blocks"]}

        seconds = {name: options.budget for name in SERVICES}
        conduct(options.out, in_rounds("capacity", seconds, options.count, options.seed), attempt)
    print(table(read(options.out)))


def table(lines: list) -> str:
    """One row for each service."""
    rows = ["| service | true | runs | mean error | sd | intervals that hold | half-width, mean |", "|---|--:|--:|--:|--:|--:|--:|"]
    for name, (_, truth) in SERVICES.items():
        of = [line for line in lines if line.get("effect") == name and line.get("interval")]
        errors = [log(line["per_s"] / truth) for line in of]
        holds = sum(line["interval"]["low"] <= truth <= line["interval"]["high"] for line in of)
        widths = [log(line["interval"]["high"] / line["interval"]["low"]) / 2 for line in of]
        if len(of) > 1:
            rows.append(f"| {name} | {truth:.0f}/s | {len(of)} | {100 * (exp(mean(errors)) - 1):+.1f} % | {100 * stdev(errors):.1f} % "
                        f"| {holds} of {len(of)} | ±{100 * mean(widths):.1f} % |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(command(lambda: study(parse_options())))
