"""What a knock is, and the place in which it is done: a folder of its own with `proofload` in it.

Whatever a knock asks for, a user would be hurt by a hang, a panic, an exit code that no page knows, a program that eats the memory of
the machine, and by what is left behind. The place looks for all of these. It must not know what is wrong with a server or a machine.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Callable, NamedTuple, Optional

from shared import ROOT, toml_text

MARK = "PROOFLOAD_KNOCK"
DOCUMENTED = (0, 1, 2, 3, 4, 5, 6, 130)  # exit codes: docs/architecture.md
MEASURED = (0, 1, 4, 5)  # those of a run that was carried out, and held against a gate
NOT_STARTED = (3,)
OURS = (6,)  # Proofload could not do its own part
SECONDS_MAX = 30  # that a command may take, unless its knock says otherwise
MEMORY_MB = 200  # a debug binary with few connections stays far below
LEFT_SECONDS_MAX = 15  # until what a run started must be gone
LOOK_S = 0.02
NOBODY = 65534
SERVICE = [str(ROOT / "bench" / "knocks" / "service.py")]
QUICK = {"drop_disturbed": False, "budget": "20s", "warmup": "100ms", "slice": "100ms", "slices": 1, "blocks": 4}


class Wrong(Exception):
    """What a user would be hurt by."""


class Skipped(Exception):
    """What this machine lacks for the knock."""


class Knock(NamedTuple):
    """`test` takes a `Place`, and returns in words what was seen. `seconds` is about how long it takes."""

    name: str
    group: str
    setup: str
    must: str
    test: Callable
    seconds: float


KNOCKS = {}


def add(name: str, group: str, setup: str, must: str, test: Callable, seconds: float) -> None:
    if name in KNOCKS:
        raise ValueError(f"two knocks are called {name}")
    KNOCKS[name] = Knock(name, group, setup, must, test, seconds)


def knock(setup: str, must: str, seconds: float = 3) -> Callable:
    """Makes a knock of a function, whose name becomes its name."""
    def added(test: Callable) -> Callable:
        add(test.__name__.replace("_", "-"), test.__module__, setup, must, test, seconds)
        return test
    return added


def comes(codes: tuple, saying: str = "") -> str:
    """What must come, in words."""
    words = {MEASURED: "measured", NOT_STARTED: "a service failed", OURS: "Proofload cannot do its part"}
    told = words.get(codes, f"exit code {' or '.join(map(str, codes))}")
    return told + (f", says {saying!r}" if saying else "")


def bytes_of(file: Path) -> bytes:
    """What a file of /proc holds; nothing where its process went."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Wrong(otherwise)


def balances(result: dict) -> None:
    """That each request that was sent has one end, and that no more succeed than were answered."""
    ends = sum(result[name] for name in ("responses", "timed_out", "broken", "unfinished"))
    must(result["sent"] == ends and result["successful"] <= result["responses"],
         f"the sums do not balance: {result['sent']} sent, {ends} ended, {result['successful']} of {result['responses']} responses good")


def needs(*programs: str, root: bool = False) -> None:
    """Skips the knock where one of these is missing."""
    if root and os.geteuid() != 0:
        raise Skipped("takes root")
    for program in programs:
        if not shutil.which(program):
            raise Skipped(f"takes {program}")


def as_nobody(*more: Callable) -> Callable:
    """As the `preexec_fn` of a command: another user, after these."""
    def become() -> None:
        for one in more:
            one()
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    return become


