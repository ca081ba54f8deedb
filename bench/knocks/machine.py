"""Bad machines: `proofload run` and `load` where something of the machine is missing, full or odd.

Limits, namespaces and mounts belong to the processes of a knock alone, and go with them. Nothing of the machine itself is changed.
"""

import ctypes
import errno
import fcntl
import os
import pty
import resource
import shutil
import signal
import struct
import subprocess
import termios
import threading
from contextlib import contextmanager, suppress
from typing import Callable, Iterator

from knock import MEASURED, OURS, SERVICE, Place, Said, add, as_nobody, comes, knock, must, needs
from peers import OK, Server, answers

AS_NOBODY = "exec setpriv --reuid 65534 --regid 65534 --clear-groups"


def shell(script: str, *words) -> tuple:
    """A command of a shell before the one that is meant: `"$@"` in the script."""
    return "sh", "-c", script, *map(str, words or ("sh",))


def mounted(script: str) -> tuple:
    """The same with mounts of its own."""
    return "unshare", "-m", *shell(script)


def load(place: Place, *words, **more) -> Said:
    """`proofload load` of a good server."""
    with Server(answers(OK)) as server:
        return place.proofload("load", f"http://127.0.0.1:{server.port}/", "-d", "300ms", "-c", "2", *words, **more)


def row(name: str, setup: str, codes: tuple, saying: str = "", *, of: Callable = Place.run, programs: tuple = (), root: bool = False,
        seconds: float = 4, **more) -> None:
    """A knock on a run under `more`: a command before it, variables, limits set by `preexec_fn`, streams."""
    def test(place: Place) -> str:
        needs(*programs, root=root or "unshare" in more.get("before", ()))
        place.folder.chmod(0o777)
        said = of(place, **more).ends(*codes, saying=saying)
        if place.has_record():
            place.opens()
        return said.seen
    add(f"machine-{name}", "machine", setup, "loaded" if codes == (0,) else comes(codes, saying), test, seconds)


def limit(what: int, value: int) -> Callable:
    return lambda: resource.setrlimit(what, (value, value))


def without(*calls: int, error: int = errno.ENOSYS) -> Callable:
    """Without these system calls: seccomp(2) refuses them with this error. Their numbers are those of all architectures."""
    tests = [(0x15, 0, 1, call) for call in calls]  # jump past the next if it is another
    refuse, allow = (0x06, 0, 0, 0x0005_0000 | error), (0x06, 0, 0, 0x7FFF_0000)
    program = [(0x20, 0, 0, 0), *(step for test in tests for step in (test, refuse)), allow]
    code = b"".join(struct.pack("HBBI", *step) for step in program)

    def set_filter() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        buffer = ctypes.create_string_buffer(code)
        filters = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        if libc.prctl(22, 2, filters, 0, 0) != 0:  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
            os._exit(99)
    return set_filter


IO_URING, PIDFD_OPEN, CLONE3, CLOSE_RANGE = 425, 434, 435, 436
NAMESPACE = ("unshare", "-pf", "--mount-proc")
DISK = 'mkdir disk && mount -t tmpfs -o size={} disk disk && {{ "$@"; code=$?; cp -a disk/record record 2>/dev/null; exit $code; }}'

# Disks.
row("disk-full", "a disk of 64 kB", OURS, "space", before=mounted(DISK.format("64k")), into="disk/record")
row("disk-tiny", "a disk of one page", OURS, "space", before=mounted(DISK.format("4k")), into="disk/record")
row("disk-read-only", "a disk that cannot be written", OURS, "read-only", before=mounted(DISK.format("1m,ro")),
    into="disk/record")
row("file-limit", "files of at most 40 kB (ulimit -f)", OURS, preexec_fn=limit(resource.RLIMIT_FSIZE, 40_000))
row("no-permission", "a folder that it may not write into", OURS, "permission", root=True, preexec_fn=as_nobody(),
    into="own/record")
