"""Damaged records, and files that are none: a record that was changed passes no gate, and no file eats the memory or the time.

The sound record is made once. Each knock damages a copy.
"""

import os
import signal
from functools import lru_cache
from pathlib import Path
from typing import Callable

from knock import MEASURED, MEMORY_MB, Place, Said, add, comes, knock, must
from peers import OK, Server, answers

LAX = ("--limit", "failed < 90%")  # which the sound record passes
READ = (0, 2, 3, 4, 6, 130)  # exit codes of a look at a record
NESTED = 200_000


@lru_cache
def sound(program: str) -> dict:
    """The files of a record, by name."""
    place = Place(program)
    try:
        place.run("good").ends(*MEASURED)
        return {file.name: file.read_bytes() for file in place.path("record").iterdir() if file.is_file()}
    finally:
        place.close()


def put(place: Place) -> Path:
    """A copy of the sound record."""
    for name, content in sound(place.program).items():
        place.write(f"record/{name}", content)
    return place.path("record")


def gated(place: Place) -> Said:
    return place.proofload("gate", place.path("record"), *LAX, "--allow-open")


def lines_of(change: Callable) -> Callable:
    """Changes the lines of the events, as a list."""
    def changed(record: Path) -> None:
        events = record / "events.jsonl"
        events.write_bytes(b"".join(change(events.read_bytes().splitlines(keepends=True))))
    return changed


def content_of(name: str, change: Callable) -> Callable:
    def changed(record: Path) -> None:
        (record / name).write_bytes(change((record / name).read_bytes()))
    return changed


def instead_of(name: str, make: Callable) -> Callable:
    """Puts something else where this file was."""
    def changed(record: Path) -> None:
        (record / name).unlink()
        make(record / name)
    return changed


def sparse(file: Path, size: int = 100 << 30) -> None:
    with open(file, "ab") as out:
        out.truncate(size)


def row(name: str, setup: str, damage: Callable, codes: tuple = READ) -> None:
    """The gate passes nothing of it, and the report and the list of records end with a documented code."""
    def test(place: Place) -> str:
        damage(put(place))
        said = gated(place)
        must(said.code != 0, f"passes the gate: {said.out[:200]}")
        told = place.proofload("report", place.path("record")).ends(*codes)
        place.proofload("history", "--records", place.folder).ends(0, 2)
        return f"gate: {said.seen}; report: exit code {told.code}"
    add(f"record-{name}", "damage", setup, "passes no gate", test, 1)


