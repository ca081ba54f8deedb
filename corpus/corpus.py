#!/usr/bin/env python3
"""Compares what a build of proofload prints with what is stored in expected/: reports of records, experiment files, command lines, and output of
other tools. Prints what changed, grouped by change, and exits with 1 if anything did.

    corpus/corpus.py [--binary FILE]      compare
    corpus/corpus.py --update             store what the binary prints now
    corpus/corpus.py --only PART          cases whose names have this part

Nothing is started and no load is sent. Cases run in a copy of the corpus with an empty home, a fixed key for masked secrets, and no terminal.
"""

import argparse
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterator, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
EXPECTED = HERE / "expected"
ARCHIVE = HERE / "records.tar.xz"
# Experiment files and outputs of other tools that tests have already.
EXPERIMENTS = [HERE / "experiments", ROOT / "experiments", ROOT / "crates/plan/tests/bad"]
OUTPUTS = ROOT / "crates/foreign/tests/corpus"
CASE_S = 60
SHOWN = 12  # lines of a change
NAMED = 4  # cases of a change
# What depends on the machine or the moment, and is no part of what a case shows.
VOLATILE = [
    (re.compile(r"; not as where this is read: .*?(?=\n *[a-z]+  |\n\n|\"|$)", re.DOTALL), ""),
    (re.compile(r"drawn from a new seed.*"), "drawn from a new seed"),
    (re.compile(r"--seed \d{6,}"), "--seed N"),
    # The time of a folder that is no record.
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(?= +unreadable)"), "DATE       TIME "),
    # How far it has come, told where it takes long.
    (re.compile(r"^reading records: .*\n", re.MULTILINE), ""),
]


class Case(NamedTuple):
    """A file of expected/ and the command lines whose output it has."""

    name: str
    commands: list


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "target/debug/proofload", metavar="FILE")
    parser.add_argument("--update", action="store_true", help="store what the binary prints now")
    parser.add_argument("--only", default="", metavar="PART", help="cases whose names have this part")
    options = parser.parse_args()
    if not options.binary.is_file():
        parser.error(f"--binary {options.binary}: there is no such file; cargo build")
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        place = prepared(Path(folder))
        # Help texts have the name by which it is called.
        program = Path(folder) / "proofload"
        program.symlink_to(options.binary.resolve())
        cases = [case for case in all_cases(place) if options.only in case.name]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            printed = list(pool.map(lambda case: output(program, case, place), cases))
    if options.update:
        store(cases, printed, whole=not options.only)
        return 0
    return compare(cases, printed, whole=not options.only)


def prepared(folder: Path) -> Path:
    """The folder in which cases run, with everything that they name."""
    place = folder / "place"
    for name in ["home", "state/proofload", "place/experiments", "place/outputs"]:
        (folder / name).mkdir(parents=True)
    key = folder / "state/proofload/key"
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(place / "records")
    damage(place / "records")
    for source in EXPERIMENTS:
        for path in sorted(source.glob("*.toml")):
            shutil.copy(path, place / "experiments" / f"{source.name}-{path.name}")
    for path in sorted(OUTPUTS.glob("*/*")):
        shutil.copy(path, place / "outputs" / path.name)
    return place