class Said(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str
    memory_mb: float
    seconds: float

    def ends(self, *codes: int, saying: str = "") -> "Said":
        """Raises `Wrong` unless it ended with one of these codes, and said this somewhere, however it was wrapped."""
        must(self.code in codes, f"exit code {self.code}: {self.last}")
        said = " ".join((self.err + self.out).split())
        must(saying.lower() in said.lower(), f"does not say {saying!r}: {self.last}")
        return self

    def is_clean(self) -> "Said":
        """Raises `Wrong` for control characters, which come from somebody else and do something to a terminal."""
        raw = [letter for letter in self.err + self.out if letter in "\x1b\x07\0" or "\x80" <= letter <= "\x9f"]
        must(not raw, f"prints control characters as they are: {raw[:5]}")
        return self

    @property
    def last(self) -> str:
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        told = next((line for line in lines if line.startswith("error")), lines[-1] if lines else "no message")
        return told[:300]

    @property
    def seen(self) -> str:
        return f"exit code {self.code}" + (f", {self.last}" if self.last.startswith("error") else "")

    def json(self) -> dict:
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise Wrong(f"no JSON on stdout ({error}): {self.last}") from error


class Started:
    """A command under way, in a session of its own. What it says goes to files, so that nobody has to read it."""

    def __init__(self, place: "Place", command: list, seconds: float, memory_mb: float, **more):
        self.seconds_max, self.memory_max, self.memory = seconds, memory_mb, 0.0
        self.files = [place.path(f"said-{len(place.started)}.{kind}") for kind in ("out", "err")]
        with open(self.files[0], "wb") as out, open(self.files[1], "wb") as err:
            streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, **more}
            self.begun = time.monotonic()
            self.process = subprocess.Popen(command, start_new_session=True, **streams)
        place.started.append(self)

    def signal(self, number: int) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, number)

    def goes_on(self) -> bool:
        """Whether it does, with a look at its memory."""
        status = bytes_of(Path(f"/proc/{self.process.pid}/status")).decode()
        peak = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), 0)
        self.memory = max(self.memory, int(peak) / 1024)
        return self.process.poll() is None

    def wait(self, seconds: float) -> bool:
        """Whether it ended within this time."""
        until = time.monotonic() + seconds
        while self.goes_on() and time.monotonic() < until:
            time.sleep(LOOK_S)
        return self.process.poll() is not None

    def ended(self, *, killed: bool = False) -> Said:
        """Waits for its end. Raises `Wrong` for what no knock allows."""
        done = self.wait(self.begun + self.seconds_max - time.monotonic())
        if not done:
            self.process.kill()
            self.process.wait()
        out, err = (file.read_bytes().decode(errors="replace") for file in self.files)
        said = Said(self.process.returncode, out, err, self.memory, time.monotonic() - self.begun)
        must(done, f"hangs: not done after {self.seconds_max} s: {said.last}")
        for text in ("panicked at", "RUST_BACKTRACE", "internal error"):
            must(text not in err + out, f"panics: {next((line for line in err.splitlines() if text in line), text)}")
        must(killed or said.code in DOCUMENTED, f"exit code {said.code} is not documented: {said.last}")
        must(self.memory <= self.memory_max, f"takes {self.memory:.0f} MB, more than {self.memory_max} MB")
        return said


