"""Identities in the cluster: an authority, a certificate for each component and user, and kubeconfigs."""

import json
from pathlib import Path

from place import API, API_SERVICE_ADDRESS, CONTROL_ADDRESS, NODES, STATE, address, node_name
from processes import run

KEYS = STATE / "keys"
# A user who has no rights but those that a test gives.
GUEST = "guest"
# The kubeconfig of tests: administrator and guest, a context each.
CLIENTS = "clients"


def make() -> None:
    KEYS.mkdir(parents=True)
    KEYS.chmod(0o700)
    key("authority")
    run("openssl", "req", "-x509", "-new", "-key", str(KEYS / "authority.key"), "-subj", "/CN=proofload test cluster",
        "-days", "30", "-out", str(KEYS / "authority.crt"))
    key("accounts")
    server = [f"IP:{CONTROL_ADDRESS}", "IP:127.0.0.1", f"IP:{API_SERVICE_ADDRESS}", "DNS:kubernetes.default.svc"]
    certificate("apiserver", "kube-apiserver", "apiserver", server)
    users = {"admin": ("admin", "system:masters"), GUEST: (GUEST, "guests"),
             "controllers": ("system:kube-controller-manager", "components"),
             "scheduler": ("system:kube-scheduler", "components"), "proxy": ("system:kube-proxy", "components")}
    for name, (user, group) in users.items():
        certificate(name, user, group, [])
        kubeconfig(name)
    kubeconfig(CLIENTS, ["admin", GUEST])
    for number in NODES:
        name = node_name(number)
        certificate(name, f"system:node:{name}", "system:nodes", [f"IP:{address(number)}", f"DNS:{name}"])
        kubeconfig(name)


def kubeconfig_of(name: str) -> Path:
    """The file by which a component or a user logs in."""
    return STATE / f"{name}.kubeconfig"


def kubeconfig(name: str, users: list[str] | None = None) -> None:
    """Writes it, with a context for each user of the same name; the first is the current one. JSON is YAML, too."""
    users = users or [name]
    cluster = {"server": API, "certificate-authority": str(KEYS / "authority.crt")}
    keys = {user: {"client-certificate": str(KEYS / f"{user}.crt"), "client-key": str(KEYS / f"{user}.key")} for user in users}
    config = {"apiVersion": "v1", "kind": "Config", "current-context": users[0],
              "clusters": [{"name": "test", "cluster": cluster}],
              "users": [{"name": user, "user": keys[user]} for user in users],
              "contexts": [{"name": user, "context": {"cluster": "test", "user": user}} for user in users]}
    kubeconfig_of(name).write_text(json.dumps(config, indent=1))


def key(name: str) -> None:
    run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(KEYS / f"{name}.key"))


def certificate(name: str, user: str, group: str, addresses: list[str]) -> None:
    """A key and its certificate, signed by the authority."""
    key(name)
    extensions = ["basicConstraints=critical,CA:FALSE", "keyUsage=digitalSignature", "extendedKeyUsage=clientAuth,serverAuth"]
    extensions += [f"subjectAltName={','.join(addresses)}"] if addresses else []
    run("openssl", "req", "-x509", "-new", "-key", str(KEYS / f"{name}.key"), "-subj", f"/O={group}/CN={user}", "-days", "30",
        "-CA", str(KEYS / "authority.crt"), "-CAkey", str(KEYS / "authority.key"),
        *(word for extension in extensions for word in ("-addext", extension)), "-out", str(KEYS / f"{name}.crt"))
