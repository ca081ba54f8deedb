#!/usr/bin/env python3
"""Holds `proofload compare` with a budget of 40 s against alternated runs of wrk by hand, on ordinary services that nobody planted effects in.

The rows are in ordinary_rows.py. A table is printed at the end, and for --table alone. Loopback only. Needs wrk, npm, Python's venv, a JDK and
Go; rows of nginx and PostgreSQL are skipped without these.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from math import exp, inf, log
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple, Optional

from by_hand import found_wrk
from ordinary_rows import ROWS, Row
from ordinary_services import INSTALLED, SOURCES, Measured, alternated, beside, checked, environment, install, missing
from reuse import Failed, processor, progress
from student import critical
from study import Step, add_proofload, command, conduct, read
from variance import steal, steal_since

BUDGET_S = 40
GRACE_S = 60
ROW_S = 110
MARGIN = log(1.03)
LARGE = log(1.2)  # a difference that a comparison must not leave open
FAILED_MAX = 0.01
DECIDED = ("better", "worse")
RIGHT, WRONG, USELESS, OPEN, UNKNOWN = "right", "wrong", "useless", "inconclusive", "truth unknown"


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_proofload(parser)
    parser.add_argument("--out", metavar="FILE", type=Path, help="JSON lines are appended here; what it already has is not repeated")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=list(ROWS), help="rows, by their names or parts of them")
    parser.add_argument("--again", type=int, default=1, metavar="N", help="how often each row [1]")
    parser.add_argument("--install", action="store_true", help=f"first install packages and compile services, into {INSTALLED}")
    parser.add_argument("--check", action="store_true", help="only start each side once and ask it once")
    parser.add_argument("--truth", action="store_true", help="only the runs by wrk, kept beside the comparisons")
    parser.add_argument("--table", action="store_true", help="only print the table of what --out has")
    parser.add_argument("--list", action="store_true", help="only print the names")
    options = parser.parse_args()
    if not (options.out or options.check or options.list):
        parser.error("--out is needed to keep what is measured")
    return options


def chosen(parts: list) -> dict:
    """Rows whose name has one of these parts; a whole name means that row alone. Raises `Failed` for a part of no name."""
    names = []
    for part in parts:
        found = [part] if part in ROWS else [name for name in ROWS if part.lower() in name.lower()]
        if not found:
            raise Failed(f"--only {part}: no such row; --list has them")
        names += found
    return {name: ROWS[name] for name in dict.fromkeys(names)}


def study(options: argparse.Namespace) -> None:
    rows = chosen(options.only)
    if options.list:
        print("\n".join(rows))
        return
    if not options.table:
        found_wrk()
    if options.install:
        install()
    if not options.table:
        with tempfile.TemporaryDirectory(prefix="bench-truth-") as folder:
            env = environment(folder)
            rows = possible(rows, env)
            if options.check:
                check(rows, env)
                return
            measure(options, rows, env)
    print(table([line for line in read(options.out) if line["effect"] in rows]))


def possible(rows: dict, env: dict) -> dict:
    """Rows whose programs are there."""
    for name, row in rows.items():
        if missing(row, env):
            progress(f"skipped: {name}: {', '.join(missing(row, env))} is missing\n")
    return {name: row for name, row in rows.items() if not missing(row, env)}


def check(rows: dict, env: dict) -> None:
    """Raises `Failed` if a side of a row does not start or does not answer with 200."""
    bad = []
    for name, row in rows.items():
        try:
            statuses = checked(row, env)
        except Failed as error:
            statuses = str(error)
        if statuses != [200, 200]:
            bad.append(name)
        progress(f"{name}: {statuses}\n")
    if bad:
        raise Failed(f"{len(bad)} of {len(rows)} rows do not answer: {'; '.join(bad)}")
    progress(f"all {len(rows)} rows answer\n")


def measure(options: argparse.Namespace, rows: dict, env: dict) -> None:
    def attempt(step: Step) -> dict:
        row, begun, stolen = rows[step.effect], time.monotonic(), steal()
        with beside(row, env) as within:
            verdict = {} if options.truth else compared(options.proofload, row, within)
            pairs = [] if row.known else alternated(row, within)
        return {**verdict, "known": row.known, "by_wrk": pairs, "row_seconds": round(time.monotonic() - begun, 1),
                "steal": steal_since(stolen), "machine": processor()}

    kind = "truth" if options.truth else "ordinary"
    conduct(options.out, [Step(kind, name, number, ROW_S) for number in range(options.again) for name in rows], attempt)


def words(proofload: str, row: Row, record: str) -> list:
    """The command line of a comparison."""
    headers = [word for header in row.headers for word in ("-H", header)]
    body = ["--body", row.body] if row.body else []
    return [proofload, "compare", row.baseline, row.candidate, "--path", row.path, *headers, *body, *row.flags,
            "--budget", f"{BUDGET_S}s", "--format", "json", "--out", record]


def compared(proofload: str, row: Row, env: dict) -> dict:
    """What is kept of a comparison, one without a report included."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-truth-") as folder:
        line = words(str(Path(proofload).resolve()), row, f"{folder}/record")
        try:
            # `run` kills the command also when this program is interrupted, and its services end with it.
            done = subprocess.run(line, cwd=SOURCES, env=env, capture_output=True, text=True, timeout=BUDGET_S + GRACE_S)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"proofload was not done after {BUDGET_S + GRACE_S} s") from error
    took = {"code": done.returncode, "seconds": round(time.monotonic() - begun, 1)}
    try:
        return {**took, **kept(json.loads(done.stdout))}
    except (LookupError, ValueError):
        return {**took, "outcome": "failed", "estimate": None, "said": done.stderr[-500:].strip()}


