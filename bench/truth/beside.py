"""What is planted beside an experiment: servers on its ports, and loops that keep processors busy.

Loopback only. Each is a context that ends what it started, by its id. It must not know what is measured.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Iterator

from reuse import Failed

BODY = b"Hello, world!"
# After the service is ready, which takes some milliseconds: a server that was there before is refused.
STALE_AFTER_S = 0.5
LOOK_AGAIN_S = 0.05
BUSY_LOOPS = 2
CLOSING_MAX = 1000
CLOSING_PATIENCE_S = 90  # a connection closes for 60 s


class Responses(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_) -> None:
        pass


class StaleServer(ThreadingHTTPServer):
    """Responds on a port of 127.0.0.1, which it shares with any process that allows that."""

    daemon_threads = True

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()


@contextmanager
def stale_server(port: int) -> Iterator[None]:
    with StaleServer(("127.0.0.1", port), Responses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


@contextmanager
def stale_servers(ports: Path) -> Iterator[None]:
    """A stale server on each port that is appended to the file `ports`, a little later."""
    over = threading.Event()
    watcher = threading.Thread(target=_serve_as_they_come, args=(ports, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _serve_as_they_come(ports: Path, over: threading.Event) -> None:
    served, due = set(), {}
    with ExitStack() as servers:
        while not over.wait(LOOK_AGAIN_S):
            text = ports.read_text() if ports.exists() else ""
            for port in map(int, text.split()):
                due.setdefault(port, time.monotonic() + STALE_AFTER_S)
            for port in [port for port, when in due.items() if port not in served and when <= time.monotonic()]:
                with suppress(OSError):  # while the service does not share it
                    servers.enter_context(stale_server(port))
                    served.add(port)


@contextmanager
def busy_loops() -> Iterator[None]:
    """Processes that keep a processor busy each."""
    loops = []
    try:
        for _ in range(BUSY_LOOPS):
            loops.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def sleepers(seconds: str) -> list:
    """Numbers of the processes `sleep SECONDS`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(int(entry.name))
        except OSError:
            continue  # gone meanwhile
    return found


def end(processes: list) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, 9)


def await_few_closing() -> None:
    """Waits until the connections of an earlier experiment are gone. Raises `Failed` if they stay."""
    until = time.monotonic() + CLOSING_PATIENCE_S
    while closing(Path("/proc/net/sockstat").read_text()) > CLOSING_MAX:
        if time.monotonic() > until:
            raise Failed(f"more than {CLOSING_MAX} connections are in TIME_WAIT after {CLOSING_PATIENCE_S} s")
        time.sleep(1)


def closing(sockstat: str) -> int:
    """Connections in TIME_WAIT: `TCP: inuse 5 orphan 0 tw 2 alloc 7 mem 1`. proc(5)."""
    words = next((line.split() for line in sockstat.splitlines() if line.startswith("TCP:")), [])
    return int(words[words.index("tw") + 1]) if "tw" in words else 0
