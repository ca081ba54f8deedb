"""Large and long: many connections, bodies of a gibibyte, a record of more blocks than any run has. They take a minute each and
gigabytes of disk, so that they are only done when they are named.
"""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

from knock import MEASURED, Place, Skipped, add, balances, knock, must
from shared import ROOT

BLOCKS = 100_000
BLOCK_BYTES_MAX = 40_000  # of memory, where it has 9,000 on disk
CONNECTIONS = 10_000
CONNECTION_BYTES_MAX = 20_000
BODY_BYTES = 1 << 30
ENGINE_MB = 100  # that a client of few connections needs at the most, whatever it reads
SERVER = [sys.executable, "-S", str(ROOT / "bench" / "knocks" / "large_server.py")]


class Server:
    """large_server.py, on a port of its own."""

    def __init__(self, place: Place):
        self.process = subprocess.Popen([*SERVER, str(place.folder)], stdout=subprocess.PIPE, env=place.environment, text=True)
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}"

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait()


def loaded(place: Place, url: str, *words, **more) -> dict:
    """What a load prints, of which nothing may have failed."""
    said = place.proofload("load", url, "--json", *words, **more).ends(0)
    result = said.json()
    balances(result)
    must(result["sent"] == result["successful"] > 0, f"{result['successful']} of {result['sent']}, {result['errors']}")
    return {**result, "memory_mb": said.memory_mb}


@knock(f"{CONNECTIONS:,} connections, 500 requests a second", "all open, the sums balance, little memory each", 40)
def connections(place: Place) -> str:
    with Server(place) as server:
        few = loaded(place, server.url, "-c", "10", "-d", "1s", memory_mb=ENGINE_MB)
        many = loaded(place, server.url, "-c", CONNECTIONS, "-d", "10s", "--rate", "500", "--timeout", "60s", seconds=180, memory_mb=1000)
    opened = many["connections_opened"]
    must(opened >= CONNECTIONS, f"{opened} opened")
    each = (many["memory_mb"] - few["memory_mb"]) * (1 << 20) / CONNECTIONS
    must(each < CONNECTION_BYTES_MAX, f"{each:,.0f} bytes a connection")
    return f"{opened:,} opened, {many['sent']:,} good, {many['memory_mb']:.0f} MB, {each:,.0f} bytes a connection"


def body(form: str, driver: str) -> None:
    def test(place: Place) -> str:
        with Server(place) as server:
            url, more = f"{server.url}/{form}/{BODY_BYTES}", {"seconds": 300, "memory_mb": ENGINE_MB}
            result = loaded(place, url, "-c", "2", "-n", "4", "--timeout", "120s", "--driver", driver, **more)
        if result["driver"] != driver:
            raise Skipped(f"this kernel gives {result['driver']}")
        must(result["bytes_body"] == 4 * BODY_BYTES, f"{result['bytes_body']:,} bytes of bodies")
        return f"4 responses, {result['bytes_body']:,} bytes, {result['memory_mb']:.0f} MB"
    add(f"body-{form}-{driver}", __name__, f"bodies of 1 GiB, {form}, read by {driver}", "all bytes are counted, memory is flat", test, 30)


for form in ("chunked", "length"):
    for driver in ("completion", "readiness"):
        body(form, driver)


def repeated(record: Path, blocks: int) -> None:
    """Has the record's last whole block so many times more, numbered and sealed as if it had been run (crates/record/src/seal.rs)."""
    events = record / "events.jsonl"
    lines = [b"{" + re.sub(rb'^{"n":\d+,"sum":"[0-9a-f]+",', b"", line) for line in events.read_bytes().splitlines()]
    begins = [index for index, line in enumerate(lines) if line.startswith(b'{"block_started"')]
    ends = [index for index, line in enumerate(lines) if line.startswith(b'{"block_ended"')]
    number = json.loads(lines[begins[-1]])["block_started"]["block"]
    block = lines[begins[-1]:ends[-1] + 1]
    before, after = lines[:ends[-1] + 1], lines[ends[-1] + 1:]
    mark = b'"block":%d,' % number

    def all_lines():
        yield from before
        for new in range(number + 1, number + 1 + blocks):
            for line in block:
                yield line.replace(mark, b'"block":%d,' % new, 1)
        yield from after
    total = hashlib.sha256((record / "record.json").read_bytes()).hexdigest()[:32]
    with open(events, "wb", buffering=1 << 20) as out:
        for count, line in enumerate(all_lines(), 1):
            total = hashlib.sha256(total.encode() + line).hexdigest()[:32]
            out.write(b'{"n":%d,"sum":"%s",' % (count, total.encode()) + line[1:] + b"\n")


def looked_at(place: Place, words: tuple, codes: tuple) -> tuple:
    """Memory and seconds that a command takes, and what it says."""
    said = place.proofload(*words, seconds=600, memory_mb=BLOCKS * BLOCK_BYTES_MAX >> 20).ends(*codes)
    return said.memory_mb, said.seconds, said


@knock(f"a record of {BLOCKS:,} blocks, as if it had been run", "opens, is judged; time and memory grow no faster than it does", 300)
def blocks(place: Place) -> str:
    place.run("good").ends(*MEASURED)
    record, told = place.path("record"), []
    looks = {"report": ("report", record, "--format", "json"), "gate": ("gate", record, "--limit", "failed < 90%"),
             "history": ("history", "--records", place.folder)}
    few = BLOCKS // 10
    repeated(record, few)
    before = {name: looked_at(place, words, (0, 4, 5)) for name, words in looks.items()}
    repeated(record, BLOCKS - few)
    for name, words in looks.items():
        (_, seconds_few, _), (memory, seconds, said) = before[name], looked_at(place, words, (0, 4, 5))
        must(name != "report" or said.json()["blocks"] > BLOCKS, f"counts {said.out[:200]}")
        must(seconds < 30 * seconds_few + 1, f"{name}: {seconds_few:.1f} s with {few:,} blocks, {seconds:.1f} s with {BLOCKS:,}")
        told.append(f"{name} {seconds:.0f} s and {memory:,.0f} MB")
    size = (record / "events.jsonl").stat().st_size
    return f"{size / 1e6:,.0f} MB: {', '.join(told)}"
