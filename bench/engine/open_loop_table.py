"""Tables of how well rates were kept. Pure: it must not measure."""

from statistics import median
from typing import Callable, NamedTuple

from markdown import Outcome, differing_counts, marked, microseconds, section
from processes import Run
from recorder import Recorded

HEADER = ["", "sent / due", "client CPU", "lag, p50", "lag, p99", "lag, max", "its own p99"]
SENT_SHARE_MIN = 0.999
LAG_P99_US_MAX = 200


class Pace(NamedTuple):
    """One tool at one rate in one round: against nginx, and against the server that records when requests are sent."""

    run: Run
    recorded: Recorded
    due: int


METRICS = {
    "sent_share": lambda pace: pace.run.server_count / pace.due,
    "client_us_per_request": lambda pace: pace.run.client_us / pace.run.server_count,
    "lag_p50_us": lambda pace: pace.recorded.lag.p50_us,
    "lag_p99_us": lambda pace: pace.recorded.lag.p99_us,
    "lag_max_us": lambda pace: pace.recorded.lag.max_us,
    "own_lag_p99_us": lambda pace: pace.recorded.own_p99_us,
}


def summary_of(outcome: Outcome, tool: str) -> dict:
    """The figures of one tool: the median, the lowest and the highest of the rounds. Empty where there was none."""
    figures = {}
    for name, metric in METRICS.items():
        values = [value for pace in outcome.runs[tool].values() if (value := metric(pace)) is not None]
        if values:
            figures[name] = {"median": median(values), "low": min(values), "high": max(values)}
    return figures


def rate_table(rate: int, share: float, connections: int, outcome: Outcome) -> str:
    """One table for one rate, with what went wrong as footnotes."""
    rows, footnotes = [HEADER], []
    for tool, paces in outcome.runs.items():
        notes = [outcome.notes.get(tool), differing_counts([pace.run for pace in paces.values()], connections)]
        rows.append(_row(marked(tool, notes, footnotes), summary_of(outcome, tool)))
    return section(f"{rate:,} requests due per second: {share:g} of capacity", rows, footnotes)


def _row(label: str, figures: dict) -> list:
    if not figures:
        return [label, *["–"] * (len(HEADER) - 1)]
    own = figures.get("own_lag_p99_us")
    return [label, _with_range(figures["sent_share"], "{:.4f}".format),
            _with_range(figures["client_us_per_request"], "{:.2f}".format, " µs"),
            microseconds(figures["lag_p50_us"]["median"]), _with_range(figures["lag_p99_us"], microseconds),
            microseconds(figures["lag_max_us"]["median"]), microseconds(own["median"]) if own else ""]


def _with_range(figure: dict, text: Callable, unit: str = "") -> str:
    return f"{text(figure['median'])}{unit} ({text(figure['low'])} to {text(figure['high'])})"


def targets_line(results: dict) -> str:
    """Which tools kept a rate as well as a load generator with a core of its own should, by rate."""
    parts = [f"{SENT_SHARE_MIN} of what is due is sent, and the p99 of lag is below {LAG_P99_US_MAX} µs, both in the "
             "median of the rounds"]
    for (rate, _), outcome in results.items():
        measured = {tool: figures for tool in outcome.runs if (figures := summary_of(outcome, tool))}
        met = [tool for tool, figures in measured.items() if _meets(figures)]
        parts.append(f"at {rate:,} per second " + (f"met by {', '.join(met) or 'none'}" if measured else "not measured"))
    return "; ".join(parts)


def _meets(figures: dict) -> bool:
    return figures["sent_share"]["median"] >= SENT_SHARE_MIN and figures["lag_p99_us"]["median"] < LAG_P99_US_MAX
