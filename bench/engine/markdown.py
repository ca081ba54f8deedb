"""What all tables here share: rows as Markdown that is readable in a terminal too, footnotes, and units.

Pure: text in, text out.
"""

from statistics import median
from typing import NamedTuple, Sequence

from summary import counts_differ

# Above this share of a core taken by others, a run is repeated while there is patience. Interrupts on behalf of nginx
# and the client, which Linux counts for neither, take up to 10 % on a machine that does nothing else.
DISTURBED_SHARE = 0.2


class Outcome(NamedTuple):
    """The results of one scenario: `runs` by tool and round, and `notes` on what went wrong, by tool."""

    runs: dict
    notes: dict


def section(title: str, rows: list, footnotes: list) -> str:
    """A heading, a table whose first row is its header, and the footnotes if there are any."""
    return "\n\n".join([f"### {title}", aligned(rows), *(["\n".join(footnotes)] if footnotes else [])])


def marked(name: str, notes: Sequence[str], footnotes: list) -> str:
    """The name with a mark for each note that says something, which is added to the footnotes."""
    marks = []
    for note in filter(None, notes):
        marks.append(f"[{len(footnotes) + 1}]")
        footnotes.append(f"- {marks[-1]} {name}: {note}")
    return " ".join([name, *marks])


def differing_counts(runs: Sequence, connections: int) -> str:
    """A note if a tool's count differs from nginx's."""
    shares = [counts_differ(run.own.responses, run.server_count, connections) for run in runs]
    shares = [share for share in shares if share is not None]
    if not shares:
        return ""
    worst = max(shares, key=abs)
    return f"its count differs from nginx's in {len(shares)} of {len(runs)} rounds, at worst by {worst:+.2%}"


def others_line(shares: Sequence[float]) -> str:
    """How much CPU time other processes used, by run."""
    if not shares:
        return "nothing was measured"
    disturbed = sum(share > DISTURBED_SHARE for share in shares)
    warning = f"{disturbed} of {len(shares)} runs are above {DISTURBED_SHARE:.0%}, which the figures suffer from"
    return (f"{median(shares):.1%} of the busier core in the median run, {max(shares):.1%} in the worst; "
            + (warning if disturbed else f"none above {DISTURBED_SHARE:.0%}"))


def microseconds(value: float) -> str:
    """Three digits or more, and milliseconds from 10 ms on."""
    if value >= 10_000:
        return f"{value / 1000:,.0f} ms"
    return f"{value:,.0f} µs" if value >= 100 else f"{value:.1f} µs"


def aligned(rows: list) -> str:
    """The first column is text, aligned left; all others are figures, aligned right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(_padded(row, widths)) + " |" for row in rows]
    rule = "|" + "|".join(("-" * (width + 2) if column == 0 else "-" * (width + 1) + ":")
                          for column, width in enumerate(widths)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _padded(row: list, widths: list) -> list:
    return [cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))]
