#!/usr/bin/env python3
"""Measures the CPU time that a reverse proxy costs per request, side by side, on this machine.

The proxies are on core 0, where one at a time is loaded; the origin and the load generator are on core 1. Each round
starts every proxy afresh and warms it up. Then they are loaded in short turns, in orders drawn from the seed, so that
whatever else the machine does falls on all alike; the CPU time of a proxy's processes over its turns is divided by their
requests. A proxy is compared with nginx, with connections kept, within the round. Needs nginx, node and two processors;
`npm ci` in this folder for http-proxy-3.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "engine"))
from markdown import aligned  # noqa: E402 (the path is set above)
from processes import START_SECONDS_MAX, Failed, free_port, started  # noqa: E402
from summary import estimate, ratios  # noqa: E402

ROOT = HERE.parent.parent
TARGETS = ROOT / "targets"
BASELINE = "nginx-pool"
PROXY_CORE, OTHERS_CORE = "0", "1"
WARM_UP_REQUESTS = 30_000
TURNS = 5  # long enough that opening a turn's connections does not count
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
    "http-proxy-3": node(HERE / "programs" / "http-proxy.js"),
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
        try:
            started(" ".join(self.command), lambda: urllib.request.urlopen(self.ready, timeout=START_SECONDS_MAX).read(), self.process)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(START_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cpu_ns(self) -> int:
        """User and system time of all threads of the process and its children: nginx's worker is one. proc(5)."""
        pids = [self.process.pid, *children_of(self.process.pid)]
        threads = [thread for pid in pids for thread in Path(f"/proc/{pid}/task").iterdir()]
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)


def children_of(pid: int) -> list:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def load(options: argparse.Namespace, url: str, requests: int) -> None:
    command = ["taskset", "-c", OTHERS_CORE, options.proofload, "load", "--connections", str(options.connections),
               "--requests", str(requests), "--expect-bytes", str(BODY_BYTES), url]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stdout}{done.stderr}")


def costs_us(options: argparse.Namespace, origin: str, drawn: random.Random) -> dict:
    """CPU time of each proxy per request, in µs, in one round."""
    with ExitStack() as running:
        proxies = {name: proxy(name, origin, running) for name in options.only}
        for one in proxies.values():
            load(options, one.ready, WARM_UP_REQUESTS)
        used_ns = dict.fromkeys(proxies, 0)
        per_turn = options.requests // TURNS
        for _ in range(TURNS):
            for name in drawn.sample(options.only, len(options.only)):
                before = proxies[name].cpu_ns()
                load(options, proxies[name].ready, per_turn)
                used_ns[name] += proxies[name].cpu_ns() - before
    return {name: used / 1000 / (per_turn * TURNS) for name, used in used_ns.items()}


def proxy(name: str, origin: str, running: ExitStack) -> Started:
    folder = running.enter_context(tempfile.TemporaryDirectory(prefix="bench-proxy-"))
    port = free_port()
    command, env = PROXIES[name](port, origin, Path(folder))
    return running.enter_context(Started(PROXY_CORE, command, env, f"http://127.0.0.1:{port}/api/"))


def measure(options: argparse.Namespace) -> dict:
    port, drawn = free_port(), random.Random(options.seed)
    origin = f"http://127.0.0.1:{port}"
    costs = {name: {} for name in options.only}
    with Started(OTHERS_CORE, ["node", str(TARGETS / "origin" / "server.js")], {"PORT": str(port)}, origin):
        for number in range(options.rounds):
            for name, cost in costs_us(options, origin, drawn).items():
                costs[name][number] = cost
            shown = ", ".join(f"{name} {by_round[number]:.2f}" for name, by_round in costs.items())
            print(f"round {number + 1} of {options.rounds}, µs: {shown}", file=sys.stderr)
    return costs


def table(costs: dict) -> str:
    rows = [["proxy", "CPU per request", f"of {BASELINE}'s"]]
    for name, by_round in costs.items():
        of_baseline = estimate(ratios(by_round, costs[BASELINE]))
        low, high, _ = of_baseline.interval
        shown = "1" if name == BASELINE else f"{of_baseline.median:.2f} ({low:.2f} to {high:.2f})"
        rows.append([name, f"{estimate(list(by_round.values())).median:.2f} µs", shown])
    return aligned(rows)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proofload", default=str(ROOT / "target" / "release" / "proofload"))
    parser.add_argument("--rounds", type=int, default=8, help="[8]; with fewer than 6 no interval is a 95 %% one")
    parser.add_argument("--requests", type=int, default=100_000, help="to each proxy in a round [100000]")
    parser.add_argument("--connections", type=int, default=64, help="[64]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PROXIES), help="some, by name")
    parser.add_argument("--also", metavar="NAME=PROGRAM", action="append", default=[],
                        help="another Node proxy, say of an older commit")
    options = parser.parse_args()
    for name, _, program in (also.partition("=") for also in options.also):
        PROXIES[name] = node(Path(program))
        options.only = [*options.only, name]
    if BASELINE not in options.only:
        options.only.append(BASELINE)
    return options


def main() -> None:
    options = parse_options()
    try:
        costs = measure(options)
    except Failed as error:
        sys.exit(f"error: {error}")
    print(table(costs))


if __name__ == "__main__":
    main()
