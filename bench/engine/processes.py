"""The processes: a server on one core, one load generator at a time on another, and what both used.

Loopback only; each process is ended by its id. It must not summarise.
"""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Callable, NamedTuple, Optional

from tools import BENCH_TOOLS, HERE, Count, Load, Tool, Wire

SERVER_CORE = 0
CLIENT_CORE = 1
START_SECONDS_MAX = 10
QUIET_SECONDS = 0.5
QUIET_SHARE = 0.1
SETTLE_SECONDS = 0.2  # for the server to notice that the client's connections are closed
GRACE_SECONDS = 15  # beyond the time asked for: node starts, ab sorts
TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
PROGRAMS = {"measure.c": "measure", "arrivals.c": "arrivals", "epoll.c": "floor-epoll", "uring.c": "floor-uring", "tls.c": "floor-tls"}
LIBRARIES = {"tls.c": ["-lssl", "-lcrypto"]}
# nginx sends so many bytes of it in each second, so that it takes two.
SLOW_BYTES = 1000
BODIES = {"/small": b"Hello world\n", "/large": b"x" * 134_054}

CONFIGURATION = """
daemon off;
worker_processes 1;
{user}
pid {folder}/nginx.pid;
events {{ worker_connections 32768; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
    sendfile on;
    tcp_nopush on;
    open_file_cache max=10 inactive=600s;
    open_file_cache_valid 600s;
    client_body_temp_path {folder}/client; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    ssl_certificate {folder}/certificate.pem;
    ssl_certificate_key {folder}/key.pem;
    root {folder}/bodies;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location = /small {{ default_type text/plain; return 200 "Hello world\\n"; }}
        location = /slow {{ default_type text/plain; limit_rate {slow_bytes}; return 200 "{slow_body}"; }}
        location = /status {{ stub_status; }}
    }}
{others}
}}
"""
# Without tcp_nopush: it holds back the ends of HTTP/2's responses for 40 ms.
OTHER_SERVER = """
    server {{
        listen 127.0.0.1:{port} backlog=4096{flags};
        sendfile off;
        tcp_nopush off;
        http2_max_concurrent_streams 256;
        location = /small {{ default_type text/plain; return 200 "Hello world\\n"; }}
    }}
"""
# The first is the server's own port.
FLAGS = {Wire(): "", Wire(secure=True): " ssl", Wire(streams=1): " http2", Wire(streams=1, secure=True): " ssl http2"}
CERTIFICATE = ("openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=localhost "
               "-keyout {folder}/key.pem -out {folder}/certificate.pem")


class Run(NamedTuple):
    """One tool under one load, once. `server_count` is nginx's count, of which the figures are made."""

    client_us: int
    server_us: int
    others_share: float  # of the busier core, taken by anything but nginx and the client, their interrupts included
    rss_max_kb: int
    server_count: int
    own: Count


class Failed(Exception):
    """Why a run has no figures."""


def compile_programs() -> None:
    """Compiles programs/ into target/bench-tools/bin. A floor that does not compile counts as a missing tool."""
    folder = BENCH_TOOLS / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    for source, program in PROGRAMS.items():
        command = ["cc", "-O2", "-Wall", "-Wextra", "-std=gnu11", "-o", str(folder / program), str(HERE / "programs" / source),
                   *LIBRARIES.get(source, [])]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0 and not program.startswith("floor"):
            raise Failed(f"{source} does not compile: {result.stderr}")


def started(what: str, attempt: Callable, process: subprocess.Popen, log: Optional[Path] = None) -> None:
    """Attempts until it succeeds, as long as a start may take and the process lives. Raises `Failed`, with what the log says."""
    end = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            return attempt()
        except (OSError, Failed) as error:
            if time.monotonic() > end or process.poll() is not None:
                said = log.read_text() if log and log.exists() else ""
                raise Failed(f"{what} did not start: {said or error}") from error
            time.sleep(0.02)


def connect(port: int) -> None:
    """Raises `OSError` where nobody listens."""
    socket.create_connection(("127.0.0.1", port), START_SECONDS_MAX).close()


