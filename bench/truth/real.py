#!/usr/bin/env python3
"""Looks for planted effects, and for differences of a service from itself, by one build of proofload or several in turn.

Each round has every effect once, in an order drawn for it; builds get the same seed and budget. Warm-up, slices and blocks are the lab's
own choice. Service on core 0, client on core 1, loopback only. tables.py evaluates the lines.
"""

import argparse
import random
import sys

from calibration import calibrated
from effects import EFFECTS, truth, variables
from experiment import Variants, run
from reuse import ROOT
from study import Step, add_options, command, conduct

NOW = f"now={ROOT / 'target' / 'release' / 'proofload'}"


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, count=10)
    parser.add_argument("--build", nargs="+", metavar="NAME=FILE", type=named, default=[named(NOW)], help=f"of proofload [{NOW}]")
    parser.add_argument("--effect", nargs="+", choices=list(EFFECTS), default=list(EFFECTS), help="which [all]")
    return parser.parse_args()


def named(text: str) -> tuple:
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FILE")
    return name, file


def steps_of(builds: list, effects: list, count: int, seed: int) -> list:
    """Both sides of a comparison of builds are neighbours, so that they meet the same hour."""
    source = random.Random(seed)
    return [Step(build, effect, number, EFFECTS[effect].budget_s(number))
            for number in range(count) for effect in source.sample(effects, len(effects)) for build in source.sample(builds, len(builds))]


def study(options: argparse.Namespace) -> None:
    builds = dict(options.build)
    calibrations = calibrated(options.out, options.build[0][1], [EFFECTS[name] for name in options.effect], options.seed)

    def attempt(step: Step) -> dict:
        effect = EFFECTS[step.effect]
        sides = Variants({"NOT_READ": "1"}, {"NOT_READ": "2"} if effect.none else variables(effect, calibrations))
        # The same for all builds.
        seed = Step("run", step.effect, step.number, 0).seed(options.seed)
        return {"truth": truth(effect, calibrations), **run(builds[step.kind], "planted", sides, effect, effect.budget_s(step.number), seed)}

    conduct(options.out, steps_of(list(builds), options.effect, options.count, options.seed), attempt)


if __name__ == "__main__":
    sys.exit(command(study, parse_options()))
