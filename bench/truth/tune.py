#!/usr/bin/env python3
"""Tunes a service with planted settings, and says how often what is advised is right.

Each setting of `targets/planted` makes a request cost so many times as much CPU time, or nothing; so what any choice is worth is known.
Loopback only.
"""

import argparse
import json
import random
import sys
import tempfile
from math import hypot, log, prod
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from calibration import PAIRS, WORK, calibrate, measured_pairs, ratio_of
from experiment import CONNECTIONS, GRACE_S, PLANTED, by_block, output_of
from reuse import positive
from study import Step, add_options, add_proofload, append, command, conduct, in_rounds, read
from toml_writer import toml_text

FOUND_FROM = 1.05  # a gain of so much has to be advised
TRUTH_PAIRS = 16
CRITICAL_T = 2.13  # of so many pairs, two-sided, 95 %; older lines have 20, whose own is 2.09
TAIL_CONNECTIONS = 64  # so that the service is at its limit while many of them wait
TAIL = {"TAIL_MS": "100", "TAIL_SHARE": "0.03"}  # so the p99 is the tail, with and without its gain: 100 or 50 ms, far above the machine's pauses


class World(NamedTuple):
    """`gains` are what each setting makes of throughput: 1.3 is 30 % more, 1 is nothing. `pair` is what two gain together, either alone
    nothing; `tail` what one gains that doubles the p99, beyond its limit."""

    gains: tuple
    budget_s: int
    pair: float = 1.0
    tail: float = 1.0


WORLDS = {
    "five": World((1.3, 1.1, 1.05, 1 / 1.1, 1), 600),
    "eleven": World((1.3, 1.1, 1.05, 1.03, 1 / 1.05, 1 / 1.2, 1, 1, 1, 1, 1), 780),
    "nothing": World((1, 1, 1, 1, 1), 600),
    "a pair": World((1.1, 1 / 1.1, 1), 600, pair=1.2),
    "a tail": World((1.1, 1, 1), 600, tail=1.2),
}


def settings(world: World) -> dict:
    """By the variable of each: its value as the service is, the one that is tried, and the gain of that."""
    planted = {}
    for number, gain in enumerate(world.gains):
        # What gains is a cost that goes; what loses is one that comes.
        values = (f"{max(gain, 1):.4f}", f"{max(1 / gain, 1):.4f}")
        name = f"COST_{number}" if gain != 1 else f"NOTHING_{number}"
        planted[name] = (*(values if gain != 1 else ("1", "2")), gain)
    if world.pair != 1:
        planted |= {f"EITHER_{one}": (f"{world.pair:.4f}", "1", world.pair) for one in "AB"}
    if world.tail != 1:
        planted["COST_TAIL"] = (f"{world.tail:.4f}", "1", world.tail)
    return planted


def cost(world: World, chosen: set) -> float:
    """How many times as much a request costs with these settings as with nothing planted."""
    costs = {name: float(after if name in chosen else before) for name, (before, after, _) in settings(world).items()
             if not name.startswith("NOTHING_")}
    either = [costs.pop(name) for name in list(costs) if name.startswith("EITHER_")]
    return prod(costs.values()) * max([1, *either])


def planted_ratio(world: World, chosen: set) -> float:
    """What these settings together make of throughput, by what was planted."""
    return cost(world, set()) / cost(world, chosen)


def measured(proofload: str, world: World, chosen: set, alike: float) -> list:
    """The CPU time per request with these settings and without, in pairs of processes, without the lab."""
    sides = tuple({"WORK": f"{(cost(world, on) - 1) * alike:.2f}"} for on in (chosen, set()))
    return measured_pairs(proofload, sides, TRUTH_PAIRS)


def judged(world: World, chosen: set) -> tuple:
    """Whether the set is right: nothing useless, and nothing of 5 % and more left out; and whether anything in it is useless."""
    harmful = {"COST_TAIL"} | (set() if {"EITHER_A", "EITHER_B"} <= chosen else {"EITHER_A", "EITHER_B"})
    useless = {name for name, (_, _, gain) in settings(world).items() if gain <= 1} | harmful
    wanted = {name for name, (_, _, gain) in settings(world).items() if gain >= FOUND_FROM} - {"COST_TAIL"}
    return wanted <= chosen and not chosen & useless, bool(chosen & useless)


def file_text(world: World, alike: float) -> str:
    """The experiment file of the service as it is, with what is tried and kept."""
    planted = settings(world)
    env = {**PLANTED["env"], "WORK_ALIKE": f"{alike:.2f}", **(TAIL if world.tail != 1 else {}),
           **{name: before for name, (before, _, _) in planted.items()}}
    return toml_text({
        "name": "planted",
        "services": {"planted": {**PLANTED, "env": env}},
        "load": {"connections": TAIL_CONNECTIONS if world.tail != 1 else CONNECTIONS},
        "tune": {"only": ["none"], "try": [f"{name}={after}" for name, (_, after, _) in planted.items()],
                 "keep": ["p99 < +10%"] if world.tail != 1 else []},
    })


