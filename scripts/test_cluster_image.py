"""Images of the test cluster: what containerd checks of them, and what a program needs beside itself."""

import hashlib
import json
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "cluster"))
from image import archive, libraries_of  # noqa: E402


class Images(unittest.TestCase):
    def test_an_archive_names_its_parts_by_what_is_in_them(self):
        with tempfile.TemporaryDirectory() as folder:
            program, out = Path(folder) / "program", Path(folder) / "image.tar"
            program.write_bytes(b"\x7fELF")
            archive("localhost/x:1", {"/lib64/loader": program, "/program": program}, ["/program"], out)
            with tarfile.open(out) as tar:
                [manifest] = json.load(tar.extractfile("manifest.json"))
                config = tar.extractfile(manifest["Config"]).read()
                layer = tar.extractfile(manifest["Layers"][0]).read()
                members = tarfile.open(fileobj=tar.extractfile(manifest["Layers"][0])).getnames()
        self.assertEqual(manifest["Config"], hashlib.sha256(config).hexdigest() + ".json")
        [layer_digest] = json.loads(config)["rootfs"]["diff_ids"]
        self.assertEqual(layer_digest, "sha256:" + hashlib.sha256(layer).hexdigest())
        self.assertEqual(members, ["lib64/loader", "program"])
        self.assertEqual(json.loads(config)["config"], {"Entrypoint": ["/program"], "User": "65532:65532"})

    def test_a_program_brings_its_libraries_and_their_loader(self):
        listing = """\tlinux-vdso.so.1 (0x00007ffd)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f1c)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f1d)
"""
        self.assertEqual(list(libraries_of(listing)), ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"])
