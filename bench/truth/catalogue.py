"""The faults that are planted: what is wrong, in which experiment, and which check has to find it.

A table. Pure: it must not start or measure anything. Each fault has a sound experiment, and what is merged into that to
plant it. In texts `@folder`, `@port`, `@now_ms` and `@seconds` stand for what is known when it is run.
"""

from typing import NamedTuple, Optional

from reuse import ROOT

TARGETS = ROOT / "targets"
VOID, WARNING, NOTE = "invalid", "warning", "note"
GRADES = (VOID, WARNING, NOTE)  # the gravest first
# What is no finding, and yet an answer: no trial was started, or what was planted was ended with its trial.
REFUSED, PREVENTED = "refused", "prevented"
# How a fault is planted beside the experiment instead of in it: see beside.py.
STALE_SERVER, PORT_TAKEN, BUSY_LOOPS, ORPHAN = "stale server", "port taken", "busy loops", "orphan"

# Faults and checks that lines of earlier studies know by another name.
RENAMED_FAULTS = {"strangers": "other-processes"}
RENAMED_CHECKS = {"strangers": "other_processes"}
# What these report of a run without a fault may well be true: of the machine.
OF_THE_HOST = ("blocks_dropped", "spin_varies", "steal", "throttled")
# What is not planted here, and why.
NOT_COVERED = {
    "blocks_dropped, spin_varies, steal, throttled":
        "the host's doing; its counters are planted in the tests of crates/analysis",
    "aa_differs": "identical variants that differ would have to be made; `make truth-real` tells how often they seem to",
    "disk_reads, paging": "a machine short of memory, or a cold disk, would have to be made",
    "never_steady": "about the length of a run, which is as short as possible here",
    "breaks_far_below": "about capacity: in the tests of crates/lab",
    "silent": "frozen services: in the end-to-end tests of limits",
    "unknown_coding": "a note, which changes no figure: in the tests of crates/load",
    "coding_not_requested": "in the end-to-end tests of HTTP",
    "other_machine": "about two records side by side: in the tests of crates/analysis",
    "generator_lost, generators_apart": "about several machines: lost by end-to-end tests and make test-cluster, late in the tests of crates/analysis",
    "pods_changed, already_running": "about a cluster: in the tests of crates/analysis, and by make test-cluster",
    "cores_differ": "services at their limit would have to lose it while they are measured: in the tests of crates/analysis",
    "unasked": "a service that responds twice would be no HTTP server any more: in the tests of crates/load, and by make knocks",
    "certificates_unchecked": "what a file asks for, told again: in the tests of crates/analysis",
    "killed": "a note",
    "damage, quantile_unresolved, value_missing": "about what a record lacks: in the tests of crates/analysis",
}


def merged(*tables: dict) -> dict:
    """Tables laid over each other: what is no table is replaced."""
    result = {}
    for table in tables:
        for key, value in table.items():
            before = result.get(key)
            is_table = isinstance(value, dict) and isinstance(before, dict)
            result[key] = merged(before, value) if is_table else value
    return result


def pruned(table: dict) -> dict:
    """Without what is `None`: so a later table takes away what an earlier one has."""
    kept = {key: value for key, value in table.items() if value is not None}
    return {key: pruned(value) if isinstance(value, dict) else value for key, value in kept.items()}


def api(**keys) -> dict:
    return {"services": {"api": keys}}


def env(**variables: Optional[str]) -> dict:
    """Of both variants."""
    return api(env=variables)


def level(name: str, **keys) -> dict:
    return {"factors": {"side": {name: keys}}}


def side_env(name: str, **variables: Optional[str]) -> dict:
    return level(name, api={"env": variables})


def candidate(**variables: str) -> dict:
    return side_env("candidate", **variables)


def started_by(script: str) -> dict:
    """A script of the shell that gets another argument in each variant."""
    commands = {side: ["sh", "-c", script, "sh", f"--{side}"] for side in ("baseline", "candidate")}
    return merged(*(level(side, api={"command": command}) for side, command in commands.items()))


def design(**keys) -> dict:
    return {"design": keys}


def load(**keys) -> dict:
    return {"load": keys}


# Two variants that differ in a variable which nobody reads. All blocks are run whatever comes out, so that every run
# has as much to look at.
BASE = merged(
    api(directory=str(TARGETS / "faulty"), command=["node", "server.js"], ready="/healthz",
        env={"PORT": "{port}", "HOST": "{address}", "NODE_ENV": "production"}),
    {"entry": "api"},
    side_env("baseline", NOT_READ="1"), side_env("candidate", NOT_READ="2"),
    load(connections=16),
    design(margin="5%", looks="once", budget="3m", warmup="700ms", slice="200ms", slices=5, blocks=6),
)

