#!/usr/bin/env python3
"""Measures what it costs to receive the slices of so many generators and to merge them, on this machine.

Each number of generators gets a fresh process (crates/remote/examples/merge.rs), so that its peak of memory is its own, and
another one that simulates the generators. They all send a slice at the end of the same second, which is the worst case. If
something runs out (memory, threads, descriptors), the row says what. docs/many-machines.md explains it.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "engine"))
from markdown import aligned  # noqa: E402 (the path is set above)
from rounds import processor  # noqa: E402

REPOSITORY = HERE.parent.parent
GENERATORS = [10, 100, 300, 1000, 3000]
HEADER = ["generators", "CPU for a second", "merged after", "the slowest", "begun in", "peak memory", "threads", "descriptors"]
# A process that takes this much longer than its windows has failed.
EXTRA_SECONDS_MAX = 120


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generators", type=numbers, default=GENERATORS, metavar="N,...",
                        help=f"how many [{','.join(map(str, GENERATORS))}]")
    parser.add_argument("--windows", type=int, default=10, help="seconds that are merged for each [10]")
    parser.add_argument("--program", metavar="FILE", default=str(built()),
                        help="the example `merge`, built [target/release/examples/merge]")
    return parser.parse_args()


def built() -> Path:
    target = os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target"
    return Path(target) / "release" / "examples" / "merge"


def numbers(text: str) -> list:
    values = [int(part) for part in text.split(",")]
    if min(values) < 1:
        raise argparse.ArgumentTypeError(f"{min(values)}, must be at least 1")
    return sorted(set(values))


def measured(program: str, generators: int, windows: int) -> dict:
    """The example's output, or `{"generators": …, "ended": why}`."""
    command = [program, str(generators), str(windows)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * windows + EXTRA_SECONDS_MAX)
    except OSError as error:
        sys.exit(f"{program}: {error.strerror}\nhint: make bench-fleet builds it")
    except subprocess.TimeoutExpired as error:
        return {"generators": generators, "ended": f"not done within {error.timeout:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        return {"generators": generators, "ended": lines[-1]}
    return json.loads(done.stdout)


def row(of: dict) -> list:
    if "ended" in of:
        return [f"{of['generators']:,}", f"ended: {of['ended']}", *[""] * (len(HEADER) - 2)]
    # The first window opens tables and fills caches, once.
    cpu_ms, after_ms = of["cpu_ms"][1:] or of["cpu_ms"], of["after_ms"][1:] or of["after_ms"]
    return [f"{of['generators']:,}", f"{median(cpu_ms):,.1f} ms ({min(cpu_ms):,.1f} to {max(cpu_ms):,.1f})",
            f"{median(after_ms):,.0f} ms", f"{max(of['after_ms']):,.0f} ms", f"{of['begin_ms']:,.0f} ms",
            f"{of['peak_mib']:,.1f} MiB", f"{of['threads']:,}", f"{of['descriptors']:,}"]


def facts(options: argparse.Namespace, all_measured: list) -> list:
    lines = [of["line_bytes"] for of in all_measured if "line_bytes" in of]
    requests = [of["requests_per_generator"] for of in all_measured if "requests_per_generator" in of]
    return [f"- date: {date.today()}",
            f"- machine: {processor()}, {len(os.sched_getaffinity(0))} processors, Linux {platform.release()}",
            f"- {options.windows} windows of a second each; the median and, in brackets, the lowest and highest, without the first",
            *[f"- a slice: {requests[0]:,} requests, {lines[0] / 1000:,.1f} kB as it is sent" for _ in lines[:1]],
            f"- load average: {os.getloadavg()[0]:.2f} after"]


def main() -> None:
    options = parse_options()
    results = []
    for generators in options.generators:
        print(f"{generators:,} generators, about {options.windows * 1.1 + 3:.0f} s", file=sys.stderr)
        results.append(measured(options.program, generators, options.windows))
    print(aligned([HEADER, *map(row, results)]), "", *facts(options, results), sep="\n")


if __name__ == "__main__":
    main()