class Pinned:
    """A server on its core, started through measure, on a port of its own; a context that ends it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.port = free_port()

    def start(self, report: str, command: list) -> None:
        self.process = subprocess.Popen(_measured(self.folder / report, SERVER_CORE, signal.SIGTERM, command))

    def end(self) -> None:
        # The server ends its workers, and the launcher ends with the server. Otherwise killing the launcher ends the server.
        try:
            os.kill(child_of(self.process.pid), signal.SIGTERM)
            self.process.wait(START_SECONDS_MAX)
        except (Failed, ProcessLookupError, subprocess.TimeoutExpired):
            pass
        self.process.kill()
        self.process.wait()

    def __exit__(self, *_) -> None:
        self.end()

    def cpu_us(self) -> int:
        fields = _stat_of(Path("/proc") / str(self.worker))
        if not fields:
            raise Failed("the server ended before the client did")
        user, system = fields[11:13]
        return (int(user) + int(system)) * TICK_US


class Server(Pinned):
    """nginx with one worker."""

    def __init__(self, program: str, folder: Path):
        super().__init__(folder)
        self.program = program
        self.ports = {wire: self.port if wire == Wire() else free_port() for wire in FLAGS}

    def port_of(self, wire: Wire) -> int:
        return self.ports[wire._replace(streams=min(wire.streams, 1), fresh=False)]

    def __enter__(self) -> "Server":
        (self.folder / "bodies").mkdir()
        (self.folder / "bodies" / "large").write_bytes(BODIES["/large"])
        user = "user root;" if os.geteuid() == 0 else ""
        configuration = self.folder / "nginx.conf"
        subprocess.run(CERTIFICATE.format(folder=self.folder).split(), check=True, capture_output=True)
        others = "".join(OTHER_SERVER.format(port=self.ports[wire], flags=flags) for wire, flags in FLAGS.items() if flags)
        configuration.write_text(CONFIGURATION.format(folder=self.folder, port=self.port, user=user, slow_bytes=SLOW_BYTES,
                                                      slow_body="x" * 2 * SLOW_BYTES, others=others))
        command = [self.program, "-e", str(self.folder / "error.log"), "-c", str(configuration)]
        self.start("nginx.json", command)
        try:
            started("nginx", lambda: self._get("/status"), self.process, self.folder / "error.log")
            self._check_bodies()
            self.worker = child_of(child_of(self.process.pid))
        except BaseException:
            self.end()
            raise
        return self

    def requests(self) -> int:
        """All requests that nginx has received, this one included."""
        return int(self._get("/status").split()[9])

    def _check_bodies(self) -> None:
        for path, body in BODIES.items():
            if self._get(path) != body:
                raise Failed(f"nginx does not respond to {path} with the {len(body)} bytes that it should")

    def _get(self, path: str) -> bytes:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=START_SECONDS_MAX) as response:
                return response.read()
        except OSError as error:
            raise Failed(f"nginx does not respond to {path}: {error}") from error


class Measured(NamedTuple):
    """One tool under one load, once: its output, and what it, the server and other processes used meanwhile."""

    output: str
    client_us: int
    server_us: int
    others_share: float
    rss_max_kb: int


def run_measured(tool: Tool, load: Load, server: Pinned) -> Measured:
    """Runs the tool once and takes the readings before and after. Raises `Failed`."""
    report = server.folder / "client.json"
    report.unlink(missing_ok=True)
    command = _measured(report, CLIENT_CORE, signal.SIGKILL, [tool.find(), *tool.arguments(load)])
    server_before, busy_before = server.cpu_us(), _busy_us()
    start = time.monotonic()
    code, output, complaint = ended(command, load.seconds + GRACE_SECONDS)
    wall_us = (time.monotonic() - start) * 1_000_000
    if code != 0:
        raise Failed(f"not measured: {complaint[-200:].strip()}")
    server_us, busy = server.cpu_us() - server_before, _busy_us()
    used = json.loads(report.read_text())
    if used["exit_status"] != 0:
        raise Failed(f"exit status {used['exit_status']}: {complaint[-200:].strip()}")
    client_us = used["user_us"] + used["system_us"]
    others_us = max(busy[CLIENT_CORE] - busy_before[CLIENT_CORE] - client_us,
                    busy[SERVER_CORE] - busy_before[SERVER_CORE] - server_us)
    return Measured(output, client_us, server_us, max(0, others_us) / wall_us, used["rss_max_kb"])


def run(tool: Tool, load: Load, server: Server) -> Run:
    """Runs the tool once against nginx. Raises `Failed`."""
    requests_before = server.requests()
    measured = run_measured(tool, load, server)
    time.sleep(SETTLE_SECONDS)
    # Asking for the count is a request too.
    server_count = server.requests() - requests_before - 1
    if server_count <= 0:
        raise Failed("it sent no request")
    return Run(measured.client_us, measured.server_us, measured.others_share, measured.rss_max_kb, server_count,
               read_output(tool.count, measured.output))


def read_output(reading: Callable, output: str):
    """What `reading` finds in a tool's output. Raises `Failed` if it finds nothing."""
    try:
        return reading(output)
    except (ValueError, KeyError, TypeError) as error:
        raise Failed(f"its output cannot be read: {error}") from error


def is_quiet() -> bool:
    """Whether both cores are idle for half a second, while nothing of ours runs."""
    before = _busy_us()
    time.sleep(QUIET_SECONDS)
    after = _busy_us()
    return all(after[core] - before[core] <= QUIET_SHARE * QUIET_SECONDS * 1_000_000 for core in after)


def _measured(report: Path, core: int, death_signal: signal.Signals, command: list) -> list:
    return [str(BENCH_TOOLS / "bin" / "measure"), str(report), str(core), str(int(death_signal)), *command]


def ended(command: list, seconds_max: float) -> tuple:
    """Exit code, output and errors of a command. Raises `Failed` if it takes longer."""
    try:
        # `run` kills the command also when this program is interrupted.
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds_max)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{command[0]} was not done after {seconds_max} s") from error
    return done.returncode, done.stdout, done.stderr


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def child_of(parent: int) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _stat_of(entry)[1:2] == [str(parent)]:
            return int(entry.name)
    raise Failed(f"process {parent} has no child")


def _stat_of(process: Path) -> list:
    """The fields of /proc/PID/stat from the third, the state, on: the second is a name in brackets. proc(5)."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _busy_us() -> dict:
    """User, nice, system, interrupt and soft interrupt time of both cores. proc(5)."""
    busy = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name in (f"cpu{SERVER_CORE}", f"cpu{CLIENT_CORE}"):
            ticks = [int(field) for field in fields]
            busy[int(name[3:])] = (sum(ticks[:3]) + ticks[5] + ticks[6]) * TICK_US
    return busy
