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
from rounds import (NGINX, Patience, add_options, add_patience, add_rounds, chosen, circumstances, command, conduct, missing,
                    order, positive, publish, quietest)
from summary import median_interval
from table import baseline_of, scenario_table, scenario_title
from tools import Load, Wire, all_tools

WIRES = {
    "http1": [(Wire(), 64), (Wire(), 400)],
    "tls": [(Wire(secure=True), 64)],
    "handshakes": [(Wire(secure=True, fresh=True), 64)],
    "http2": [(Wire(streams), 64) for streams in (1, 10, 100)] + [(Wire(10, secure=True), 64)],
}


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     epilog="With --only, wrk and h2load stay in, with which the others are compared.")
    add_options(parser)
    add_rounds(parser, 7)
    add_patience(parser)
    parser.add_argument("--seconds", type=positive, default=3, help="how long each run sends [3]")
    parser.add_argument("--wire", choices=WIRES, help="this protocol alone [all]")
    options = parser.parse_args()
    wires = WIRES[options.wire] if options.wire else [wire for wires in WIRES.values() for wire in wires]
    options.scenarios = [(path, connections, wire) for wire, connections in wires for path in BODIES]
    only = options.only and ",".join([options.only, *{baseline_of(wire) for wire, _ in wires}])
    options.tools = chosen(parser, only, all_tools(options.proofload))
    return options


def measure_and_print(options: argparse.Namespace) -> None:
    compile_programs()
    tools = options.tools
    results = {}
    for scenario in options.scenarios:
        speaking = [tool for tool in tools if tool.speaks(scenario[2])]
        results[scenario] = Outcome({tool.name: {} for tool in speaking}, missing(speaking))
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="bench-engine-") as folder, Server(NGINX, Path(folder)) as server:
        measure(options, server, results)
    facts = circumstances(f"{options.rounds} of {options.seconds} s each, order from seed {options.seed}", tools,
                          load_before, {"intervals": intervals(options.rounds), "other processes": others(results)})
    publish([scenario_table(scenario, outcome) for scenario, outcome in results.items()], facts)


def measure(options: argparse.Namespace, server: Server, results: dict) -> None:
    patience = Patience(options.patience)

    def attempt(tool, scenario):
        path, connections, wire = scenario
        load = Load(server.port_of(wire), path, connections, options.seconds, wire=wire)
        return quietest(lambda: run(tool, load, server), patience)

    steps = order(options, options.scenarios, [tool for tool in options.tools if tool.find()])
    steps = [step for step in steps if step[2].name in results[step[1]].runs]
    conduct(steps, results, scenario_title, attempt)


def intervals(rounds: int) -> str:
    interval = median_interval(range(rounds))
    rank = interval.low + 1
    return (f"of the median ratio, between the values of rank {rank} and {rounds + 1 - rank} of {rounds}: "
            f"{interval.level:.1%}, whatever the distribution")


def others(results: dict) -> str:
    by_round = [runs for outcome in results.values() for runs in outcome.runs.values()]
    return others_line([one.others_share for runs in by_round for one in runs.values()])


if __name__ == "__main__":
    sys.exit(command(parse_options(), measure_and_print))