row("no-tmp", "TMPDIR that is not there", (0,), of=load, environment={"TMPDIR": "/no/such/folder"})
row("no-cache", "a cache that is a file", MEASURED, environment={"XDG_CACHE_HOME": "/dev/null"})

FILLS = '(sleep 1.5; dd if=/dev/zero of=disk/fill bs=1k; sleep {}; rm disk/fill) 2>/dev/null & '


def fills(seconds: float) -> Callable:
    """A disk that something else fills in the midst, and leaves again so much later."""
    def test(place: Place) -> str:
        needs("unshare", root=True)
        said = place.run(before=mounted(DISK.format("1m").replace('{ "$@"', "{ " + FILLS.format(seconds) + '"$@"')), into="disk/record")
        said.ends(*MEASURED, 3, *OURS)
        place.opens(0, 2, 3, 4, 6)
        if said.code not in MEASURED:
            must("no space" in " ".join(said.err.lower().split()), f"does not say why: {said.last}")
            place.passes_no_gate()
        damage = place.proofload("report", place.path("record"), "--json").json()["findings"]
        must(said.code not in MEASURED or "damage" not in {finding["check"] for finding in damage}, "measured, and its record is not whole")
        return said.seen
    return test


for seconds in (0.2, 1.5):
    add(f"machine-disk-fills-{seconds}", "machine", f"a disk that something else fills in mid-run, with room again {seconds} s later",
        "measured with a whole record, or ends for want of room", fills(seconds), 6)

# Limits of processes.
row("few-files", "16 descriptors (ulimit -n)", (*OURS, 3), preexec_fn=limit(resource.RLIMIT_NOFILE, 16))
row("files-64", "64 descriptors (ulimit -n)", (*MEASURED, *OURS), preexec_fn=limit(resource.RLIMIT_NOFILE, 64))
row("load-few-files", "8 descriptors for a load", OURS, of=load, preexec_fn=limit(resource.RLIMIT_NOFILE, 8))
row("few-processes", "no process and no thread more (ulimit -u)", OURS, "thread", root=True, into="free/record",
    preexec_fn=as_nobody(limit(resource.RLIMIT_NPROC, 1)))
row("address-space", "1 GB of address space (ulimit -v)", (*MEASURED, 3, 6),
    preexec_fn=limit(resource.RLIMIT_AS, 1 << 30))
