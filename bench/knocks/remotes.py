"""Bad generators: hosts reached by an `ssh` that is a script here, so that they can stand still, lie, or never answer.

All run on this machine. What only a host of its own can show is in `make test-cluster`.
"""

import os
import signal
import time

from knock import MEASURED, OURS, Place, add, comes, knock, must

LOST_S = 20  # after which a generator that stands still is told
SSH = '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\n%s\n'
SHELL = 'exec sh -c "$3"'
GENERATORS = {"generators": {"local": 0, "ssh": ["one", "two"], "address": "127.0.0.1"}}


def reached_by(place: Place, script: str = SHELL) -> dict:
    """The variables under which `ssh` is this script."""
    place.write("bin/ssh", SSH % script).chmod(0o755)
    return {"PATH": f"{place.path('bin')}:{place.environment['PATH']}"}


def begin(place: Place, **more):
    return place.begin_run("good", environment=reached_by(place), more=GENERATORS, **{"seconds": 60, **more})


def agents(place: Place) -> list:
    return [process for process, argv in place.left() if argv.startswith("/") and "remote-agent" in argv and "ssh" not in argv]


def wait_for(what: str, found, seconds: float = 30):
    until = time.monotonic() + seconds
    while not (seen := found()):
        must(time.monotonic() < until, f"waited {seconds} s for {what}")
        time.sleep(0.05)
    return seen


def is_measured(place: Place) -> bool:
    events = place.path("record/events.jsonl")
    return events.exists() and '"kind":"measured"' in events.read_text()


def hit(number: signal.Signals, *, within: float, codes: tuple) -> callable:
    """Sends this to a generator in the midst of load: its name is told in time, and the run ends well or says why not."""
    def test(place: Place) -> str:
        run = begin(place)
        wait_for("a slice", lambda: is_measured(place))
        pid, begun = agents(place)[0], time.monotonic()
        os.kill(pid, number)
        wait_for("the loss", lambda: "generator_lost" in place.path("record/events.jsonl").read_text(), within)
        told = time.monotonic() - begun
        said = run.ended().ends(*codes)
        place.opens()
        return f"told after {told:.0f} s; {said.seen}"
    return test


add("remote-good", "remotes", "two generators by SSH", "measured", lambda place: begin(place).ended().ends(*MEASURED).seen, 10)
add("remote-stopped", "remotes", "SIGSTOP for a generator in the midst of load", f"lost within {LOST_S} s",
    hit(signal.SIGSTOP, within=LOST_S, codes=(*MEASURED, *OURS)), 35)
add("remote-killed", "remotes", "SIGKILL for a generator in the midst of load", "lost at once, another takes its place",
    hit(signal.SIGKILL, within=5, codes=MEASURED), 12)


@knock("SIGSTOP for a generator while 200 MB of values are sent", f"lost within {LOST_S} s, named", seconds=40)
def remote_stopped_early(place: Place) -> str:
    place.path("values.csv").write_text("id\n" + f"{'v' * 99}\n" * 2_000_000)
    # Before it is told anything, and then it never reads.
    run = begin(place, load={"values": "values.csv", "path": "/{id}"}, seconds=90, memory_mb=2500)
    pid = wait_for("a generator", lambda: agents(place))[0]
    os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    said = run.ended().ends(6, saying="ssh://")
    took = time.monotonic() - begun
    must(took < LOST_S + 5, f"took {took:.0f} s")
    return f"after {took:.0f} s: {said.seen}"


def refused(name: str, setup: str, script: str, codes: tuple, saying: str = "", seconds: float = 3) -> None:
    """A host that is none: told in time, within bounded memory, and nothing odd is printed."""
    def test(place: Place) -> str:
        said = place.run("good", environment=reached_by(place, script), more=GENERATORS, seconds=60)
        return said.ends(*codes, saying=saying).is_clean().seen
    add(f"remote-{name}", "remotes", setup, comes(codes, saying), test, seconds)


refused("refused", "ssh that ends with 255", "echo 'Permission denied (publickey).' >&2; exit 255", OURS, "ssh://one")
refused("garbage", "a host that prints escapes, NUL and no UTF-8, without end", r"while :; do printf '\033[2J\302\233\377\000xx'; done", OURS, "ssh://one")
refused("banner", "a host whose start files print 200 lines first", f"yes banner | head -n 200; {SHELL}", MEASURED, seconds=12)
refused("no-shell", "a host without a shell: it echoes what it is told", "exec cat", OURS, "ssh://one", seconds=30)


def connecting(number: signal.Signals) -> callable:
    def test(place: Place) -> str:
        # After ten seconds ssh gives up by itself: ConnectTimeout.
        run = place.begin_run("good", environment=reached_by(place, "exec sleep 10"), more=GENERATORS)
        run.wait(1.5)
        run.signal(number)
        must(run.wait(10), "goes on 10 s later")
        return run.ended().ends(130).seen
    return test


for which in (signal.SIGTERM, signal.SIGINT):
    add(f"remote-silent-{which.name.lower()}", "remotes", f"a host that never answers, {which.name} while it is connected to",
        "exit code 130 within 10 s", connecting(which), 4)
