#!/usr/bin/env python3
"""Tables of what real_aa.py, planted.py and by_hand.py found: how often each method is wrong, and its time.

    python3 bench/truth/tables.py FILE...
"""

import sys
from statistics import median
from typing import Optional, Sequence

from effects import EFFECTS, NONE
from reuse import section
from study import duration, print_tables
from tally import (BETTER, EQUIVALENT, WORSE, Share, by_larger_mean, by_t_test, covering, excluding_one, outcomes,
                   pooled_ratio, wrong)

ABSENT = "–"
AA_HEADER = ["", "comparisons", "false differences", "intervals that hold 1", "verdicts", "width, median",
             "blocks, median", "time, median"]
PLANTED_HEADER = ["", "runs", "found", "wrong sign", "equivalent", "void", "effect, all blocks",
                  "intervals that hold it", "that hold the planted", "to the verdict, median", "longest",
                  "of it load, median", "steal, mean"]
WRONG_HEADER = ["", "larger mean wins", "if larger by the margin", "Welch's t-test, 95 %", "time by hand",
                "Proofload", "time"]


def aa_table(lines: Sequence[dict]) -> str:
    """A service against itself: the verdict is about throughput; CPU per request is told beside it."""
    throughput, cpu = [line["estimate"] for line in lines], [line["cpu_per_request"] for line in lines]
    times = [f"{median(line['blocks'] for line in lines):g}", f"{median(line['seconds'] for line in lines):.1f} s"]
    rows = [AA_HEADER,
            ["throughput", str(len(lines)), shown(outcomes(lines, BETTER, WORSE)), shown(covering(throughput, 1.0)),
             verdicts(lines), width(throughput), *times],
            ["CPU per request, exploratory", str(len(lines)), shown(excluding_one(cpu)), shown(covering(cpu, 1.0)),
             ABSENT, width(cpu), *times]]
    return section("A service against itself", rows, [])


def planted_table(lines: Sequence[dict]) -> str:
    by_effect = {name: [line for line in lines if line["effect"] == name] for name in EFFECTS}
    rows = [PLANTED_HEADER] + [planted_row(name, runs) for name, runs in by_effect.items() if runs]
    return section("Planted effects", rows, [])


def planted_row(name: str, runs: Sequence[dict]) -> list:
    estimates = [run["estimate"] for run in runs]
    pooled, seconds = pooled_ratio(estimates), [run["seconds"] for run in runs]
    steal = [run["steal"] for run in runs if run["steal"] is not None]
    return [f"{name} ({EFFECTS[name].metric})", str(len(runs)), shown(outcomes(runs, WORSE)),
            counted(outcomes(runs, BETTER)), counted(outcomes(runs, EQUIVALENT)), counted(outcomes(runs, "void")),
            ABSENT if pooled is None else f"{pooled - 1:+.1%}", shown(covering(estimates, pooled)),
            shown(covering(estimates, EFFECTS[name].truth)), f"{median(seconds):.0f} s", f"{max(seconds):.0f} s",
            f"{median(run['load_seconds'] for run in runs):.0f} s",
            f"{sum(steal) / len(steal):.1%}" if steal else ABSENT]


def wrong_table(by_hand: Sequence[dict], lab: Sequence[dict]) -> str:
    """How often each method is wrong: `lab` has the lines of both real_aa.py and planted.py."""
    rows = [WRONG_HEADER]
    for name, effect in [("none", NONE), *EFFECTS.items()]:
        hand, runs = of_effect(by_hand, name), of_effect(lab, name)
        if not hand and not runs:
            continue
        methods = [[by_larger_mean(line) for line in hand],
                   [by_larger_mean(line, effect.margin_share) for line in hand],
                   [by_t_test(line) for line in hand],
                   [run["outcome"] for run in runs]]
        kinds = ["false_difference"] if name == "none" else ["wrong_sign", "missed"]
        for kind in kinds:
            cells = [percent(getattr(wrong(answers), kind)) if answers else ABSENT for answers in methods]
            rows.append([f"{name}: {kind.replace('_', ' ')}", *cells[:3], time_of(hand), cells[3], time_of(runs)])
    return section("How often each method is wrong", rows, [])


def of_effect(lines: Sequence[dict], name: str) -> list:
    return [line for line in lines if line["effect"] == name]


def time_of(lines: Sequence[dict]) -> str:
    return f"{median(line['seconds'] for line in lines):.0f} s" if lines else ABSENT


def verdicts(lines: Sequence[dict]) -> str:
    kinds = sorted({line["outcome"] for line in lines})
    return ", ".join(f"{outcomes(lines, kind).count} {kind}" for kind in kinds)


def width(estimates: Sequence[Optional[dict]]) -> str:
    """Of the whole interval, from its lower to its upper end."""
    present = [one["high"] / one["low"] - 1 for one in estimates if one]
    return f"{median(present):.1%}" if present else ABSENT


def shown(share: Optional[Share]) -> str:
    if share is None:
        return ABSENT
    low, high = share.interval()
    return f"{counted(share)}, {share.value:.0%} ({low:.0%} to {high:.0%})"


def counted(share: Share) -> str:
    return f"{share.count} of {share.of}"


def percent(share: Share) -> str:
    return f"{share.value:.0%} ({counted(share)})"


def calibration_line(line: dict) -> str:
    error = line["percent_standard_error"]
    accuracy = "" if error is None else f" ± {error:.2f}"
    cost = f"{line['percent']:.2f}{accuracy} % of the {line['plain_us']:.0f} µs per request"
    return (f"- calibration: {line['spin']:,} turns cost {cost} (standard error of {len(line['pairs'])} pairs), so "
            f"{line['turns_per_percent']:.0f} turns make 1 %")


def drawn(lines: Sequence[dict]) -> str:
    """All tables for which there is something, and what a reader must know besides."""
    kinds = {kind: [line for line in lines if line.get("kind") == kind]
             for kind in ("real-aa", "planted", "by-hand", "calibration")}
    lab = kinds["real-aa"] + kinds["planted"]
    parts = []
    if lab or kinds["by-hand"]:
        parts.append(wrong_table(kinds["by-hand"], lab))
    if kinds["real-aa"]:
        parts.append(aa_table(kinds["real-aa"]))
    if kinds["planted"]:
        parts.append(planted_table(kinds["planted"]))
    timed = lab + kinds["by-hand"]
    notes = [calibration_line(line) for line in kinds["calibration"]]
    if timed:
        notes.append(f"- time in all: {duration(sum(line['seconds'] for line in timed))}")
    return "\n\n".join([*parts, "\n".join(notes)]) if parts else ""


if __name__ == "__main__":
    sys.exit(print_tables(__doc__.splitlines()[0], "of real_aa.py, planted.py and by_hand.py", drawn))
