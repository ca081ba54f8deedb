"""Tables of the memory needed for how many requests. Pure: it must not measure."""

from statistics import median

from markdown import Outcome, marked, section
from processes import BODIES

HEADER = ["", "time", "requests made", "peak memory", "for each further request"]


def body_table(path: str, connections: int, by_seconds: dict) -> str:
    """One table for one body, `by_seconds` being its outcomes; what went wrong as footnotes."""
    rows, footnotes = [HEADER], []
    for tool in next(iter(by_seconds.values())).runs:
        for seconds, outcome in by_seconds.items():
            label = marked(tool, [outcome.notes.get(tool)], footnotes)
            rows.append([label, f"{seconds} s", *_figures(tool, outcome, by_seconds)])
    return section(f"{len(BODIES[path]):,} bytes, {connections} connections", rows, footnotes)


def _figures(tool: str, outcome: Outcome, by_seconds: dict) -> list:
    runs = outcome.runs[tool]
    if not runs:
        return ["–"] * (len(HEADER) - 2)
    mebibytes = [run.rss_max_kb / 1024 for run in runs.values()]
    shortest = by_seconds[min(by_seconds)].runs[tool]
    growth = further_bytes(shortest, runs)
    return [f"{median(run.server_count for run in runs.values()):,.0f}",
            f"{median(mebibytes):.1f} MiB ({min(mebibytes):.1f} to {max(mebibytes):.1f})",
            "" if growth is None else f"{growth:.2f} bytes"]


def further_bytes(shorter: dict, longer: dict):
    """Memory over requests between two lengths, the median of the rounds; `None` where they do not differ."""
    values = [(long.rss_max_kb - shorter[number].rss_max_kb) * 1024 / (long.server_count - shorter[number].server_count)
              for number, long in longer.items()
              if number in shorter and long.server_count > shorter[number].server_count]
    return median(values) if values else None
