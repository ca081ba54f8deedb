"""Bad networks: namespaces of their own, in which ports, addresses or packets are missing; and addresses that lead nowhere.

Each namespace goes with the processes in it. Nothing leaves this machine.
"""

import signal
import socket
import time

from knock import MEASURED, OURS, Place, Skipped, add, balances, bytes_of, comes, knock, must, needs
from machine import shell
from peers import OK, Server, answers

UP = "ip link set lo up"
QUEUE, LACKS = "tc qdisc add dev lo root", "no such queue"
OR_LACKS = f"|| echo {LACKS} >&2"


def inside(script: str) -> tuple:
    """In a network of its own, after this script."""
    return "unshare", "-n", *shell(f'{script}\nexec "$@"')


def row(name: str, setup: str, script: str, codes: tuple, saying: str = "", programs: tuple = ("ip",), seconds: float = 5, **asked) -> None:
    """A run in a network of its own."""
    def test(place: Place) -> str:
        needs("unshare", *programs, root=True)
        said = place.run(before=inside(script), **asked)
        if LACKS in said.err:
            raise Skipped(f"the kernel lacks it: {said.last}")
        said.ends(*codes, saying=saying)
        if place.has_record():
            place.opens()
        return said.seen
    add(f"network-{name}", "networks", setup, comes(codes, saying), test, seconds)


ODD_PORTS = "echo '40000 40011' >/proc/sys/net/ipv4/ip_local_port_range"
NO_KEEP_ALIVE = {"load": {"keep_alive": False}}
row("own", "nothing but loopback", UP, MEASURED)
row("loopback-down", "loopback is down", "true", (*OURS, 3))
row("few-ports", "12 local ports", f"{UP}; {ODD_PORTS}", (*MEASURED, 3, 6))
row("few-ports-churn", "12 local ports, a connection for each request", f"{UP}; {ODD_PORTS}", (4, 3, 6),
    **NO_KEEP_ALIVE)
row("ipv6-only", "127.0.0.1 is not there", f"{UP}; ip address del 127.0.0.1/8 dev lo", (*MEASURED, 3, 6))
row("no-ipv6", "no IPv6", f"{UP}; echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6", MEASURED)
row("mtu", "packets of 576 bytes", f"{UP}; ip link set lo mtu 576", MEASURED)
row("buffers", "socket buffers of 4 kB", f"{UP}; echo 4096 4096 4096 >/proc/sys/net/ipv4/tcp_rmem; "
    "echo 4096 4096 4096 >/proc/sys/net/ipv4/tcp_wmem", MEASURED)
row("loss", "5 % of packets lost", f"{UP}; {QUEUE} netem loss 5% {OR_LACKS}", (*MEASURED, 3), programs=("ip", "tc"),
    seconds=12)
row("reorder", "packets late, twice and out of order",
    f"{UP}; {QUEUE} netem delay 3ms 3ms duplicate 10% reorder 20% {OR_LACKS}", MEASURED, programs=("ip", "tc"),
    seconds=8)
row("slow", "a link of 64 kbit/s", f"{UP}; {QUEUE} tbf rate 64kbit burst 2000 latency 1s {OR_LACKS}", (*MEASURED, 3),
    programs=("ip", "tc"), seconds=20)
row("goes-down", "loopback goes down in the midst", f"{UP}; (sleep 1.5; ip link set lo down) &", (3, 4, 6), seconds=20)
row("flaps", "loopback goes down and up again", f"{UP}; (sleep 1.5; ip link set lo down; sleep 0.3; {UP}) &",
    (*MEASURED, 3, 6), seconds=20)
row("black-hole", "packets vanish in the midst",
    f"{UP}; (sleep 1.5; {QUEUE} tbf rate 8bit burst 10 limit 10 {OR_LACKS}) &", (3, 4, 6), programs=("ip", "tc"),
    seconds=25)


