#!/usr/bin/env python3
"""Writes a study's page: text from docs/studies/*.md.in, every figure from the records of its experiments.

    scripts/study_page.py auth RECORD [RECORD ...]     writes docs/studies/auth.md and experiments/results/auth.md

A source is Markdown with references in double braces. EXPERIMENT is the name of an experiment, LABEL is the label of a
comparison or an effect in its report:

    {{change EXPERIMENT | LABEL}}                 "38 % slower (36 to 40 %)", of the first metric
    {{change EXPERIMENT | LABEL | cpu_per_request}}
    {{added EXPERIMENT | LABEL | p99}}            the difference in the metric's own unit, with its interval
    {{figure EXPERIMENT | VARIANT | throughput}}  also cpu_per_request, peak_memory, p50, p99, failed
    {{capacity EXPERIMENT | VARIANT}}             "2,350 (2,210 to 2,480)" requests per second

The second file has the records' reports, without assumptions that are not doubtful (they are the same in every report:
experiments/results/README.md has them) and without a table of services where each variant has one.

It must not know a particular study. An unknown reference is an error.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUDIES = ROOT / "docs" / "studies"
RESULTS = ROOT / "experiments" / "results"
REFERENCE = re.compile(r"\{\{\s*(\w+)\s+([^}]*?)\s*\}\}")
# The exit code of a report with an invalid finding.
VOID = 4
ASSUMPTION = re.compile(r"^- (unchecked|supported): .*\n", re.MULTILINE)
EMPTY_HEADING = re.compile(r"^#+ Assumptions\n+(?=</details>|#)", re.MULTILINE)
COST_BY_SERVICE = re.compile(r"^Cost by service:\n\n\|.*\n\|.*\n((?:\|.*\n)+)\n", re.MULTILINE)


class Dangling(Exception):
    """An unknown reference."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", help="name of a file docs/studies/STUDY.md.in")
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD", help="folder of a record")
    parser.add_argument("--proofload", default=str(ROOT / "target" / "release" / "proofload"))
    options = parser.parse_args()
    source = STUDIES / f"{options.study}.md.in"
    try:
        reports = [report_of(options.proofload, record) for record in options.records]
        by_name = {report["experiment"]: report for report in reports}
        page = filled(source.read_text(), by_name)
    except (Dangling, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for folder, text in [(STUDIES, page), (RESULTS, all_reports(options.study, page, reports))]:
        (folder / f"{options.study}.md").write_text(text)
        print(f"wrote {folder.relative_to(ROOT)}/{options.study}.md", file=sys.stderr)
    return 0


def all_reports(study: str, page: str, reports: list) -> str:
    """The reports of a study's records, one after the other."""
    head = [f"# Reports: {page.splitlines()[0].removeprefix('# ')}",
            f"Reports of the records from which [the study](../../docs/studies/{study}.md) is made, without "
            "[assumptions that all share](README.md)."]
    parts = [part for report in reports for part in (f"## {report['experiment']}", run(report), report_text(report))]
    return "\n\n".join([*head, *parts]) + "\n"


def report_of(proofload: str, record: Path) -> dict:
    """The report of a record, its Markdown form and what was run added to it."""
    def printed(form: str) -> str:
        command = [proofload, "report", str(record), "--format", form]
        run = subprocess.run(command, capture_output=True, text=True)
        # A report with an invalid finding is a report, too.
        if run.returncode not in (0, VOID):
            raise Dangling(f"{record}: {run.stderr.strip()}")
        return run.stdout

    report = json.loads(printed("json"))
    report["markdown"] = printed("markdown")
    report["header"] = json.loads((record / "record.json").read_text())
    return report


def filled(source: str, reports: dict) -> str:
    """A source with every reference replaced. Raises `Dangling`."""
    def replace(match: re.Match) -> str:
        kind, arguments = match[1], [part.strip() for part in match[2].split("|")]
        if kind not in KINDS:
            raise Dangling(f"{match[0]}: no such reference; there are {', '.join(KINDS)}")
        if arguments[0] not in reports:
            raise Dangling(f"{match[0]}: no record of {arguments[0]} was given")
        try:
            return KINDS[kind](reports[arguments[0]], *arguments[1:])
        except (Dangling, TypeError) as error:
            raise Dangling(f"{match[0]}: {error}") from None

    return REFERENCE.sub(replace, source)


def change(report: dict, label: str, metric: str = None) -> str:
    """A verdict in words: which way, by how much, between which bounds."""
    found = judged(report, label, metric)
    if found.get("no_success"):
        return found["outcome"].replace("_", " ")
    word = WORDS[found["metric"]].get(found["outcome"], found["outcome"])
    estimate = found.get("estimate")
    if estimate is None:
        return word
    ratio, low, high = (estimate[key] for key in ("ratio", "low", "high"))
    if max(ratio, 1 / ratio) >= 2:
        return f"×{shown(ratio)} ({word}, ×{shown(low)} to ×{shown(high)})"
    if found["outcome"] in ("better", "worse"):
        least, most = sorted(abs(percent(end)) for end in (low, high))
        return f"{shown(abs(percent(ratio)))} % {word} ({shown(least)} to {shown(most)} %)"
    return f"{word} ({signed(percent(low))} to {signed(percent(high))} %)"


def added(report: dict, label: str, metric: str = None) -> str:
    """A difference in the metric's own unit, with its interval."""
    found = judged(report, label, metric)
    difference = found.get("difference")
    if difference is None:
        outcome = FASTER.get(found["outcome"], found["outcome"].replace("_", " "))
        return f"no number ({outcome})"
    unit, scale = UNITS[found["metric"]]
    value, low, high = (difference[key] / scale for key in ("value", "low", "high"))
    return f"{signed(value)} {unit} ({signed(low)} to {signed(high)})"


def judged(report: dict, label: str, metric: str = None) -> dict:
    """The comparison or effect with that label, for the first metric unless one is named."""
    wanted = lambda one: one["label"] == label and metric in (None, one["metric"])
    for one in report["comparisons"] + report["effects"]:
        if wanted(one):
            return one
    labels = sorted({one["label"] for one in report["comparisons"] + report["effects"]})
    raise Dangling(f"no such comparison; there are: {'; '.join(labels)}")


def figure(report: dict, name: str, metric: str) -> str:
    """A figure of one variant, to three digits."""
    variants = {variant["name"]: variant for variant in report["variants"]}
    if name not in variants:
        raise Dangling(f"no such variant; there are: {'; '.join(variants)}")
    variant = variants[name]
    if metric == "failed":
        return f"{variant['failed']:,} of {variant['requests']:,}"
    times = {time["metric"]: time["us"] / 1e3 for time in variant.get("response_time", [])}
    if variant["no_success"]:
        return "no success" if metric == "throughput" else "–"
    values = {
        "throughput": variant["throughput_per_s"],
        "cpu_per_request": variant["cpu_us_per_request"],
        "peak_memory": variant["peak_rss_bytes"] and variant["peak_rss_bytes"] / 1e6,
    }
    if metric not in values and metric not in UNITS:
        raise Dangling(f"no such metric: {metric}")
    value = values.get(metric, times.get(metric))
    if value is None:
        return "–"
    # An invalid figure is not quoted without saying so.
    return f"{shown(value)} (invalid)" if is_void(report, name) else shown(value)


def capacity(report: dict, name: str) -> str:
    """What a variant bears, with its interval, to three digits."""
    found = next((one for one in report.get("capacities", []) if one["variant"] == name), None)
    if found is None:
        raise Dangling("no such variant, or its capacity was not measured")
    if found["capacity_per_s"] is None:
        return "–"
    if found["at_least"]:
        text = f"at least {shown(found['capacity_per_s'])}"
    else:
        low, high = (found["reached_interval"][end] for end in ("low", "high"))
        text = f"{shown(found['reached_per_s'])} ({shown(low)} to {shown(high)})"
    return text + (" (invalid)" if is_void(report, name) else "")


def is_void(report: dict, name: str) -> bool:
    """Whether a finding makes everything about this variant invalid. `different_work` is about a pair, so it does not."""
    index = [variant["name"] for variant in report["variants"]].index(name)
    about = lambda finding: not finding["variants"] or index in finding["variants"] or name in finding["variants"]
    voids = lambda finding: finding["grade"] == "invalid" and finding["check"] != "different_work"
    return any(voids(finding) and about(finding) for finding in report["findings"])


def run(report: dict) -> str:
    """The command that repeats it, the date and the machine."""
    header, where = report["header"], report["environment"]
    command = re.sub(r" --out(=| )\S+", "", " ".join(["proofload", *header["command"][1:]]))
    seed = "" if "--seed" in command else f" --seed {header['seed']}"
    machine = f"{where['cpu_model'] or 'unknown processor'}, {where['cpus']} processors, Linux {where['kernel']}"
    return f"`{command}{seed}`, {header['created'][:10]}, {machine}."


def report_text(report: dict) -> str:
    """The report below the page's own headings, shortened as the module says, without the record's folder."""
    text = re.sub(r"^- record: .*\n", "", report["markdown"], flags=re.MULTILINE)
    return re.sub(r"^(#+) ", r"##\1 ", shortened(text), flags=re.MULTILINE).strip()


def shortened(text: str) -> str:
    """A report without what repeats on a study's page."""
    text = EMPTY_HEADING.sub("", ASSUMPTION.sub("", text))
    one_each = lambda table: all(line.split("|")[4].strip() == "100 %" for line in table[1].splitlines())
    return COST_BY_SERVICE.sub(lambda table: "" if one_each(table) else table[0], text)


def percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def shown(value: float) -> str:
    """Three digits, without an exponent."""
    if value == 0:
        return "0"
    value = float(f"{value:.3g}")
    digits = max(0, 3 - len(str(int(abs(value))))) if abs(value) >= 1 else 2
    return f"{value:,.{digits}f}"


def signed(value: float) -> str:
    return ("+" if value > 0 else "−" if value < 0 else "") + shown(abs(value))


FASTER = {"better": "faster", "worse": "slower", "equivalent": "no difference that matters",
          "inconclusive": "inconclusive", "invalid": "invalid"}
UNITS = {"throughput": ("requests/s", 1), "cpu_per_request": ("µs of CPU", 1),
         "peak_memory": ("MB", 1e6), **{name: ("ms", 1e3) for name in ("p50", "p90", "p99", "p99.9")}}
WORDS = {name: FASTER for name in UNITS} | {
    "cpu_per_request": FASTER | {"better": "cheaper", "worse": "more expensive"},
    "peak_memory": FASTER | {"better": "less memory", "worse": "more memory"},
    "capacity": FASTER | {"better": "more", "worse": "less"},
}
KINDS = {"change": change, "added": added, "figure": figure, "capacity": capacity}

if __name__ == "__main__":
    sys.exit(main())