row("no-locked-memory", "no locked memory (ulimit -l 0)", MEASURED, preexec_fn=limit(resource.RLIMIT_MEMLOCK, 0))
row("small-stack", "a stack of 1 MiB (ulimit -s)", MEASURED, preexec_fn=limit(resource.RLIMIT_STACK, 1 << 20))
row("one-processor", "one processor", MEASURED,
    preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
row("nice", "the lowest priority", MEASURED, preexec_fn=lambda: os.nice(19))
row("no-io-uring", "io_uring refused by seccomp", (0,), of=load, preexec_fn=without(IO_URING, error=errno.EPERM))
row("no-new-calls", "no pidfd_open, clone3, close_range, as on an older kernel", MEASURED,
    preexec_fn=without(PIDFD_OPEN, CLONE3, CLOSE_RANGE))

# What is inherited.
row("child-ignored", "SIGCHLD ignored by who started it", MEASURED,
    preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
row("signals-blocked", "all signals blocked by who started it", MEASURED,
    preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()))
row("many-files", "500 descriptors open already", MEASURED,
    preexec_fn=lambda: [os.dup2(0, number) for number in range(100, 600)], pass_fds=())
row("umask", "a umask of 777", (*MEASURED, *OURS), root=True, into="free/record",
    preexec_fn=as_nobody(lambda: os.umask(0o777)))

# Views of the system.
HIDDEN = mounted(f'mount -t proc -o hidepid=2 proc /proc && {AS_NOBODY} "$@"')
row("hidepid", "processes of others hidden (hidepid=2), as another user", MEASURED, into="free/record",
    before=HIDDEN, programs=("setpriv",))


@knock("the same, and the service is a third user's, by a setuid program", "says whose process stays at the port", seconds=20)
def machine_hidepid_other_user(place: Place) -> str:
    needs("setpriv", "unshare", root=True)
    place.folder.chmod(0o777)
    said = place.run("another", service={"command": [place.setuid_python(), "-S", *SERVICE, "@"]}, into="free/record",
                     before=HIDDEN).ends(3, saying="process of user 1234")
    place.killed()
    return said.seen


row("nobody", "another user without a home", MEASURED, root=True, into="free/record", preexec_fn=as_nobody())
row("pid-1", "the first process of its namespace", MEASURED, before=NAMESPACE)
row("no-proc", "no /proc", (*MEASURED, 3, *OURS), before=mounted('mount -t tmpfs none /proc && exec "$@"'))
row("no-sys", "no /sys", MEASURED, before=mounted('mount -t tmpfs none /sys && exec "$@"'))
row("no-cgroup", "no control groups", MEASURED, before=mounted('mount -t tmpfs none /sys/fs/cgroup && exec "$@"'))
row("cgroup-read-only", "control groups that cannot be written", MEASURED,
    before=mounted('for each in /sys/fs/cgroup/*; do mount -o bind,ro "$each" "$each"; done; exec "$@"'))
BOMB = "a service that forks as often as it may when it is to end, 500 processes"
NO_GROUPS = "mount -t tmpfs none /sys/fs/cgroup && "
row("fork-bomb", BOMB, MEASURED, mode="bomb", root=True, into="free/record", seconds=20, preexec_fn=as_nobody(limit(resource.RLIMIT_NPROC, 500)))
row("fork-bomb-no-cgroup", f"{BOMB}, no control groups", MEASURED, mode="bomb", into="free/record", seconds=20,
    before=mounted(f'{NO_GROUPS}exec prlimit --nproc=500 setpriv --reuid 65533 --regid 65533 --clear-groups "$@"'), programs=("setpriv", "prlimit"))
row("chains-no-cgroup", "60 processes that each begin the next and end, no control groups", MEASURED, mode="chains", seconds=20,
    before=mounted('mount -t tmpfs none /sys/fs/cgroup && exec "$@"'))
ANOTHER_CLOCK = ("unshare", "-T", "--monotonic", "100000000", "--boottime", "100000000")
row("time-namespace", "another monotonic clock", MEASURED, before=ANOTHER_CLOCK)

row("real-time", "real-time scheduling (chrt --fifo)", MEASURED, "real-time scheduling is given up", root=True, programs=("chrt",),
    before=("chrt", "--fifo", "10"))

# Variables.
row("no-home", "no HOME, no XDG folders", MEASURED, without=("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"))
row("no-path", "no PATH", (*MEASURED, 2, 3), without=("PATH",))
row("no-variables", "no variable at all", (*MEASURED, 2, 3), before=("env", "-i"))
row("odd-zone", "a time zone that is none", MEASURED, environment={"TZ": ":../../nowhere\x1b"})
row("far-zone", "a time zone 167 hours away", MEASURED, environment={"TZ": "X-167:59:59"})
row("language", "LANG=C, LC_ALL of Turkey", MEASURED, environment={"LANG": "C", "LC_ALL": "tr_TR.UTF-8"})
row("variable-bytes", "a variable that is not UTF-8", MEASURED,
    environment={os.fsdecode(b"ODD\xff"): os.fsdecode(b"\xfe")})
row("variable-long", "a variable of 120 kB", MEASURED, environment={"LONG": "x" * 120_000})

# Streams.
row("no-stdin", "stdin closed", MEASURED, before=shell('exec "$@" <&-'))
row("no-stdout", "stdout closed", (*MEASURED, *OURS), before=shell('exec "$@" >&-'))
row("no-streams", "all streams closed", (*MEASURED, *OURS), before=shell('exec "$@" <&- >&- 2>&-'))
row("stdout-full", "stdout full (/dev/full)", OURS, before=shell('exec "$@" >/dev/full'))
row("stderr-full", "stderr full (/dev/full)", MEASURED, before=shell('exec "$@" 2>/dev/full'))
row("stdout-gone", "a reader that is gone", (*MEASURED, 141),
    before=shell('{ "$@"; echo $? >code; } | true; exit $(cat code)'))


@contextmanager
def terminal(rows: int, columns: int) -> Iterator[dict]:
    """A terminal of that size that is read, as a place's streams."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read() -> None:
        with suppress(OSError):
            while os.read(ours, 65536):
                pass
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield {"stdin": theirs, "stderr": theirs, "environment": {"TERM": "xterm-256color"}}
    finally:
        os.close(theirs)
        reader.join(2)
        os.close(ours)


def on_terminal(rows: int, columns: int) -> Callable:
    def test(place: Place) -> str:
        with terminal(rows, columns) as streams:
            said = place.run(**streams).ends(*MEASURED)
        place.opens()
        return said.seen
    return test


for size in ((1, 1), (0, 0), (2, 500), (65535, 65535)):
    add(f"machine-terminal-{size[0]}x{size[1]}", "machine", f"a terminal of {size[0]} rows and {size[1]} columns",
        "measured", on_terminal(*size), 4)


@knock("a terminal that goes away in the midst", "ends as after SIGHUP, nothing left", seconds=5)
def machine_terminal_gone(place: Place) -> str:
    with terminal(24, 80) as streams:
        # Controlling terminals hang up.
        run = place.begin_run(**streams, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        run.wait(1.5)
    said = run.ended(killed=True)
    must(said.code in (*MEASURED, 6, 130, 129, -1), said.seen)
    place.opens()
    return said.seen


@knock("stdout a full pipe that nobody reads, SIGINT twice", "leaves, nothing left", seconds=4)
def machine_stdout_stuck(place: Place) -> str:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    run = place.begin_run("good", "--events", stdout=writer)
    for _ in range(2):
        run.wait(1)
        run.signal(signal.SIGINT)
    said = run.ended(killed=True)
    os.close(reader), os.close(writer)
    place.opens()
    return said.seen


@knock("the directory it runs in is deleted", "measured, or says so", seconds=4)
def machine_no_directory(place: Place) -> str:
    gone = shell('mkdir gone && cd gone && rmdir ../gone && exec "$@"')
    place.run(before=gone).ends(*MEASURED, 2, 3, 6)
    return place.proofload("history", before=shell(gone[2].replace("gone", "went"))).ends(0, 2, 6).seen


@knock("two runs at once into one folder", "one is refused, the other is measured", seconds=6)
def machine_one_folder(place: Place) -> str:
    codes = sorted(run.ended().code for run in [place.begin_run(), place.begin_run()])
    must(codes[0] in MEASURED and codes[1] in (2, 6) or codes[1] in MEASURED and codes[0] in (2, 6), f"exit codes {codes}")
    place.opens()
    return f"exit codes {codes}"


@knock("three runs at once", "all are measured, or say that they were disturbed", seconds=12)
def machine_at_once(place: Place) -> str:
    runs = [place.begin_run(into=f"record-{number}") for number in range(3)]
    codes = [run.ended().ends(*MEASURED).code for run in runs]
    for number in range(3):
        place.opens(record=f"record-{number}")
    return f"exit codes {codes}"


def beside_another(before: tuple) -> Callable:
    def test(place: Place) -> str:
        needs("unshare", root=True)
        first = place.begin_run(before=before, into="first")
        first.wait(1.2)
        second = place.run(into="second").ends(*MEASURED)
        return f"exit codes {first.ended().ends(*MEASURED).code} and {second.code}"
    return test


for other, named in ((ANOTHER_CLOCK, "another monotonic clock"), (NAMESPACE, "a process namespace of its own")):
    add(f"machine-beside-{named.split()[1]}", "machine", f"two runs at once, one with {named}", "both are measured", beside_another(other), 7)


@knock("the record's folder is removed in the midst", "ends in time, and says what is gone", seconds=5)
def machine_record_gone(place: Place) -> str:
    run = place.begin_run()
    run.wait(1.5)
    shutil.rmtree(place.path("record"))
    return run.ended().ends(*OURS, saying="cannot write the record").seen


@knock("the program is deleted in the midst, as by an update", "measured", seconds=6)
def machine_program_gone(place: Place) -> str:
    copy = place.path("copy")
    shutil.copy(place.program, copy)
    place.program, program = str(copy), place.program
    run = place.begin_run()
    run.wait(1)
    copy.unlink()
    place.program = program
    return run.ended().ends(*MEASURED).seen


@knock("GIT_DIR elsewhere, --against", "compares, or says which folder is none", seconds=8)
def machine_git_elsewhere(place: Place) -> str:
    needs("git")
    file = place.experiment(sides={})
    identity = ["-c", "user.name=knock", "-c", "user.email=knock@localhost"]
    for words in (["init", "-q"], ["add", file.name], [*identity, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=place.folder, check=True, capture_output=True)
    asked = ("run", file, "-v", "--out", place.path("record"), "--against", "HEAD", "--budget", "20s")
    said = place.proofload(*asked, environment={"GIT_DIR": "/no/such/git", "GIT_INDEX_FILE": "/no/such/index"}, seconds=40)
    return said.ends(0, 2, 4, 6).seen


BACK_S = 3600
CLOCK = """
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
/* The wall clock goes back, so many seconds after the start. */
static long began;
int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, clock, time);
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    if (!began) began = now.tv_sec;
    if (clock == CLOCK_REALTIME && now.tv_sec - began >= %d) time->tv_sec -= %d;
    return result;
}
"""


@knock("the wall clock goes back by an hour in mid-run", "measured; `latest` is the newest all the same", seconds=12)
def machine_clock_back(place: Place) -> str:
    needs("cc")
    library = place.path("clock.so")
    preload = {"LD_PRELOAD": str(library)}

    def preloaded(seconds: int) -> None:
        source = place.write("clock.c", CLOCK % (seconds, BACK_S))
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True, capture_output=True)
    preloaded(2)
    said = place.run(into="records/first", environment=preload).ends(*MEASURED)
    place.opens(record="records/first")
    # What is made in the hour that comes again.
    preloaded(0)
    load(place, "--out", place.path("records/second"), environment=preload).ends(0)
    latest = place.proofload("report", "latest", "--json").ends(0, 1, 4, 5).json()
    must("variants" not in latest, "latest is the run, not the load that came after it")
    return said.seen


@knock("the power is cut two seconds after a run began: a copy of what had reached the disk", "record.json opens, no gate passes", seconds=8)
def machine_power_cut(place: Place) -> str:
    needs("mkfs.ext4", "unshare", root=True)
    disk, mount = place.path("disk.img"), place.path("disk")
    mount.mkdir()
    with open(disk, "wb") as file:
        file.truncate(64 << 20)
    # What was written and not synced is in memory alone: the file system writes nothing by itself for an hour.
    subprocess.run(["mkfs.ext4", "-q", "-O", "^metadata_csum_seed", disk], check=True, capture_output=True)
    run = place.begin_run(before=mounted(f'mount -o loop,commit=3600 {disk} {mount} && exec "$@"'), into="disk/record")
    run.wait(3)
    shutil.copy(disk, place.path("cut.img"))
    run.ended().ends(*MEASURED)
    after = mounted(f'mount -o loop {place.path("cut.img")} {mount} && exec "$@"')
    said = place.proofload("report", "disk/record", before=after).ends(0, 3, 4, 6, 130)
    gate = place.proofload("gate", "disk/record", "--max-regression", "1%", "--allow-open", before=after)
    must(gate.code != 0, "passes a gate")
    return f"report: {said.seen}; gate: {gate.seen}"
