#!/usr/bin/env python3
"""Measures what each load generator costs per request, side by side, on this machine.

One nginx on core 0, one client at a time on core 1, over loopback. Each round runs every tool once under every load, in
an order drawn from the seed; a tool is compared with wrk within the round. Needs nginx, a C compiler and two
processors; tools that are missing are named with the command that installs them. docs/benchmarks.md explains it.
"""

import argparse
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from processes import BODIES, Failed, Run, Server, compile_programs, is_quiet, run
from summary import median_interval
from table import DISTURBED_SHARE, Outcome, others_line, scenario_table
from tools import AUTOCANNON, OHA_INSTALL, REPOSITORY, Load, Tool, all_tools

CONNECTIONS = [64, 400]
SCENARIOS = [(path, connections) for path in BODIES for connections in CONNECTIONS]
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"


def main() -> int:
    options = parse_options()
    if options.install:
        install_missing()
    if len(os.sched_getaffinity(0)) < 2 or not os.access(NGINX, os.X_OK):
        print("error: two processors and nginx are needed\n hint: apt-get install nginx", file=sys.stderr)
        return 2
    # So that what is started is ended then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        measure_and_print(options)
    except (Failed, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=positive, default=7, help="how often each tool runs [7]")
    parser.add_argument("--seconds", type=positive, default=3, help="how long each run sends [3]")
    parser.add_argument("--seed", type=int, default=1, help="of the order [1]")
    parser.add_argument("--patience", type=int, default=600, metavar="SECONDS",
                        help="how long to wait in all for a quiet machine, and repeat runs that were disturbed [600]")
    parser.add_argument("--only", metavar="TOOL,...", help="these tools and no others; wrk stays in")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write all runs and figures here")
    parser.add_argument("--proofload", metavar="FILE", default=str(REPOSITORY / "target" / "release" / "proofload"),
                        help="the proofload to measure [target/release/proofload]")
    parser.add_argument("--install", action="store_true",
                        help="first install oha and autocannon, into folders of this checkout")
    options = parser.parse_args()
    names = [tool.name for tool in all_tools(options.proofload)]
    asked = options.only.split(",") if options.only else names
    unknown = sorted(set(asked) - set(names))
    if unknown:
        parser.error(f"--only: there is no {', '.join(unknown)}; there are {', '.join(names)}")
    options.names = [name for name in names if name in asked or name == "wrk"]
    return options


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}, must be at least 1")
    return value


def install_missing() -> None:
    """What needs no rights: a failure is a row of the table, not the end."""
    have = {tool.name for tool in all_tools("proofload") if tool.find()}
    wanted = [("oha", OHA_INSTALL.split(), REPOSITORY),
              ("autocannon", ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], AUTOCANNON.parent.parent)]
    for name, command, folder in wanted:
        if name not in have and shutil.which(command[0]):
            print(f"bench-engine: {' '.join(command)}", file=sys.stderr)
            subprocess.run(command, cwd=folder, stdout=sys.stderr)


def measure_and_print(options: argparse.Namespace) -> None:
    compile_programs()
    tools = [tool for tool in all_tools(options.proofload) if tool.name in options.names]
    missing = {tool.name: f"not installed: {tool.install}" for tool in tools if not tool.find()}
    results = {scenario: Outcome({tool.name: {} for tool in tools}, dict(missing)) for scenario in SCENARIOS}
    load_before = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="bench-engine-") as folder:
        with Server(NGINX, Path(folder)) as server:
            try:
                measure(options, [tool for tool in tools if tool.find()], server, results)
            except KeyboardInterrupt:
                progress("interrupted: this is what there is so far\n")
    facts = circumstances(options, tools, load_before, results)
    print("\n\n".join([scenario_table(scenario, results[scenario]) for scenario in SCENARIOS]))
    print("\n" + "\n".join(f"- {name}: {text}" for name, text in facts.items()))
    if options.json:
        options.json.write_text(json.dumps(as_json(results, facts), indent=1) + "\n")


