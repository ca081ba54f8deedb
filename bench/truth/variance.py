"""Where the variance between identical Node processes comes from, and what each remedy buys.

Two processes of the same service run side by side and are loaded in turns, A B B A, as in the lab. The difference between
them is the noise of every comparison. Each treatment removes one possible cause; if the noise falls, it was a cause.

    python3 bench/truth/variance.py --proofload target/release/proofload --out variance.jsonl
    python3 bench/truth/variance_table.py variance.jsonl

Appends a line for each finished slice, so that an interrupted study is not lost.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, Optional

from reuse import CLIENT_CORE, ROOT, SERVER_CORE as SERVICE_CORE, Failed, connect, free_port, progress, started
from study import add_proofload, append, command, duration

CONNECTIONS = 16


class Treatment(NamedTuple):
    """How one kind of process is started, and what is done to it once it is warm."""

    flags: tuple = ()
    wrapper: tuple = ()
    warm_s: float = 2.0
    helpers_apart: bool = False
    slice_s: float = 0.5
    duet: Optional[str] = None


SAME_ADDRESSES = ("setarch", "-R")
SAME_SEED = ("--hash-seed=42", "--no-rehash-snapshot", "--random-seed=42")
TREATMENTS = {
    "as it is": Treatment(),
    "addresses fixed": Treatment(wrapper=SAME_ADDRESSES),
    "hash seed fixed": Treatment(flags=SAME_SEED),
    "addresses and hash seed fixed": Treatment(flags=SAME_SEED, wrapper=SAME_ADDRESSES),
    "compiles in the main thread": Treatment(flags=("--no-concurrent-recompilation",)),
    "no helper threads": Treatment(flags=("--single-threaded",)),
    "helpers on the client's core": Treatment(helpers_apart=True),
    "young generation 16 MB from the start": Treatment(flags=("--min-semi-space-size=16", "--max-semi-space-size=16")),
    "warmed for 8 s": Treatment(warm_s=8.0),
    "slices of 250 ms": Treatment(slice_s=0.25),
    "slices of 100 ms": Treatment(slice_s=0.1),
    "slices of 50 ms": Treatment(slice_s=0.05),
    "both at once, cores swapped": Treatment(duet="swapped"),
    "both at once, one core": Treatment(duet="one core"),
}


class Process:
    """One service process, pinned and ready."""

    def __init__(self, service, treatment, more_env=None, program=None):
        self.treatment = treatment
        self.port = free_port()
        padding = "x" * random.randrange(4096)
        env = {**os.environ, "PORT": str(self.port), "PROOFLOAD_PADDING": padding, "NODE_ENV": "production"}
        env.update(more_env or {})
        program = program or ["node", *treatment.flags, "server.js"]
        self.child = subprocess.Popen(
            ["taskset", "-c", str(SERVICE_CORE), *treatment.wrapper, *program], cwd=ROOT / "targets" / service, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            started("the service", lambda: connect(self.port), self.child)
        except BaseException:
            self.stop()
            raise

    def threads(self):
        """All of them, the main thread first."""
        return sorted(map(int, os.listdir(f"/proc/{self.child.pid}/task")), key=lambda thread: thread != self.child.pid)

    def apart(self):
        """Every thread but the main one to the client's core."""
        for thread in self.threads()[1:]:
            os.sched_setaffinity(thread, {CLIENT_CORE})

    def pin(self, core):
        for thread in self.threads():
            os.sched_setaffinity(thread, {core})

    def cpu_ns(self):
        """CPU time of the main thread and of all others, in nanoseconds."""
        task = Path(f"/proc/{self.child.pid}/task")
        main, *others = (int((task / str(thread) / "schedstat").read_text().split()[0]) for thread in self.threads())
        return main, sum(others)

    def stop(self):
        self.child.kill()
        self.child.wait()


def client(proofload, port, seconds, core=CLIENT_CORE, driver="readiness"):
    program = ["taskset", "-c", str(core), proofload, "load", f"http://127.0.0.1:{port}/", "--json"]
    program += ["--duration", f"{seconds * 1000:.0f}ms", "--connections", str(CONNECTIONS), "--driver", driver]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def finished(child):
    try:
        out, _ = child.communicate()
    except BaseException:
        child.kill()
        child.wait()
        raise
    if child.returncode not in (0, 4):  # an invalid one counts all the same
        raise Failed(f"proofload load ended with {child.returncode}")
    said = json.loads(out)
    if said["successful"] == 0:
        raise Failed("the service did not respond")
    return said["successful_in_window"] / said["window_s"], said["successful"]