def told(name: str, setup: str, codes: tuple, *words, saying: str = "", before: tuple = (), seconds: float = 2) -> None:
    """A load of an address that leads nowhere."""
    def test(place: Place) -> str:
        needs(*(["unshare", "ip"] if before else []), root=bool(before))
        said = place.proofload("load", "-d", "300ms", "-c", "2", "--timeout", "500ms", "--limit", "failed < 1%",
                                     *[word.replace("@", str(place.folder)) for word in words], before=before)
        return said.ends(*codes, saying=saying).seen
    add(f"address-{name}", "networks", setup, comes(codes, saying), test, seconds)


ALONE = inside(UP)
told("refused", "a port where nobody listens", (4, 6), "http://127.0.0.1:1/")
told("port-0", "port 0", (2, 4), "http://127.0.0.1:0/")
told("port-65536", "port 65536", (2,), "http://127.0.0.1:65536/")
told("no-name", "a name that is none", (2, 4, 6), "http://no.such.host.invalid/", "--yes", before=ALONE)
told("odd-name", "a name of 300 letters", (2, 4, 6), f"http://{'a' * 300}/", "--yes", before=ALONE)
told("elsewhere", "another machine, without being asked", (2,), "http://192.0.2.1/", saying="--yes", before=ALONE)
told("no-way", "another machine to which no way leads", (4, 6), "http://192.0.2.1/", "--yes", before=ALONE)
told("no-answer", "another machine that never answers", (4, 6), "http://192.0.2.1/", "--yes", seconds=6,
     before=inside(f"{UP}; ip link add near type veth peer name far; ip link set near up; ip link set far up; "
            "ip address add 192.0.2.2/24 dev near; ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev near"))
told("not-ours", "from an address that is not ours", (2, 4, 6), "http://127.0.0.1:1/", "--source", "192.0.2.9")
told("no-socket", "a unix socket that is not there", (2, 4, 6), "http://localhost/", "--unix", "@/none.sock")
told("no-socket-but-file", "a unix socket that is a file", (2, 4, 6), "http://localhost/", "--unix", "/etc/passwd")
told("long-socket", "a unix socket of a path of 300 letters", (2, 4, 6), "http://localhost/", "--unix",
    f"/tmp/{'s' * 300}")
told("odd-scheme", "another scheme", (2,), "ftp://127.0.0.1/")
told("control", "control characters in a URL", (2, 4), "http://127.0.0.1:1/\x1b[31m\r\nX: y")


@knock("a server whose queue is full and that accepts nobody", "no request is sent, no hang", seconds=4)
def network_never_accepts(place: Place) -> str:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, socket.create_connection(listener.getsockname()):
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        return place.proofload("load", url, "-d", "300ms", "-c", "8", "--timeout", "1s", "--limit", "failed < 1%").ends(3, 4).seen


@knock("a server whose queue is full once it was looked for, SIGINT", "says what it waits for, by its URL", seconds=8)
def network_full_later(place: Place) -> str:
    # The first look takes the one place there is.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        load = place.begin("load", url, "-d", "300ms", "-c", "8")
        while load.goes_on() and b"waiting" not in bytes_of(load.files[1]):
            must(time.monotonic() - load.begun < 5, "says nothing for 5 s")
        load.signal(signal.SIGINT)
        return load.ended().ends(130, saying=f"waiting for {url}").seen


@knock("localhost, where only 127.0.0.1 answers", "loaded, or says where it looked")
def network_localhost(place: Place) -> str:
    with Server(answers(OK)) as server:
        said = place.proofload("load", f"http://localhost:{server.port}/", "-d", "300ms", "-c", "2")
    return said.ends(0, 4, 6).seen


@knock("a rate 100 times what a slow server can do", "the sums balance, most are unsent or late", seconds=3)
def network_overrun(place: Place) -> str:
    def slow(peer) -> None:
        for _ in peer.heads():
            peer.pause(0.05)
            peer.send(OK)
    with Server(slow) as server:
        url = f"http://127.0.0.1:{server.port}/"
        said = place.proofload("load", url, "-d", "500ms", "-c", "2", "--rate", "4000", "--timeout", "1s", "--json").ends(0, 4)
    result = said.json()
    balances(result)
    must(result["sent"] >= server.requests, f"{result['sent']} sent, the server read {server.requests}")
    return f"{result['sent']} sent, {result['successful']} good, exit code {said.code}"
