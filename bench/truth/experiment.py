"""One comparison by the lab: an experiment file, `proofload run`, and what is kept of its report and record.

The record goes with its temporary folder. It must not judge.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Iterable, NamedTuple, Optional

from effects import Effect
from reuse import ROOT, Failed
from study import parsed

SERVICE = ROOT / "targets" / "planted"
CONNECTIONS = 16
# At a rate they only have to suffice: if the machine stands still for 0.1 s, each request due then wants one.
CONNECTIONS_AT_A_RATE = 128
GRACE_S = 60  # beyond the budget: services stop, the report is drawn
ANSWERED = (0, 4)  # a void measurement is an answer too
ESTIMATE = ("ratio", "low", "high", "sd_log", "blocks")


class Variants(NamedTuple):
    """What the service of either side has in its environment."""

    baseline: dict
    candidate: dict


def file_text(name: str, variants: Variants, effect: Effect) -> str:
    """The experiment file. A string of JSON is one of TOML as long as it is plain."""
    levels = [f"{level} = {{ {', '.join(f'planted.env.{key} = {json.dumps(value)}' for key, value in sides.items())} }}"
              for level, sides in zip(("without", "with"), variants)]
    rate = [f"rate = {effect.rate}"] if effect.rate else []
    return "\n".join([
        f"name = {json.dumps(name)}",
        "[services.planted]",
        f"directory = {json.dumps(str(SERVICE))}",
        'command = ["node", "server.js"]',
        'ready = "/healthz"',
        'env = { PORT = "{port}", NODE_ENV = "production" }',
        "[factors.effect]",
        *levels,
        "[load]",
        f"connections = {CONNECTIONS_AT_A_RATE if effect.rate else CONNECTIONS}",
        "[design]",
        f"metric = {json.dumps(effect.metric)}",
        f"margin = {json.dumps(effect.margin)}",
        f'budget = "{minutes_and_seconds(effect.budget_s)}"',
        effect.design,
        *rate,
    ]) + "\n"


def minutes_and_seconds(seconds: int) -> str:
    """As the experiment file writes it: no part of it may be zero."""
    parts = [f"{value}{unit}" for value, unit in zip(divmod(seconds, 60), "ms") if value]
    return "".join(parts)


def run(proofload: str, name: str, variants: Variants, effect: Effect, seed: int) -> dict:
    """Runs it and returns what is kept. Raises `Failed` where there is no report."""
    with tempfile.TemporaryDirectory(prefix="bench-truth-") as folder:
        file, record = Path(folder) / f"{name}.toml", Path(folder) / "record"
        file.write_text(file_text(name, variants, effect))
        command = [proofload, "run", str(file), "--json", "--seed", str(seed), "--out", str(record)]
        output = output_of(command, effect.budget_s + GRACE_S)
        try:
            report = report_in(output)
            events = parsed((record / "events.jsonl").read_text().splitlines())
        except (ValueError, OSError) as error:
            raise Failed(f"the report or the record cannot be read: {error}") from error
    return {"metric": effect.metric, "margin": effect.margin, "budget_s": effect.budget_s,
            "variables": variants.candidate, **kept(report, events)}


def report_in(output: str) -> dict:
    """The report in what `run --json` printed: the last of its events. Raises `ValueError` where there is none."""
    lines = output.splitlines()
    last = json.loads(lines[-1]) if lines else {}
    if last.get("event") != "report":
        raise ValueError("the last event is no report")
    return last["report"]


def output_of(command: list, seconds_max: float) -> str:
    code, output, talk = ended(command, seconds_max)
    if code not in ANSWERED:
        raise Failed(f"proofload ended with {code}: {talk[-500:].strip()}")
    return output


def ended(command: list, seconds_max: float) -> tuple:
    """Its exit code, what it printed and what it said. Raises `Failed` where it does not end in time."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            output, talk = process.communicate(timeout=seconds_max)
        except BaseException as error:
            # Its warden ends the services when it is gone.
            process.kill()
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failed(f"proofload was not done after {seconds_max} s") from error
            raise
    return process.returncode, output, talk


def kept(report: dict, events: Iterable[dict]) -> dict:
    """Of a report with one comparison and of its record's events."""
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
