#!/usr/bin/env python3
"""Draws docs/images/by-hand.svg: what wrk by hand and Proofload concluded of the same services, from kept results.

    scripts/by_hand_chart.py
"""

import json
from math import exp, log, sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "truth" / "results" / "2026-11-25"
LEFT, RIGHT, WIDTH, LEAST, MOST = 190, 20, 760, 0.68, 1.46
MARGIN, LANE, STEP = 0.03, 50, 3.4
T_OF_FOUR = 3.182  # Student's, 3 degrees of freedom, 95 %
STYLE = """text{font:13px system-ui,sans-serif;fill:#57606a}.h{font-weight:600}.s{font-size:11px}line{stroke:#8b949e}
.i{stroke-width:1.6}.right{stroke:#2f81f7;fill:#2f81f7}.open{stroke:#8b949e;fill:#8b949e}.wrong{stroke:#e5484d;fill:#e5484d}
.t{stroke-dasharray:3 3}
@media(prefers-color-scheme:dark){text{fill:#9da7b3}}"""


class Point(NamedTuple):
    """What one comparison said: candidate over baseline, and whether it called that a difference."""
    ratio: float
    low: float
    high: float
    differs: bool

    def kind(self, slower: bool) -> str:
        """Every planted effect makes the candidate slower."""
        if self.differs:
            return "right" if slower and self.ratio < 1 else "wrong"
        return "open" if slower else "right"


def lines(name: str, effect: str, kind: str) -> list:
    found = [json.loads(line) for line in (RESULTS / f"{name}.jsonl").read_text().splitlines()]
    return [line for line in found if (line["kind"], line.get("effect")) == (kind, effect)]


def runs_by_hand(effect: str) -> list:
    """The ratio of mean rates of three runs a side. Believed where it is beyond the margin."""
    ratios = [mean(line["candidate_rates"]) / mean(line["baseline_rates"]) for line in lines("by-hand", effect, "by-hand")]
    return [Point(ratio, ratio, ratio, abs(ratio - 1) >= MARGIN) for ratio in ratios]


def pairs_by_hand(effect: str) -> list:
    """Four pairs of fresh processes, and a paired t-test."""
    def point(line: dict) -> Point:
        logs = [log(b / a) for a, b in zip(line["baseline_rates"], line["candidate_rates"], strict=True)]
        middle, half = mean(logs), T_OF_FOUR * stdev(logs) / sqrt(len(logs))
        return Point(exp(middle), exp(middle - half), exp(middle + half), abs(middle) > half)
    return [point(line) for line in lines("by-hand", effect, "by-hand-pairs")]


def measured(name: str, effect: str) -> list:
    def point(line: dict) -> Point:
        estimate = line["estimate"]
        return Point(estimate["ratio"], estimate["low"], estimate["high"], line["outcome"] in ("better", "worse"))
    return [point(line) for line in lines(name, effect, "now")]


def x(ratio: float) -> float:
    share = (log(min(max(ratio, LEAST), MOST)) - log(LEAST)) / (log(MOST) - log(LEAST))
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def lane(top: float, title: str, points: list, slower: bool) -> tuple:
    """A lane with its title; comparisons below each other, the lowest ratio first. Returns its parts and its bottom."""
    kinds = [point.kind(slower) for point in points]
    counts = [f"{word}: {kinds.count(kind)} of {len(points)}"
              for kind, word in (("wrong", "wrong"), ("right", "found")) if kind == "wrong" or slower]
    bottom = top + max(len(points) * STEP, LANE)
    parts = [f'<text class="h" x="0" y="{top + 12:.1f}">{title}</text>']
    parts += [f'<text x="0" y="{top + 30 + 17 * place}">{text}</text>' for place, text in enumerate(counts)]
    for place, point in enumerate(sorted(points)):
        y, kind = top + 4 + place * STEP, point.kind(slower)
        if point.low < point.high:
            parts.append(f'<line class="i {kind}" x1="{x(point.low):.1f}" x2="{x(point.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        else:
            parts.append(f'<circle class="{kind}" cx="{x(point.ratio):.1f}" cy="{y:.1f}" r="3"/>')
    return parts, bottom


def panel(top: float, title: str, truth: float, lanes: list) -> tuple:
    parts = [f'<text class="h" x="{LEFT}" y="{top:.1f}">{title}</text>']
    start = bottom = top + 12
    for name, points in lanes:
        more, bottom = lane(bottom, name, points, truth < 1)
        parts, bottom = parts + more, bottom + 12
    for ratio, style in [(1.0, ""), (truth, ' class="t"')]:
        parts.append(f'<line{style} x1="{x(ratio):.1f}" x2="{x(ratio):.1f}" y1="{start}" y2="{bottom:.1f}"/>')
    return parts, bottom


def lanes(effect: str, name: str) -> list:
    return [("wrk, 3 runs a side", runs_by_hand(effect)), ("wrk, 4 pairs, t-test", pairs_by_hand(effect)),
            ("Proofload", measured(name, effect))]


def main() -> None:
    first, middle = panel(16, "A service and itself: no difference", 1.0, lanes("none", "against-itself"))
    second, bottom = panel(middle + 34, "10 % more CPU per request: −9.1 % throughput (dashed)", 1 / 1.1, lanes("spin-10", "planted"))
    axis = [f'<text class="s" text-anchor="middle" x="{x(1 + percent / 100):.1f}" y="{bottom + 16:.1f}">{percent:+d} %</text>'
            for percent in (-30, -20, -10, 10, 20, 30, 40)]
    axis.append(f'<text class="s" text-anchor="middle" x="{x(1):.1f}" y="{bottom + 16:.1f}">same</text>')
    notes = ["Each dot or bar is one comparison. Red: a false conclusion (of three runs: means 3 % or more apart); grey: none.",
             "Two shared virtual cores, 2026-11-25."]
    note = [f'<text class="s" x="0" y="{bottom + 38 + 15 * line:.1f}">{text}</text>' for line, text in enumerate(notes)]
    height = bottom + 61
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">',
           "<title>wrk by hand finds differences where there are none</title>", f"<style>{STYLE}</style>",
           *first, *second, *axis, *note, "</svg>"]
    (ROOT / "docs" / "images" / "by-hand.svg").write_text("\n".join(svg) + "\n")


if __name__ == "__main__":
    main()
