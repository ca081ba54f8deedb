"""The load generators: the name of each, how it is installed and started, and how its output is read.

A table. It must not start anything but `--version`, and must not judge.
"""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, NamedTuple, Optional

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
BENCH_TOOLS = REPOSITORY / "target" / "bench-tools"
AUTOCANNON = HERE / "node_modules" / "autocannon"
OHA_VERSION = "1.16.0"
K6_VERSION = "1.8.1"

# ab allocates memory for as many requests as -n says, and with -t alone it ends after 50,000. No machine sends more than
# this with one thread.
AB_RATE_MAX = 500_000


class Wire(NamedTuple):
    """What is spoken on a connection: HTTP/2 where it has streams, HTTP/1.1 otherwise."""

    streams: int = 0
    secure: bool = False
    fresh: bool = False  # a connection for each request

    def __str__(self) -> str:
        protocol = f"HTTP/2, {self.streams} {'stream' if self.streams == 1 else 'streams'}" if self.streams else "HTTP/1.1"
        return protocol + (", TLS" if self.secure else "") + (", a connection each" if self.fresh else "")


class Load(NamedTuple):
    port: int
    path: str
    connections: int
    seconds: int
    rate: int = 0  # requests due per second over all connections, a multiple of them; 0 is closed loop
    wire: Wire = Wire()

    @property
    def url(self) -> str:
        return f"{'https' if self.wire.secure else 'http'}://127.0.0.1:{self.port}{self.path}"


class Count(NamedTuple):
    """A tool's own count: whole responses, and the time that they took."""

    responses: int
    seconds: float


@dataclass(frozen=True)
class Tool:
    name: str
    program: str
    arguments: Callable[[Load], list]
    count: Callable[[str], Count]
    version: Optional[Callable[[str], str]]  # none for the floors, which are part of this bench
    install: str
    schedule_lag_p99_us: Optional[Callable[[str], Optional[float]]] = None  # its own, if it prints one
    speaks: Callable[[Wire], bool] = lambda wire: wire == Wire()

    def find(self) -> Optional[str]:
        return shutil.which(self.program)


def all_tools(proofload: str) -> list:
    """Every tool, proofload as the binary given, the floors last."""
    return [
        Tool("proofload", proofload, _proofload_arguments, _proofload_count, _version_printed, "make build",
             speaks=lambda wire: True),
        Tool("wrk", "wrk", _wrk_arguments, _wrk_count, _version_of_package("wrk"), "apt-get install wrk",
             speaks=lambda wire: not wire.streams),
        Tool("ab", "ab", _ab_arguments, _ab_count, _version_of_package("apache2-utils"),
             "apt-get install apache2-utils"),
        Tool("h2load", "h2load", _h2load_arguments, _h2load_count, _version_printed, "apt-get install nghttp2-client",
             speaks=lambda wire: not wire.fresh),
        Tool("oha", str(BENCH_TOOLS / "bin" / "oha"), _oha_arguments, _oha_count, _version_printed, OHA_INSTALL),
        Tool("autocannon", str(AUTOCANNON / "autocannon.js"), _autocannon_arguments, _autocannon_count,
             _version_of_autocannon, "npm ci --prefix bench/engine"),
        _floor("epoll"),
        _floor("uring"),
        replace(_floor("tls"), speaks=lambda wire: wire == Wire(secure=True), install="apt-get install libssl-dev"),
    ]


def open_loop_tools(proofload: str) -> list:
    """Every tool that sends at a rate, proofload once with each driver."""
    return [
        _proofload_driver(proofload, "completion"),
        _proofload_driver(proofload, "readiness"),
        _at_rate(Tool("wrk2", "wrk2", _wrk_arguments, _wrk_count, _version_printed, "build it from its source")),
        *(_at_rate(tool) for tool in all_tools(proofload) if tool.name in RATE_FLAGS),
    ]


