"""The network of the cluster: a namespace for the control plane and one for each node, joined by a bridge.

    control  10.83.0.1 ── bridge ──┬── 10.83.0.11  node 1 ── bridge ── its pods, 10.83.101.0/24
                                   └── 10.83.0.12  node 2 ── bridge ── its pods, 10.83.102.0/24
"""

from place import CONTROL, CONTROL_ADDRESS, NODES, address, namespace, pod_network
from processes import inside, run


def make() -> None:
    """Makes the namespaces and the routes between them."""
    run("ip", "netns", "add", CONTROL)
    ip(CONTROL, "link set lo up")
    ip(CONTROL, "link add nodes type bridge")
    ip(CONTROL, f"addr add {CONTROL_ADDRESS}/24 dev nodes")
    ip(CONTROL, "link set nodes up")
    for number in NODES:
        own = namespace(number)
        run("ip", "netns", "add", own)
        ip(own, "link set lo up")
        ip(CONTROL, f"link add node{number} type veth peer name eth0 netns {own}")
        ip(CONTROL, f"link set node{number} master nodes up")
        ip(own, f"addr add {address(number)}/24 dev eth0")
        ip(own, "link set eth0 up")
        ip(own, f"route add default via {CONTROL_ADDRESS}")
        ip(CONTROL, f"route add {pod_network(number)} via {address(number)}")
        forward(own)
    for number in NODES:
        for other in NODES:
            if other != number:
                ip(namespace(number), f"route add {pod_network(other)} via {address(other)}")


def forward(own: str) -> None:
    """Lets a node forward to its pods, and apply the rules of Services between pods."""
    run(*inside(own, ["sysctl", "-qw", "net.ipv4.ip_forward=1"]))
    run(*inside(own, ["sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1"]), quiet=True)


def unplug(number: int) -> None:
    """Takes a node off the network: nothing comes from it, not even the end of its connections."""
    ip(CONTROL, f"link set node{number} down")


def plug_in(number: int) -> None:
    ip(CONTROL, f"link set node{number} up")


def remove() -> None:
    """Removes the namespaces with everything in them."""
    for name in [CONTROL, *map(namespace, NODES)]:
        run("ip", "netns", "delete", name, quiet=True)


def ip(name: str, words: str) -> None:
    run("ip", "-netns", name, *words.split())
