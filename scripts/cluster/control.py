"""The control plane: etcd, API server, controllers, scheduler, all in one namespace."""

import signal
import time

from identities import KEYS, kubeconfig_of
from place import CONTROL, CONTROL_ADDRESS, PROGRAM, SERVICES, STATE
from processes import Failed, inside, run, start, stop

COMPONENTS = ["scheduler", "controllers", "apiserver", "etcd"]
API_MAX_S = 60
ETCD = "http://127.0.0.1:2379"
# How soon a node counts as gone, and how soon its pods are given up: seconds in tests, minutes by default.
NODE_GONE_S = 12
POD_GIVEN_UP_S = 3


def begin() -> None:
    peers = "http://127.0.0.1:2380"
    start("etcd", CONTROL, [
        str(PROGRAM), "etcd", f"--data-dir={STATE / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn",
        f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}", f"--listen-peer-urls={peers}"])
    start_api()
    start_controllers()


def start_controllers() -> None:
    # Each controller with credentials of its own, because some need rights that the whole program does not have.
    start("controllers", CONTROL, [
        str(PROGRAM), "kube-controller-manager", f"--kubeconfig={kubeconfig_of('controllers')}", "--leader-elect=false",
        "--use-service-account-credentials", f"--service-account-private-key-file={KEYS}/accounts.key",
        f"--root-ca-file={KEYS}/authority.crt", "--bind-address=127.0.0.1", "--node-monitor-period=1s",
        f"--node-monitor-grace-period={NODE_GONE_S}s"])
    start("scheduler", CONTROL, [
        str(PROGRAM), "kube-scheduler", f"--kubeconfig={kubeconfig_of('scheduler')}", "--leader-elect=false",
        "--bind-address=127.0.0.1"])


def start_api() -> None:
    """Starts the API server, and waits until it responds."""
    start("apiserver", CONTROL, [
        str(PROGRAM), "kube-apiserver", f"--etcd-servers={ETCD}", "--secure-port=6443",
        f"--advertise-address={CONTROL_ADDRESS}", f"--service-cluster-ip-range={SERVICES}",
        f"--tls-cert-file={KEYS}/apiserver.crt", f"--tls-private-key-file={KEYS}/apiserver.key",
        f"--client-ca-file={KEYS}/authority.crt", f"--kubelet-client-certificate={KEYS}/admin.crt",
        f"--kubelet-client-key={KEYS}/admin.key", "--kubelet-preferred-address-types=InternalIP",
        "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={KEYS}/accounts.key",
        f"--service-account-signing-key-file={KEYS}/accounts.key", "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction", f"--default-not-ready-toleration-seconds={POD_GIVEN_UP_S}",
        f"--default-unreachable-toleration-seconds={POD_GIVEN_UP_S}"])
    wait_until_ready()


def restart_controllers() -> None:
    """Lets them connect to the API server at once: after a minute without it they would wait for more than another."""
    stop(["scheduler", "controllers"])
    start_controllers()


def stop_api() -> None:
    """Ends only the API server. etcd keeps the data."""
    stop(["apiserver"])


def wait_until_ready() -> None:
    until = time.monotonic() + API_MAX_S
    while "ok" not in kubectl("get", "--raw=/readyz", quiet=True):
        if time.monotonic() > until:
            raise Failed(f"the API server is not ready after {API_MAX_S} s: {STATE}/logs/apiserver.log")
        time.sleep(0.2)


def kubectl(*words: str, quiet: bool = False) -> str:
    """kubectl as administrator."""
    return run(*inside(CONTROL, [str(PROGRAM), "kubectl", f"--kubeconfig={kubeconfig_of('admin')}", *words]), quiet=quiet)


def end() -> None:
    """Kills it: its data is deleted anyway."""
    stop(COMPONENTS, signal.SIGKILL)