class Place:
    """A folder of its own. `keeps_temporary`: what was killed may leave files there."""

    def __init__(self, program: str, kills: int = 0, faults: int = 0):
        self.folder = Path(tempfile.mkdtemp(prefix="proofload-knock-"))
        self.program, self.kills, self.faults = program, kills, faults
        self.started, self.keeps_temporary = [], False
        for name in ("tmp", "own"):
            self.path(name).mkdir()
        self.environment = {**os.environ, MARK: str(self.folder), "TMPDIR": str(self.path("tmp")),
                            "XDG_CACHE_HOME": str(self.path("cache")), "NO_COLOR": "1"}

    def path(self, name: str) -> Path:
        return self.folder / name

    def write(self, name: str, content) -> Path:
        file = self.path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def begin(self, *words, before=(), seconds=SECONDS_MAX, memory_mb=MEMORY_MB, without=(), **more) -> Started:
        """Starts `proofload` with these words; `before` is a command that starts it, `without` variables that it lacks."""
        environment = {**self.environment, **more.pop("environment", {})}
        environment = {name: value for name, value in environment.items() if name not in without}
        command = [*before, self.program, *map(str, words)]
        return Started(self, command, seconds, memory_mb, **{"cwd": self.folder, "env": environment, **more})

    def proofload(self, *words, **more) -> Said:
        """The same to its end."""
        return self.begin(*words, **more).ended()

    def experiment(self, mode: str = "good", *, service: Optional[dict] = None, sides: Optional[dict] = None,
                   load: Optional[dict] = None, design: Optional[dict] = None, more: Optional[dict] = None) -> Path:
        """The file of an experiment on service.py, whose behaviour `mode` chooses: two variants, short and cheap."""
        environment = {"PORT": "{port}", "HOST": "{address}", "MODE": mode, "PLACE": str(self.folder)}
        api = {"command": ["python3", "-S", *SERVICE, str(self.folder)], "ready_timeout": "3s", "stop_timeout": "500ms",
               "env": environment, **(service or {})}
        api["command"] = [word.replace("@", str(self.folder)) for word in api["command"]]
        if sides is None:
            sides = {"old": {"api": {"env": {"UNREAD": "1"}}}, "new": {"api": {"env": {"UNREAD": "2"}}}}
        return self.write(f"experiment-{len(self.started)}.toml", toml_text({
            "name": "knock", "services": {"api": api}, **({"factors": {"side": sides}} if sides else {}),
            "load": {"connections": 2, "timeout": "1s", **(load or {})}, "design": {**QUICK, **(design or {})}, **(more or {})}))

    def run(self, mode: str = "good", *words, into: str = "record", **more) -> Said:
        """`proofload run` of that, with a gate that unequal variants do not pass."""
        return self.begin_run(mode, *words, into=into, **more).ended()

    def begin_run(self, mode: str = "good", *words, into: str = "record", **more) -> Started:
        asked = {name: more.pop(name) for name in ("service", "sides", "load", "design", "more") if name in more}
        file = self.experiment(mode, **asked)
        return self.begin("run", file, "-v", "--seed", "1", "--out", self.path(into), "--gate", "--max-regression", "1%",
                          *words, **{"seconds": 40, **more})

    def has_record(self, record: str = "record") -> bool:
        """Whether one was begun: its header is there, whole, before anything starts."""
        return self.path(f"{record}/record.json").exists()

    def opens(self, *codes: int, record: str = "record") -> Said:
        """That the record opens, whatever became of its run."""
        return self.proofload("report", self.path(record)).ends(*(codes or (0, 3, 4, 6, 130)))

    def passes_no_gate(self, record: str = "record") -> Said:
        said = self.proofload("gate", self.path(record), "--max-regression", "1%", "--allow-open")
        must(said.code != 0, f"passes a gate that it should not: {said.out[:200]}")
        return said

    def logs(self) -> str:
        files = sorted(self.path("record/logs").glob("*"))
        return "".join(file.read_bytes().decode(errors="replace") for file in files)

    def left(self) -> list:
        """Processes of this place: marked, or with its folder in their argv where they emptied their environment."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            argv, environment = (bytes_of(entry / name) for name in ("cmdline", "environ"))
            marked = f"{MARK}={self.folder}\0".encode() in environment
            if marked or str(self.folder).encode() in argv:
                found.append((int(entry.name), argv.replace(b"\0", b" ").decode(errors="replace").strip()))
        return found

    def setuid_python(self) -> str:
        """A Python that anybody runs as root."""
        program = self.path("setuid-python")
        shutil.copy(shutil.which("python3"), program)
        program.chmod(0o4755)
        return str(program)

    def killed(self) -> list:
        """Kills what is left of a program that is setuid, which only root can."""
        left = [process for process, _ in self.left()]
        must(bool(left), "nothing is left: is this file system mounted nosuid?")
        for process in left:
            os.kill(process, signal.SIGKILL)
        return left

    def await_nothing_left(self, patience: float = LEFT_SECONDS_MAX) -> list:
        """What is left once it had its time to go. A process that changes its program has no argv for a moment, so nothing left is
        seen twice."""
        until = time.monotonic() + patience
        while left := self.left():
            if time.monotonic() > until:
                return left
            time.sleep(5 * LOOK_S)
        time.sleep(LOOK_S)
        return self.left()

    def left_groups(self) -> list:
        """Control groups of what was started here: they are named after their Proofload's process."""
        ours = tuple(f"proofload-{started.process.pid}-" for started in self.started)
        return [str(folder) for folder in Path("/sys/fs/cgroup").glob("**/proofload-*") if folder.name.startswith(ours)]

    def close(self, patience: float = LEFT_SECONDS_MAX) -> Optional[str]:
        """Removes the folder, and says what was left that should not be."""
        for started in self.started:
            if started.process.poll() is None:
                started.process.kill()
                started.process.wait()
        left = self.await_nothing_left(patience)
        for process, _ in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        files = [] if self.keeps_temporary else [file.name for file in self.path("tmp").iterdir()]
        groups = self.left_groups()
        shutil.rmtree(self.folder, ignore_errors=True)
        told = {"processes": [f"{process}: {argv[:80]}" for process, argv in left], "files": files, "groups": groups}
        return "; ".join(f"leaves {what}: {', '.join(which[:3])}" for what, which in told.items() if which) or None
