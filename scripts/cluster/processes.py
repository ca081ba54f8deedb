"""Programs that outlive the script that started them, and are ended by their id.

An id is kept with the start time of its process, so that a later process with the same id is left alone.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from place import STATE

IDS = STATE / "processes"
LOGS = STATE / "logs"
# How long a program has to end when it is asked to.
PATIENCE_S = 5.0


def inside(namespace: str, command: list[str]) -> list[str]:
    """The command in a network namespace. Not by `ip netns exec`: that hides the control groups."""
    return ["nsenter", f"--net=/run/netns/{namespace}", "--", *command]


def start(name: str, namespace: str, command: list[str]) -> None:
    """Starts a program; its output goes to a log of its name."""
    IDS.mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    with open(LOGS / f"{name}.log", "ab") as log:
        process = subprocess.Popen(inside(namespace, command), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   start_new_session=True)
    (IDS / name).write_text(f"{process.pid} {began(process.pid)}")


def stop(names: list[str], first: signal.Signals = signal.SIGTERM) -> None:
    """Ends programs: sends all a signal, waits, and kills those that are left."""
    ids = {name: identity(name) for name in names}
    tell([pid for pid in ids.values() if pid], first)
    until = time.monotonic() + PATIENCE_S
    while any(identity(name) for name in names) and time.monotonic() < until:
        time.sleep(0.05)
    tell([pid for name in names if (pid := identity(name))], signal.SIGKILL)
    for name in names:
        (IDS / name).unlink(missing_ok=True)


def identity(name: str) -> int | None:
    """The id of a program that this module started and that still runs."""
    try:
        pid, start_ticks = (IDS / name).read_text().split()
    except FileNotFoundError:
        return None
    return int(pid) if began(int(pid)) == start_ticks else None


def tell(pids: list[int], what: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, what)


def began(pid: int) -> str | None:
    """When a process began, in ticks since the machine's start (proc(5)); None for one that has ended."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if after_name[0] == "Z" else after_name[19]


def run(*command: str, quiet: bool = False) -> str:
    """Runs a command to its end and returns its output. Raises `Failed` if it fails, unless `quiet`."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 and not quiet:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip() or done.returncode}")
    return done.stdout


class Failed(Exception):
    """An error that ends the script with a message."""
