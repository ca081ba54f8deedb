"""System calls that fail: `load`, `run`, `gate` and `report`, of which one call fails, or every second one where a program must go on.

A supervisor (faults.c) stands at the one door that all calls go through, those of Rust code past libc too. Which call fails, how and
when is drawn from a seed. Whatever fails, nothing panics, hangs or is left behind, and a number that is told is true.
"""

import atexit
import errno
import json
import random
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Callable, NamedTuple

from damage import LAX, put
from knock import Place, Said, Skipped, Started, Wrong, add, balances, bytes_of, must, needs
from peers import OK, Server, answers
from shared import ROOT

SEED = 20261123
SHORT = "short"  # up to 7 bytes of a transfer
AGAIN = (SHORT, errno.EINTR)  # which say no more than that it is to be tried again
# Rust's own ways to end: without memory, without a stack for signals, and where it or signal-hook cannot read a pair of sockets of its own,
# which no kernel has been seen to refuse.
OF_RUST = ("memory allocation of", "stack_overflow.rs", "the CLOEXEC pipe failed", "signal-hook")
TRANSFER, NO_ROOM = (errno.EIO, *AGAIN), (errno.ENOSPC, errno.EIO)
NO_FILE, NO_PROCESS = (errno.EMFILE, errno.ENOMEM), (errno.EAGAIN, errno.ENOMEM)
# What the kernel may say to each call.
KINDS = {
    "files": {
        **dict.fromkeys(("open", "openat"), (*NO_FILE, errno.EIO)), **dict.fromkeys(("read", "readv", "pread64"), TRANSFER),
        **dict.fromkeys(("write", "writev", "pwrite64"), (*NO_ROOM, *AGAIN)), **dict.fromkeys(("fsync", "fdatasync"), NO_ROOM),
        **dict.fromkeys(("mkdir", "mkdirat", "rename", "renameat", "renameat2", "linkat", "ftruncate"), NO_ROOM),
        **dict.fromkeys(("unlink", "unlinkat", "rmdir", "getdents64", "readlink", "readlinkat"), (errno.EIO, errno.ENOMEM)),
        **dict.fromkeys(("stat", "lstat", "statx", "fstat", "newfstatat", "lseek", "statfs"), (errno.EIO, errno.ENOMEM)),
        "flock": (errno.ENOLCK,), "fcntl": (errno.EMFILE,), "ioctl": (errno.EIO,), "getcwd": (errno.ENOMEM,), "fchmod": (errno.EPERM,),
        "dup2": (errno.EMFILE,), "dup3": (errno.EMFILE,), "copy_file_range": NO_ROOM,
    },
    "sockets": {
        **dict.fromkeys(("socket", "socketpair", "accept4"), NO_FILE), "bind": (errno.EADDRINUSE,), "listen": (errno.EADDRINUSE,),
        "connect": (errno.EADDRNOTAVAIL, errno.ENOMEM), **dict.fromkeys(("sendto", "recvfrom"), (errno.ENOBUFS, errno.ECONNRESET, *AGAIN)),
        **dict.fromkeys(("sendmsg", "recvmsg"), (errno.ENOBUFS, errno.EINTR)), "shutdown": (errno.ENOTCONN,),
        **dict.fromkeys(("setsockopt", "getsockopt", "getsockname"), (errno.ENOBUFS,)),
    },
    "waits": {
        **dict.fromkeys(("epoll_create1", "eventfd2", "timerfd_create", "signalfd4", "pipe2", "io_uring_setup"), NO_FILE),
        "epoll_ctl": (errno.ENOSPC, errno.ENOMEM), **dict.fromkeys(("epoll_wait", "epoll_pwait", "epoll_pwait2"), (errno.EINTR,)),
        **dict.fromkeys(("poll", "ppoll"), (errno.EINTR, errno.ENOMEM)), "io_uring_enter": (errno.EINTR, errno.EAGAIN, errno.ENOMEM),
        "io_uring_register": (errno.ENOMEM, errno.EINVAL), "clock_nanosleep": (errno.EINTR,), "timerfd_settime": (errno.EINVAL,),
    },
    "processes": {
        **dict.fromkeys(("fork", "vfork", "clone", "clone3"), NO_PROCESS), "execve": (errno.ENOMEM, errno.EMFILE, errno.EIO),
        **dict.fromkeys(("wait4", "waitid"), (errno.EINTR,)), "pidfd_open": NO_FILE, "pidfd_send_signal": (errno.EPERM,),
        "kill": (errno.EPERM,), "setsid": (errno.EPERM,), "setpgid": (errno.EPERM,), "prctl": (errno.EPERM,),
        **dict.fromkeys(("sched_setaffinity", "sched_getaffinity"), (errno.EINVAL,)), "perf_event_open": NO_FILE,
        "unshare": (errno.EPERM,), "setns": (errno.EPERM,), "close_range": (errno.ENOMEM,),
    },
    "memory": {"mmap": (errno.ENOMEM,), "memfd_create": NO_FILE, "getrandom": (errno.EINTR,)},
}
# Without which nobody can remove what a folder holds.
REMOVALS = ("unlink", "unlinkat", "rmdir", "getdents64", "openat", "open", "newfstatat", "statx", "fstat", "lstat")


