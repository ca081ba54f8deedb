#!/usr/bin/env python3
"""Measures whether a load generator needs more memory the more requests it makes, on this machine.

One nginx on core 0, one client at a time on core 1, over loopback, closed loop. The same load for longer and longer,
and the peak of the client's resident memory. A busy machine changes how many requests are made, not what they need, so it
does not wait for a quiet one. Needs nginx, a C compiler and two processors. docs/benchmarks.md explains it.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from markdown import Outcome
from memory_table import body_table
from processes import BODIES, Server, compile_programs, run
from rounds import (NGINX, add_options, add_rounds, chosen, circumstances, command, conduct, missing, order, positive,
                    publish)
from tools import Load, all_tools

CONNECTIONS = 400
SECONDS = [1, 4, 16]
TOOLS = "proofload,oha"


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    add_rounds(parser, 3)
    parser.add_argument("--seconds", type=lengths, default=SECONDS, metavar="S,...",
                        help=f"how long the runs send [{','.join(map(str, SECONDS))}]")
    parser.set_defaults(only=TOOLS)
    options = parser.parse_args()
    options.tools = chosen(parser, options.only, all_tools(options.proofload))
    return options


def lengths(text: str) -> list:
    return sorted({positive(part) for part in text.split(",")})


def measure_and_print(options: argparse.Namespace) -> None:
    compile_programs()
    scenarios = [(path, seconds) for path in BODIES for seconds in options.seconds]
    results = {scenario: Outcome({tool.name: {} for tool in options.tools}, missing(options.tools))
               for scenario in scenarios}
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="bench-memory-") as folder, Server(NGINX, Path(folder)) as server:
        steps = order(options, scenarios, [tool for tool in options.tools if tool.find()])
        conduct(steps, results, title,
                lambda tool, scenario: run(tool, Load(server.port, scenario[0], CONNECTIONS, scenario[1]), server))
    facts = circumstances(f"{options.rounds}, order from seed {options.seed}; the median and, in brackets, the lowest "
                          "and highest", options.tools, load_before, {})
    tables = [body_table(path, CONNECTIONS, {seconds: results[path, seconds] for seconds in options.seconds})
              for path in BODIES]
    publish(tables, facts)


def title(scenario: tuple) -> str:
    path, seconds = scenario
    return f"{len(BODIES[path]):,} bytes, {seconds} s"


if __name__ == "__main__":
    sys.exit(command(parse_options(), measure_and_print))
