"""Bad services: what `proofload run` makes of them, row by row.

Each is an experiment on service.py with two variants that are alike, four blocks, and a gate. Whatever a service does, the run ends in
time with a code that tells what happened, none of its processes and control groups are left, and the record opens.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from typing import Callable, Optional

from knock import MEASURED, NOT_STARTED, SERVICE, Place, Said, add, as_nobody, comes, knock, must, needs
from peers import OK, Server, answers

PYTHON = ["python3", "-S", *SERVICE, "@"]
NODE_SERVER = "require('node:http').createServer((_, response) => response.end('ok')).listen(process.env.PORT, process.env.HOST)"


def row(mode: str, setup: str, codes: tuple, saying: str = "", also: Optional[Callable] = None, seconds: float = 4, root: bool = False,
        **asked) -> None:
    """A knock on a service; `also(place, said)` looks at what else came of it."""
    def test(place: Place) -> str:
        needs(root=root)
        said = place.run(mode, **asked).ends(*codes, saying=saying)
        if place.has_record():
            place.opens()
        if codes == NOT_STARTED:
            place.passes_no_gate()
        return f"{said.seen}{'; ' + also(place, said) if also else ''}"
    add(f"service-{mode}", "services", setup, comes(codes, saying), test, seconds)


def counts(place: Place, _: Said) -> str:
    """Holds the record's count of requests against the services' own: each trial has up to two looks beside its load."""
    counted = sum(map(int, re.findall(r"^requests (\d+)$", place.logs(), re.MULTILINE)))
    trials = len(re.findall(r"^requests ", place.logs(), re.MULTILINE))
    events = place.path("record/events.jsonl").read_text()
    sent = sum(map(int, re.findall(r'"sent":(\d+)', events)))
    must(trials >= 8 and sent <= counted, f"{sent} sent, the services counted {counted} in {trials} trials")
    return f"{sent} sent, {counted} counted"


def small_logs(place: Place, _: Said) -> str:
    longest = max(file.stat().st_size for file in place.path("record/logs").iterdir())
    must(longest <= 1_200_000, f"a log of {longest} bytes")
    return f"the longest log has {longest} bytes"


def tells_surplus(place: Place, said: Said) -> str:
    events = place.path("record/events.jsonl").read_text()
    surplus = events.count('"phase":"idle","cause":"malformed"')
    must(surplus > 0, "counts what nobody asked for as responses")
    return f"bytes that nobody asked for in {surplus} slices"


def big(place: Place, _: Said) -> str:
    report = place.proofload("report", place.path("record"), "--json").json()
    peaks = [used["peak_rss_bytes"] for variant in report["variants"] for used in variant["services"]]
    must(bool(peaks) and min(peaks) >= 300_000_000, f"peak memory is said to be {peaks}")
    return f"peak memory {min(peaks) / 1e6:.0f} MB"


def clean(_: Place, said: Said) -> str:
    said.is_clean()
    return "no control characters"


row("good", "a good service", MEASURED, also=counts)
row("never-ready", "never listens", NOT_STARTED, "ready")
row("exits", "exits at once with 7", NOT_STARTED, "7")
row("exits-well", "exits at once with 0", NOT_STARTED, "0")
row("dirty-end", "says what is not UTF-8, with escapes and NUL, and exits", NOT_STARTED, "cannot go on", clean)
row("exits-later", "exits in the midst of load", NOT_STARTED, "9")
row("crashes", "crashes in the midst of load", NOT_STARTED)
row("daemon", "forks twice, new session, empty environment; the parent exits", MEASURED)
row("daemon-below", "the same, the parent stays", MEASURED)
row("ignores-term", "ignores SIGTERM", MEASURED, seconds=7)
row("flood", "prints as fast as it can", MEASURED, also=small_logs)
row("flood-ignores-term", "the same, and ignores SIGTERM", MEASURED, also=small_logs, seconds=7)
row("dirty-header", "C1 and bidi characters in a header that is to be another", (4,), "x-cache", clean,
    more={"expect": {"headers": {"x-cache": "hit"}}})
row("other-port", "listens on a port of its own", (*NOT_STARTED, *MEASURED))
row("ipv6-only", "listens on ::1 only", (*NOT_STARTED, *MEASURED))
row("slow-start", "sleeps a second before it listens", MEASURED, seconds=12)
row("eats", "takes 300 MB", MEASURED, also=big)
row("zombies", "has 100 children that nobody waits for", MEASURED)
row("leaves-child", "leaves a child in a session of its own", MEASURED)
row("leaves-nameless", "the same, with an empty environment", MEASURED)
row("storm", "leaves 20 children that ignore SIGTERM", MEASURED, seconds=12)
row("chains", "60 processes that each begin the next and end, when it is to end", MEASURED, seconds=20)
row("no-streams", "closes its streams", MEASURED)
row("stops-at-once", "stops itself (SIGSTOP) before it listens", NOT_STARTED, "ready")
row("stops", "stops itself in the midst of load", (3, 4), seconds=8)
row("closes-port", "closes its port in the midst of load", (1, 3, 4), seconds=18)
row("moves-port", "closes its port in the midst of load, and listens elsewhere", (1, 3, 4), seconds=18)
row("kills-group", "kills its process group", NOT_STARTED)
row("kills-parent", "kills its warden", (3, 6))
row("stops-parent", "stops its warden", (*MEASURED, 3, 6), seconds=22)
row("removes-place", "removes its directory", (*MEASURED, 3), service={"directory": "own"})
row("fails", "answers 500 to everything", (4,))
row("answers-twice", "answers each request twice, 5 ms apart", (4,), "V54", also=tells_surplus)
row("nobody", "becomes another user in the midst of load", MEASURED, root=True)
row("good-shell", "a shell that stays between", MEASURED,
    service={"command": ["sh", "-c", " ".join(PYTHON) + "; true"]})
row("good-namespace", "a process namespace of its own", MEASURED, root=True,
    service={"command": ["unshare", "-pf", *PYTHON]})


@knock("a shim called python3 that leaves a child whenever it is asked", "measured, nothing left")
def service_shim(place: Place) -> str:
    shim = place.write("bin/python3", '#!/bin/sh\nsleep 1000 &\nPATH="$REST" exec python3 "$@"\n')
    shim.chmod(0o755)
    rest = place.environment["PATH"]
    return place.run(environment={"PATH": f"{shim.parent}:{rest}", "REST": rest}).ends(*MEASURED).seen


@knock("somebody else has the port", "a service failed: says the port")
def service_port_taken(place: Place) -> str:
    with Server(answers(OK)) as server:
        said = place.run(service={"port": server.port}).ends(3, saying=str(server.port))
        must(server.requests == 0, f"loads the wrong server: {server.requests} requests")
        place.passes_no_gate()
    return said.seen


@knock("somebody else takes the port while the service is awaited, as a container's proxy does", "the stranger is told apart: no figure of it", seconds=6)
def service_port_taken_later(place: Place) -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    run = place.begin_run("never-ready", service={"port": port})
    while run.goes_on() and not any(SERVICE[0] in argv and "warden" not in argv for _, argv in place.left()):
        run.wait(0.05)
    with Server(answers(OK), port=port):
        said = run.ended().ends(3, 4)
    place.passes_no_gate()
    must(str(port) in said.err + said.out, f"does not name the port: {said.last}")
    return said.seen


@knock("a command that is not there", "a service failed: names it", seconds=1)
def service_no_command(place: Place) -> str:
    return place.run(service={"command": ["/no/such/program"]}).ends(2, 3, saying="/no/such/program").seen


@knock("for another user: a setuid program that becomes root and kills its warden", "says which processes are left", seconds=9)
def service_setuid(place: Place) -> str:
    needs(root=True)
    for folder in (place.folder, place.path("tmp"), place.path("own")):
        folder.chmod(0o777)
    command = [place.setuid_python(), *PYTHON[1:]]
    said = place.run("rises", service={"command": command}, into="own/record", preexec_fn=as_nobody()).ends(3, 4, saying="outlived their trial")
    left = place.killed()
    for process in left:
        must(f"(pid {process})" in said.out, f"does not tell of {process}")
    return f"{said.seen}; tells of {len(left)} processes"


@knock("mounts a folder with a file in its scratch folder", "the file stays, and the run says what is mounted", seconds=6)
def service_mounts(place: Place) -> str:
    needs("mount", root=True)
    kept = place.write("kept/file", "kept")
    command = f"mkdir {{scratch}}/m && mount --bind {kept.parent} {{scratch}}/m && exec {' '.join(PYTHON)}"
    try:
        said = place.run(service={"command": ["sh", "-c", command]}).ends(4, saying="is mounted")
        must(kept.exists(), "the file is gone")
    finally:
        for point in place.path("tmp").glob("*/m"):
            subprocess.run(["umount", point], check=True)
            shutil.rmtree(point.parent)
    return said.seen


@knock("a Node.js service of another user, captured", "measured and captured", seconds=10)
def service_captured(place: Place) -> str:
    needs("node", "setpriv", root=True)
    place.folder.chmod(0o755)
    script = place.write("server.js", NODE_SERVER)
    command = ["setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups", "node", str(script)]
    said = place.run("good", "--explain", service={"command": command}, seconds=120).ends(*MEASURED)
    must('"captured":' in place.path("record/events.jsonl").read_text(), "was not captured")
    return said.seen


@knock("a Node.js service with --permission, captured: without the right to read the agent, and with it", "measured; says which right, and captured", seconds=120)
def service_permission(place: Place) -> str:
    needs("node")
    script = place.write("server.js", NODE_SERVER)
    flag = "--permission" if "--permission" in subprocess.run(["node", "--help"], capture_output=True, text=True).stdout else "--experimental-permission"
    captured = []
    for right in ([], [f"--allow-fs-read={place.path('tmp')}/proofload-*"]):
        command = ["node", flag, f"--allow-fs-read={script}", *right, str(script)]
        into = f"record-{len(captured)}"
        said = place.run("good", "--explain", into=into, service={"command": command}, seconds=150).ends(*MEASURED)
        told = "may not read the agent" in " ".join(said.out.split())
        must(told != bool(right), f"{'says' if told else 'does not say'} that a right is missing")
        captured.append(bool(re.search(r'"captured":.*"requests":[1-9]', place.path(f"{into}/events.jsonl").read_text())))
    must(captured == [False, True], f"captured: {captured}")
    return said.seen


@knock("SIGKILL for the service by somebody else", "a service failed")
def service_killed(place: Place) -> str:
    run = place.begin_run()
    run.wait(1.5)
    while not run.wait(0.1):
        # Of one whose trial is over nobody knows.
        for process, argv in place.left():
            if SERVICE[0] in argv and "warden" not in argv and process != run.process.pid:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
    said = run.ended().ends(3)
    place.passes_no_gate()
    return said.seen