ONCE = ("kill", "pidfd_send_signal", "mmap")  # without which nobody could end or do anything


class Fault(NamedTuple):
    """Of the call number `at`, and each `every`th after it; 0 is once."""

    role: str
    call: str
    how: object
    at: int
    every: int

    def __str__(self) -> str:
        how = self.how if self.how == SHORT else errno.errorcode[self.how]
        return f"{how} for {self.call} {self.at} of {self.role}{f' and each {self.every} after' if self.every else ''}"


class Part(NamedTuple):
    """`test(place, before, into)` runs it below a supervisor, and raises `Wrong` for a number that is not true."""

    roles: tuple
    setup: str
    test: Callable
    faults: int
    seconds: float
    kinds: tuple = tuple(KINDS)


def said_by(*words) -> subprocess.CompletedProcess:
    return subprocess.run(words, capture_output=True, text=True, check=False)


@lru_cache
def supervisor() -> str:
    """The built faults.c."""
    needs("cc")
    built = Path(tempfile.mkdtemp(prefix="proofload-faults-")) / "faults"
    atexit.register(shutil.rmtree, built.parent, ignore_errors=True)
    made = said_by("cc", "-O1", "-o", built, ROOT / "bench/knocks/faults.c", "-lpthread")
    if made.returncode:
        raise Skipped(f"faults.c cannot be built here: {made.stderr.splitlines()[0]}")
    tried = said_by(built, "/dev/null", "any", "read", "count", "0", "0", "--", "/bin/true")
    if tried.returncode:
        raise Skipped(f"this kernel or sandbox lets no supervisor in: {tried.stderr.strip()}")
    return str(built)


def below(place: Place, role: str, calls: str, how: object, at: int = 0, every: int = 0) -> tuple:
    return supervisor(), str(place.path("calls")), role, calls, str(how), str(every), str(at), "--"


def counted(place: Place) -> list:
    """`(call, called, failed)` of the last command below a supervisor."""
    lines = [line.split() for line in bytes_of(place.path("calls")).decode().splitlines()]
    return [(call, int(called), int(failed)) for call, called, failed in lines]


def ended(run: Started) -> Said:
    """As `Started.ended`, but for what is Rust's own."""
    try:
        return run.ended()
    except Wrong as wrong:
        said = run.files[1].read_text(errors="replace")
        if "panics" in str(wrong) or "not documented" in str(wrong):
            if any(own in said for own in OF_RUST):
                return Said(run.process.returncode, "", said, run.memory, 0)
        raise


def balanced_slices(record: Path) -> None:
    """The sums of each slice, and of all against what the services counted, where each had time to tell."""
    events = [json.loads(line) for line in (record / "events.jsonl").read_text().splitlines()]
    slices = [event["slice"] for event in events if "slice" in event]
    for one in slices:
        must(one["sent"] == sum(one[end] for end in ("responses", "timed_out", "broken", "unfinished")), f"sums do not balance: {one}")
        must(one["sent"] == sum(part["sent"] for part in one.get("generators") or [one]), f"generators do not add up: {one}")
    counts = [int(count) for log in sorted((record / "logs").glob("*"))
              for count in re.findall(r"^requests (\d+)$", log.read_text(errors="replace"), re.MULTILINE)]
    sent, trials = sum(one["sent"] for one in slices), sum("trial_started" in event for event in events)
    must(sent > 0 and (sent <= sum(counts) or len(counts) < trials), f"{sent} sent, the services counted {counts}")


def loaded(driver: str) -> Callable:
    def test(place: Place, before: tuple, into: str) -> Said:
        with Server(answers(OK)) as server:
            said = ended(place.begin("load", f"http://127.0.0.1:{server.port}/", "-d", "100ms", "-c", "2", "--timeout", "1s", "--driver",
                                     driver, "--json", "--out", place.path(into), before=before, seconds=45))
            if said.code == 0:
                result = said.json()
                balances(result)
                must(result["successful"] <= server.requests, f"{result['successful']} succeeded, the server read {server.requests}")
                must(result["successful"] > 0, "none succeeded, and exit code 0")
        return said
    return test