def damage(records: Path) -> None:
    """Records that were cut off, changed or spoilt, each from a good one."""
    good = records / "design-copy-faster"

    def damaged(name: str, change) -> None:
        folder = records / f"damaged-{name}"
        shutil.copytree(good, folder)
        change(folder)

    def edit(file: str, change):
        return lambda folder: (folder / file).write_bytes(change((folder / file).read_bytes()))

    damaged("cut-off", edit("events.jsonl", lambda text: text[: len(text) * 2 // 3]))
    damaged("first-third", edit("events.jsonl", lambda text: text[: len(text) // 3]))
    damaged("changed-digit", edit("events.jsonl", lambda text: text.replace(b'"successful":2', b'"successful":9', 1)))
    damaged("line-lost", edit("events.jsonl", lambda text: b"".join(line for index, line in enumerate(text.splitlines(True)) if index != 9)))
    damaged("no-events", lambda folder: (folder / "events.jsonl").unlink())
    damaged("empty-events", edit("events.jsonl", lambda _: b""))
    damaged("no-header", lambda folder: (folder / "record.json").unlink())
    damaged("spoilt-header", edit("record.json", lambda text: text[:100]))
    damaged("newer-version", edit("record.json", lambda text: re.sub(rb'"version": \d+', b'"version": 99', text)))
    damaged("earlier-build", edit("record.json", lambda text: re.sub(rb'"seed": \d+,', b"", text, count=1)))
    damaged("not-text", edit("events.jsonl", lambda text: b"\xff\xfe" + text))


def all_cases(place: Path) -> list:
    return [*record_cases(place), *experiment_cases(place), *output_cases(place), *command_cases()]


def record_cases(place: Path) -> Iterator[Case]:
    for folder in sorted((place / "records").iterdir()):
        record = f"records/{folder.name}"
        forms = [f"report {record} --format {form}" for form in ("text", "md", "json")]
        yield Case(f"records/{folder.name}", [*forms, f"gate {record} --limit 'failed < 1%'", f"history show {record}"])


def experiment_cases(place: Path) -> Iterator[Case]:
    for path in sorted((place / "experiments").iterdir()):
        yield Case(f"experiments/{path.stem}", [f"run experiments/{path.name} --dry-run"])


def output_cases(place: Path) -> Iterator[Case]:
    for path in sorted((place / "outputs").iterdir()):
        what = "mix outputs/{} --out -" if path.suffix in (".log", ".har") else "report outputs/{}"
        yield Case(f"outputs/{path.name}", [what.format(path.name)])
        if path.suffix not in (".log", ".har"):
            yield Case(f"outputs/{path.name}-json", [f"report outputs/{path.name} --json"])


def command_cases() -> Iterator[Case]:
    """Each line of commands.txt is a case, named after its first words."""
    names = defaultdict(int)
    for line in (HERE / "commands.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name = re.sub(r"[^a-z0-9]+", "-", line.lower()).strip("-")[:50] or "nothing"
            names[name] += 1
            yield Case(f"commands/{name}" + (f"-{names[name]}" if names[name] > 1 else ""), ["" if line == "-" else line])


def output(binary: Path, case: Case, place: Path) -> str:
    env = {"HOME": str(place.parent / "home"), "XDG_STATE_HOME": str(place.parent / "state"), "PATH": os.environ["PATH"], "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    parts = []
    for command in case.commands:
        done = subprocess.run([binary, *shlex.split(command)], cwd=place, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=CASE_S, check=False)
        stdout, stderr = (settled(stream.decode(errors="replace"), place) for stream in (done.stdout, done.stderr))
        parts.append(f"$ proofload {command}\n{stdout}{ended(stdout)}" + (f"--- stderr\n{stderr}{ended(stderr)}" if stderr else "") + f"--- exit {done.returncode}\n")
    return "\n".join(parts)


def ended(text: str) -> str:
    return "" if not text or text.endswith("\n") else "\n"


def settled(text: str, place: Path) -> str:
    """The text without what depends on the machine."""
    text = text.replace(str(place), "PLACE")
    for pattern, instead in VOLATILE:
        text = pattern.sub(instead, text)
    return text


def store(cases: list, printed: list, whole: bool) -> None:
    if whole:
        shutil.rmtree(EXPECTED, ignore_errors=True)
    for case, text in zip(cases, printed):
        path = EXPECTED / f"{case.name}.out"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(f"{len(cases)} cases stored")


def compare(cases: list, printed: list, whole: bool) -> int:
    """Changes with the same lines are one; each is shown once, with the cases that have it."""
    changes = defaultdict(list)
    for case, text in zip(cases, printed):
        path = EXPECTED / f"{case.name}.out"
        before = path.read_text() if path.is_file() else ""
        if before != text:
            for hunk in hunks(before, text):
                changes[hunk].append(case.name)
    gone = {str(path.relative_to(EXPECTED))[:-4] for path in EXPECTED.glob("*/*.out")} - {case.name for case in cases}
    for name in sorted(gone) if whole else []:
        changes[("the case is gone",)].append(name)
    for lines, names in sorted(changes.items(), key=lambda change: -len(change[1])):
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        print(f"\n{len(names)}: {', '.join(names[:NAMED])}{more}")
        print("\n".join(f"    {line}" for line in lines[:SHOWN]))
        if len(lines) > SHOWN:
            print(f"    … {len(lines) - SHOWN} more lines")
    changed = {name for names in changes.values() for name in names}
    print(f"{len(changed)} of {len(cases)} cases changed" + (": if that is intended, corpus/corpus.py --update" if changed else ""))
    return 1 if changed else 0


def hunks(before: str, after: str) -> Iterator[tuple]:
    """Runs of changed lines, without line numbers."""
    hunk = []
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""):
        if line.startswith(("---", "+++")) and not line.startswith(("--- stderr", "--- exit")):
            continue
        if line.startswith("@@"):
            if hunk:
                yield tuple(hunk)
            hunk = []
        else:
            hunk.append(line)
    if hunk:
        yield tuple(hunk)


if __name__ == "__main__":
    sys.exit(main())