EXPRESS = api(directory=str(TARGETS / "planted"))
NODE_ENV = merged(EXPRESS, side_env("baseline", NODE_ENV="development"), candidate(NODE_ENV="production"))
# Nothing but the commands tells the variants apart.
ALIKE = merged(side_env("baseline", NOT_READ=None), side_env("candidate", NOT_READ=None))
COMPRESSION = merged(
    api(directory=str(TARGETS / "express-json")), load(headers={"accept-encoding": "gzip"}),
    side_env("baseline", COMPRESSION="off"), candidate(COMPRESSION="default"),
    level("candidate", expect={"headers": {"content-encoding": "gzip"}}),
)
NGINX = ["nginx", "-p", "{scratch}", "-c", "{scratch}/nginx.conf", "-e", "stderr"]


def proxy(template: str) -> dict:
    folder = TARGETS / "reverse-proxy"
    return api(directory=str(folder), command=NGINX, templates={"nginx.conf": template}, workers=1)


PROXY = merged(
    proxy("nginx-pool.conf.tmpl"), api(needs=["origin"]), load(path="/api/", connections=32),
    {"services": {"origin": {"directory": str(TARGETS / "origin"), "command": ["node", "server.js"],
                             "ready": "/healthz", "env": {"PORT": "{port}", "HOST": "{address}"}}}},
)
# There the proxy looks for the origin at its own address.
LINK = merged(load(network={"delay": "1ms"}), {"services": {"origin": {"env": {"HOST": "0.0.0.0"}}}})
FEW_PORTS = "echo '40000 40200' > /proc/sys/net/ipv4/ip_local_port_range"
# Each process tells its port to who waits for it.
SHARED_PORT = api(
    command=["sh", "-c", f"echo {{port}} >> @folder/ports && exec {' '.join(NGINX)}"], workers=1,
    templates={"nginx.conf": "nginx-shared-port.conf.tmpl"},
)
# Two workers want two processors, of which the client needs one: it shares.
CLUSTER = merged(api(launcher="cluster", workers=2), load(connections=32), design(cpus="shared"))
# Slices of one turn: where answers take 40 ms and more, turns last 0.2 s at least.
WINDOWS = design(slice="300ms", slices=4)
# Ten blocks for what shows from block to block.
SERIES = design(blocks=10, warmup="300ms", slices=3)
AT_A_RATE = merged(load(connections=64), design(metric="p50", rate=500))


SECONDS = 27  # that a sound run takes, about


class Fault(NamedTuple):
    """`checks`: any of them finds it, if its grade is `grade` or graver. `beside`: how it is planted, if not by
    `planted`. `of_sound`: findings that are true of the sound experiment, too. `seconds`: that a faulty run takes."""

    wrong: str
    checks: tuple
    grade: str
    planted: dict = {}
    sound: dict = {}
    beside: Optional[str] = None
    of_sound: tuple = ()
    seconds: int = SECONDS
    needs_root: bool = False
    # It leaves closing connections, which the next experiment could see.
    litters: bool = False

    def experiment(self, name: str, faulty: bool) -> dict:
        """As the file says it."""
        return pruned(merged({"name": name}, BASE, self.sound, self.planted if faulty else {}))

    def seconds_of(self, faulty: bool) -> int:
        return self.seconds if faulty else max(self.seconds, SECONDS)


