"""Draws what closed loop cost as tables. Pure: it must not measure or judge."""

from statistics import median

from markdown import Outcome, differing_counts, marked, section
from processes import BODIES
from summary import estimate, ratios

BASELINE = "wrk"
HEADER = ["", "client CPU", "vs wrk", "requests/s", "vs wrk", "nginx CPU", "peak memory"]
METRICS = {
    "client_us_per_request": lambda run: run.client_us / run.server_count,
    "requests_per_s": lambda run: run.server_count / run.own.seconds,
    "server_us_per_request": lambda run: run.server_us / run.server_count,
    "rss_max_kb": lambda run: run.rss_max_kb,
}


def summary_of(outcome: Outcome, tool: str) -> dict:
    """The figures of one tool: a median each, and its ratio to the baseline's. Empty where there was no run."""
    figures = {}
    for name, metric in METRICS.items():
        values = {number: metric(run) for number, run in outcome.runs[tool].items()}
        if not values:
            continue
        figures[name] = {"median": median(values.values())}
        baseline = {number: metric(run) for number, run in outcome.runs.get(BASELINE, {}).items()}
        if paired := ratios(values, baseline):
            ratio, interval = estimate(paired)
            figures[name]["against_wrk"] = {"median": ratio, **interval._asdict(), "rounds": len(paired)}
    return figures


def scenario_table(scenario: tuple, outcome: Outcome) -> str:
    """One table for (path, connections), with what went wrong as footnotes."""
    _, connections = scenario
    rows, footnotes = [HEADER], []
    for tool, runs in outcome.runs.items():
        notes = [outcome.notes.get(tool), differing_counts(runs.values(), connections)]
        rows.append(_row(marked(tool, notes, footnotes), tool, summary_of(outcome, tool)))
    return section(scenario_title(scenario), rows, footnotes)


def scenario_title(scenario: tuple) -> str:
    path, connections = scenario
    return f"{len(BODIES[path]):,} bytes, {connections} connections"


def _row(label: str, tool: str, figures: dict) -> list:
    if not figures:
        return [label, *["–"] * (len(HEADER) - 1)]
    client, rate = figures["client_us_per_request"], figures["requests_per_s"]
    return [label, f"{client['median']:.2f} µs", _ratio(tool, client), f"{rate['median']:,.0f}", _ratio(tool, rate),
            f"{figures['server_us_per_request']['median']:.2f} µs", f"{figures['rss_max_kb']['median'] / 1024:.1f} MiB"]


def _ratio(tool: str, figure: dict) -> str:
    if tool == BASELINE:
        return "1"
    ratio = figure.get("against_wrk")
    return f"{ratio['median']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})" if ratio else ""
