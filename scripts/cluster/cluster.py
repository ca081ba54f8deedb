#!/usr/bin/env python3
"""A real Kubernetes on this machine, for tests: API server, scheduler, controllers, and nodes with kubelet and containerd, each in a
network namespace of its own. As root; nothing of it is left after `down`.

    scripts/cluster/cluster.py run -- COMMAND       all of it around a command: build, up, COMMAND, down
    scripts/cluster/cluster.py ready                whether it is built already; if not, why
    scripts/cluster/cluster.py up
    scripts/cluster/cluster.py down
    scripts/cluster/cluster.py image NAME PROGRAM   gives all nodes an image with PROGRAM as its entry point, or that of an archive
    scripts/cluster/cluster.py crash N              node N is gone, as by a power cut
    scripts/cluster/cluster.py restart N            node N is there again
    scripts/cluster/cluster.py stop-api             ends the API server; nodes and pods go on
    scripts/cluster/cluster.py start-api            starts it again
    scripts/cluster/cluster.py restart-controllers  lets controllers and scheduler connect to it at once
    scripts/cluster/cluster.py kubectl WORDS...     as administrator
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import control
import identities
import image
import network
import node
from place import CACHE, CONTROL, NODES, PROGRAM, SOURCES, STATE, folder, node_name
from processes import Failed, inside, run

COMMANDS = ["containerd", "runc", "ctr", "ip", "nsenter", "iptables", "openssl"]
VERSION = "v1.33.13"
NODES_READY_MAX_S = 90
# kubelet sets these for the whole machine; `down` puts them back.
SYSCTLS = ["vm.overcommit_memory", "vm.panic_on_oom", "kernel.panic", "kernel.panic_on_oops",
           "kernel.keys.root_maxkeys", "kernel.keys.root_maxbytes"]


def main(words: list[str]) -> int:
    match words:
        case ["run", "--", *command] if command:
            return around(command)
        case ["ready"]:
            return ready()
        case ["up"]:
            up()
        case ["down"]:
            down()
        case ["image", name, source]:
            give_image(name, Path(source))
        case ["crash", number] if number.isdigit() and int(number) in NODES:
            node.crash(int(number))
        case ["restart", number] if number.isdigit() and int(number) in NODES:
            restart(int(number))
        case ["stop-api"]:
            control.stop_api()
        case ["start-api"]:
            control.start_api()
        case ["restart-controllers"]:
            control.restart_controllers()
        case ["kubectl", *rest]:
            admin = f"--kubeconfig={identities.kubeconfig_of('admin')}"
            return subprocess.run(inside(CONTROL, [str(PROGRAM), "kubectl", admin, *rest])).returncode
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


def around(command: list[str]) -> int:
    """Runs a command while the cluster is up. Only one at a time on a machine."""
    if lacking := what_is_missing():
        raise Failed(lacking)
    with open("/run/lock/proofload-cluster", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            up()
            return subprocess.run(command, env=environment()).returncode
        finally:
            down()


def environment() -> dict[str, str]:
    """The environment by which a client finds the cluster, and its kubectl."""
    path = f"{STATE / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "KUBECONFIG": str(identities.kubeconfig_of(identities.CLIENTS))}


def give_kubectl() -> None:
    """The cluster's own kubectl, as a command."""
    command = STATE / "bin" / "kubectl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {PROGRAM} kubectl "$@"\n')
    command.chmod(0o755)


def ready() -> int:
    """Whether the cluster starts in seconds here. If not, the skipped tests are reported clearly."""
    lacking = what_is_missing()
    if not lacking and not PROGRAM.exists():
        lacking = "its program is not built yet, which takes some ten minutes: make test-cluster"
    if lacking:
        print(f"\n*** SKIPPED: the tests with a real Kubernetes. {lacking} ***\n", file=sys.stderr)
    return 1 if lacking else 0


def what_is_missing() -> str | None:
    """Why there can be no cluster here."""
    if os.geteuid() != 0:
        return "a test cluster takes root, for network namespaces and containers"
    missing = [name for name in COMMANDS if shutil.which(name) is None]
    if not node.PLUGINS.joinpath("bridge").exists():
        missing.append(str(node.PLUGINS / "bridge"))
    return f"missing here: {', '.join(missing)}; scripts/setup cluster installs it" if missing else None


def build() -> None:
    """Builds it, unless the cache has it."""
    if PROGRAM.exists():
        return
    if shutil.which("go") is None:
        raise Failed("go is missing, which builds the test cluster: install Go 1.24 or newer")
    print("cluster: building Kubernetes from its Go modules; about ten minutes the first time", file=sys.stderr)
    CACHE.mkdir(parents=True, exist_ok=True)
    half = PROGRAM.with_suffix(".half")
    major, minor, _ = VERSION.lstrip("v").split(".")
    facts = {"gitVersion": VERSION, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in facts.items())
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}
    subprocess.run(["go", "build", "-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {flags}", "-o", half, "."],
                   cwd=SOURCES, env=environment, check=True)
    half.rename(PROGRAM)


def up() -> None:
    """Starts everything, and waits until all nodes are ready."""
    build()
    down()
    STATE.mkdir(parents=True)
    STATE.chmod(0o700)
    (STATE / "sysctl").write_text(run("sysctl", *SYSCTLS))
    give_kubectl()
    network.make()
    identities.make()
    image.pause(node.PAUSE, STATE / "pause.tar")
    control.begin()
    for number in NODES:
        node.begin(number)
        node.take(number, STATE / "pause.tar")
    wait_for_nodes()


def wait_for_nodes() -> None:
    """Until pods can be made: nodes are ready, and there is the account that pods have."""
    until = time.monotonic() + NODES_READY_MAX_S
    while True:
        listed = control.kubectl("get", "nodes", "--no-headers", quiet=True)
        states = {line.split()[0]: line.split()[1] for line in listed.splitlines()}
        all_ready = all(states.get(node_name(number)) == "Ready" for number in NODES)
        if all_ready and "default" in control.kubectl("get", "sa", "default", quiet=True):
            return
        if time.monotonic() > until:
            raise Failed(f"the nodes are not ready after {NODES_READY_MAX_S} s: {states}; see {STATE}/logs")
        time.sleep(0.3)


def restart(number: int) -> None:
    """Starts a node that crashed, and waits for it."""
    network.plug_in(number)
    node.unmount(folder(number) / "running")
    node.start_containerd(number)
    node.start_kubelet(number)
    wait_for_nodes()


def give_image(name: str, source: Path) -> None:
    """Gives all nodes an image: one made from a program, or that of an archive."""
    out = STATE / "image.tar"
    made = image.renamed if tarfile.is_tarfile(source) else image.of_program
    made(name, source, out)
    for number in NODES:
        node.take(number, out)
    out.unlink()


def down() -> None:
    """Ends everything and removes what it left, if there is anything."""
    if not STATE.exists():
        return
    control.end()
    for number in NODES:
        node.end(number)
    if (STATE / "sysctl").exists():
        run("sysctl", "--quiet", f"--load={STATE / 'sysctl'}", quiet=True)
    node.unmount(STATE)
    network.remove()
    shutil.rmtree(STATE)


if __name__ == "__main__":
    # So that started processes are ended, also with the terminal. What nohup ignores stays ignored.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, lambda told, _: sys.exit(128 + told))
    try:
        sys.exit(main(sys.argv[1:]))
    except Failed as failed:
        print(f"cluster: {failed}", file=sys.stderr)
        sys.exit(1)
