#!/usr/bin/env python3
"""Plants faults of measurements on real services, and tests whether the checks find them, and find nothing without them.

Each fault of catalogue.py is run by `proofload run` as often as asked, and its sound experiment as often as that.
Service on core 0, client on core 1, loopback only, unless a fault says otherwise. faults_table.py shows what was found.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Optional

import beside
from catalogue import BUSY_LOOPS, FAULTS, ORPHAN, PORT_TAKEN, PREVENTED, REFUSED, STALE_SERVER, Fault
from experiment import REPORTED, kept, report_and_events
from reuse import Failed, ended, free_port, progress
from study import Step, add_options, add_proofload, command, conduct
from toml_writer import toml_text

KINDS = {"sound": False, "fault": True}
SECONDS_MAX = 240  # the budget of an experiment and what it takes to end
NOT_STARTED = 3  # exit code


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, count=1, flag="--repeat")
    add_proofload(parser)
    parser.add_argument("--only", metavar="FAULT", nargs="+", choices=list(FAULTS), default=list(FAULTS),
                        help=f"these and no others: {', '.join(FAULTS)}")
    parser.add_argument("--kind", nargs="+", choices=list(KINDS), default=list(KINDS),
                        help="with the fault, without it, or both [both]")
    return parser.parse_args()


def study(options: argparse.Namespace) -> None:
    chosen = {name: FAULTS[name] for name in options.only if can_run(name, FAULTS[name])}
    checks = implemented(options.proofload)

    def attempt(step: Step) -> dict:
        return {"checks": checks, **run(options.proofload, chosen[step.effect], step, step.seed(options.seed))}

    conduct(options.out, steps(chosen, options.kind, options.count, options.seed), attempt)


def can_run(name: str, fault: Fault) -> bool:
    if not fault.needs_root or (os.geteuid() == 0 and shutil.which("ip") and shutil.which("tc")):
        return True
    progress(f"left out: {name}, which takes root, and ip and tc (apt-get install iproute2)\n")
    return False


def implemented(proofload: str) -> list:
    """The checks that this proofload has: one that it does not have cannot raise a false alarm."""
    listed = subprocess.run([proofload, "explain", "--json"], capture_output=True, text=True, check=True)
    return sorted(check["check"] for check in json.loads(listed.stdout)["checks"])


def steps(chosen: dict, kinds: list, count: int, seed: int) -> list:
    """Each fault with and without, in a random order in each round; those that leave something behind come last."""
    source = random.Random(seed)
    result = []
    for number in range(count):
        all_of_it = [Step(kind, name, number, fault.seconds_of(KINDS[kind]))
                     for name, fault in chosen.items() for kind in kinds]
        drawn = source.sample(all_of_it, len(all_of_it))
        result += sorted(drawn, key=lambda step: chosen[step.effect].litters)
    return result


def run(proofload: str, fault: Fault, step: Step, seed: int) -> dict:
    """One run and what is kept of it. Raises `Failed` if there is no report."""
    faulty = KINDS[step.kind]
    beside.await_few_closing()
    with tempfile.TemporaryDirectory(prefix="bench-truth-") as folder:
        known = {"@folder": folder, "@port": free_port(), "@now_ms": round(time.time() * 1000),
                 "@seconds": 1_000_000 + os.getpid()}
        file, record = Path(folder) / f"{step.effect}.toml", Path(folder) / "record"
        file.write_text(toml_text(filled(fault.experiment(step.effect, faulty), known)))
        arguments = [proofload, "run", str(file), "--events", "--seed", str(seed), "--out", str(record)]
        planted = fault.beside if faulty else None
        with planted_beside(planted, known):
            code, output, errors = ended(arguments, SECONDS_MAX)
        left = beside.sleepers(str(known["@seconds"])) if planted == ORPHAN else None
        beside.end(left or [])
        if code == NOT_STARTED and faulty:
            return {"findings": [[REFUSED, "invalid", reason(errors)]], "exit": code}
        if code not in REPORTED:
            raise Failed(f"proofload ended with {code}: {errors[-500:].strip()}")
        # Whether a process that was to outlive its trial was ended.
        prevented = {} if left is None else {PREVENTED: not left}
        report, events = report_and_events(output, record)
        findings = [[finding["check"], finding["grade"], finding["evidence"]] for finding in report["findings"]]
        return {**kept(report, events), "findings": findings, "exit": code, **prevented}


def planted_beside(what: Optional[str], known: dict) -> AbstractContextManager:
    begin = {STALE_SERVER: lambda: beside.stale_servers(Path(known["@folder"]) / "ports"),
             PORT_TAKEN: lambda: beside.stale_server(known["@port"]), BUSY_LOOPS: beside.busy_loops}
    return begin.get(what, nullcontext)()


def filled(value: object, known: dict) -> object:
    """With the known values filled in. A text that is only `@port` becomes the number."""
    if isinstance(value, dict):
        return {key: filled(one, known) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, known) for one in value]
    if value == "@port":
        return known["@port"]
    if isinstance(value, str):
        for name, one in known.items():
            value = value.replace(name, str(one))
    return value


def reason(errors: str) -> str:
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("error")), lines[-1] if lines else "no message")


if __name__ == "__main__":
    sys.exit(command(study, parse_options()))
