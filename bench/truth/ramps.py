#!/usr/bin/env python3
"""What searches by other tools find on the queues of capacity.py: k6's breakpoint test, and steps at a constant rate by vegeta and by oha, as
people do with wrk2. One process each, as these tools are used. Loopback only. Needs Go.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from math import exp, log
from pathlib import Path
from statistics import mean, stdev
from typing import Callable

from capacity import SERVICES as ALL, built
from reuse import BENCH_TOOLS, K6_INSTALL, OHA_INSTALL, ROOT, Failed, connect, free_port, started
from study import Step, add_options, command, conduct, in_rounds, read

LIMIT_MS = 50
SERVICES = {name: service for name, service in ALL.items() if service.slo == (f"p99 < {LIMIT_MS}ms",)}
RAMP_TO = 1300
RAMP_S = 60
STEP_S = 10
STEP = 1.05
FIRST = 700
INSTALL = [OHA_INSTALL, K6_INSTALL, f"env GOBIN={BENCH_TOOLS / 'bin'} go install github.com/tsenart/vegeta/v12@v12.13.0"]
K6, VEGETA, OHA = (BENCH_TOOLS / "bin" / name for name in ("k6", "vegeta", "oha"))

# After Grafana's page on breakpoint tests: a rate that grows steadily, and a threshold that ends the test.
SCRIPT = """
import http from 'k6/http';
import { Counter } from 'k6/metrics';
export const options = {
  scenarios: { breakpoint: { executor: 'ramping-arrival-rate', startRate: 1, timeUnit: '1s', preAllocatedVUs: 500, maxVUs: 2000,
    stages: [{ target: RAMP_TO, duration: 'RAMP_Ss' }] } },
  thresholds: { http_req_duration: [{ threshold: 'p(99)<LIMIT_MS', abortOnFail: true, delayAbortEval: '5s' }] },
};
export default function () { http.get(__ENV.URL); }
"""


def k6(url: str, folder: Path) -> float:
    """The rate at which the threshold ended the ramp."""
    script, summary = folder / "breakpoint.js", folder / "summary.json"
    text = SCRIPT.replace("RAMP_TO", str(RAMP_TO)).replace("RAMP_S", str(RAMP_S)).replace("LIMIT_MS", str(LIMIT_MS))
    script.write_text(text)
    words = [K6, "run", "--quiet", "--no-usage-report", "--summary-export", summary, "-e", f"URL={url}", script]
    began = time.monotonic()
    subprocess.run(words, capture_output=True, timeout=20 * RAMP_S, check=False)
    if not summary.exists():
        raise Failed("k6 left no summary")
    # Of a ramp from 0 that ended after t seconds n = rate t / 2 requests are known better than t.
    count = json.loads(summary.read_text())["metrics"]["iterations"]["count"]
    return min((2 * count * RAMP_TO / RAMP_S) ** 0.5, (time.monotonic() - began) * RAMP_TO / RAMP_S)


def steps(p99_ms: Callable) -> Callable:
    """The last of rising rates whose p99 is within the limit."""
    def search(url: str, _: Path) -> float:
        kept, rate = 0.0, float(FIRST)
        while rate < RAMP_TO and p99_ms(url, f"{rate:.0f}") <= LIMIT_MS:
            kept, rate = rate, rate * STEP
        return kept
    return search


def vegeta(url: str, rate: str) -> float:
    attack = [VEGETA, "attack", f"-rate={rate}", f"-duration={STEP_S}s"]
    results = subprocess.run(attack, input=f"GET {url}\n".encode(), capture_output=True, check=True).stdout
    told = subprocess.run([VEGETA, "report", "-type=json"], input=results, capture_output=True, check=True)
    return json.loads(told.stdout)["latencies"]["99th"] / 1e6


def oha(url: str, rate: str) -> float:
    """`--latency-correction` counts from the time at which a request was due, as wrk2 does."""
    words = [OHA, "--no-tui", "--output-format", "json", "-c", "200", "-z", f"{STEP_S}s", "-q", rate, "--latency-correction", url]
    told = subprocess.run(words, capture_output=True, check=True)
    return 1e3 * json.loads(told.stdout)["latencyPercentiles"]["p99"]


SEARCHES = {"k6 breakpoint": k6, "steps of 10 s, vegeta": steps(vegeta), "steps of 10 s, oha": steps(oha)}


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, count=5)
    parser.add_argument("--services", nargs="*", default=list(SERVICES), choices=list(SERVICES))
    parser.add_argument("--by", nargs="*", default=list(SEARCHES), choices=list(SEARCHES))
    parser.add_argument("--install", action="store_true", help="first install the tools, into a folder of this checkout")
    return parser.parse_args()


def study(options: argparse.Namespace) -> None:
    for installer in INSTALL if options.install else ():
        if subprocess.run(installer.split(), cwd=ROOT, stdout=sys.stderr, check=False).returncode != 0:
            raise Failed(f"failed: {installer}")
    with tempfile.TemporaryDirectory(prefix="bench-truth-") as folder:
        queue = built(folder)

        def attempt(step: Step) -> dict:
            service, search = step.effect.split(" by ")
            port = free_port()
            process = subprocess.Popen([queue], env={**os.environ, **SERVICES[service].settings, "PORT": str(port)})
            try:
                started("targets/queue", lambda: connect(port), process)
                return {"per_s": SEARCHES[search](f"http://127.0.0.1:{port}/", Path(folder))}
            finally:
                process.terminate()
                process.wait()

        seconds = {f"{service} by {search}": RAMP_S for service in options.services for search in options.by}
        conduct(options.out, in_rounds("ramps", seconds, options.count, options.seed), attempt)
    print(table(read(options.out)))


def table(lines: list) -> str:
    """One row for each service and search."""
    rows = ["| service | true | by | runs | mean error | sd |", "|---|--:|---|--:|--:|--:|"]
    for service, (_, truth, _) in SERVICES.items():
        for search in SEARCHES:
            errors = [log(line["per_s"] / truth) for line in lines if line.get("effect") == f"{service} by {search}"]
            if errors:
                spread = f"{100 * stdev(errors):.1f} %" if len(errors) > 1 else ""
                rows.append(f"| {service} | {truth:.0f}/s | {search} | {len(errors)} | {100 * (exp(mean(errors)) - 1):+.1f} % | {spread} |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(command(study, parse_options()))
