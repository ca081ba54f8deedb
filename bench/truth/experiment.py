"""One comparison by the lab: an experiment file, `proofload run`, and what is kept of its report and record.

The record is in a temporary folder and is deleted. It must not judge.
"""

import csv
import json
import tempfile
from math import log
from pathlib import Path
from statistics import mean
from typing import Iterable, NamedTuple, Optional

from effects import MARGIN, Effect
from reuse import ROOT, Failed, ended, processor
from study import parsed
from toml_writer import toml_text

PLANTED = {"directory": str(ROOT / "targets" / "planted"), "command": ["node", "server.js"], "ready": "/healthz",
           "env": {"PORT": "{port}", "NODE_ENV": "production"}}
CONNECTIONS = 16
# At a rate they only have to be enough: if the machine stops for 0.1 s, each request due then needs one.
CONNECTIONS_AT_A_RATE = 128
GRACE_S = 60  # beyond the budget: services stop, the report is made
REPORTED = (0, 4)  # exit codes with a report: an invalid measurement has one too
ESTIMATE = ("ratio", "low", "high", "sd_log", "blocks")


class Variants(NamedTuple):
    """The environment of each side's service."""

    baseline: dict
    candidate: dict


def file_text(name: str, variants: Variants, effect: Effect, budget_s: int, service: dict = PLANTED) -> str:
    """The experiment file. Warm-up, slices and blocks are the lab's own choice."""
    levels = {level: {"service": {"env": side}} for level, side in zip(("without", "with"), variants)}
    rate = {"rate": effect.rate} if effect.rate else {}
    return toml_text({
        "name": name,
        "services": {"service": {**service, "env": {**service["env"], **effect.both}}},
        "factors": {"effect": levels},
        "load": {"connections": CONNECTIONS_AT_A_RATE if effect.rate else CONNECTIONS},
        "design": {"metric": effect.metric, "margin": f"{MARGIN:.0%}", "budget": f"{budget_s}s", **rate},
    })


def run(proofload: str, name: str, variants: Variants, effect: Effect, budget_s: int, seed: int, service: dict = PLANTED) -> dict:
    """Runs it and returns what is kept. Raises `Failed` if there is no report."""
    with tempfile.TemporaryDirectory(prefix="bench-truth-") as folder:
        file, record = Path(folder) / f"{name}.toml", Path(folder) / "record"
        file.write_text(file_text(name, variants, effect, budget_s, service))
        command = [proofload, "run", str(file), "--events", "--seed", str(seed), "--out", str(record)]
        output = output_of(command, budget_s + GRACE_S)
        report, events = report_and_events(output, record)
        table = output_of([proofload, "report", str(record), "--format", "csv"], GRACE_S)
    return {"metric": effect.metric, "budget_s": budget_s, "variables": variants.candidate, "machine": processor(),
            **kept(report, events), "log_ratios": log_ratios(table, report)}


def log_ratios(table: str, report: dict) -> Optional[list]:
    """Of each block that counts, what was judged: throughput of the clock or of the services' CPU time, whichever gives the estimate."""
    (comparison,) = report["comparisons"]
    names = [report["variants"][comparison[side]]["name"] for side in ("baseline", "candidate")]
    estimate = comparison["estimate"]
    for metric, sign in ((comparison["metric"], 1), ("cpu_per_request", -1)):
        values = by_block(table, metric)
        blocks = sorted({block for block, _ in values}, key=int)
        sides = [[values.get((block, name)) for block in blocks] for name in names]
        if not estimate or len(blocks) != estimate["blocks"] or None in sides[0] + sides[1]:
            continue
        logs = [sign * log(candidate / baseline) for baseline, candidate in zip(*sides)]
        if abs(mean(logs) - log(estimate["ratio"])) < 1e-4:
            return logs
    return None


def by_block(table: str, metric: str) -> dict:
    """A metric's values by block and variant, of blocks that count, from a report as CSV."""
    return {(row["block"], row["variant"]): float(row["value"]) for row in csv.DictReader(table.splitlines())
            if row["metric"] == metric and row["dropped"] == "false" and row["value"]}


def report_and_events(output: str, record: Path) -> tuple:
    """The report, which `run --json` prints as its last event, and the record's events. Raises `Failed`."""
    try:
        last = json.loads(output.splitlines()[-1])
        return last["report"], parsed((record / "events.jsonl").read_text().splitlines())
    except (LookupError, ValueError, OSError) as error:
        raise Failed(f"the report or the record cannot be read: {error!r}") from error


def output_of(command: list, seconds_max: float, codes: tuple = REPORTED) -> str:
    """What proofload printed. Raises `Failed` for another exit code, and if it takes longer."""
    code, output, errors = ended(command, seconds_max)
    if code not in codes:
        raise Failed(f"proofload ended with {code}: {errors[-500:].strip()}")
    return output


def kept(report: dict, events: Iterable[dict]) -> dict:
    """What is kept of a report with one comparison and of its record's events."""
    (comparison,) = report["comparisons"]
    measured = [event["slice"] for event in events if event.get("slice", {}).get("kind") == "measured"]
    exploratory = {one["metric"]: one.get("estimate") for one in comparison["exploratory"]}
    steal = [slice_["machine"]["steal_share"] for slice_ in measured]
    return {
        "outcome": comparison["outcome"],
        "estimate": figures(comparison["estimate"]),
        "without_spread": comparison.get("without_spread"),
        "cpu_per_request": figures(exploratory.get("cpu_per_request")),
        "blocks": report["blocks"],
        "blocks_planned": report["blocks_planned"],
        "ended": report["ended"]["reason"],
        "seconds": report["ended"]["seconds"],
        "load_seconds": sum(slice_["window_ns"] for slice_ in measured) / 1e9,
        "steal": sum(steal) / len(steal) if steal else None,
        "findings": [[finding["check"], finding["grade"]] for finding in report["findings"]],
        "seed": report["seed"],
        "proofload": report["proofload"],
        "commit": report["environment"]["commit"],
    }


def figures(estimate: Optional[dict]) -> Optional[dict]:
    return estimate and {key: estimate[key] for key in ESTIMATE}