def ran(**asked) -> Callable:
    def test(place: Place, before: tuple, into: str) -> Said:
        said = ended(place.begin_run("good", before=before, into=into, **asked))
        if said.code in (0, 1, 5):
            balanced_slices(place.path(into))
        if said.code == 1:
            # Variants that are alike: by chance once, and not again.
            again = ended(place.begin_run("good", before=before, into=f"{into}-again", **asked))
            must(again.code != 1, "the gate fails twice: a difference where there is none")
        return said
    return test


def read(*words: str) -> Callable:
    """Of a sound record: what is said of it is what is said without faults, or nothing."""
    def test(place: Place, before: tuple, into: str) -> Said:
        record = put(place)
        sound = place.proofload(words[0], record, *words[1:])
        said = ended(place.begin(words[0], record, *words[1:], before=before))
        is_alike = said.code != sound.code or words[0] != "gate" or said.out == sound.out
        must(is_alike, "says something else of the record than without faults")
        must(said.code in (sound.code, 2, 6, -6), f"exit code {said.code}, without faults {sound.code}: {said.last}")
        return said
    return test


PARTS = {
    "load": Part(("main",), "a load by epoll", loaded("readiness"), 16, 0.9),
    "ring": Part(("main",), "a load by io_uring", loaded("completion"), 12, 0.9),
    "run": Part(("main", "warden"), "a run of four blocks", ran(), 8, 5),
    "agents": Part(("main", "agent"), "a run with two generators in processes of their own", ran(more={"generators": {"local": 2}}), 4, 5),
    "gate": Part(("main",), "the gate of a record", read("gate", *LAX), 16, 0.4, ("files", "memory")),
    "report": Part(("main",), "the report of a record", read("report", "--format", "json"), 16, 0.4, ("files", "memory")),
}


def drawn(source: random.Random, calls: Counter, kind: str, count: int) -> list:
    """As many faults, each call and error in turn; early calls are as likely as late ones."""
    all_of = [(role, call, how) for role, call in calls for how in KINDS[kind][call]]
    source.shuffle(all_of)
    picked = [all_of[index % len(all_of)] for index in range(count)] if all_of else []
    at = lambda role, call: max(1, round(calls[role, call] ** source.random()))
    return [Fault(role, call, how, at(role, call), every(source, call, how)) for role, call, how in picked]


def every(source: random.Random, call: str, how: object) -> int:
    """A disk stays full, and a table of files too, in one case of three."""
    return 2 if how in AGAIN else 0 if call in ONCE else source.choice((0, 0, 1))


def injected(place: Place, part: Part, fault: Fault, number: int, codes: Counter) -> str:
    """What is wrong with what came of it."""
    into = f"record-{number}"
    try:
        said = part.test(place, below(place, fault.role, fault.call, fault.how, fault.at, fault.every), into)
        codes[said.code] += 1
        if place.has_record(into):
            place.opens(0, 2, 3, 4, 6, 130, record=into)
        left = place.await_nothing_left()
        must(not left, f"leaves processes: {left[:2]}")
        files = [file.name for file in place.path("tmp").iterdir()]
        must(not files or fault.call in REMOVALS, f"leaves files: {files[:2]}")
    except Wrong as wrong:
        return f"{fault}: {wrong}"
    return ""


def row(name: str, kind: str, part: Part) -> None:
    def test(place: Place) -> str:
        calls, names = Counter(), ",".join(KINDS[kind])
        for role in part.roles:
            part.test(place, below(place, role, names, "count"), f"counted-{role}")
            calls.update({(role, call): called for call, called, _ in counted(place) if called})
        source, codes, wrong, failed = random.Random(f"{SEED} {name} {kind}"), Counter(), [], 0
        faults = drawn(source, calls, kind, place.faults or part.faults)
        for number, fault in enumerate(faults):
            wrong.append(injected(place, part, fault, number, codes))
            failed += sum(times for _, _, times in counted(place))
        must(not any(wrong), "; ".join(filter(None, wrong)))
        told = ", ".join(f"{code} ×{times}" for code, times in sorted(codes.items()))
        return f"{len(faults)} commands, {failed} calls failed, of {len(calls)} kinds; exit codes {told}"
    add(f"fault-{name}-{kind}", "faults", f"{part.setup}: {kind} whose calls fail", "no panic, no hang, no false number, nothing left",
        test, part.faults * part.seconds + 2)


for part_name, one in PARTS.items():
    for kind in one.kinds:
        row(part_name, kind, one)
