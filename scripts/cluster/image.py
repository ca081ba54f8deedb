"""Container images from programs of this machine, without a registry or a builder.

The result is that of the Dockerfile, with one difference: a program that is not static comes with its libraries.
"""

import hashlib
import io
import json
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from processes import Failed

# The user of the Dockerfile, and the authorities that it puts into the image.
USER = "65532:65532"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")


def archive(name: str, files: dict[str, Path], entrypoint: list[str], out: Path) -> None:
    """Writes an image of one layer with these files, each at its path in it, as an archive that containerd imports."""
    layer = packed(files)
    config = json.dumps({
        "architecture": architecture(), "os": "linux", "config": {"Entrypoint": entrypoint, "User": USER},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(layer)}"]},
        "history": [{"created_by": "scripts/cluster"}],
    }).encode()
    manifest = [{"Config": f"{digest(config)}.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(out, "w") as tar:
        for member, content in [(f"{digest(config)}.json", config), ("layer.tar", layer),
                                ("manifest.json", json.dumps(manifest).encode())]:
            add(tar, member, content, 0o644)


def of_program(name: str, program: Path, out: Path) -> None:
    """An image of a program, which is its entry point, as /NAME-OF-THE-PROGRAM."""
    inside = f"/{program.name}"
    authorities = {str(AUTHORITIES): AUTHORITIES} if AUTHORITIES.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        archive(name, {inside: stripped(program, Path(folder)), **libraries(program), **authorities}, [inside], out)


def renamed(name: str, image: Path, out: Path) -> None:
    """The image of an archive, as `docker save` writes it, under another name."""
    with tarfile.open(image) as tar, tarfile.open(out, "w") as named:
        for member in tar.getmembers():
            content = tar.extractfile(member).read() if member.isfile() else None
            if member.name == "manifest.json":
                [manifest] = json.loads(content)
                add(named, member.name, json.dumps([{**manifest, "RepoTags": [name]}]).encode(), 0o644)
            elif content is not None and member.name != "repositories":
                add(named, member.name, content, 0o644)


def pause(name: str, out: Path) -> None:
    """The image that holds a pod's namespaces: this system's `sleep`."""
    sleep = shutil.which("sleep")
    if sleep is None:
        raise Failed("sleep is missing")
    archive(name, {"/sleep": Path(sleep), **libraries(Path(sleep))}, ["/sleep", "infinity"], out)


def stripped(program: Path, folder: Path) -> Path:
    """The program without debug information, if there is strip: a test's program is then a fifth of its size."""
    lean = folder / program.name
    if shutil.which("strip") is None or subprocess.run(["strip", "--strip-debug", "-o", lean, program]).returncode != 0:
        return program
    return lean


def libraries(program: Path) -> dict[str, Path]:
    """The shared libraries of a program by their paths, its loader among them; none of a static one."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True)
    if listed.returncode != 0 or "statically linked" in listed.stdout:
        return {}
    return libraries_of(listed.stdout)


def libraries_of(listing: str) -> dict[str, Path]:
    """The libraries in ldd's output."""
    paths = re.findall(r"(/\S+) \(0x", listing)
    return {path: Path(path).resolve() for path in paths}


def packed(files: dict[str, Path]) -> bytes:
    """A layer, the same for the same files whenever it is made."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, source in sorted(files.items()):
            add(tar, path.lstrip("/"), source.read_bytes(), 0o755)
    return out.getvalue()


def add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    """Puts a file into an archive, without owner and date."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    tar.addfile(member, io.BytesIO(content))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def architecture() -> str:
    """This machine's, as images name it."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