def kept(report: dict) -> dict:
    (comparison,) = report["comparisons"]
    about = ("metric", "outcome", "estimate", "per_second", "at_least", "at_most", "ratio_so_far")
    return {**{key: comparison.get(key) for key in about}, "blocks": report["blocks"], "ended": report["ended"]["reason"],
            "without_spread": comparison.get("without_spread"),
            "findings": [[one["number"], one["grade"], one["evidence"]] for one in report["findings"]],
            "seed": report["seed"], "proofload": report["proofload"]}


class Truth(NamedTuple):
    """Logarithm of candidate ÷ baseline, as an interval of 95 % or as known by construction."""

    low: float
    high: float
    cpu: Optional[float] = None  # the same of CPU time per response
    failed: float = 0.0

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2


def truth_of(line: dict) -> Optional[Truth]:
    """`None` from fewer than two pairs of runs."""
    if line["known"]:
        low, high = line["known"]
        return Truth(log(low), log(high))
    pairs = [[Measured(*side) for side in pair] for pair in line["by_wrk"]]
    if len(pairs) < 2:
        return None
    logs = [log(candidate.per_s / baseline.per_s) for baseline, candidate in pairs]
    half = critical(len(logs) - 1) * stdev(logs) / len(logs) ** 0.5
    costs = [log(candidate.cpu_us / baseline.cpu_us) for baseline, candidate in pairs if candidate.cpu_us and baseline.cpu_us]
    failed = max(side.failed for pair in pairs for side in pair)
    return Truth(mean(logs) - half, mean(logs) + half, mean(costs) if costs else None, failed)


def class_of(line: dict) -> str:
    """A verdict is wrong if its sign is, or if its interval and that of the truth lie further apart than the margin."""
    truth = truth_of(line)
    outcome = line.get("outcome")
    if truth is None or outcome is None:
        return UNKNOWN
    if truth.failed > FAILED_MAX:
        return RIGHT if outcome == "invalid" else WRONG if outcome in (*DECIDED, "equivalent") else OPEN
    if outcome == "equivalent":
        beyond = max(truth.low, -truth.high)
        return WRONG if beyond > MARGIN else RIGHT
    if outcome in DECIDED:
        low, high = bounds(line)
        opposite = truth.high < 0 if low > 0 else truth.low > 0 if high < 0 else False
        apart = max(truth.low - high, low - truth.high)
        return WRONG if opposite or apart > MARGIN else RIGHT
    return USELESS if max(truth.low, -truth.high) > 0 and abs(truth.middle) > LARGE else OPEN


def bounds(line: dict) -> tuple:
    """Logarithms of the interval of a verdict, open where only one end is given; of a verdict without an interval, its ratio twice."""
    estimate = line["estimate"] or {}
    ratio = line.get("without_spread") or line.get("ratio_so_far")
    if ratio and not (estimate or line.get("at_least") or line.get("at_most")):
        return log(ratio), log(ratio)
    low, high = (estimate.get(end, line.get(other)) for end, other in (("low", "at_least"), ("high", "at_most")))
    return log(low) if low else -inf, log(high) if high else inf


def table(lines: list) -> str:
    """One row for each comparison, and how many of each class."""
    rows = ["| comparison | verdict | interval | truth | CPU per response | class | findings | s |", "|---|---|--:|--:|--:|---|---|--:|"]
    classes = Counter()
    for line in sorted(lines, key=lambda line: list(ROWS).index(line["effect"])):
        class_ = class_of(line)
        classes[class_] += 1
        findings = " ".join(number for number, grade, _ in line.get("findings", []) if grade != "note")
        rows.append(f"| {line['effect']} | {line.get('outcome', '')} | {interval_text(line)} | {truth_text(truth_of(line))} | {cpu_text(truth_of(line))} "
                    f"| {class_} | {findings} | {line['row_seconds']:.0f} |")
    return "\n".join([*rows, "", ", ".join(f"{class_} {count}" for class_, count in classes.most_common())])


def interval_text(line: dict) -> str:
    estimate = line.get("estimate")
    if estimate:
        return f"{estimate['ratio'] - 1:+.1%} ({estimate['low'] - 1:+.1%} to {estimate['high'] - 1:+.1%})"
    ends = [f"{word} ×{line[key]:.2f}" for key, word in (("at_least", "at least"), ("at_most", "at most")) if line.get(key)]
    return " ".join(ends)


def truth_text(truth: Optional[Truth]) -> str:
    return f"{exp(truth.middle) - 1:+.1%} ({exp(truth.low) - 1:+.1%} to {exp(truth.high) - 1:+.1%})" if truth else ""


def cpu_text(truth: Optional[Truth]) -> str:
    return f"{exp(truth.cpu) - 1:+.1%}" if truth and truth.cpu is not None else ""


if __name__ == "__main__":
    sys.exit(command(study, parse_options()))
