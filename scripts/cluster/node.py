"""A node: containerd, kubelet and kube-proxy in a network namespace, with a control group for its pods."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import network
from identities import KEYS, kubeconfig_of
from place import PROGRAM, STATE, address, folder, namespace, node_name, pod_network
from processes import Failed, run, start, stop, tell

CGROUPS = Path("/sys/fs/cgroup")
PLUGINS = Path("/usr/lib/cni")
PAUSE = "localhost/pause:1"
PODS_MAX = 60
CONTAINERD_MAX_S = 15


def begin(number: int) -> None:
    """Starts a node, which registers with the control plane."""
    folder(number).mkdir(parents=True, exist_ok=True)
    make_control_groups(number)
    write_containerd(number)
    write_kubelet(number)
    start_containerd(number)
    start_kubelet(number)


def start_containerd(number: int) -> None:
    """Starts containerd, and waits until it responds."""
    own = folder(number)
    start(f"containerd{number}", namespace(number), ["containerd", "--config", str(own / "containerd.toml")])
    until = time.monotonic() + CONTAINERD_MAX_S
    while subprocess.run([*ctr(number), "version"], capture_output=True).returncode != 0:
        if time.monotonic() > until:
            raise Failed(f"containerd does not respond: {STATE}/logs/containerd{number}.log")
        time.sleep(0.1)


def start_kubelet(number: int) -> None:
    own, name = folder(number), node_name(number)
    start(f"kubelet{number}", namespace(number), [
        str(PROGRAM), "kubelet", f"--config={own}/kubelet.json", f"--kubeconfig={kubeconfig_of(name)}",
        f"--hostname-override={name}", f"--node-ip={address(number)}", f"--root-dir={own}/kubelet"])
    start(f"proxy{number}", namespace(number), [str(PROGRAM), "kube-proxy", f"--config={own}/proxy.json"])


def take(number: int, image: Path) -> None:
    """Gives a node the images of an archive, as if it had pulled them."""
    run(*ctr(number), "--namespace=k8s.io", "images", "import", str(image))


def ctr(number: int) -> list[str]:
    """containerd's own client."""
    return ["ctr", f"--address={folder(number)}/containerd.sock"]


def crash(number: int) -> None:
    """Ends a node as a power cut does: it sends nothing more, and nothing on it runs."""
    network.unplug(number)
    stop([f"kubelet{number}", f"proxy{number}", f"containerd{number}"], signal.SIGKILL)
    kill_containers(number)


def end(number: int) -> None:
    stop([f"kubelet{number}", f"proxy{number}"])
    kill_containers(number)
    stop([f"containerd{number}"])
    unmount(folder(number))
    for root in control_group_roots():
        group = root / namespace(number)
        for path, _, _ in os.walk(group, topdown=False):
            remove_group(Path(path))


def remove_group(group: Path) -> None:
    """Removes a control group; its last process may need a moment."""
    for _ in range(20):
        try:
            return group.rmdir()
        except OSError:
            time.sleep(0.05)


def kill_containers(number: int) -> None:
    """Ends every process in the node's control group, and then the shims of its containerd."""
    for _ in range(3):
        groups = [root / namespace(number) for root in control_group_roots()]
        lists = [path for group in groups for path in group.rglob("cgroup.procs")]
        tell([int(pid) for path in lists for pid in read(path).split()], signal.SIGKILL)
        time.sleep(0.1)
    socket = str(folder(number) / "containerd.sock")
    shims = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if is_shim(read(path), socket)]
    tell(shims, signal.SIGKILL)


def is_shim(command_line: str, socket: str) -> bool:
    """Whether a process is a shim of the containerd at a socket."""
    words = command_line.split("\0")
    return Path(words[0]).name.startswith("containerd-shim") and socket in words


def read(path: Path) -> str:
    """The content of a kernel file; empty if it is gone."""
    try:
        return path.read_text()
    except OSError:
        return ""


def unmount(below: Path) -> None:
    """Takes down what is mounted below a folder, the innermost first."""
    points = [line.split()[4] for line in read(Path("/proc/self/mountinfo")).splitlines()]
    for point in sorted((point for point in points if point.startswith(f"{below}/")), reverse=True):
        run("umount", "--lazy", point, quiet=True)


def control_group_roots() -> list[Path]:
    """One for all controllers, or in cgroup version 1 one for each."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    # Some names are links to others, such as cpu to cpu,cpuacct.
    return [path for path in CGROUPS.iterdir() if path.is_dir() and not path.is_symlink()]


def make_control_groups(number: int) -> None:
    """Where the kubelet puts its pods. In version 1 a new group has no processors until it is given some."""
    for root in control_group_roots():
        group = root / namespace(number)
        group.mkdir(exist_ok=True)
        for what in ["cpuset.cpus", "cpuset.mems"]:
            if root.name == "cpuset":
                (group / what).write_text((root / what).read_text())


def write_containerd(number: int) -> None:
    """containerd's configuration and that of the pods' network."""
    own = folder(number)
    (own / "cni").mkdir(exist_ok=True)
    bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "hairpinMode": True, "ipMasq": False,
              "ipam": {"type": "host-local", "dataDir": str(own / "addresses"), "routes": [{"dst": "0.0.0.0/0"}],
                       "ranges": [[{"subnet": pod_network(number)}]]}}
    conflist = {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
    (own / "cni" / "pods.conflist").write_text(json.dumps(conflist, indent=1))
    # Without CAP_SYS_RESOURCE a process cannot get a lower OOM score than its parent.
    (own / "containerd.toml").write_text(f"""\
version = 2
root = "{own}/containers"
state = "{own}/running"
oom_score = 0
[grpc]
  address = "{own}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{own}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{PLUGINS}"
    conf_dir = "{own}/cni"
""")


def write_kubelet(number: int) -> None:
    own, name = folder(number), node_name(number)
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{own}/containerd.sock", "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{namespace(number)}", "failSwapOn": False, "oomScoreAdj": 0, "resolvConf": "",
        "podLogsDir": f"{own}/logs", "address": address(number), "healthzBindAddress": "127.0.0.1",
        "tlsCertFile": f"{KEYS}/{name}.crt", "tlsPrivateKeyFile": f"{KEYS}/{name}.key",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": f"{KEYS}/authority.crt"}},
        "authorization": {"mode": "Webhook"}, "localStorageCapacityIsolation": False, "maxPods": PODS_MAX,
        # A full disk or memory on the testing machine must not evict pods.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {what: "0%" for what in
                         ["memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available"]},
        "nodeStatusUpdateFrequency": "4s", "nodeLeaseDurationSeconds": 8,
    }
    (own / "kubelet.json").write_text(json.dumps(kubelet, indent=1))
    proxy = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
        "clientConnection": {"kubeconfig": str(kubeconfig_of("proxy"))}, "hostnameOverride": name,
        "clusterCIDR": "10.83.0.0/16", "bindAddress": address(number), "healthzBindAddress": "",
        "metricsBindAddress": "127.0.0.1:10249",
        # The connection table belongs to the whole machine, whose limits stay.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    (own / "proxy.json").write_text(json.dumps(proxy, indent=1))

