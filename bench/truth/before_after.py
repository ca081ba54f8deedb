#!/usr/bin/env python3
"""Looks for planted effects by two builds of proofload in turn: how long does each take to its verdict, and is it right?

Each pair has the same effect, budget and seed, in an order drawn for it; warm-up, slices and blocks are the builds' own choice. Without
`--before` there is only the one build. The calibration
is that of `planted.py`, in the same file. Service on core 0, client on core 1, loopback only.
"""

import argparse
import random
import sys
from statistics import median

from effects import EFFECTS, NONE, calibration_in, variables
from experiment import Variants, run
from planted import calibrate
from reuse import positive
from study import Step, add_options, append, command, conduct, read

SIDES = ("before", "after")
# What each plants, by name.
PLANTED = {"none": NONE, **EFFECTS}
WRONG_WITHOUT_EFFECT = ("better", "worse")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, count=6)
    for side in SIDES:
        parser.add_argument(f"--{side}", metavar="FILE", required=side == "after", help=f"the build of proofload {side}")
    parser.add_argument("--effect", nargs="+", choices=list(PLANTED), default=["none", "spin-5", "spin-10"], help="which [none, 5, 10 %%]")
    parser.add_argument("--pairs", type=positive, default=10, help="of processes for the calibration [10]")
    parser.add_argument("--budget", type=positive, metavar="S", default=300, help="of each run in seconds [300]")
    return parser.parse_args()


def study(options: argparse.Namespace) -> None:
    calibration = calibration_in(read(options.out))
    if calibration is None:
        calibration = calibrate(options.after, options.pairs, options.seed)
        append(options.out, calibration)
    source = random.Random(options.seed)
    steps = [Step(side, effect, number, options.budget / 3)
             for number in range(options.count) for effect in source.sample(options.effect, len(options.effect))
             for side in source.sample(SIDES, 2) if getattr(options, side)]

    def attempt(step: Step) -> dict:
        effect = PLANTED[step.effect]._replace(budget_s=options.budget, margin="3%", design={})
        sides = Variants({"NOT_READ": "1"}, variables(effect, calibration) or {"NOT_READ": "2"})
        # The same for both sides.
        seed = Step("pair", step.effect, step.number, 0).seed(options.seed)
        return run(getattr(options, step.kind), step.effect, sides, effect, seed)

    conduct(options.out, steps, attempt)
    print(table(read(options.out)))


def table(lines: list) -> str:
    """One row for each effect and side, and the ratio of times over pairs."""
    rows = ["| planted | build | runs | right | wrong | open | time, median | longest | blocks, median | spread of blocks, median |",
            "|---|---|---|---|---|---|---|---|---|---|"]
    effects = sorted({line["effect"] for line in lines if line.get("kind") in SIDES})
    for effect in effects:
        for side in SIDES:
            of = [line for line in lines if (line.get("kind"), line.get("effect")) == (side, effect)]
            words = [line["outcome"] for line in of]
            right = sum(word == ("equivalent" if effect == "none" else "worse") for word in words)
            wrong = sum(word in (WRONG_WITHOUT_EFFECT if effect == "none" else ("better", "equivalent")) for word in words)
            spreads = [line["estimate"]["sd_log"] for line in of if line.get("estimate")]
            times, blocks = [line["seconds"] for line in of], [line["blocks"] for line in of]
            if of:
                rows.append(f"| {effect} | {side} | {len(of)} | {right} | {wrong} | {len(of) - right - wrong} | {median(times):.0f} s "
                            f"| {max(times):.0f} s | {median(blocks):.0f} | {100 * median(spreads or [0]):.2f} % |")
    for effect in effects:
        # Of one build alone there are none.
        ratios = ratios_of_pairs(lines, effect)
        if ratios:
            rows.append(f"\n{effect}: after / before in time, median of {len(ratios)} pairs {median(ratios):.2f} "
                        f"({min(ratios):.2f} to {max(ratios):.2f})")
    return "\n".join(rows)


def ratios_of_pairs(lines: list, effect: str) -> list:
    seconds = {(line["kind"], line["number"]): line["seconds"] for line in lines
               if line.get("effect") == effect and line.get("kind") in SIDES}
    numbers = {number for _, number in seconds}
    return [seconds["after", number] / seconds["before", number] for number in sorted(numbers)
            if {("after", number), ("before", number)} <= seconds.keys()]


if __name__ == "__main__":
    asked = parse_options()
    sys.exit(command(lambda: study(asked)))
