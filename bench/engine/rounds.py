"""What all measurements here share: options, rounds in random order, a quiet machine, and the circumstances.

It must not know what is measured.
"""

import argparse
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Callable

from markdown import DISTURBED_SHARE
from processes import Failed, is_quiet
from tools import AUTOCANNON, OHA_INSTALL, REPOSITORY, all_tools

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of every measurement."""
    parser.add_argument("--only", metavar="TOOL,...", help="these tools and no others")
    parser.add_argument("--proofload", metavar="FILE", default=str(REPOSITORY / "target" / "release" / "proofload"),
                        help="the proofload to measure [target/release/proofload]")
    parser.add_argument("--install", action="store_true",
                        help="first install oha and autocannon, into folders of this checkout")


def add_rounds(parser: argparse.ArgumentParser, rounds: int) -> None:
    parser.add_argument("--rounds", type=positive, default=rounds, help=f"how often each tool runs [{rounds}]")
    parser.add_argument("--seed", type=int, default=1, help="of the order [1]")


def add_patience(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--patience", type=int, default=600, metavar="SECONDS",
                        help="how long to wait in all for a quiet machine, and repeat runs that were disturbed [600]")


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}, must be at least 1")
    return value


def chosen(parser: argparse.ArgumentParser, only: str, tools: list) -> list:
    """The tools that --only names, or all."""
    names = [tool.name for tool in tools]
    asked = only.split(",") if only else names
    unknown = sorted(set(asked) - set(names))
    if unknown:
        parser.error(f"--only: there is no {', '.join(unknown)}; there are {', '.join(names)}")
    return [tool for tool in tools if tool.name in asked]


def command(options: argparse.Namespace, measure_and_print: Callable) -> int:
    """Runs `measure_and_print(options)` where it can run, and turns what goes wrong into an exit code."""
    start = time.monotonic()
    if options.install:
        install_missing()
    if len(os.sched_getaffinity(0)) < 2 or not os.access(NGINX, os.X_OK):
        print("error: two processors and nginx are needed\n hint: apt-get install nginx", file=sys.stderr)
        return 2
    # So that started processes are ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        measure_and_print(options)
    except (Failed, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        progress(f"{time.monotonic() - start:.0f} s\n")
    return 0


def install_missing() -> None:
    """Installs what needs no rights. A failure is a note in the table."""
    have = {tool.name for tool in all_tools("proofload") if tool.find()}
    wanted = [("oha", OHA_INSTALL.split(), REPOSITORY),
              ("autocannon", ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], AUTOCANNON.parent.parent)]
    for name, installer, folder in wanted:
        if name not in have and shutil.which(installer[0]):
            print(f"bench: {' '.join(installer)}", file=sys.stderr)
            subprocess.run(installer, cwd=folder, stdout=sys.stderr)


def missing(tools: list) -> dict:
    """A note for each tool that is not there."""
    return {tool.name: f"not installed: {tool.install}" for tool in tools if not tool.find()}


def order(options: argparse.Namespace, scenarios: list, tools: list) -> list:
    """Round by round, all scenarios; within each the tools in a new random order, so that drift hits all alike."""
    source = random.Random(options.seed)
    steps = []
    for number in range(options.rounds):
        for scenario in source.sample(scenarios, len(scenarios)):
            steps += [(number, scenario, tool) for tool in source.sample(tools, len(tools))]
    return steps


def conduct(steps: list, results: dict, title: Callable, attempt: Callable) -> None:
    """Fills `results`, outcomes by scenario, with what `attempt(tool, scenario)` returns, step by step.

    A step that fails becomes a note. An interruption ends it with the results so far.
    """
    try:
        for done, (number, scenario, tool) in enumerate(steps):
            progress(f"{done + 1} of {len(steps)}: {tool.name}, {title(scenario)}")
            try:
                results[scenario].runs[tool.name][number] = attempt(tool, scenario)
            except Failed as error:
                results[scenario].notes[tool.name] = f"failed in round {number + 1}: {error}"
        progress("\n")
    except KeyboardInterrupt:
        progress("interrupted: this is what there is so far\n")


class Patience:
    """Time that the whole run may wait for a quiet machine."""

    def __init__(self, seconds: float):
        self.left_seconds = seconds

    def spend(self, action: Callable):
        start = time.monotonic()
        result = action()
        self.left_seconds -= time.monotonic() - start
        return result


def quietest(attempt: Callable, patience: Patience):
    """Attempts when the machine is quiet, and again if it was not. Only other processes decide that, never the figures."""
    while patience.left_seconds > 0 and not patience.spend(is_quiet):
        pass
    best = attempt()
    while best.others_share > DISTURBED_SHARE and patience.left_seconds > 0:
        again = patience.spend(lambda: is_quiet() and attempt())
        best = min(best, again or best, key=lambda one: one.others_share)
    return best


def progress(text: str) -> None:
    if sys.stderr.isatty() or text.endswith("\n"):
        print(f"\r\x1b[K{text}" if sys.stderr.isatty() else text, end="", file=sys.stderr, flush=True)


def circumstances(rounds: str, tools: list, load_before: tuple, more: dict) -> dict:
    """What a reader must know to judge the figures, `more` being what only this measurement has."""
    load_after = os.getloadavg()
    return {
        "date": date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} processors, Linux {platform.release()}",
        "rounds": rounds,
        "versions": versions(tools),
        "load average": f"{load_before[0]:.2f} before, {load_after[0]:.2f} after",
        **priority(),
        **more,
    }


def priority() -> dict:
    """Started processes inherit it."""
    ordinary = os.sched_getscheduler(0) == os.SCHED_OTHER
    return {} if ordinary else {"priority": "real-time: others run only where server and client leave a core idle"}


def versions(tools: list) -> str:
    """Each program once, by the first word of its name, and nginx."""
    by_name = {tool.name.split()[0]: tool for tool in tools if tool.find() and tool.version}
    nginx = subprocess.run([NGINX, "-v"], capture_output=True, text=True).stderr.strip().rpartition("/")[2]
    return ", ".join([f"{name} {tool.version(tool.find())}" for name, tool in by_name.items()] + [f"nginx {nginx}"])


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def publish(tables: list, facts: dict) -> None:
    """Prints the tables and the facts as Markdown."""
    print("\n\n".join(tables))
    print("\n" + "\n".join(f"- {name}: {text}" for name, text in facts.items()))