def steal():
    """Ticks that the host took, and all."""
    with open("/proc/stat") as file:
        words = [int(word) for word in file.readline().split()[1:9]]
    return words[7], sum(words)


def steal_since(before):
    """The share that the host took since then."""
    taken, of = steal()
    return (taken - before[0]) / max(1, of - before[1])


def measure(proofload, processes, which, seconds, driver="readiness"):
    before, stolen = processes[which].cpu_ns(), steal()
    rate, ok = finished(client(proofload, processes[which].port, seconds, driver=driver))
    return slice_of(processes[which], before, stolen, rate, ok)


def slice_of(process, before, stolen, rate, ok):
    after = process.cpu_ns()
    return {
        "throughput": rate,
        "main_us": (after[0] - before[0]) / ok / 1e3,
        "helpers_us": (after[1] - before[1]) / ok / 1e3,
        "steal": steal_since(stolen),
    }


def measure_duet(proofload, processes, swapped, seconds):
    """Both at once: each on a core of its own with its client, the cores swapped at every turn, or both on one core."""
    if processes[0].treatment.duet == "swapped":
        cores = clients_cores = (1, 0) if swapped else (0, 1)
    else:
        cores, clients_cores = (SERVICE_CORE,) * 2, (CLIENT_CORE,) * 2
    for process, core in zip(processes, cores):
        process.pin(core)
        if process.treatment.helpers_apart:
            process.apart()
    before, stolen = [process.cpu_ns() for process in processes], steal()
    clients = [client(proofload, p.port, seconds, core) for p, core in zip(processes, clients_cores)]
    done = [finished(child) for child in clients]
    return [slice_of(p, b, stolen, *d) for p, b, d in zip(processes, before, done)]


def pair(args, name, number):
    treatment = TREATMENTS[name]._replace(**({"duet": "one core"} if args.together else {}))
    began = time.monotonic()
    processes = [Process(args.service, treatment) for _ in range(2)]
    try:
        for process in processes:
            finished(client(args.proofload, process.port, treatment.warm_s))
            if treatment.helpers_apart:
                process.apart()
        keep = {"service": args.service, "treatment": name, "pair": number}
        slices = round(args.seconds / treatment.slice_s)
        order = []
        while len(order) < 2 * slices:
            first = random.randrange(2)
            order += [first, 1 - first, 1 - first, first]
        if treatment.duet:
            # Twice as long, because each has half of the machine.
            for turn in range(slices):
                slices = measure_duet(args.proofload, processes, turn % 2 == 1, 2 * treatment.slice_s)
                for which, slice_ in enumerate(slices):
                    append(args.out, {**keep, "process": which, **slice_})
        else:
            for which in order:
                slice_ = measure(args.proofload, processes, which, treatment.slice_s)
                append(args.out, {**keep, "process": which, **slice_})
        append(args.out, {**keep, "pair_s": time.monotonic() - began})
    finally:
        for process in processes:
            process.stop()


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_proofload(parser)
    parser.add_argument("--service", default="planted", help="a folder below targets/")
    parser.add_argument("--out", required=True, type=Path, help="JSON lines are appended here")
    parser.add_argument("--pairs", type=int, default=10, help="pairs of processes for each treatment")
    parser.add_argument("--seconds", type=float, default=2, help="time that each process is measured, in slices")
    parser.add_argument("--together", action="store_true",
                        help="load both processes of every pair at once on one core, which shows the processes and hides the host")
    parser.add_argument("--only", nargs="*", default=list(TREATMENTS), help="treatments")
    parser.add_argument("--seed", type=int, default=20261121)
    return parser.parse_args()


def study(args):
    random.seed(args.seed)
    began = time.monotonic()
    steps = [(name, number) for number in range(args.pairs) for name in random.sample(args.only, len(args.only))]
    for done, (name, number) in enumerate(steps, 1):
        pair(args, name, number)
        left = (time.monotonic() - began) / done * (len(steps) - done)
        progress(f"{done} of {len(steps)}: {name}; about {duration(left)} left\n")


if __name__ == "__main__":
    sys.exit(command(study, parse_options()))
