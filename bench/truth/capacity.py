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
from typing import NamedTuple

from experiment import output_of
from reuse import ROOT, Failed, positive
from study import Step, add_options, add_proofload, command, conduct, in_rounds, read
from toml_writer import toml_text


class Service(NamedTuple):
    """Settings of targets/queue, and the rate that keeps all limits."""

    settings: dict
    per_s: float
    slo: tuple = ("p99 < 50ms",)


# By theory: of one server with exponential service µ − ln(100) / 50 ms; with room for 26 requests the rate at which 1 in 1,000 finds none,
# (1 − ρ) ρ²⁶ / (1 − ρ²⁷), and none takes 50 ms. The others by simulation of some million requests.
SERVICES = {
    "M/M/1, 1 ms": Service({}, 907.9),
    "M/D/1, 1 ms": Service({"DISTRIBUTION": "constant"}, 954.1),
    "M/M/2, 2 ms": Service({"SERVICE_MS": "2", "SERVERS": "2"}, 906.7),
    "pauses of 25 ms": Service({"DISTRIBUTION": "pauses"}, 788.0),
    "sheds above 26": Service({"LINE": "25"}, 818.6, ("p99 < 50ms", "failed < 0.1%")),
}
CONNECTIONS = 128  # of what is in flight: 95 at most at the limit
GRACE_S = 90


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, count=5)
    add_proofload(parser)
    parser.add_argument("--budget", type=positive, metavar="S", default=180, help="of each run in seconds [180]")
    return parser.parse_args()


def built(folder: str) -> Path:
    """The program of targets/queue, in this folder. Raises `Failed`."""
    queue = Path(folder) / "queue"
    if subprocess.run(["go", "build", "-o", queue, "."], cwd=ROOT / "targets" / "queue", check=False).returncode != 0:
        raise Failed("targets/queue cannot be built: is Go installed?")
    return queue


def study(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-truth-") as folder:
        queue = built(folder)

        def attempt(step: Step) -> dict:
            file = Path(folder) / f"{step.number}.toml"
            file.write_text(toml_text(experiment(SERVICES[step.effect], queue, options.budget)))
            words = [options.proofload, "run", file, "--seed", str(step.seed(options.seed)), "--format", "json",
                     "--out", Path(folder) / f"record-{step.key}"]
            report = json.loads(output_of(words, options.budget + GRACE_S))
            found = report["capacities"][0]
            return {"per_s": found["reached_per_s"], "interval": found["reached_interval"], "limited_by": found["limited_by"],
                    "blocks": report["blocks"]}

        seconds = {name: options.budget for name in SERVICES}
        conduct(options.out, in_rounds("capacity", seconds, options.count, options.seed), attempt)
    print(table(read(options.out)))


def experiment(service: Service, queue: Path, budget_s: int) -> dict:
    """As `proofload capacity` makes one. Services that wait need so little CPU time that several of these runs may go on side by side: a
    block that others disturb counts."""
    return {"name": "capacity", "load": {"connections": CONNECTIONS},
            "services": {"queue": {"command": [str(queue)], "env": {"GOMAXPROCS": "1", **service.settings}}},
            "design": {"slo": list(service.slo), "budget": f"{budget_s}s", "drop_disturbed": False}}


def table(lines: list) -> str:
    """One row for each service."""
    rows = ["| service | true | runs | mean error | sd | intervals that hold | half-width, mean |", "|---|--:|--:|--:|--:|--:|--:|"]
    for name, (_, truth, _) in SERVICES.items():
        of = [line for line in lines if line.get("effect") == name and line.get("interval")]
        errors = [log(line["per_s"] / truth) for line in of]
        holds = sum(line["interval"]["low"] <= truth <= line["interval"]["high"] for line in of)
        widths = [log(line["interval"]["high"] / line["interval"]["low"]) / 2 for line in of]
        if len(of) > 1:
            rows.append(f"| {name} | {truth:.0f}/s | {len(of)} | {100 * (exp(mean(errors)) - 1):+.1f} % | {100 * stdev(errors):.1f} % "
                        f"| {holds} of {len(of)} | ±{100 * mean(widths):.1f} % |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(command(study, parse_options()))