# What each is told of a rate, before the URL.
RATE_FLAGS = {
    "wrk2": lambda load: ["-R", str(load.rate)],
    "h2load": lambda load: ["--rps", str(load.rate // load.connections)],  # of each connection
    "oha": lambda load: ["-q", str(load.rate), "--latency-correction"],
    "autocannon": lambda load: ["-R", str(load.rate)],
}


def _at_rate(tool: Tool) -> Tool:
    def arguments(load: Load) -> list:
        *closed_loop, url = tool.arguments(load)
        return [*closed_loop, *RATE_FLAGS[tool.name](load), url]

    return replace(tool, arguments=arguments)


def lasting_tools(proofload: str) -> list:
    """Every tool that can be left alone with 1,000 connections: at a rate, but for wrk, which has none and gets slow responses."""
    open_loop = [tool for tool in open_loop_tools(proofload) if tool.name.split()[0] in ("proofload", "oha")]
    wrk = next(tool for tool in all_tools(proofload) if tool.name == "wrk")
    k6 = Tool("k6", str(BENCH_TOOLS / "bin" / "k6"), _k6_arguments, _k6_count, _version_printed, K6_INSTALL)
    return [*open_loop, k6, replace(wrk, arguments=_wrk_slow_arguments)]


OHA_INSTALL = f"cargo install oha --version {OHA_VERSION} --locked --root target/bench-tools"
K6_INSTALL = f"env GOBIN={BENCH_TOOLS / 'bin'} go install go.k6.io/k6@v{K6_VERSION}"


def _floor(name: str) -> Tool:
    program = str(BENCH_TOOLS / "bin" / f"floor-{name}")
    return Tool(f"floor: {name}", program, _floor_arguments, _floor_count, None, "a C compiler, cc")


def _proofload_arguments(load: Load) -> list:
    wire = [*(["--insecure"] if load.wire.secure else []),
            *(["--http2", "--streams", str(load.wire.streams)] if load.wire.streams else []),
            *(["--no-keepalive"] if load.wire.fresh else [])]
    return ["load", load.url, "-c", str(load.connections), "-d", f"{load.seconds}s", "--json", *wire]


def _proofload_count(output: str) -> Count:
    result = json.loads(output)
    return Count(result["responses"], result["window_s"] + result["drain_s"])


def _proofload_driver(proofload: str, driver: str) -> Tool:
    def arguments(load: Load) -> list:
        return [*_proofload_arguments(load), "--rate", str(load.rate), "--arrivals", "constant", "--driver", driver]

    def count(output: str) -> Count:
        if (ran := json.loads(output)["driver"]) != driver:
            raise ValueError(f"the driver was {ran}: this kernel refused io_uring")
        return _proofload_count(output)

    return Tool(f"proofload {driver}", proofload, arguments, count, _version_printed, "make build",
                _proofload_schedule_lag_p99_us)


def _proofload_schedule_lag_p99_us(output: str) -> Optional[float]:
    quantiles = json.loads(output)["open"]["schedule_lag"]["quantiles"]
    return next((quantile["us"] for quantile in quantiles if quantile["percent"] == 99), None)


def _wrk_arguments(load: Load) -> list:
    fresh = ["-H", "Connection: close"] if load.wire.fresh else []
    return ["-t1", f"-c{load.connections}", f"-d{load.seconds}s", *fresh, load.url]


def _wrk_count(output: str) -> Count:
    found = _search(r"(\d+) requests in ([\d.]+)(ms|s|m|h),", output)
    return Count(int(found[1]), float(found[2]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[found[3]])


def _wrk_slow_arguments(load: Load) -> list:
    return ["--timeout", "10s", *_wrk_arguments(load._replace(path="/slow"))]


def _ab_arguments(load: Load) -> list:
    requests_max = AB_RATE_MAX * load.seconds
    return ["-q", "-k", "-c", str(load.connections), "-t", str(load.seconds), "-n", str(requests_max), load.url]


def _ab_count(output: str) -> Count:
    responses = _search(r"Complete requests:\s+(\d+)", output)[1]
    return Count(int(responses), float(_search(r"Time taken for tests:\s+([\d.]+) seconds", output)[1]))


def _h2load_arguments(load: Load) -> list:
    wire = ["-m", str(load.wire.streams)] if load.wire.streams else ["--h1"]
    return [*wire, "-c", str(load.connections), "-D", str(load.seconds), load.url]


def _h2load_count(output: str) -> Count:
    # What it prints as "finished in" is the time asked for.
    seconds = float(_search(r"finished in ([\d.]+)s", output)[1])
    return Count(int(_search(r"(\d+) done", output)[1]), seconds)


def _oha_arguments(load: Load) -> list:
    return ["-z", f"{load.seconds}s", "-c", str(load.connections), "--no-tui", "--output-format", "json", load.url]


def _oha_count(output: str) -> Count:
    result = json.loads(output)
    return Count(sum(result["statusCodeDistribution"].values()), result["summary"]["total"])


def _k6_arguments(load: Load) -> list:
    variables = {"URL": load.url, "RATE": load.rate, "SECONDS": load.seconds, "CONNECTIONS": load.connections}
    given = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
    return ["run", "--quiet", "--no-usage-report", *given, str(HERE / "programs" / "k6.js")]


def _k6_count(output: str) -> Count:
    found = _search(r"http_reqs\.+: (\d+) +([\d.]+)/s", output)
    return Count(int(found[1]), int(found[1]) / float(found[2]))


def _autocannon_arguments(load: Load) -> list:
    return ["-j", "-n", "-c", str(load.connections), "-d", str(load.seconds), load.url]


def _autocannon_count(output: str) -> Count:
    result = json.loads(output)
    return Count(result["2xx"], result["duration"])


def _floor_arguments(load: Load) -> list:
    return [str(load.port), load.path, str(load.connections), str(load.seconds)]


def _floor_count(output: str) -> Count:
    result = json.loads(output)
    return Count(result["responses"], result["seconds"])


def _search(pattern: str, output: str) -> re.Match:
    found = re.search(pattern, output)
    if found is None:
        raise ValueError(f"its output has no match for {pattern!r}")
    return found


def _version_printed(program: str) -> str:
    result = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10)
    found = re.search(r"\d+\.\d+[\w.+~-]*", result.stdout + result.stderr)
    return found[0] if found else "unknown"


def _version_of_package(package: str) -> Callable[[str], str]:
    # wrk and ab print versions that do not change when the program does.
    def version(_: str) -> str:
        if shutil.which("dpkg-query") is None:
            return "unknown"
        query = ["dpkg-query", "-W", "-f", "${Version}", package]
        return subprocess.run(query, capture_output=True, text=True, timeout=10).stdout or "unknown"

    return version


def _version_of_autocannon(_: str) -> str:
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=10).stdout.strip()
    return f"{json.loads((AUTOCANNON / 'package.json').read_text())['version']} on node {node}"
