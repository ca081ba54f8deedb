#!/usr/bin/env python3
"""Compares services that wait by `proofload run`, and says how far its ratios are from those of uninterrupted runs of wrk.

How long a response waits is set: always the same, or drawn anew each time. wrk alternates between living processes of both sides, because
on a busy machine two runs one after the other differ by more. Service on core 0, client on core 1, loopback only. Needs Go and wrk.
"""

import argparse
import sys
import tempfile
from collections import Counter
from math import exp, log
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

from by_hand import found_wrk, wrk_rate
from capacity import built
from effects import Effect
from experiment import PLANTED, Variants, run
from study import Step, add_options, add_proofload, command, conduct, in_rounds, read
from tally import covering, pooled_ratio
from variance import Process, Treatment

# More servers than connections: no request waits for another.
GO = {"GOMAXPROCS": "1", "SERVERS": "64", "DISTRIBUTION": "constant"}
UNINTERRUPTED = "uninterrupted"
WARM_UP_S = 1
STARTS_S = 3


class Wait(NamedTuple):
    """Settings of targets/queue (Go), or of targets/planted (Node.js) where they have a delay."""

    baseline: dict
    candidate: dict
    budget_s: int
    wrk_s: int  # of each run: many responses a connection
    wrk_pairs: int

    @property
    def is_node(self) -> bool:
        return "DELAY_MS" in self.baseline


def slower(ms: float, *times: int) -> Wait:
    return Wait({"SERVICE_MS": f"{ms:g}"}, {"SERVICE_MS": f"{ms * 1.1:g}"}, *times)


def drawn(ms: float, distribution: str, *times: int) -> Wait:
    """Against a constant wait of the same mean."""
    return Wait({"SERVICE_MS": f"{ms:g}"}, {"SERVICE_MS": f"{ms:g}", "DISTRIBUTION": distribution}, *times)


WAITS = {
    "Go, 1 ms and 1.1": slower(1, 30, 2, 3),
    "Go, 5 ms and exponential": drawn(5, "exponential", 30, 2, 3),
    "Go, 5 ms and log-normal": drawn(5, "log-normal", 30, 2, 3),
    "Go, 50 ms and 55": slower(50, 90, 10, 1),
    "Go, 50 ms and exponential": drawn(50, "exponential", 90, 10, 1),
    "Go, 100 ms and 110": slower(100, 150, 10, 1),
    "Node.js, 5 ms and 6": Wait({"DELAY_MS": "5"}, {"DELAY_MS": "6"}, 30, 2, 3),
    "Node.js, 10 ms and 11, with CPU": Wait({"DELAY_MS": "10", "SPIN": "20000"}, {"DELAY_MS": "11", "SPIN": "20000"}, 30, 2, 3),
}


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, count=5)
    add_proofload(parser)
    return parser.parse_args()


def study(options: argparse.Namespace) -> None:
    found_wrk()
    with tempfile.TemporaryDirectory(prefix="bench-truth-") as folder:
        queue = built(folder)

        def attempt(step: Step) -> dict:
            wait = WAITS[step.effect]
            if step.kind == UNINTERRUPTED:
                return {"rates": uninterrupted(wait, queue)}
            service = PLANTED if wait.is_node else {"command": [str(queue)], "env": GO}
            return run(options.proofload, "waits", Variants(wait.baseline, wait.candidate), Effect("throughput", (wait.budget_s,)),
                       wait.budget_s, step.seed(options.seed), service)

        runs = {name: wait.budget_s for name, wait in WAITS.items()}
        by_wrk = {name: 2 * (STARTS_S + wait.wrk_pairs * wait.wrk_s) for name, wait in WAITS.items()}
        steps = [step for round_ in zip(in_rounds("waits", runs, options.count, options.seed),
                                        in_rounds(UNINTERRUPTED, by_wrk, options.count, options.seed)) for step in round_]
        conduct(options.out, steps, attempt)
    print(table(read(options.out)))


def uninterrupted(wait: Wait, queue: Path) -> list:
    """Responses per second by wrk, pairs of baseline and candidate."""
    processes = []
    try:
        for side in (wait.baseline, wait.candidate):
            processes.append(Process("planted", Treatment(), side) if wait.is_node
                             else Process("queue", Treatment(), {**GO, **side}, [str(queue)]))
        for process in processes:
            wrk_rate(process.port, WARM_UP_S)
        pairs = []
        for pair in range(wait.wrk_pairs):
            step = -1 if pair % 2 else 1  # who was last is first in the next pair
            pairs.append([wrk_rate(process.port, wait.wrk_s) for process in processes[::step]][::step])
        return pairs
    finally:
        for process in processes:
            process.stop()


def table(lines: list) -> str:
    """One row for each pair of services."""
    rows = ["| waits | runs | by wrk, uninterrupted | proofload, all blocks | off by | intervals that hold | width, mean | called |",
            "|---|--:|--:|--:|--:|--:|--:|---|"]
    for name in WAITS:
        of, by_wrk = ([line for line in lines if (line["kind"], line["effect"]) == (kind, name)] for kind in ("waits", UNINTERRUPTED))
        estimates = [line["estimate"] for line in of]
        pooled = pooled_ratio(estimates)
        logs = [mean(log(candidate / baseline) for baseline, candidate in line["rates"]) for line in by_wrk]
        if pooled is None or len(logs) < 2:
            continue
        truth, error = exp(mean(logs)), stdev(logs) / len(logs) ** 0.5
        width = mean(one["high"] / one["low"] - 1 for one in estimates if one)
        held = covering(estimates, [truth] * len(estimates))
        called = ", ".join(f"{outcome} {count}" for outcome, count in Counter(line["outcome"] for line in of).most_common())
        rows.append(f"| {name} | {len(of)} | {truth - 1:+.1%} (± {error:.1%}) | {pooled - 1:+.1%} | {pooled / truth - 1:+.1%} "
                    f"| {held.count} of {held.of} | {width:.1%} | {called} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(command(study, parse_options()))
