#!/usr/bin/env python3
"""Draws docs/images/by-hand.svg: what wrk by hand and Proofload concluded of the same services, from kept results.

    scripts/by_hand_chart.py
"""

import json
import math
from pathlib import Path
from statistics import mean
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "truth" / "results" / "2026-11-21"
LEFT, RIGHT, WIDTH, LEAST, MOST = 190, 20, 760, 0.68, 1.46
MARGIN, LANE, STEP = 0.03, 22, 3.4
STYLE = """text{font:13px system-ui,sans-serif;fill:#57606a}.h{font-weight:600}.s{font-size:11px}line{stroke:#8b949e}
.i{stroke:#2f81f7;stroke-width:1.6}.ok{fill:#8b949e}.w{stroke:#e5484d;fill:#e5484d}.t{stroke-dasharray:3 3}
@media(prefers-color-scheme:dark){text{fill:#9da7b3}}"""


class Point(NamedTuple):
    """What one comparison said: candidate over baseline, and whether that was a false conclusion."""
    ratio: float
    low: float
    high: float
    wrong: bool


def lines(name: str, effect: str) -> list:
    found = [json.loads(line) for line in (RESULTS / f"{name}.jsonl").read_text().splitlines()]
    return [line for line in found if line.get("effect") == effect]


def by_hand(effect: str, slower: bool) -> list:
    """The ratio of mean rates of three runs a side. Believed where it is beyond the margin."""
    def point(line: dict) -> Point:
        ratio = mean(line["candidate_rates"]) / mean(line["baseline_rates"])
        says_faster, says_slower = ratio >= 1 + MARGIN, ratio <= 1 - MARGIN
        return Point(ratio, ratio, ratio, says_faster or (says_slower and not slower))
    return [point(line) for line in lines("by-hand", effect)]


def measured(name: str, effect: str, slower: bool) -> list:
    def point(line: dict) -> Point:
        estimate = line["estimate"]
        wrong = line["outcome"] == "better" or (line["outcome"] == "worse" and not slower)
        return Point(estimate["ratio"], estimate["low"], estimate["high"], wrong)
    return [point(line) for line in lines(name, effect)]


def x(ratio: float) -> float:
    share = (math.log(min(max(ratio, LEAST), MOST)) - math.log(LEAST)) / (math.log(MOST) - math.log(LEAST))
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def lane(top: float, title: str, points: list) -> tuple:
    """A lane with its title; comparisons below each other, the lowest ratio first. Returns its parts and its bottom."""
    wrong = sum(point.wrong for point in points)
    bottom = top + max(len(points) * STEP, LANE * 2)
    parts = [f'<text class="h" x="0" y="{top + 12:.1f}">{title}</text>',
             f'<text x="0" y="{top + 30:.1f}">wrong: {wrong} of {len(points)}</text>']
    for place, point in enumerate(sorted(points)):
        y, mark = top + 4 + place * STEP, " w" if point.wrong else ""
        if point.low < point.high:
            parts.append(f'<line class="i{mark}" x1="{x(point.low):.1f}" x2="{x(point.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        else:
            parts.append(f'<circle class="ok{mark}" cx="{x(point.ratio):.1f}" cy="{y:.1f}" r="3"/>')
    return parts, bottom


def panel(top: float, title: str, truth: float, lanes: list) -> tuple:
    parts = [f'<text class="h" x="{LEFT}" y="{top:.1f}">{title}</text>']
    start = bottom = top + 12
    for name, points in lanes:
        more, bottom = lane(bottom, name, points)
        parts, bottom = parts + more, bottom + 12
    for ratio, style in [(1.0, ""), (truth, ' class="t"')]:
        parts.append(f'<line{style} x1="{x(ratio):.1f}" x2="{x(ratio):.1f}" y1="{start}" y2="{bottom:.1f}"/>')
    return parts, bottom


def main() -> None:
    slower = 1 / 1.05
    first, middle = panel(16, "A service and itself: no difference", 1.0,
                          [("wrk, 3 runs a side", by_hand("none", False)), ("Proofload", measured("real-aa", "none", False))])
    second, bottom = panel(middle + 34, "5 % more CPU per request: −4.8 % throughput (dashed)", slower,
                           [("wrk, 3 runs a side", by_hand("spin-5", True)), ("Proofload", measured("planted", "spin-5", True))])
    axis = [f'<text class="s" text-anchor="middle" x="{x(1 + percent / 100):.1f}" y="{bottom + 16:.1f}">{percent:+d} %</text>'
            for percent in (-30, -20, -10, 10, 20, 30, 40)]
    axis.append(f'<text class="s" text-anchor="middle" x="{x(1):.1f}" y="{bottom + 16:.1f}">same</text>')
    note = f'<text class="s" x="0" y="{bottom + 38:.1f}">Each dot or bar is one comparison; red: a false conclusion ' \
           "(by hand: means 3 % or more apart). Two shared virtual cores, 2026-11-21.</text>"
    height = bottom + 46
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">',
           "<title>wrk by hand finds differences where there are none</title>", f"<style>{STYLE}</style>",
           *first, *second, *axis, note, "</svg>"]
    (ROOT / "docs" / "images" / "by-hand.svg").write_text("\n".join(svg) + "\n")


if __name__ == "__main__":
    main()
