"""Starts services of ordinary/ and loads them by wrk, alternately, as a careful person compares two by hand.

Unpinned, loopback only. It must not judge.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Iterator, NamedTuple

from ordinary_rows import Row
from reuse import ROOT, Failed, connect, ended, free_port, started

SOURCES = Path(__file__).resolve().parent / "ordinary"
INSTALLED = ROOT / "target" / "truth" / "ordinary"
SQLITE = INSTALLED / "node_modules" / "better-sqlite3" / "build" / "Release" / "better_sqlite3.node"
CONNECTIONS = 64
PAIRS = 6
WARM_UP_S = 1
RUN_S = 4
SETTLED_S = 0.3  # from the first connection to the load
GRACE_S = 15
ANSWER_S = 20
STOP_S = 5


class Measured(NamedTuple):
    """One run of wrk."""

    per_s: float
    cpu_us: float  # of all processes of the service, per response
    failed: float  # share of responses without a 2xx or 3xx, and of connections that broke


def install() -> None:
    """Packages and compiled programs, into a folder below target/. Raises `Failed`."""
    (INSTALLED / "bin").mkdir(parents=True, exist_ok=True)
    shutil.copy(SOURCES / "package.json", INSTALLED)
    pip = str(INSTALLED / "venv" / "bin" / "pip")
    for words, folder in [
        (["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], INSTALLED),
        # Where an installation was interrupted, the package is there without what is compiled.
        *([] if SQLITE.exists() else [(["npm", "rebuild", "better-sqlite3"], INSTALLED)]),
        (["python3", "-m", "venv", "venv"], INSTALLED),
        ([pip, "install", "--quiet", "--disable-pip-version-check", "--requirement", str(SOURCES / "requirements.txt")], INSTALLED),
        (["javac", "-d", str(INSTALLED / "java"), "Service.java"], SOURCES),
        (["go", "build", "-o", str(INSTALLED / "bin" / "service-go"), "."], SOURCES),
    ]:
        if not shutil.which(words[0]):
            raise Failed(f"{words[0]} is missing")
        if subprocess.run(words, cwd=folder, env=with_headers(), check=False).returncode != 0:
            raise Failed(f"failed: {shlex.join(words)}")


def with_headers() -> dict:
    """npm compiles better-sqlite3 where it finds no binary, with the headers beside node if they are there."""
    prefix = Path(shutil.which("node") or "/").resolve().parents[1]
    return {**os.environ, "npm_config_nodedir": str(prefix)} if (prefix / "include" / "node" / "node.h").exists() else dict(os.environ)


def environment(folder: str) -> dict:
    """For proofload and for services that are started by hand. Files of services go to this folder."""
    path = [INSTALLED / "bin", INSTALLED / "venv" / "bin", "/usr/sbin", "/usr/local/go/bin"]
    return {**os.environ, "ORDINARY_TMP": folder, "NODE_PATH": str(INSTALLED / "node_modules"), "CLASSPATH": str(INSTALLED / "java"),
            "PATH": os.pathsep.join([*map(str, path), os.environ["PATH"]])}


def missing(row: Row, env: dict) -> list:
    return [program for program in row.needs if not shutil.which(program, path=env["PATH"])]


@contextmanager
def service(command: str, env: dict) -> Iterator[tuple]:
    """The root process of a service and its port. It is ended with all that it started."""
    port = free_port()
    words = shlex.split(command.replace("{port}", str(port)))
    own = {"PORT": str(port)}
    while re.match(r"[A-Z_]+=", words[0]):
        name, _, own[name] = words.pop(0).partition("=")
    log = Path(env["ORDINARY_TMP"]) / f"log-{port}"
    with open(log, "wb") as output:
        process = spawned(words, {**env, **own}, output)
    try:
        started(command, lambda: connect(port), process, log)
        time.sleep(SETTLED_S)
        yield process, port
    finally:
        stop(process)


def spawned(words: list, env: dict, log: IO) -> subprocess.Popen:
    try:
        return subprocess.Popen(words, cwd=SOURCES, env=env, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)
    except OSError as error:
        raise Failed(f"{words[0]} cannot be started: {error}; --install?") from error


def stop(process: subprocess.Popen) -> None:
    """SIGTERM to the root, which may have to tidy up, and SIGKILL to the group."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


