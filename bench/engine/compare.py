#!/usr/bin/env python3
"""Measures what each load generator costs per request, side by side, on this machine.

One nginx on core 0, one client at a time on core 1, over loopback. Each round runs every tool once under every load in
an order drawn from the seed; a tool is compared with wrk within the round. Needs nginx, a C compiler and two
processors; tools that are missing are named with the command that installs them. docs/benchmarks.md explains it.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from markdown import Outcome, others_line
from processes import BODIES, Server, compile_programs, run
from rounds import (NGINX, Patience, add_options, add_patience, chosen, circumstances, command, conduct, missing, order,
                    positive, publish, quietest, run_as_json, tools_as_json)
from summary import median_interval
from table import BASELINE, scenario_table, scenario_title, summary_of
from tools import Load, all_tools

CONNECTIONS = [64, 400]
SCENARIOS = [(path, connections) for path in BODIES for connections in CONNECTIONS]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="With --only, wrk stays in.")
    add_options(parser, rounds=7)
    add_patience(parser)
    parser.add_argument("--seconds", type=positive, default=3, help="how long each run sends [3]")
    options = parser.parse_args()
    only = options.only and f"{options.only},{BASELINE}"
    options.tools = chosen(parser, only, all_tools(options.proofload))
    return options


def measure_and_print(options: argparse.Namespace) -> None:
    compile_programs()
    tools = options.tools
    results = {scenario: Outcome({tool.name: {} for tool in tools}, missing(tools)) for scenario in SCENARIOS}
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="bench-engine-") as folder, Server(NGINX, Path(folder)) as server:
        measure(options, server, results)
    facts = circumstances(f"{options.rounds} of {options.seconds} s each, order from seed {options.seed}", tools,
                          load_before, {"intervals": intervals(options.rounds), "other processes": others(results)})
    publish([scenario_table(scenario, results[scenario]) for scenario in SCENARIOS], facts, as_json(results),
            options.json)


def measure(options: argparse.Namespace, server: Server, results: dict) -> None:
    patience = Patience(options.patience)

    def attempt(tool, scenario):
        load = Load(server.port, *scenario, options.seconds)
        return quietest(lambda: run(tool, load, server), patience)

    steps = order(options, SCENARIOS, [tool for tool in options.tools if tool.find()])
    conduct(steps, results, scenario_title, attempt)


def intervals(rounds: int) -> str:
    interval = median_interval(range(rounds))
    rank = interval.low + 1
    return (f"of the median ratio, between the values of rank {rank} and {rounds + 1 - rank} of {rounds}: "
            f"{interval.level:.1%}, whatever the distribution")


def others(results: dict) -> str:
    by_round = [runs for outcome in results.values() for runs in outcome.runs.values()]
    return others_line([one.others_share for runs in by_round for one in runs.values()])


def as_json(results: dict) -> list:
    return [{"body_bytes": len(BODIES[path]), "connections": connections,
             "tools": tools_as_json(outcome, run_as_json, summary_of)}
            for (path, connections), outcome in results.items()]


if __name__ == "__main__":
    sys.exit(command(parse_options(), measure_and_print))
