"""Kills: `run`, `compare`, `load`, a run that is explained and one with generators by SSH, at random moments. Nothing is left soon after,
every record opens, and none passes a gate.

SIGKILL leaves a program no time to tidy: files below TMPDIR may stay, processes and control groups may not.
"""

import os
import random
import signal
from pathlib import Path
from typing import Callable

from knock import MEASURED, SERVICE, Place, Started, add, bytes_of, comes, knock, must, needs
from machine import NAMESPACE
from peers import OK, Server, answers
from remotes import GENERATORS, reached_by

INTERRUPTED = 130
MOMENTS = {"run": 3.5, "compare": 4.0, "load": 1.0, "explain": 7.0, "remote": 5.0}  # about how long each takes: seconds
SEED = 20261125


def begin(place: Place, command: str, server: Server, number: int) -> Started:
    record = f"record-{number}"
    if command == "run":
        return place.begin_run("good", into=record)
    if command == "explain":
        return place.begin_run("good", "--explain", into=record)
    if command == "remote":
        return place.begin_run("good", into=record, environment=reached_by(place), more=GENERATORS)
    into = ("--out", place.path(record))
    if command == "load":
        return place.begin("load", f"http://127.0.0.1:{server.port}/", "-d", "700ms", "-c", "2", *into)
    service = f"python3 -S {SERVICE[0]} {place.folder}"
    return place.begin("compare", service, f"UNREAD=1 {service}", "--quick", *into)


def judged(place: Place, number: int) -> bool:
    """That the record opens, if there is one, and passes no gate unless its run ended well; whether there was one."""
    record = f"record-{number}"
    if not place.has_record(record):
        return False
    place.opens(record=record)
    # What is measured stands, also where what follows it was cut off: an explanation, a report.
    if b'"ended":' not in bytes_of(place.path(f"{record}/events.jsonl")):
        place.passes_no_gate(record)
    return True


def killed(command: str, which: signal.Signals) -> Callable:
    def test(place: Place) -> str:
        place.keeps_temporary = which == signal.SIGKILL
        source, opened = random.Random(f"{SEED} {command}"), 0
        with Server(answers(OK)) as server:
            for number in range(place.kills):
                run = begin(place, command, server, number)
                run.wait(source.uniform(0, MOMENTS[command]))
                run.signal(which)
                run.ended(killed=True)
                opened += judged(place, number)
            left = place.await_nothing_left()
            must(not left, f"left: {left[:3]}")
        return f"{place.kills} kills, {opened} records, all open"
    return test


for command, seconds in MOMENTS.items():
    add(f"kill-{command}", "kills", f"kill -9 for `{command}` at random moments",
        "nothing left, records open, no gate passes", killed(command, signal.SIGKILL), 15 * seconds)


def signalled(name: str, setup: str, steps: tuple, must_end: tuple, command: str = "run", seconds: float = 5) -> None:
    """Signals with the seconds before each, for `command`."""
    def test(place: Place) -> str:
        with Server(answers(OK)) as server:
            run = begin(place, command, server, 0)
            for pause, number in steps:
                run.wait(pause)
                run.signal(number)
            said = run.ended(killed=True)
            must(said.code in must_end, f"exit code {said.code}: {said.last}")
            judged(place, 0)
        return f"exit code {said.code}"
    add(f"signal-{name}", "kills", setup, f"{comes(must_end)}, nothing left", test, seconds)


signalled("int", "SIGINT for a run", ((1.5, signal.SIGINT),), (INTERRUPTED,))
signalled("int-twice", "SIGINT and SIGTERM for a run", ((1.5, signal.SIGINT), (0.05, signal.SIGTERM)), (INTERRUPTED,))
signalled("int-at-once", "SIGINT as it starts", ((0.02, signal.SIGINT),), (INTERRUPTED, -signal.SIGINT))
signalled("term", "SIGTERM for a run", ((1.5, signal.SIGTERM),), (INTERRUPTED,))
signalled("hup", "SIGHUP for a run", ((1.5, signal.SIGHUP),), (INTERRUPTED,))
signalled("quit", "SIGQUIT for a run", ((1.5, signal.SIGQUIT),), (-signal.SIGQUIT, INTERRUPTED))
signalled("abort", "SIGABRT for a run", ((1.5, signal.SIGABRT),), (-signal.SIGABRT,))
signalled("stop", "SIGSTOP, and SIGCONT a second later", ((1.5, signal.SIGSTOP), (1, signal.SIGCONT)), MEASURED, seconds=6)
signalled("stop-load", "the same for a load", ((0.4, signal.SIGSTOP), (1, signal.SIGCONT)), (0, 4), "load")
signalled("stop-kill", "SIGSTOP, then SIGKILL", ((1.5, signal.SIGSTOP), (0.5, signal.SIGKILL)), (-signal.SIGKILL,))
signalled("int-load", "SIGINT for a load", ((0.4, signal.SIGINT),), (INTERRUPTED, 0), "load")
signalled("window", "SIGWINCH, SIGUSR and SIGPIPE", ((1, signal.SIGWINCH), (0.2, signal.SIGPIPE)), MEASURED)


