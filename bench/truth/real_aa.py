#!/usr/bin/env python3
"""Compares a service with itself, by `proofload run`, many times: how often does the lab see a difference that is not there?

Both variants are the same program; they differ in a variable that it does not read. Closed loop, 16 connections, six
blocks. Service on core 0, client on core 1, loopback only.
"""

import argparse
import sys

from effects import AA_BUDGET_S, NONE
from experiment import Variants, run
from study import Step, add_options, add_proofload, command, conduct

IDENTICAL = Variants({"NOT_READ": "1"}, {"NOT_READ": "2"})


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, count=60)
    add_proofload(parser)
    return parser.parse_args()


def study(options: argparse.Namespace) -> None:
    steps = [Step("real-aa", "none", number, AA_BUDGET_S) for number in range(options.count)]

    def attempt(step: Step) -> dict:
        return run(options.proofload, "real-aa", IDENTICAL, NONE, step.seed(options.seed))

    conduct(options.out, steps, attempt)


if __name__ == "__main__":
    asked = parse_options()
    sys.exit(command(lambda: study(asked)))
