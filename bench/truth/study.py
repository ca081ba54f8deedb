"""What all studies here share: options, steps that are kept as they finish, and resuming.

A file has one JSON line for each finished comparison. It must not know what is compared.
"""

import argparse
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Callable, Iterable, NamedTuple

from reuse import ROOT, Failed, positive, progress

FAILURES_IN_A_ROW_MAX = 3


class Step(NamedTuple):
    """One comparison to come. `seconds` is about how long it takes, for the time left."""

    kind: str
    effect: str
    number: int
    seconds: float

    @property
    def key(self) -> tuple:
        return self.kind, self.effect, self.number

    def seed(self, base: int) -> int:
        """The same for the same comparison of the same study, whatever ran before it."""
        return random.Random(f"{base} {self.key}").randrange(2**31)


def add_options(parser: argparse.ArgumentParser, count: int, flag: str = "--count") -> None:
    """The options of every study."""
    parser.add_argument(flag, dest="count", metavar="N", type=positive, default=count,
                        help=f"comparisons, of each effect [{count}]")
    parser.add_argument("--seed", type=int, default=20261121, help="of all that is drawn [20261121]")
    parser.add_argument("--out", metavar="FILE", type=Path, required=True,
                        help="JSON lines are appended here; what it already has is not repeated")


def add_proofload(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--proofload", metavar="FILE", default=str(ROOT / "target" / "release" / "proofload"),
                        help="the proofload to try [target/release/proofload]")


def command(study: Callable, options: argparse.Namespace) -> int:
    """Runs `study(options)`, ends what it started on SIGTERM, and turns errors into an exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if len(os.sched_getaffinity(0)) < 2:
            raise Failed("two processors are needed: one for the service, one for the client")
        study(options)
    except (Failed, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        progress("interrupted: the same command resumes here\n")
        return 130
    return 0


def in_rounds(kind: str, seconds: dict, count: int, seed: int) -> list:
    """Steps for each effect of `seconds`, which says how long one takes: each once a round, in an order drawn for it,
    so that a bad hour hits all alike."""
    source = random.Random(seed)
    return [Step(kind, name, number, seconds[name])
            for number in range(count) for name in source.sample(list(seconds), len(seconds))]


def conduct(file: Path, steps: list, attempt: Callable) -> None:
    """Appends what `attempt(step)` returns, a dict, for each step that the file does not have.

    A step that fails is reported and left for the next time. Raises `Failed` if several fail in a row.
    """
    have = {(line.get("kind"), line.get("effect"), line.get("number")) for line in read(file)}
    left = [step for step in steps if step.key not in have]
    begun, expected_done, failures = time.monotonic(), 0.0, 0
    for done, step in enumerate(left):
        expected_left = sum(one.seconds for one in left[done:])
        pace = (time.monotonic() - begun) / expected_done if expected_done else 1
        progress(f"{done + 1} of {len(left)}: {step.kind}, {step.effect}, number {step.number}; "
                 f"about {duration(expected_left * pace)} left\n")
        expected_done += step.seconds
        try:
            append(file, {"kind": step.kind, "effect": step.effect, "number": step.number, **attempt(step)})
            failures = 0
        except Failed as error:
            failures += 1
            progress(f"failed: {error}\n")
            if failures == FAILURES_IN_A_ROW_MAX:
                raise Failed(f"{failures} comparisons failed in a row") from error


def read(file: Path) -> list:
    """The lines of a file, which may not exist yet."""
    return parsed(file.read_text().splitlines()) if file.exists() else []


def parsed(lines: Iterable[str]) -> list:
    """One dict for each line, without a line that an interruption cut off."""
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def append(file: Path, line: dict) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a+b") as out:
        # A line that was cut off must not swallow this one.
        end = out.seek(0, os.SEEK_END)
        if end:
            out.seek(end - 1)
            if out.read(1) != b"\n":
                out.write(b"\n")
        out.write(json.dumps(line).encode() + b"\n")


def print_tables(description: str, of: str, draw: Callable) -> int:
    """The command of a table: prints what `draw(lines)` makes of the files that are named, which are `of` a study."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=of)
    text = draw([line for file in parser.parse_args().files for line in read(file)])
    if not text:
        print("error: nothing is finished in these files", file=sys.stderr)
        return 1
    print(text)
    return 0


def duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
