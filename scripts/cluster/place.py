"""Folders, program and addresses of the test cluster."""

import hashlib
import os
from pathlib import Path

# All that a cluster leaves is below it, and goes with it. Short, because paths of sockets may be.
STATE = Path(os.environ.get("PROOFLOAD_CLUSTER", "/tmp/proofload-cluster"))
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "proofload-cluster"
# All of Kubernetes as one program, named after what it is built from.
SOURCES = Path(__file__).resolve().parent / "programs"
CONTENT = b"".join((SOURCES / name).read_bytes() for name in ["main.go", "go.mod", "go.sum"])
PROGRAM = CACHE / f"kubernetes-{hashlib.sha256(CONTENT).hexdigest()[:16]}"

# The numbers of the nodes.
NODES = (1, 2)
# The namespace in which the API server is, and in which clients have to be.
CONTROL = "proofload-control"
CONTROL_ADDRESS = "10.83.0.1"
API = f"https://{CONTROL_ADDRESS}:6443"
SERVICES = "10.84.0.0/16"
# The first address of SERVICES: the API server's own Service.
API_SERVICE_ADDRESS = "10.84.0.1"


def node_name(number: int) -> str:
    """What Kubernetes calls a node, and its folder."""
    return f"n{number}"


def namespace(number: int) -> str:
    """A node's network namespace, and its control group."""
    return f"proofload-n{number}"


def address(number: int) -> str:
    return f"10.83.0.{10 + number}"


def pod_network(number: int) -> str:
    return f"10.83.{100 + number}.0/24"


def folder(number: int) -> Path:
    return STATE / node_name(number)