def attempt(options: argparse.Namespace, alike: float, step: Step) -> dict:
    world = WORLDS[step.effect]
    budget_s = options.budget or world.budget_s
    with tempfile.TemporaryDirectory(prefix="bench-truth-") as folder:
        file = Path(folder) / "planted.toml"
        file.write_text(file_text(world, alike))
        words = [options.proofload, "tune", file, "--budget", f"{budget_s}s", "--seed", str(step.seed(options.seed)), "--json",
                 "--out", Path(folder) / "record"]
        advice = json.loads(output_of(words, budget_s + GRACE_S, codes=(0,)))
        confirmed_us = us_of_blocks(options.proofload, Path(folder) / "record")
    confirmed = advice["confirmed"] or {}
    verdicts = {one["name"].partition("=")[0]: one["verdict"] for one in advice["settings"]}
    effects = {one["name"].partition("=")[0]: one["effect"] for one in advice["settings"]}
    advised = chosen({"verdicts": verdicts})
    pairs = measured(options.proofload, world, advised, alike) if advised else None
    return {"verdicts": verdicts, "effects": effects, "confirmed": confirmed.get("effect"), "confirmed_us": confirmed_us, "pairs": pairs,
            "alike": alike, "limits": confirmed.get("limits"), "invalid": confirmed.get("invalid"), "notes": advice["notes"], "seconds": advice["seconds"],
            "findable": advice["findable"], "budget_s": budget_s, "why": {one["name"].partition("=")[0]: one["why"] for one in advice["settings"] if one["why"]}}


def us_of_blocks(proofload: str, folder: Path) -> list:
    """The CPU time per request in each block of the confirmation, in microseconds: of the choice, and of the service as it is. As `pairs` are."""
    for record in folder.glob("*-confirm"):
        us = by_block(output_of([proofload, "report", record, "--format", "csv"], GRACE_S), "cpu_per_request")
        base = {block: value for (block, variant), value in us.items() if variant == "as it is"}
        return [[value, base[block]] for (block, variant), value in us.items() if variant != "as it is" and block in base]
    return []


def chosen(line: dict) -> frozenset:
    """What a run advises to set."""
    return frozenset(setting for setting, verdict in line["verdicts"].items() if verdict == "set")


def agrees(line: dict) -> bool:
    """Whether what was confirmed and the pairs after it (without them, what was planted) differ by no more than both are uncertain. What a
    planted cost is worth changes with the host, so pairs of other hours tell less."""
    known, pairs = line["confirmed"], line.get("pairs")
    ratio, error = ratio_of(pairs) if pairs else (planted_ratio(WORLDS[line["effect"]], chosen(line)), 0)
    return abs(log(known["ratio"] / ratio)) <= hypot(log(known["high"] / known["low"]) / 2, CRITICAL_T * error)


def table(lines: list) -> str:
    """One row for each world."""
    rows = ["| world | runs | right set | false advice | confirmed as by pairs | half-width | time |", "|---|--:|--:|--:|--:|--:|--:|"]
    for name, world in WORLDS.items():
        of = [line for line in lines if line.get("effect") == name and "verdicts" in line]
        right, useless = [sum(column) for column in zip(*(judged(world, chosen(line)) for line in of))] or (0, 0)
        advised = [line for line in of if chosen(line)]
        agreed, width = "–", "–"
        if advised:
            agreed = f"{sum(map(agrees, advised))} of {len(advised)}"
            width = f"{100 * mean(log(line['confirmed']['high'] / line['confirmed']['low']) / 2 for line in advised):.1f} %"
        if of:
            rows.append(f"| {name} | {len(of)} | {right} | {useless} | {agreed} | {width} | {mean(line['seconds'] for line in of):.0f} s |")
    return "\n".join(rows)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, count=10)
    add_proofload(parser)
    parser.add_argument("--world", nargs="+", choices=list(WORLDS), default=list(WORLDS), help="which [all]")
    parser.add_argument("--budget", type=positive, metavar="S", help="of each run in seconds, in place of the world's own")
    return parser.parse_args()


def study(options: argparse.Namespace) -> None:
    # Anew each time: a study of ten hours is done in parts, and what a round trip costs differs from host to host.
    random.seed(options.seed)
    calibration = calibrate(options.proofload, PAIRS, WORK, "WORK")
    append(options.out, calibration)
    alike = 100 * calibration["turns_per_percent"]
    seconds = {name: options.budget or WORLDS[name].budget_s for name in options.world}
    conduct(options.out, in_rounds("tune", seconds, options.count, options.seed), lambda step: attempt(options, alike, step))
    print(table(read(options.out)))


if __name__ == "__main__":
    sys.exit(command(study, parse_options()))
