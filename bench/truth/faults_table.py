#!/usr/bin/env python3
"""Tables of faults.py's results: how many faults the checks find, and how often they report one that is not there.

    python3 bench/truth/faults_table.py FILE...
"""

import sys
from collections import Counter
from typing import Sequence

from catalogue import FAULTS, GRADES, NOT_COVERED, NOTE, OF_THE_HOST, PREVENTED, RENAMED_CHECKS, RENAMED_FAULTS, Fault
from reuse import section
from study import duration, print_tables
from tables import ABSENT, shown
from tally import Share

FAULTS_HEADER = ["fault", "what is wrong", "to be found by", "found", "what else was found"]
ALARMS_HEADER = ["check", "gravest", "false alarms", "in the sound experiments of"]
ALL = "all checks"


def found_at(line: dict) -> dict:
    """The gravest grade of each check with a finding."""
    grades = {}
    for check, grade, *_ in line["findings"]:
        if check not in grades or GRADES.index(grade) < GRADES.index(grades[check]):
            grades[check] = grade
    return grades


def is_found(line: dict, fault: Fault) -> bool:
    """Whether an expected check found it, as gravely as it should. What was prevented needs no finding."""
    if PREVENTED in fault.checks and line.get(PREVENTED):
        return True
    grades = found_at(line)
    return any(GRADES.index(grades[check]) <= GRADES.index(fault.grade) for check in fault.checks if check in grades)


def alarms(line: dict, fault: Fault) -> dict:
    """The warnings and worse of a run without the fault, except for those that are true."""
    return {check: grade for check, grade in found_at(line).items() if grade != NOTE and check not in fault.of_sound}


def faults_table(lines: Sequence[dict]) -> str:
    by_fault = {name: [line for line in lines if line["effect"] == name] for name in FAULTS}
    rows = [fault_row(name, runs) for name, runs in by_fault.items() if runs]
    hits = [is_found(line, FAULTS[line["effect"]]) for line in lines]
    total = ["all", "", "", shown(Share(sum(hits), len(hits))), ""]
    return section("Planted faults", [FAULTS_HEADER, *rows, total], [])


def fault_row(name: str, runs: Sequence[dict]) -> list:
    fault = FAULTS[name]
    expected = f"{' or '.join(fault.checks)} ({fault.grade})"
    hits = Share(sum(is_found(line, fault) for line in runs), len(runs))
    return [name, fault.wrong, expected, f"{hits.count} of {hits.of}", others(runs, fault)]


def others(runs: Sequence[dict], fault: Fault) -> str:
    """Other findings, and in how many runs if not in all. A grade other than expected counts too."""
    counts = Counter(f"{check} ({grade})" for line in runs for check, grade in found_at(line).items()
                     if check not in fault.checks or GRADES.index(grade) > GRADES.index(fault.grade))
    told = [f"{what}" if count == len(runs) else f"{what} in {count}" for what, count in sorted(counts.items())]
    return ", ".join(told) or ABSENT


def alarms_table(lines: Sequence[dict]) -> str:
    """Each check of a sound run counts once, except for those that are true of it."""
    asked, fired, where, gravest = Counter(), Counter(), {}, {}
    for line in lines:
        fault = FAULTS[line["effect"]]
        spoke = alarms(line, fault)
        asked.update((set(line["checks"]) | set(spoke)) - set(fault.of_sound))
        fired.update(spoke.keys())
        for check, grade in spoke.items():
            where.setdefault(check, set()).add(line["effect"])
            gravest[check] = min(grade, gravest.get(check, grade), key=GRADES.index)
    row = {check: [check, gravest[check], shown(Share(fired[check], asked[check])), ", ".join(sorted(where[check]))]
           for check in sorted(fired)}
    ours = [check for check in asked if check not in OF_THE_HOST]
    total = Share(sum(fired[check] for check in ours), sum(asked[check] for check in ours))
    rows = [ALARMS_HEADER, *[row[check] for check in row if check not in OF_THE_HOST],
            [ALL, "", shown(total) if total.of else ABSENT, f"{len(lines)} runs"]]
    rows += [[f"{check}, of the host", *row[check][1:]] for check in row if check in OF_THE_HOST]
    notes = ["- Findings about the host may be true, and do not count as false. Notes do not count either."]
    return section("Sound experiments", rows, notes)


def not_covered() -> str:
    return "\n".join(f"- not planted: {checks}: {why}" for checks, why in NOT_COVERED.items())


def renamed(line: dict) -> dict:
    """With the names of today."""
    effect = line.get("effect")
    check_of = lambda name: RENAMED_CHECKS.get(name, name)
    return {**line, "effect": RENAMED_FAULTS.get(effect, effect),
            "checks": [check_of(check) for check in line.get("checks", [])],
            "findings": [[check_of(check), *more] for check, *more in line.get("findings", [])]}


def drawn(lines: Sequence[dict]) -> str:
    known = [line for line in map(renamed, lines) if line.get("effect") in FAULTS]
    faulty, sound = ([line for line in known if line["kind"] == kind] for kind in ("fault", "sound"))
    parts = [faults_table(faulty)] if faulty else []
    parts += [alarms_table(sound)] if sound else []
    seconds = sum(line.get("seconds") or 0 for line in known)
    return "\n\n".join([*parts, f"{not_covered()}\n- time in all: {duration(seconds)}"]) if parts else ""


if __name__ == "__main__":
    sys.exit(print_tables(__doc__.splitlines()[0], "of faults.py", drawn))
