#!/usr/bin/env python3
"""Tables of what real.py and by_hand.py found: how often each method is wrong, and its time.

    python3 bench/truth/tables.py FILE...
"""

import sys
from statistics import median
from typing import Optional, Sequence

from effects import EFFECTS, MARGIN
from replay import PLANS, replayed
from reuse import section
from study import duration, print_tables
from student import paired
from tally import BETTER, EQUIVALENT, WORSE, Share, by_larger_mean, by_t_test, covering, lag_one, outcomes, pooled_ratio, wrong

ABSENT = "–"
RUNS_TO_REPLAY_MIN = 5
RUNS_HEADER = ["", "build", "runs", "right", "wrong", "open or void", "all blocks", "intervals that hold the truth", "width, median",
               "time, median", "longest", "of it load", "blocks, median", "spread of blocks, median", "steal, mean"]
WRONG_HEADER = ["", "larger mean wins", "if larger by the margin", "Welch's t-test, 95 %", "time by hand", "pairs, t-test", "time",
                "Proofload", "time"]


def right(effect: str) -> str:
    """Everything that is planted is for the worse."""
    return EQUIVALENT if EFFECTS[effect].none else WORSE


def wrong_words(effect: str) -> tuple:
    return (BETTER, WORSE) if EFFECTS[effect].none else (BETTER, EQUIVALENT)


def runs_table(lines: Sequence[dict]) -> str:
    """A row for each effect and build."""
    builds = sorted({line["kind"] for line in lines})
    rows = [RUNS_HEADER]
    for effect in EFFECTS:
        for build in builds:
            runs = [line for line in of_effect(lines, effect) if line["kind"] == build]
            if runs:
                rows.append(runs_row(effect, build, runs))
    return section("Runs of proofload", rows, [])


def runs_row(effect: str, build: str, runs: Sequence[dict]) -> list:
    estimates = [run["estimate"] for run in runs]
    pooled, seconds = pooled_ratio(estimates), [run["seconds"] for run in runs]
    spreads = [one["sd_log"] for one in estimates if one]
    steal = [run["steal"] for run in runs if run["steal"] is not None]
    found, mistaken = outcomes(runs, right(effect)), outcomes(runs, *wrong_words(effect))
    return [f"{effect} ({EFFECTS[effect].metric})", build, str(len(runs)), shown(found), shown(mistaken),
            str(len(runs) - found.count - mistaken.count), ABSENT if pooled is None else f"{pooled - 1:+.1%}",
            shown(covering(estimates, [run.get("truth", EFFECTS[effect].truth) for run in runs])), width(estimates), f"{median(seconds):.0f} s", f"{max(seconds):.0f} s",
            f"{median(run['load_seconds'] for run in runs):.0f} s", f"{median(run['blocks'] for run in runs):g}",
            f"{median(spreads):.2%}" if spreads else ABSENT, f"{sum(steal) / len(steal):.1%}" if steal else ABSENT]


def wrong_table(by_hand: Sequence[dict], pairs: Sequence[dict], lab: Sequence[dict]) -> str:
    """How often each method is wrong."""
    rows = [WRONG_HEADER]
    for name in EFFECTS:
        hand, paired_runs, runs = (of_effect(lines, name) for lines in (by_hand, pairs, lab))
        if not hand and not paired_runs:
            continue
        methods = [[by_larger_mean(line) for line in hand], [by_larger_mean(line, MARGIN) for line in hand],
                   [by_t_test(line) for line in hand], [by_t_test(line, paired) for line in paired_runs],
                   [run["outcome"] for run in runs]]
        kinds = ["false_difference"] if EFFECTS[name].none else ["wrong_sign", "missed"]
        for kind in kinds:
            cells = [percent(getattr(wrong(answers), kind)) if answers else ABSENT for answers in methods]
            rows.append([f"{name}: {kind.replace('_', ' ')}", *cells[:3], time_of(hand), cells[3], time_of(paired_runs), cells[4],
                         time_of(runs)])
    return section("How often each method is wrong", rows, [])


def of_effect(lines: Sequence[dict], name: str) -> list:
    return [line for line in lines if line["effect"] == name]


def time_of(lines: Sequence[dict]) -> str:
    return f"{median(line['seconds'] for line in lines):.0f} s" if lines else ABSENT


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


def dependence(lines: Sequence[dict]) -> list:
    """What neighbouring blocks have in common where nothing differs."""
    series = [line["log_ratios"] for line in lines if EFFECTS[line["effect"]].none and line.get("log_ratios")]
    correlation = lag_one(series)
    if correlation is None:
        return []
    return [f"- neighbouring blocks of services against themselves: correlation {correlation:+.2f}, {sum(map(len, series))} blocks of {len(series)} runs"]


def replays(lines: Sequence[dict]) -> str:
    """False differences in plans of other lengths, from blocks of runs whose log ratios are there."""
    rows = [["", "blocks", "correlation of neighbours", *(f"{blocks} blocks" for blocks in PLANS)]]
    for effect in EFFECTS:
        series = [line["log_ratios"] for line in of_effect(lines, effect) if EFFECTS[effect].none and line.get("log_ratios")]
        if len(series) >= RUNS_TO_REPLAY_MIN:
            rows.append([effect, str(sum(map(len, series))), f"{lag_one(series):+.2f}",
                         *(f"{replayed(series, blocks, 1).value:.1%}" for blocks in PLANS)])
    return section("False differences, replayed from their blocks", rows, []) if len(rows) > 1 else ""


def builds_against(lines: Sequence[dict]) -> list:
    """The time of each further build over that of the first, over pairs of runs."""
    first, *others = sorted({line["kind"] for line in lines})
    notes = []
    for build in others:
        seconds = {(line["kind"], line["effect"], line["number"]): line["seconds"] for line in lines}
        ratios = [seconds[build, *key] / value for (kind, *key), value in seconds.items() if kind == first and (build, *key) in seconds]
        if ratios:
            notes.append(f"- {build} / {first} in time: median {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) of {len(ratios)} pairs")
    return notes


def drawn(lines: Sequence[dict]) -> str:
    """All tables for which there is something, and what a reader must know besides."""
    by_hand, pairs, calibrations = ([line for line in lines if line.get("kind") == kind] for kind in ("by-hand", "by-hand-pairs", "calibration"))
    lab = [line for line in lines if "outcome" in line]
    parts = []
    if by_hand or pairs:
        parts.append(wrong_table(by_hand, pairs, lab))
    if lab:
        parts += [runs_table(lab), *filter(None, [replays(lab)])]
    timed = lab + by_hand + pairs
    notes = [calibration_line(line) for line in calibrations]
    if lab:
        notes += dependence(lab) + builds_against(lab)
    if timed:
        notes.append(f"- time in all: {duration(sum(line['seconds'] for line in timed))}")
    return "\n\n".join([*parts, "\n".join(notes)]) if parts else ""


if __name__ == "__main__":
    sys.exit(print_tables(__doc__.splitlines()[0], "of real.py and by_hand.py", drawn))