def half(text: bytes) -> bytes:
    return text[:len(text) // 2]


@knock("a sound record", "passes the gate", seconds=5)
def record_sound(place: Place) -> str:
    put(place)
    return gated(place).ends(0).seen


middle = lambda lines: len(lines) // 2
row("line-lost", "a line of the events is lost",
    lines_of(lambda lines: lines[:middle(lines)] + lines[middle(lines) + 1:]))
row("line-twice", "a line is there twice", lines_of(lambda lines: lines[:middle(lines)] + lines[middle(lines) - 1:]))
row("lines-swapped", "two lines change places", lines_of(lambda lines: [lines[0], lines[2], lines[1], *lines[3:]]))
row("digit", "a digit changes",
    lines_of(lambda lines: [line.replace(b'"successful":', b'"successful":1') for line in lines]))
row("end-lost", "the end is lost", lines_of(lambda lines: lines[:middle(lines)]))
row("cut", "the last line is cut", lines_of(lambda lines: [*lines[:middle(lines)], half(lines[middle(lines)])]))
row("nul-bytes", "zeros in the midst, as after a power cut",
    lines_of(lambda lines: [*lines[:middle(lines)], bytes(4096), *lines[middle(lines):]]))
row("empty", "no events", lines_of(lambda lines: []))
row("missing", "no file of events", lambda record: (record / "events.jsonl").unlink())
row("binary", "events that are not UTF-8", lines_of(lambda lines: [b"\xff\xfe\x00\x9b" * 1000]))
row("garbage-line", "a line of another program",
    lines_of(lambda lines: [*lines[:3], b'{"event":"unknown","n":1e999}\n', *lines[3:]]))
row("nested", f"a line of {NESTED} brackets", lines_of(lambda lines: [lines[0], b"[" * NESTED + b"\n", *lines[1:]]))
row("long-line", "a line of 50 MB",
    lines_of(lambda lines: [lines[0], b'{"x":"' + b"y" * 50_000_000 + b'"}\n', *lines[1:]]))
row("sparse", "events of 100 GB, most of them a hole", lambda record: sparse(record / "events.jsonl"))
row("header-empty", "record.json is empty", content_of("record.json", lambda text: b""))
row("header-cut", "record.json is cut", content_of("record.json", half))
row("header-seed", "record.json has another seed",
    content_of("record.json", lambda text: text.replace(b'"seed": 1', b'"seed": 2')))
row("header-nested", f"record.json is {NESTED} brackets", content_of("record.json", lambda text: b"[" * NESTED))
row("header-sparse", "record.json of 100 GB, a hole", instead_of("record.json", sparse))
row("newer", "of a newer version",
    content_of("record.json", lambda text: text.replace(b'"version": ', b'"version": 9', 1)), (2, 6))
row("fifo", "a FIFO in place of the events", instead_of("events.jsonl", os.mkfifo))
row("header-fifo", "a FIFO in place of record.json", instead_of("record.json", os.mkfifo))
row("folder", "a folder in place of the events", instead_of("events.jsonl", os.mkdir))
row("endless", "events that lead to /dev/zero", instead_of("events.jsonl", lambda file: file.symlink_to("/dev/zero")))
row("loop", "events that lead to themselves", instead_of("events.jsonl", lambda file: file.symlink_to(file)))


def filled(word: str, known: dict) -> str:
    for name, one in known.items():
        word = word.replace(name, one)
    return word


def told(name: str, setup: str, codes: tuple, make: Callable, *words: str, memory_mb: float = MEMORY_MB) -> None:
    """A file that is none: `make(file)`, and the words with `{file}` for it, and port 1 for that of a good server."""
    def test(place: Place) -> str:
        file = place.path("own/file")
        content = make(file)
        if isinstance(content, (bytes, str)):
            place.write("own/file", content)
        with Server(answers(OK)) as server:
            known = {"{file}": str(file), ":1/": f":{server.port}/"}
            said = place.proofload(*[filled(word, known) for word in words], memory_mb=memory_mb)
        return said.ends(*codes).is_clean().seen
    add(f"file-{name}", "damage", setup, f"{comes(codes)}, nothing odd is printed", test, 1)


def streamed(name: str, setup: str, make: Callable, *words: str) -> None:
    """What may be a stream, as of `<(...)`, is read as long as it comes: in bounded memory, until SIGINT."""
    def test(place: Place) -> str:
        file = place.path("own/file")
        make(file)
        reading = place.begin(*[filled(word, {"{file}": str(file)}) for word in words], seconds=5)
        reading.wait(1.5)
        reading.signal(signal.SIGINT)
        said = reading.ended(killed=True)
        must(said.code in (2, 130, -signal.SIGINT), said.seen)
        return f"exit code {said.code}, {said.memory_mb:.0f} MB"
    add(f"file-{name}", "damage", setup, "bounded memory, ends with SIGINT at the latest", test, 2)


BOUNDED = (0, 2, 4, 6)
SPARSE_100_MB = lambda file: sparse(file, 100_000_000)
NASTY = b"Running 10s test @ http://x/\x1b[31m\xc2\x9b\xff\0\r\n  Requests/sec: 1e999\n" * 100
ZERO = lambda file: file.symlink_to("/dev/zero")
for name, words in {"audit": ("report", "{file}"), "check": ("run", "--dry-run", "{file}"), "run": ("run", "{file}")}.items():
    codes = BOUNDED if name == "audit" else (2, 6)
    told(f"{name}-empty", f"{name}: an empty file", codes, lambda file: "", *words)
    told(f"{name}-binary", f"{name}: NULs, escapes, no UTF-8", codes, lambda file: NASTY, *words)
    told(f"{name}-nested-json", f"{name}: {NESTED} brackets", codes,
        lambda file: "a = " * (name != "audit") + "[" * NESTED, *words)
    told(f"{name}-nested-objects", f"{name}: {NESTED} objects within each other", codes,
         lambda file: '{"a":' * NESTED if name == "audit" else "[" + "a." * NESTED + "a]", *words)
    told(f"{name}-100-mb", f"{name}: 100 MB of zeros", codes, SPARSE_100_MB, *words)
    if name == "audit":
        streamed("audit-endless", "audit: a file without end", ZERO, *words)
    else:
        told(f"{name}-endless", f"{name}: a file without end", codes, ZERO, *words)
    told(f"{name}-folder", f"{name}: a folder", (2, 6), os.mkdir, *words)
    streamed(f"{name}-fifo", f"{name}: a FIFO that nobody writes", os.mkfifo, *words)

LOAD = ("load", "http://127.0.0.1:1/", "-d", "100ms", "--connections", "2")
told("mix-nested", "load: a mix of brackets", (2,), lambda file: "requests = " + "[" * NESTED, *LOAD, "--mix", "{file}")
told("values-binary", "load: values that are not UTF-8", (2,),
    lambda file: file.with_suffix(".csv").write_bytes(b"id\n" + NASTY) and None, "load", "http://127.0.0.1:1/{id}",
    "--values", "{file}.csv")
told("body-endless", "load: a body without end", (2, 4, 6), ZERO, *LOAD, "--method", "POST", "--body", "@{file}")
told("authority-endless", "load: authorities without end", (2, 6), ZERO, "load", "https://127.0.0.1:1/", "--cacert",
    "{file}")
told("profile-nested", "profile: a profile of brackets", (2, 4, 6), lambda file: '{"nodes":' + "[" * NESTED, "profile",
    "diff", "{file}", "{file}")
told("profile-endless", "profile: a profile without end", (2, 4, 6), ZERO, "profile", "diff", "{file}", "{file}",
    memory_mb=700)

BIG = "18446744073709551615"
told("number-connections", "load: 4 billion connections", (2, 4, 6), lambda file: "", *LOAD[:4], "-c", "4294967295")
told("number-requests", "load: 2 to the 64 requests", (2, 4, 6), lambda file: "", "load", "http://127.0.0.1:1/", "-n",
    BIG)
told("number-duration", "load: a billion hours", (2, 4, 6), lambda file: "", "load", "http://127.0.0.1:1/", "-d",
    "1000000000h")
told("number-rate", "load: 1e308 a second", (2, 4, 6), lambda file: "", *LOAD, "--rate", "1e308")
told("number-rate-nan", "load: NaN a second", (2,), lambda file: "", *LOAD, "--rate", "nan")
told("number-threads", "load: 4 billion threads for 2 connections", (0, 2, 6), lambda file: "", *LOAD, "-t",
    "4294967295")
told("words-binary", "an argument that is not UTF-8", (2, 4, 6), lambda file: "", *LOAD, "-H",
    os.fsdecode(b"X: \xff\x9b\x1b[31m"))
told("words-path", "a file whose name is not UTF-8", (2,), lambda file: "", "run",
    os.fsdecode(b"\xff\x9b\x1b[31m.toml"))


@knock(f"a record whose explanation is {NESTED} brackets", "its report says so, nothing overflows", seconds=2)
def record_explanation_nested(place: Place) -> str:
    (put(place) / "explanation.json").write_bytes(b'{"a":' * NESTED)
    place.proofload("profile", place.path("record")).ends(0, 2, 4, 6)
    return place.proofload("report", place.path("record")).ends(0, 2, 4, 6).seen


@knock("a folder of records with 300 broken ones, and a loop of links", "the list ends", seconds=3)
def history_broken(place: Place) -> str:
    for number in range(300):
        place.write(f"records/r{number}/record.json", b"{" * number)
        place.write(f"records/r{number}/summary.json", b"[" * number)
    place.path("records/loop").symlink_to(place.path("records"))
    return place.proofload("history").ends(0, 2).seen


@knock("record and report in a folder whose name is not UTF-8, with escapes", "measured, nothing odd is printed", seconds=6)
def record_odd_folder(place: Place) -> str:
    return place.run(into=os.fsdecode(b"r\xff \x1b[31m")).ends(*MEASURED, 2, 6).is_clean().seen
