#!/usr/bin/env python3
"""Measures whether a load generator needs more memory the longer it runs, on this machine.

One nginx, and all clients beside each other over loopback, each with the same connections and the same low rate; their resident
memory at chosen minutes. A busy machine does not change what they need. Needs nginx. docs/reliability.md has the figures.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from markdown import marked, section
from processes import Failed, Server, compile_programs, read_output
from rounds import NGINX, add_options, chosen, circumstances, command, missing, positive, progress, publish
from tools import Load, Tool, lasting_tools

CONNECTIONS = 1000
RATE = 500
MINUTES = [0.5, 1, 2, 3]
END_SECONDS = 30  # for the last responses, and for printing


class Watched:
    """One client under way, and its resident memory so far, in kilobytes by seconds."""

    def __init__(self, tool: Tool, load: Load, folder: Path):
        self.tool, self.resident_kb, self.note = tool, {}, None
        self.output = folder / f"{tool.name}.out"
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen([tool.find(), *tool.arguments(load)], stdout=output, stderr=subprocess.STDOUT,
                                            stdin=subprocess.DEVNULL)

    def look(self, second: float) -> None:
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            self.resident_kb[second] = int(status.partition("VmRSS:")[2].split()[0])
        except (OSError, IndexError):
            self.note = f"it ended before {second:.0f} s: {self.output.read_text(errors='replace')[-200:].strip()}"

    def line(self, until: float) -> dict:
        """Its line of the result, once it has ended by itself."""
        responses = None
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
            responses = read_output(self.tool.count, self.output.read_text(errors="replace")).responses
        except subprocess.TimeoutExpired:
            self.note = self.note or "it did not end"
        except Failed as error:
            self.note = self.note or str(error)
        return {"tool": self.tool.name, "note": self.note, "responses": responses, "resident_kb": self.resident_kb}

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--minutes", type=ascending, default=MINUTES, metavar="M,...",
                        help=f"when to look; the last is the length of the run [{','.join(map(str, MINUTES))}]")
    parser.add_argument("--connections", type=positive, default=CONNECTIONS, help=f"of each client [{CONNECTIONS}]")
    parser.add_argument("--rate", type=positive, default=RATE, help=f"requests per second of each client [{RATE}]")
    options = parser.parse_args()
    options.tools = chosen(parser, options.only, lasting_tools(options.proofload))
    return options


def ascending(text: str) -> list:
    minutes = sorted({float(part) for part in text.split(",")})
    if minutes[0] <= 0:
        raise argparse.ArgumentTypeError(f"{minutes[0]}, must be above 0")
    return minutes


def measure_and_print(options: argparse.Namespace) -> None:
    compile_programs()
    looks_s = [60 * minute for minute in options.minutes]
    with tempfile.TemporaryDirectory(prefix="bench-over-time-") as folder, Server(NGINX, Path(folder)) as server:
        # A little longer than the last look, which else sees what is ending.
        load = Load(server.port, "/small", options.connections, int(looks_s[-1]) + 2, options.rate)
        lines = watched([tool for tool in options.tools if tool.find()], load, looks_s, Path(folder))
    lines += [{"tool": name, "note": note, "responses": None, "resident_kb": {}}
              for name, note in missing(options.tools).items()]
    facts = circumstances("1, all clients at once", options.tools, (0.0,), {})
    # That before would be of nothing, and that after is theirs.
    del facts["load average"]
    publish([table(lines, options.connections, options.rate, looks_s)], facts)


def watched(tools: list, load: Load, looks_s: list, folder: Path) -> list:
    """What became of each of them, as lines of the result."""
    clients, begun = [], time.monotonic()
    try:
        clients += [Watched(tool, load, folder) for tool in tools]
        for second in looks_s:
            progress(f"until {second / 60:g} min\n")
            time.sleep(max(0.0, begun + second - time.monotonic()))
            for client in clients:
                client.look(second)
        until = time.monotonic() + END_SECONDS
        return [client.line(until) for client in clients]
    finally:
        for client in clients:
            client.close()


def table(lines: list, connections: int, rate: int, looks_s: list) -> str:
    rows, footnotes = [["", "responses", *(f"{second / 60:g} min" for second in looks_s)]], []
    for line in lines:
        count, resident = line["responses"], line["resident_kb"]
        cells = [f"{resident[second] / 1024:.1f} MiB" if second in resident else "–" for second in looks_s]
        rows.append([marked(line["tool"], [line["note"]], footnotes), "–" if count is None else f"{count:,}", *cells])
    return section(f"Resident memory, {connections:,} connections, {rate:,} requests per second", rows, footnotes)


if __name__ == "__main__":
    sys.exit(command(parse_options(), measure_and_print))