def measure(options: argparse.Namespace, tools: list, server: Server, results: dict) -> None:
    """Fills `results` run by run; a run that fails is a note, and the next one goes on."""
    steps = order(options, tools)
    patience = Patience(options.patience)
    for done, (number, scenario, tool) in enumerate(steps):
        path, connections = scenario
        progress(f"{done + 1} of {len(steps)}: {tool.name}, {len(BODIES[path]):,} bytes, {connections} connections")
        try:
            load = Load(server.port, *scenario, options.seconds)
            results[scenario].runs[tool.name][number] = quietest(tool, load, server, patience)
        except Failed as error:
            results[scenario].notes[tool.name] = f"failed in round {number + 1}: {error}"
    progress("\n")


class Patience:
    """Time that may be spent on waiting for others, over the whole run."""

    def __init__(self, seconds: float):
        self.left_seconds = seconds

    def spend(self, action):
        start = time.monotonic()
        result = action()
        self.left_seconds -= time.monotonic() - start
        return result


def quietest(tool: Tool, load: Load, server: Server, patience: Patience) -> Run:
    """Runs the tool when the machine is quiet, and again if it was not: by what others did, never by the figures."""
    while patience.left_seconds > 0 and not patience.spend(is_quiet):
        pass
    best = run(tool, load, server)
    while best.others_share > DISTURBED_SHARE and patience.left_seconds > 0:
        again = patience.spend(lambda: is_quiet() and run(tool, load, server))
        best = min(best, again or best, key=lambda one: one.others_share)
    return best


def order(options: argparse.Namespace, tools: list) -> list:
    """Round by round, all loads; within each the tools in an order of its own, so that drift hits all alike."""
    source = random.Random(options.seed)
    steps = []
    for number in range(options.rounds):
        for scenario in source.sample(SCENARIOS, len(SCENARIOS)):
            steps += [(number, scenario, tool) for tool in source.sample(tools, len(tools))]
    return steps


def progress(text: str) -> None:
    if sys.stderr.isatty() or text.endswith("\n"):
        print(f"\r\x1b[K{text}" if sys.stderr.isatty() else text, end="", file=sys.stderr, flush=True)


def circumstances(options: argparse.Namespace, tools: list, load_before: tuple, results: dict) -> dict:
    """What a reader must know to judge the figures."""
    interval = median_interval(range(options.rounds))
    rank = interval.low + 1
    versions = [f"{tool.name} {tool.version(tool.find())}" for tool in tools if tool.find() and tool.version]
    nginx = subprocess.run([NGINX, "-v"], capture_output=True, text=True).stderr.strip().rpartition("/")[2]
    load_after = os.getloadavg()
    return {
        "date": date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} processors, Linux {platform.release()}",
        "rounds": f"{options.rounds} of {options.seconds} s each, order from seed {options.seed}",
        "intervals": f"of the median ratio, between the values of rank {rank} and {options.rounds + 1 - rank} of "
                     f"{options.rounds}: {interval.level:.1%}, whatever the distribution",
        "versions": ", ".join(versions + [f"nginx {nginx}"]),
        "load average": f"{load_before[0]:.2f} before, {load_after[0]:.2f} after",
        "others": others_line(results),
    }


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def as_json(results: dict, facts: dict) -> dict:
    scenarios = [
        {"body_bytes": len(BODIES[path]), "connections": connections,
         "tools": {name: tool_as_json(name, outcome) for name in outcome.runs}}
        for (path, connections), outcome in results.items()
    ]
    return {"version": 1, "circumstances": facts, "scenarios": scenarios}


def tool_as_json(name: str, outcome: Outcome) -> dict:
    rounds = [{"round": number + 1, **one._asdict(), "own": one.own._asdict()}
              for number, one in sorted(outcome.runs[name].items())]
    return {"note": outcome.notes.get(name), "figures": outcome.summary_of(name), "rounds": rounds}


if __name__ == "__main__":
    start = time.monotonic()
    code = main()
    progress(f"{time.monotonic() - start:.0f} s\n")
    sys.exit(code)