# What stands for a shell: Ctrl-Z stops nobody who has none above.
SHELL = ("python3", "-c", "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], process_group=0).returncode)")


def halted(place: Place, run: Started, number: signal.Signals) -> None:
    """Stops it, and lets it go on two seconds later."""
    own = next(process for process, argv in place.left() if argv.startswith((f"{place.program} run", f"{place.program} load")))
    for which in (number, signal.SIGCONT):
        os.kill(own, which)
        run.wait(2)


def halted_run(number: signal.Signals) -> Callable:
    """In the midst of a slice of two seconds."""
    def test(place: Place) -> str:
        run = place.begin_run(before=SHELL, design={"slice": "2s", "budget": "60s"}, seconds=90)
        events = place.path("record/events.jsonl")
        while bytes_of(events).count(b'"kind":"warm_up"') < 2 and run.goes_on():
            run.wait(0.05)
        run.wait(0.7)
        halted(place, run, number)
        said = run.ended().ends(*MEASURED)
        must(b"stood still" in bytes_of(events), "the block counts")
        must("V43" in place.opens(0, 4).out, "is not told")
        return f"{said.seen}, V43"
    return test


def halted_load(number: signal.Signals) -> Callable:
    def test(place: Place) -> str:
        with Server(answers(OK)) as server:
            asked = ("load", f"http://127.0.0.1:{server.port}/", "-d", "2s", "-c", "2", "--limit", "throughput > 1/s")
            load = place.begin(*asked, before=SHELL)
            load.wait(1)
            halted(place, load, number)
            return f"{load.ended().ends(4, saying='stood still').seen}, V43"
    return test


for which, named in ((signal.SIGSTOP, "SIGSTOP"), (signal.SIGTSTP, "Ctrl-Z")):
    add(f"signal-{which.name.lower()}-slice", "kills", f"{named} in the midst of a slice, SIGCONT 2 s later",
        "the block is dropped, V43 tells", halted_run(which), 30)
    add(f"signal-{which.name.lower()}-load", "kills", f"{named} in the midst of a load, SIGCONT 2 s later", "invalid: V43", halted_load(which), 5)


@knock("SIGTERM for a run that is the first process of a container, as it starts and in a block", "exit code 130 in 10 s, nothing left",
       seconds=6)
def signal_first_process(place: Place) -> str:
    needs("unshare", root=True)
    codes = []
    for pause in (0.2, 2):
        run = place.begin_run(before=NAMESPACE, into=f"record-{pause}")
        children, first = f"/proc/{run.process.pid}/task/{run.process.pid}/children", b""
        while run.goes_on() and not bytes_of(Path("/proc") / (first.decode() or "0") / "cmdline").startswith(place.program.encode()):
            first = b"".join(bytes_of(Path(children)).split()[:1])
        run.wait(pause)
        os.kill(int(first), signal.SIGTERM)
        must(run.wait(10), "goes on 10 s after SIGTERM")
        codes.append(run.ended().ends(INTERRUPTED).code)
    return f"exit codes {codes}"


@knock("SIGINT again and again for a run whose service ignores SIGTERM", "leaves, nothing left", seconds=4)
def signal_impatient(place: Place) -> str:
    run = place.begin_run("ignores-term")
    for _ in range(6):
        run.wait(0.5)
        run.signal(signal.SIGINT)
    said = run.ended(killed=True)
    must(said.code == INTERRUPTED, f"exit code {said.code}: {said.last}")
    return said.seen
