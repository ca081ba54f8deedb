#!/usr/bin/env python3
"""Knocks at a built proofload: bad servers, services, machines, networks and records, kills and calls that fail; a table of what came of each.

    python3 bench/knocks/run.py --proofload target/debug/proofload [--only NAME...] [--list]

Loopback only, few connections, a place of its own for each knock. Exit code 1 if one fails. Knocks that take root or a program
that is not here are told as skipped.
"""

import argparse
import os
import platform
import re
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import NamedTuple

import damage
import faults
import kills
import large
import machine
import networks
import remotes
import servers
import services
from knock import KNOCKS, Knock, Place, Skipped, Wrong
from shared import ROOT, duration, positive, processor, progress

GROUPS = [module.__name__ for module in (servers, services, machine, networks, remotes, damage, kills, faults, large)]
ONLY_NAMED = {large.__name__}  # groups that are not done unless they are asked for
BEGUN = time.monotonic()
OK, FAIL, SKIPPED = "ok", "FAIL", "skipped"
HEADER = ["knock", "set-up", "what must come", "what was seen", ""]


class Result(NamedTuple):
    knock: Knock
    outcome: str
    seen: str
    seconds: float


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proofload", metavar="FILE", type=Path, default=ROOT / "target" / "debug" / "proofload",
                        help="the proofload to knock at [target/debug/proofload]")
    parser.add_argument("--only", metavar="NAME", nargs="+", default=[], help=f"these knocks, or groups: {', '.join(GROUPS)}")
    parser.add_argument("--kills", metavar="N", type=positive, default=20, help="kills at random moments, of each command [20]")
    parser.add_argument("--faults", metavar="N", type=positive, default=0, help="commands with a call that fails, of each row [a few]")
    parser.add_argument("--jobs", metavar="N", type=positive, default=2, help="knocks at a time [2]")
    parser.add_argument("--list", action="store_true", help="print the knocks and do nothing")
    return parser.parse_args()


def chosen(only: list) -> list:
    unknown = set(only) - set(KNOCKS) - set(GROUPS)
    if unknown:
        sys.exit(f"error: no knock or group: {', '.join(sorted(unknown))}; --list has all")
    asked = set(only or GROUPS) - (set() if only else ONLY_NAMED)
    wanted = [knock for knock in KNOCKS.values() if {knock.name, knock.group} & asked]
    return sorted(wanted, key=lambda knock: GROUPS.index(knock.group))


def carried_out(knock: Knock, program: str, *counts: int) -> Result:
    place, begun = Place(program, *counts), time.monotonic()
    try:
        outcome, seen = OK, knock.test(place)
    except Skipped as why:
        outcome, seen = SKIPPED, str(why)
    except Wrong as why:
        outcome, seen = FAIL, str(why)
    except Exception as error:  # a knock that is wrong itself must not hide the others
        outcome, seen = FAIL, f"the knock itself: {type(error).__name__}: {error}"
    finally:
        left = place.close()
    if left:
        outcome, seen = FAIL, f"{seen}; {left}"
    return Result(knock, outcome, " ".join(seen.split()), time.monotonic() - begun)


def all_carried_out(knocks: list, options: argparse.Namespace) -> list:
    """As many at a time as asked for: most of them wait most of the time."""
    program, begun, all_seconds, done = str(options.proofload.resolve()), time.monotonic(), sum(one.seconds for one in knocks), []

    def told(knock: Knock) -> Result:
        result = carried_out(knock, program, options.kills, options.faults)
        done.append(knock.seconds)
        left = (time.monotonic() - begun) / sum(done) * (all_seconds - sum(done))
        why = "" if result.outcome == OK else f": {result.seen}"
        progress(f"{len(done)} of {len(knocks)}, about {duration(left)} left: {knock.group} {knock.name}: {result.outcome} "
                 f"in {result.seconds:.1f} s{why}\n")
        return result
    pool = ThreadPoolExecutor(options.jobs)
    try:
        return list(pool.map(told, knocks))
    finally:
        pool.shutdown(cancel_futures=True)


def as_markdown(results: list) -> str:
    parts = []
    for group in dict.fromkeys(result.knock.group for result in results):
        rows = [[result.knock.name, *(cell(text) for text in (result.knock.setup, result.knock.must, result.seen)), result.outcome]
                for result in results if result.knock.group == group]
        lines = ["| " + " | ".join(row) + " |" for row in (HEADER, ["---"] * len(HEADER), *rows)]
        parts.append("\n".join([f"### {group}\n", *lines]))
    counted = Counter(result.outcome for result in results)
    counts = ", ".join(f"{counted[outcome]} {outcome}" for outcome in (OK, FAIL, SKIPPED) if counted[outcome])
    by = "root" if os.geteuid() == 0 else "a user"
    machine = f"{processor()}, {os.cpu_count()} processors, Linux {platform.release()}"
    return "\n\n".join([*parts, f"{counts}, in {duration(time.monotonic() - BEGUN)} ({date.today()}, as {by}, {machine})"])


def cell(text: str) -> str:
    """As a cell of a table takes it; what a server sent may be in it."""
    text = re.sub(r"/tmp/proofload-knock-\w+", "…", text.replace(f"{ROOT}/", ""))
    printable = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
    shortened = printable if len(printable) <= 200 else printable[:199] + "…"
    return shortened.replace("|", "\\|")


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # What is started in the background of a script ignores these, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    options = parse_options()
    knocks = chosen(options.only or (GROUPS if options.list else []))
    if options.list:
        print("\n".join(f"{knock.group:9} {knock.name:24} {knock.setup}: {knock.must}" for knock in knocks))
        return 0
    if not os.access(options.proofload, os.X_OK):
        print(f"error: {options.proofload}: no such program; cargo build --locked -p proofload, or --proofload", file=sys.stderr)
        return 2
    results = all_carried_out(knocks, options)
    print(as_markdown(results))
    return 1 if any(result.outcome == FAIL for result in results) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
