"""Draws what closed loop cost as tables. Pure: it must not measure or judge."""

from statistics import median

from markdown import Outcome, differing_counts, marked, section
from processes import BODIES
from summary import estimate, ratios
from tools import Wire

COLUMNS = ["", "client CPU", "vs {0}", "requests/s", "vs {0}", "nginx CPU", "peak memory"]
METRICS = {
    "client_us_per_request": lambda run: run.client_us / run.server_count,
    "requests_per_s": lambda run: run.server_count / run.own.seconds,
    "server_us_per_request": lambda run: run.server_us / run.server_count,
    "rss_max_kb": lambda run: run.rss_max_kb,
}


def baseline_of(wire: Wire) -> str:
    """Whom the others are compared with: wrk, but that does not speak HTTP/2."""
    return "h2load" if wire.streams else "wrk"


def summary_of(outcome: Outcome, tool: str, baseline: str) -> dict:
    """The figures of one tool: a median each, and its ratio to the baseline's. Empty where there was no run."""
    figures = {}
    for name, metric in METRICS.items():
        values = {number: metric(run) for number, run in outcome.runs[tool].items()}
        if not values:
            continue
        figures[name] = {"median": median(values.values())}
        others = {number: metric(run) for number, run in outcome.runs.get(baseline, {}).items()}
        if paired := ratios(values, others):
            figures[name]["against_baseline"] = estimate(paired)
    return figures


def scenario_table(scenario: tuple, outcome: Outcome) -> str:
    """One table for (path, connections, wire), with what went wrong as footnotes."""
    _, connections, wire = scenario
    baseline = baseline_of(wire)
    rows, footnotes = [[column.format(baseline) for column in COLUMNS]], []
    for tool, runs in outcome.runs.items():
        notes = [outcome.notes.get(tool), differing_counts(runs.values(), connections)]
        figures = summary_of(outcome, tool, baseline)
        rows.append(_row(marked(tool, notes, footnotes), tool == baseline, figures))
    return section(scenario_title(scenario), rows, footnotes)


def scenario_title(scenario: tuple) -> str:
    path, connections, wire = scenario
    return f"{wire}: {len(BODIES[path]):,} bytes, {connections} connections"


def _row(label: str, is_baseline: bool, figures: dict) -> list:
    if not figures:
        return [label, *["–"] * (len(COLUMNS) - 1)]
    client, rate = figures["client_us_per_request"], figures["requests_per_s"]
    return [label, f"{client['median']:.2f} µs", _ratio(is_baseline, client), f"{rate['median']:,.0f}", _ratio(is_baseline, rate),
            f"{figures['server_us_per_request']['median']:.2f} µs", f"{figures['rss_max_kb']['median'] / 1024:.1f} MiB"]


def _ratio(is_baseline: bool, figure: dict) -> str:
    if is_baseline:
        return "1"
    ratio = figure.get("against_baseline")
    return f"{ratio.median:.3f} ({ratio.interval.low:.3f} to {ratio.interval.high:.3f})" if ratio else ""
