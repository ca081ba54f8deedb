"""Draws what was measured as Markdown that reads in a terminal too. Pure: it must not measure or judge."""

from statistics import median
from typing import NamedTuple

from processes import BODIES
from summary import counts_differ, estimate, ratios

BASELINE = "wrk"
# Above this share of a core taken by others, a run is repeated while there is patience. Interrupts on behalf of nginx
# and the client, which Linux counts for neither, take up to 10 % on a machine that does nothing else.
DISTURBED_SHARE = 0.2
HEADER = ["", "client CPU", "against wrk", "requests/s", "against wrk", "nginx CPU", "peak memory"]
METRICS = {
    "client_us_per_request": lambda run: run.client_us / run.server_count,
    "requests_per_s": lambda run: run.server_count / run.own.seconds,
    "server_us_per_request": lambda run: run.server_us / run.server_count,
    "rss_max_kb": lambda run: run.rss_max_kb,
}


class Outcome(NamedTuple):
    """What came of one scenario: `runs` by tool and round, and `notes` on what went wrong, by tool."""

    runs: dict
    notes: dict

    def summary_of(self, tool: str) -> dict:
        """The figures of one tool: a median each, and its ratio to the baseline's. Empty where there was no run."""
        figures = {}
        for name, metric in METRICS.items():
            values = {number: metric(run) for number, run in self.runs[tool].items()}
            if not values:
                continue
            figures[name] = {"median": median(values.values())}
            baseline = {number: metric(run) for number, run in self.runs.get(BASELINE, {}).items()}
            if paired := ratios(values, baseline):
                ratio, interval = estimate(paired)
                figures[name]["against_wrk"] = {"median": ratio, **interval._asdict(), "rounds": len(paired)}
        return figures


def scenario_table(scenario: tuple, outcome: Outcome) -> str:
    """One table for (path, connections), with what went wrong as footnotes."""
    path, connections = scenario
    rows, footnotes = [HEADER], []
    for tool, runs in outcome.runs.items():
        told = [note for note in (outcome.notes.get(tool), _differing_counts(runs, connections)) if note]
        marks = [f"[{len(footnotes) + 1 + index}]" for index in range(len(told))]
        footnotes += [f"- {mark} {tool}: {note}" for mark, note in zip(marks, told)]
        rows.append(_row(" ".join([tool, *marks]), tool, outcome.summary_of(tool)))
    title = f"### {len(BODIES[path]):,} bytes, {connections} connections"
    return "\n\n".join([title, _aligned(rows), *(["\n".join(footnotes)] if footnotes else [])])


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


def _differing_counts(runs: dict, connections: int) -> str:
    shares = [counts_differ(run.own.responses, run.server_count, connections) for run in runs.values()]
    shares = [share for share in shares if share is not None]
    if not shares:
        return ""
    worst = max(shares, key=abs)
    return f"counts other than nginx in {len(shares)} of {len(runs)} rounds, at worst by {worst:+.2%}"


def others_line(results: dict) -> str:
    """How much else ran beside nginx and the clients."""
    by_round = [rounds for outcome in results.values() for rounds in outcome.runs.values()]
    shares = [run.others_share for rounds in by_round for run in rounds.values()]
    if not shares:
        return "nothing was measured"
    disturbed = sum(share > DISTURBED_SHARE for share in shares)
    warning = f"{disturbed} of {len(shares)} runs are above {DISTURBED_SHARE:.0%}, which the figures suffer from"
    return (f"{median(shares):.1%} of the busier core in the median run, {max(shares):.1%} in the worst; "
            + (warning if disturbed else f"none above {DISTURBED_SHARE:.0%}"))


def _aligned(rows: list) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    lines = ["| " + " | ".join(_padded(row, widths)) + " |" for row in rows]
    rule = "|" + "|".join(("-" * (width + 2) if column == 0 else "-" * (width + 1) + ":")
                          for column, width in enumerate(widths)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _padded(row: list, widths: list) -> list:
    return [cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))]