@contextmanager
def beside(row: Row, env: dict) -> Iterator[dict]:
    """The environment with the port of what both sides call, which runs meanwhile."""
    if not row.beside:
        yield env
        return
    with service(row.beside, env) as (_, port):
        yield {**env, "UPSTREAM": str(port)}


def fields(row: Row) -> dict:
    return dict(header.split(": ", 1) for header in row.headers)


def answer(row: Row, port: int) -> int:
    """The status of one request. Raises `Failed` without one."""
    body = row.body.encode() if row.body else None
    request = urllib.request.Request(f"http://127.0.0.1:{port}{row.path}", data=body, headers=fields(row))
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S) as response:
            response.read()
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        raise Failed(f"no answer: {error}") from error


def checked(row: Row, env: dict) -> list:
    """Starts each side once and asks it once: both statuses."""
    with beside(row, env) as env:
        statuses = []
        for command in (row.baseline, row.candidate):
            with service(command, env) as (_, port):
                statuses.append(answer(row, port))
        return statuses


def alternated(row: Row, env: dict, pairs: int = PAIRS) -> list:
    """Pairs of measurements, baseline and candidate: fresh processes in the order A B B A, or living ones if the row wants them settled.
    What is beside them runs already."""
    return settled(row, env, pairs) if row.settle_s else fresh(row, env, pairs)


def fresh(row: Row, env: dict, pairs: int) -> list:
    def side(command: str) -> Measured:
        with service(command, env) as (process, port):
            wrk(row, env, port, WARM_UP_S)
            return measured(row, env, process, port)

    return in_turns([lambda: side(row.baseline), lambda: side(row.candidate)], pairs)


def settled(row: Row, env: dict, pairs: int) -> list:
    with service(row.baseline, env) as baseline, service(row.candidate, env) as candidate:
        time.sleep(row.settle_s)
        for _, port in (baseline, candidate):
            wrk(row, env, port, WARM_UP_S)
        return in_turns([lambda: measured(row, env, *baseline), lambda: measured(row, env, *candidate)], pairs)


def in_turns(measure: list, pairs: int) -> list:
    """Who was last in a pair is first in the next."""
    found = []
    for pair in range(pairs):
        step = -1 if pair % 2 else 1
        found.append([side() for side in measure[::step]][::step])
    return found


def measured(row: Row, env: dict, process: subprocess.Popen, port: int) -> Measured:
    before = cpu_s(process.pid)
    output = wrk(row, env, port, RUN_S)
    return read_wrk(output, cpu_s(process.pid) - before)


def wrk(row: Row, env: dict, port: int, seconds: float) -> str:
    headers = [word for header in row.headers for word in ("-H", header)]
    script = []
    if row.body:
        file = Path(env["ORDINARY_TMP"]) / "body.lua"
        file.write_text(f'wrk.method = "POST"\nwrk.body = [==[{row.body}]==]\n')
        script = ["-s", str(file)]
    words = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", *headers, *script, f"http://127.0.0.1:{port}{row.path}"]
    code, output, errors = ended(words, seconds + GRACE_S)
    if code != 0:
        raise Failed(f"wrk: {(errors or output)[-300:].strip()}")
    return output


def read_wrk(output: str, used_s: float) -> Measured:
    def number(pattern: str) -> float:
        found = re.search(pattern, output)
        return float(found[1]) if found else 0.0

    count, rate = number(r"(\d+) requests in"), number(r"Requests/sec:\s*([\d.]+)")
    if not count:
        raise Failed("wrk got no response")
    broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", output)
    failed = number(r"Non-2xx or 3xx responses: (\d+)") + (int(broken[1]) + int(broken[4]) if broken else 0)
    return Measured(rate, 1e6 * used_s / count, failed / count)


def cpu_s(root: int) -> float:
    """CPU time of a process and its descendants."""
    def ticks(pid: int) -> int:
        try:
            found = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            children = [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
        except OSError:
            return 0
        return int(found[11]) + int(found[12]) + sum(map(ticks, children))

    return ticks(root) / os.sysconf("SC_CLK_TCK")
