#!/usr/bin/env python3
"""Measures the CPU time that a reverse proxy costs per request, side by side, on this machine.

The proxy is alone on core 0; the origin and the load generator are on core 1. Each round starts every proxy afresh, one
after the other, in an order drawn from the seed, warms it up, and divides the CPU time of its processes by the requests
of one run of load. A proxy is compared with nginx, with connections kept, within the round. Needs nginx, node and two
processors; `npm ci` in this folder for undici.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOM = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOM.parent / "engine"))
from summary import estimate, ratios  # noqa: E402 (its room is not ours)

ROOT = ROOM.parent.parent
TARGETS = ROOT / "targets"
BASELINE = "nginx-pool"
PROXY_CORE, OTHERS_CORE = "0", "1"
TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
START_SECONDS_MAX = 5
WARM_UP_REQUESTS = 30_000
BODY_BYTES = 13


def node(program: Path):
    return lambda port, origin, folder: (["node", str(program)], {"PORT": str(port), "ORIGIN": origin})


def nginx(template: str):
    def command(port: int, origin: str, folder: Path) -> tuple:
        text = (TARGETS / "reverse-proxy" / template).read_text()
        values = {"port": port, "address": "127.0.0.1", "origin.port": origin.rpartition(":")[2], "workers": 1}
        for name, value in values.items():
            text = text.replace("{{" + name + "}}", str(value))
        (folder / "nginx.conf").write_text(text)
        return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"], {}
    return command


PROXIES = {
    "reverse-proxy": node(TARGETS / "reverse-proxy" / "server.js"),
    "undici": node(ROOM / "programs" / "undici.js"),
    "node-http": node(ROOM / "programs" / "node-http.js"),
    "nginx-pool": nginx("nginx-pool.conf.tmpl"),
    "nginx-bare": nginx("nginx-bare.conf.tmpl"),
}


class Started:
    """A program on its core, ended by its id; a context."""

    def __init__(self, core: str, command: list, env: dict, ready: str):
        self.command, self.ready = ["taskset", "-c", core, *command], ready
        self.env = {**os.environ, "NODE_ENV": "production", **env}

    def __enter__(self) -> "Started":
        self.process = subprocess.Popen(self.command, env=self.env, stdout=subprocess.DEVNULL)
        end = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                with urllib.request.urlopen(self.ready, timeout=START_SECONDS_MAX) as response:
                    response.read()
                    return self
            except OSError as error:
                if time.monotonic() > end or self.process.poll() is not None:
                    self.__exit__()
                    raise SystemExit(f"{' '.join(self.command)} did not start: {error}") from error
                time.sleep(0.05)

    def __exit__(self, *_) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(START_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cpu_us(self) -> int:
        """User and system time of the process and its children: nginx's worker is one. proc(5)."""
        ticks = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue  # it has just ended
                if self.process.pid in (int(entry.name), int(fields[1])):
                    ticks += int(fields[11]) + int(fields[12])
        return ticks * TICK_US


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def load(options: argparse.Namespace, url: str, requests: int) -> None:
    command = ["taskset", "-c", OTHERS_CORE, options.proofload, "load", "--connections", str(options.connections),
               "--requests", str(requests), "--expect-bytes", str(BODY_BYTES), url]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")


def cost_us(options: argparse.Namespace, name: str, origin: str) -> float:
    """CPU time of the proxy per request, in µs."""
    with tempfile.TemporaryDirectory(prefix="bench-proxy-") as folder:
        os.chmod(folder, 0o755)
        port = free_port()
        command, env = PROXIES[name](port, origin, Path(folder))
        url = f"http://127.0.0.1:{port}/api/"
        with Started(PROXY_CORE, command, env, url) as proxy:
            load(options, url, WARM_UP_REQUESTS)
            before = proxy.cpu_us()
            load(options, url, options.requests)
            return (proxy.cpu_us() - before) / options.requests


def measure(options: argparse.Namespace) -> dict:
    port, drawn = free_port(), random.Random(options.seed)
    origin = f"http://127.0.0.1:{port}"
    costs = {name: {} for name in options.only}
    with Started(OTHERS_CORE, ["node", str(TARGETS / "origin" / "server.js")], {"PORT": str(port)}, origin):
        for number in range(options.rounds):
            for name in drawn.sample(options.only, len(options.only)):
                costs[name][number] = cost_us(options, name, origin)
                print(f"round {number + 1} of {options.rounds}: {name} {costs[name][number]:.2f} µs", file=sys.stderr)
    return costs


def table(costs: dict) -> str:
    lines = ["| proxy         | CPU per request | of nginx-pool's         |", "|:--------------|----------------:|------------------------:|"]
    for name, by_round in costs.items():
        of_baseline = estimate(ratios(by_round, costs[BASELINE]))
        low, high, _ = of_baseline.interval
        shown = "1" if name == BASELINE else f"{of_baseline.median:.2f} ({low:.2f} to {high:.2f})"
        lines.append(f"| {name:<13} | {estimate(list(by_round.values())).median:>12.2f} µs | {shown:>23} |")
    return "\n".join(lines)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proofload", default=str(ROOT / "target" / "release" / "proofload"))
    parser.add_argument("--rounds", type=int, default=8, help="[8]; with fewer than 6 no interval is a 95 %% one")
    parser.add_argument("--requests", type=int, default=150_000, help="of each run [150000]")
    parser.add_argument("--connections", type=int, default=64, help="[64]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PROXIES), help="some, by name")
    parser.add_argument("--json", type=Path, help="writes the figures of each round into this file")
    options = parser.parse_args()
    if BASELINE not in options.only:
        options.only.append(BASELINE)
    return options


def main() -> None:
    options = parse_options()
    costs = measure(options)
    if options.json:
        options.json.write_text(json.dumps(costs, indent=1))
    print(table(costs))


if __name__ == "__main__":
    main()