FAULTS = {
    "compression": Fault(
        "compression that the client never asked for", ("treatment_not_applied",), VOID,
        planted=load(headers={"accept-encoding": None}), sound=COMPRESSION),
    "env-lost": Fault(
        "`env -u NODE_ENV` before the command", ("environment_lost",), VOID,
        planted=api(command=["env", "-u", "NODE_ENV", "node", "server.js"]), sound=NODE_ENV),
    "env-overridden": Fault(
        "a shell script that sets NODE_ENV itself", ("environment_lost", "nothing_observable"), WARNING,
        planted=api(command=["sh", "-c", "NODE_ENV=production exec node server.js"]), sound=NODE_ENV),
    "nothing-reaches": Fault(
        "a shell script that drops its arguments", ("nothing_observable",), WARNING,
        planted=started_by("exec node server.js"), sound=merged(ALIKE, started_by('exec node server.js "$1"'))),
    "stale-server": Fault(
        "another server shares the port", ("stale_server", REFUSED), VOID, sound=SHARED_PORT, beside=STALE_SERVER),
    "port-taken": Fault(
        "another server has the port", (REFUSED,), VOID, planted=api(port="@port"), beside=PORT_TAKEN, seconds=2),
    "different-content": Fault(
        "other answers of the same length", ("different_work",), WARNING, planted=candidate(LETTER="y")),
    "different-size": Fault(
        "answers a fifth longer", ("different_work", "different_bodies"), WARNING,
        planted=candidate(BODY_BYTES="1200")),
    "client-saturated": Fault(
        "answers in chunks of one byte, one thread to read them", ("generator_saturated",), VOID,
        planted=env(CHUNK_BYTES="1"), sound=merged(api(command=["node", "chunks.js"]), load(threads=1))),
    "errors": Fault(
        "1 % errors in one variant", ("errors",), VOID, planted=candidate(ERROR_SHARE="0.01")),
    "no-success": Fault(
        "nothing but errors in one variant", ("no_success",), WARNING, planted=candidate(ERROR_SHARE="1")),
    "pointless": Fault(
        "nothing but errors in both", ("pointless",), VOID, planted=env(ERROR_SHARE="1"), seconds=8),
    "proxy-without-pool": Fault(
        "nginx opens a connection for each request", ("upstream_connections",), WARNING,
        planted=proxy("nginx-bare.conf.tmpl"), sound=PROXY, litters=True),
    "ports-exhausted": Fault(
        "200 ports for that, in a network of its own", ("ports_exhausted",), VOID,
        planted=merged(proxy("nginx-bare.conf.tmpl"),
                       api(command=["sh", "-c", f"{FEW_PORTS} && exec {' '.join(NGINX)}"])),
        sound=merged(PROXY, LINK), needs_root=True, litters=True),
    "churn": Fault(
        "`Connection: close` on every answer", ("connection_churn",), WARNING, planted=env(CLOSE_AFTER="1"),
        litters=True),
    "backlog": Fault(
        "`listen` with room for one connection", ("backlog_full",), VOID,
        planted=env(BACKLOG="1"), sound=merged(env(CLOSE_AFTER="200"), load(connections=8)), seconds=40,
        litters=True),
    "one-worker": Fault(
        "one connection for two workers", ("workers_idle",), VOID, planted=load(connections=1), sound=CLUSTER,
        of_sound=("cores_shared",)),
    "uneven-workers": Fault(
        "one of two workers waits 16 ms before each answer", ("workers_uneven",), WARNING,
        planted=env(DELAY_MS="16", DELAY_WORKER="2"), sound=CLUSTER, of_sound=("cores_shared",)),
    "worker-crashes": Fault(
        "one of two workers ends while it is measured", ("workers_lost",), VOID,
        planted=env(CRASH_AFTER_MS="2000"), sound=CLUSTER, of_sound=("cores_shared",)),
    "too-many-workers": Fault(
        "eight workers for one core", ("too_many_workers",), WARNING,
        planted=api(workers=8), sound=merged(api(launcher="cluster", workers=1), load(connections=32)), seconds=32),
    "leak": Fault(
        "4 kB kept of each request", ("leak",), WARNING, planted=env(LEAK_BYTES="4000"),
        sound=design(slice="300ms", slices=6), seconds=37),
    "drift": Fault(
        "both variants become slower all the time", ("drift",), WARNING, planted=env(DRIFT_SINCE="@now_ms"),
        sound=SERIES, seconds=32),
    "ratio-drifts": Fault(
        "one variant becomes slower all the time", ("autocorrelated",), WARNING,
        planted=candidate(DRIFT_SINCE="@now_ms"), sound=SERIES, seconds=32),
    "order": Fault(
        "whichever starts first is slower", ("order_effect",), WARNING, planted=env(FIRST_FILE="@folder/first"),
        sound=SERIES, seconds=32),
    "warm-up": Fault(
        "the first 2,000 requests are slow, and no warm-up", ("warm_up_inside",), WARNING,
        planted=merged(env(SLOW_REQUESTS="2000"), design(warmup="0s")), seconds=20),
    "profiler": Fault(
        "`node --cpu-prof`", ("profiler_on",), VOID,
        planted=api(command=["node", "--cpu-prof", "--cpu-prof-dir={scratch}", "server.js"])),
    "inspector": Fault(
        "`--inspect` in NODE_OPTIONS", ("profiler_on",), VOID, planted=env(NODE_OPTIONS="--inspect=127.0.0.1:0")),
    "not-idle": Fault(
        "a timer that uses 5 % of a core", ("idle_not_idle",), WARNING, planted=env(BUSY_SHARE="0.05")),
    "left-over": Fault(
        "a child in a session of its own", ("left_over", PREVENTED), VOID, planted=env(ORPHAN_S="@seconds"),
        beside=ORPHAN),
    "same-stall": Fault(
        "40 ms before every answer, in both", ("same_stall",), WARNING, planted=env(DELAY_MS="40"), sound=WINDOWS),
    # Since the throughput of services that wait is counted over their time in flight it comes in no steps: nothing finds this one now.
    "in-steps": Fault(
        "60 ms before every answer, in both", ("throughput_in_steps",), WARNING, planted=env(DELAY_MS="60"),
        sound=WINDOWS),
    "not-saturated": Fault(
        "5 ms before every answer, 16 connections", ("service_not_saturated",), WARNING, planted=env(DELAY_MS="5")),
    "cores-shared": Fault(
        "client and service on the same cores", ("cores_shared",), WARNING, planted=design(cpus="shared")),
    "other-processes": Fault(
        "two busy loops beside it", ("other_processes",), WARNING, beside=BUSY_LOOPS),
    "client-late": Fault(
        "two busy loops beside an open loop", ("client_late",), WARNING, sound=AT_A_RATE, beside=BUSY_LOOPS,
        seconds=32),
    "rate-not-kept": Fault(
        "500 requests a second for four connections of 12 ms", ("rate_not_kept",), VOID,
        planted=merged(env(DELAY_MS="12"), load(connections=4)), sound=AT_A_RATE, seconds=32),
    "too-short": Fault(
        "a budget of 14 s for what takes 18 s", ("too_few_blocks",), WARNING, planted=design(budget="14s"), seconds=15),
}
