#!/usr/bin/env python3
"""Measures how well each load generator keeps a rate, and at what cost, on this machine.

Core 0 serves, one client at a time sends from core 1, over loopback. First proofload's closed loop finds what the pair
of nginx and one client can do; the rates are shares of that. Each round runs every tool twice at every rate, in an
order drawn from the seed: against nginx, which counts, and against a server of this bench that records when each
request was sent. Needs nginx, a C compiler and two processors; tools that are missing are named with the command that installs
them. docs/benchmarks.md explains it.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from markdown import Outcome, others_line
from open_loop_table import Pace, rate_table, targets_line
from processes import Failed, Server, compile_programs, run
from recorder import record
from rounds import (NGINX, Patience, add_options, add_patience, add_rounds, chosen, circumstances, command, conduct, missing,
                    order, positive, progress, publish, quietest)
from tools import Load, all_tools, open_loop_tools

PATH = "/small"
CONNECTIONS = 64
SHARES = [0.5, 0.1]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    add_rounds(parser, 7)
    add_patience(parser)
    parser.add_argument("--seconds", type=positive, default=3, help="how long each run sends [3]")
    parser.add_argument("--capacity", type=positive, metavar="PER_SECOND",
                        help="what the rates are shares of [measured at the start]")
    options = parser.parse_args()
    options.tools = chosen(parser, options.only, open_loop_tools(options.proofload))
    return options


def measure_and_print(options: argparse.Namespace) -> None:
    compile_programs()
    patience = Patience(options.patience)
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="bench-open-loop-") as folder, Server(NGINX, Path(folder)) as server:
        capacity, origin = capacity_of(options, server, patience)
        scenarios = [(rate_of(capacity, share), share) for share in SHARES]
        results = {scenario: Outcome({tool.name: {} for tool in options.tools}, missing(options.tools))
                   for scenario in scenarios}
        measure(options, server, patience, results)
    facts = circumstances(f"{options.rounds} of {options.seconds} s each, order from seed {options.seed}; the median "
                          "and, in brackets, the lowest and highest", options.tools, load_before,
                          {"capacity": f"{capacity:,} requests per second, {origin}", "other processes": others(results),
                           "targets": targets_line(results)})
    publish([rate_table(*scenario, CONNECTIONS, results[scenario]) for scenario in scenarios], facts)


def capacity_of(options: argparse.Namespace, server: Server, patience: Patience) -> tuple:
    """The capacity of the pair, and where it comes from."""
    if options.capacity:
        return options.capacity, "as asked for"
    closed = next(tool for tool in all_tools(options.proofload) if tool.name == "proofload")
    if not closed.find():
        raise Failed(f"there is no {options.proofload}: {closed.install}")
    progress("capacity")
    found = quietest(lambda: run(closed, Load(server.port, PATH, CONNECTIONS, options.seconds), server), patience)
    return int(found.server_count / found.own.seconds), f"closed loop of proofload, {options.seconds} s"


def rate_of(capacity: int, share: float) -> int:
    """A multiple of the connections, for tools that want the rate of each."""
    return max(1, int(capacity * share / CONNECTIONS)) * CONNECTIONS


def measure(options: argparse.Namespace, server: Server, patience: Patience, results: dict) -> None:
    def attempt(tool, scenario):
        load = Load(server.port, PATH, CONNECTIONS, options.seconds, scenario[0])
        counted = quietest(lambda: run(tool, load, server), patience)
        recorded = quietest(lambda: record(tool, load, server.folder), patience)
        return Pace(counted, recorded, load.rate * load.seconds)

    steps = order(options, list(results), [tool for tool in options.tools if tool.find()])
    conduct(steps, results, lambda scenario: f"{scenario[0]:,} requests due per second", attempt)


def others(results: dict) -> str:
    paces = [pace for outcome in results.values() for runs in outcome.runs.values() for pace in runs.values()]
    return others_line([one.others_share for pace in paces for one in (pace.run, pace.recorded)])


if __name__ == "__main__":
    sys.exit(command(parse_options(), measure_and_print))
