"""How many turns of the loop in `targets/planted`, or round trips, make a request cost so much more CPU.

A calibration is a line of its own in a study's file, and the study keeps to it. Service on core 0, client on core 1, loopback only.
"""

import random
import signal
import time
from contextlib import contextmanager
from math import exp, log
from pathlib import Path
from statistics import mean, stdev
from typing import Iterable, Iterator

from effects import Effect
from reuse import Failed, progress
from study import append, read
from variance import Process, Treatment, client, finished, measure

# About as much again as the request costs: the more, the less the noise is of it.
SPIN = 50_000
WORK = 75
SLICE_S = 0.2
SLICES = 12  # of each process of a pair
CONNECT_S = 0.05
WARM_UP = Treatment(warm_s=2.0)  # of each process; they share a core
PAIRS = 12
PAIRS_OF_STEPS = (4, 12)
PAIRS_OF_TRUTH = 24
# As experiments load.
DRIVER = "auto"


def calibrated(file: Path, proofload: str, effects: Iterable[Effect], seed: int) -> dict:
    """The calibrations of a study's file by percent, for those of the effects that are turns of the loop; made and appended where there are none."""
    found = {line["planted"]: line for line in read(file) if line.get("kind") == "calibration" and "planted" in line}
    for percent in sorted({effect.percent for effect in effects if effect.percent is not None} - set(found)):
        random.seed(seed)
        found[percent] = planted(proofload, percent)
        append(file, found[percent])
    return found


def planted(proofload: str, percent: float) -> dict:
    """The line that says how many turns cost `percent`, about, and what they cost exactly."""
    spin = SPIN
    # In two steps, because what turns cost is not proportional to their number.
    for pairs in PAIRS_OF_STEPS:
        spin = round(percent * calibrate(proofload, pairs, spin)["turns_per_percent"])
    return {"planted": percent, **calibrate(proofload, PAIRS_OF_TRUTH, spin)}


def calibrate(proofload: str, pairs: int, turns: int = SPIN, variable: str = "SPIN") -> dict:
    """The line that says what so many turns cost, or round trips with "WORK". Raises `Failed` if they cost nothing."""
    return calibration_of(turns, measured_pairs(proofload, ({}, {variable: str(turns)}), pairs), variable)


def measured_pairs(proofload: str, sides: tuple, count: int) -> list:
    """CPU time per request, in microseconds, with each of two environments, by pairs of fresh processes."""
    measured = []
    for number in range(count):
        progress(f"pair {number + 1} of {count}\n")
        measured.append(pair(proofload, sides))
    return measured


def ratio_of(measured: list) -> tuple:
    """The second of each pair over the first, and its standard error as a share; none from one pair."""
    logs = [log(second / first) for first, second in measured]
    return exp(mean(logs)), stdev(logs) / len(logs) ** 0.5 if len(logs) > 1 else None


def calibration_of(turns: int, measured: list, variable: str = "SPIN") -> dict:
    """From pairs of CPU time per request, in microseconds, without what the variable plants and with so many turns of it."""
    ratio, error = ratio_of(measured)
    if ratio <= 1:
        raise Failed(f"{variable}={turns} costs nothing: the CPU time per request is {ratio:.3f} of that without")
    percent = 100 * (ratio - 1)
    # To first order: d(ratio) = ratio * d(log ratio).
    error = error and 100 * ratio * error
    return {"kind": "calibration", variable.lower(): turns, "plain_us": mean(plain for plain, _ in measured),
            "spun_us": mean(spun for _, spun in measured), "percent": percent, "percent_standard_error": error,
            "turns_per_percent": turns / percent, "pairs": measured}


def pair(proofload: str, sides: tuple) -> tuple:
    """CPU time per request with each of two environments, in microseconds, in slices A B B A so that drift hits both. Each process keeps one client,
    which is stopped and continued: a new client for each slice has the service open and close connections while it is measured."""
    order = []
    while len(order) < 2 * SLICES:
        turns = random.sample((0, 1), 2)
        order += turns + turns[::-1]
    with warmed_up(proofload, sides) as processes:
        before = [sum(process.cpu_ns()) for process in processes]
        with loaded(proofload, processes, SLICE_S * len(order)) as clients:
            time.sleep(CONNECT_S)
            for each in clients:
                each.send_signal(signal.SIGSTOP)
            for which in order:
                clients[which].send_signal(signal.SIGCONT)
                time.sleep(SLICE_S)
                clients[which].send_signal(signal.SIGSTOP)
            for each in clients:
                each.send_signal(signal.SIGCONT)
            requests = [finished(each)[1] for each in clients]
        return tuple((sum(process.cpu_ns()) - so_far) / of / 1e3 for process, so_far, of in zip(processes, before, requests))


@contextmanager
def warmed_up(proofload: str, sides: tuple) -> Iterator[list]:
    """A process with each environment, which ends with the context. All are warmed up at once, so that none idles meanwhile."""
    processes = []
    try:
        for env in sides:
            processes.append(Process("planted", WARM_UP, env))
        with loaded(proofload, processes, WARM_UP.warm_s * len(processes)) as clients:
            for each in clients:
                finished(each)
        yield processes
    finally:
        for process in processes:
            process.stop()


@contextmanager
def loaded(proofload: str, processes: list, seconds: float) -> Iterator[list]:
    """A client of each process, killed with the context if it still runs."""
    clients = []
    try:
        for process in processes:
            clients.append(client(proofload, process.port, seconds, driver=DRIVER))
        yield clients
    finally:
        for each in clients:
            each.kill()
            each.wait()


def in_turns(proofload: str, processes: list) -> list:
    """Throughput and CPU time per request, in microseconds, of two slices of each process: in random order and then in reverse (A B B A), so that
    drift hits all alike."""
    order = random.sample(range(len(processes)), len(processes))
    used = [[] for _ in processes]
    for which in order + order[::-1]:
        slice_ = measure(proofload, processes, which, SLICE_S, DRIVER)
        used[which].append((slice_["throughput"], slice_["main_us"] + slice_["helpers_us"]))
    return used


def per_request(slices: list) -> float:
    """Over slices of one length: each counts by its requests."""
    return sum(rate * us for rate, us in slices) / sum(rate for rate, _ in slices)
