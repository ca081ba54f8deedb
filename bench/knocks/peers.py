"""Servers of raw sockets that do to each connection what a function says: HTTP/1.1, HTTP/2 by frames made by hand, and TLS.

Loopback only. They count the requests that they read, to hold against what Proofload says it sent. They must not judge.
"""

import os
import socket
import ssl
import struct
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Callable, Iterator, Optional

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
STEP_BYTES = 65_536


class Ended(Exception):
    """The peer has closed its side."""


class Peer:
    """One connection, as its server sees it."""

    def __init__(self, server: "Server", connection: socket.socket, number: int):
        self.server, self.socket, self.number, self.kept = server, connection, number, b""

    def read(self, until: Callable) -> bytes:
        """As many bytes as `until(bytes)` says once it knows. Raises `Ended`."""
        while (length := until(self.kept)) is None:
            data = self.socket.recv(STEP_BYTES)
            if not data:
                raise Ended
            self.kept += data
        taken, self.kept = self.kept[:length], self.kept[length:]
        return taken

    def exactly(self, count: int) -> bytes:
        return self.read(lambda kept: count if len(kept) >= count else None)

    def heads(self) -> Iterator[bytes]:
        """The head of each request, until there are no more."""
        while True:
            yield self.head()

    def head(self) -> bytes:
        head = self.read(lambda kept: at + 4 if (at := kept.find(b"\r\n\r\n")) >= 0 else None)
        self.server.count()
        return head

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def drip(self, data: bytes, seconds: float) -> None:
        """A byte a packet."""
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in data:
            self.send(bytes([byte]))
            self.pause(seconds)

    def flood(self, data: bytes) -> None:
        while True:
            self.send(data)

    def pause(self, seconds: float) -> None:
        if self.server.over.wait(seconds):
            raise Ended

    def hold(self) -> None:
        """Does nothing more, and keeps the connection."""
        self.server.over.wait()

    def close(self) -> None:
        raise Ended

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # Not by `shutdown`, which would say farewell.
        os.close(self.socket.detach())
        raise Ended


class Server:
    """Does `talk(peer)` for each connection, in a thread of its own; a context that ends it. With `tls` only behind a handshake."""

    def __init__(self, talk: Callable, tls: Optional[ssl.SSLContext] = None, port: int = 0):
        self.talk, self.tls = talk, tls
        self.over, self.lock, self.requests, self.connections = threading.Event(), threading.Lock(), 0, 0
        self.listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.open = set()

    def __enter__(self) -> "Server":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.over.set()
        self.stop_listening()
        with self.lock:
            for connection in self.open:
                connection.close()

    def stop_listening(self) -> None:
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def count(self) -> int:
        with self.lock:
            self.requests += 1
            return self.requests

    def _accept(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection, self.connections), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            # A peer that goes away must not leave a thread behind.
            connection.settimeout(20)
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with self.lock:
                self.open.add(connection)
            self.talk(Peer(self, connection, number))
        except (Ended, OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.open.discard(connection)
            connection.close()


def answers(data: bytes, then: Optional[Callable] = None) -> Callable:
    """A server that sends this for each request, and then does something else."""
    def talk(peer: Peer) -> None:
        for _ in peer.heads():
            peer.send(data)
            if then:
                then(peer)
    return talk


# HTTP/2: RFC 9113. A frame is its length in three bytes, its kind, its flags, its stream, and the payload.
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
MAX_STREAMS, INITIAL_WINDOW, MAX_FRAME = 3, 4, 5  # settings
PREFACE_BYTES = 24
STATUS_200 = b"\x88"  # HPACK: entry 8 of the static table, RFC 7541


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def settings(*pairs: tuple) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def field(name: bytes, value: bytes) -> bytes:
    """A header field that is written out: never indexed, and shorter than 127 bytes each."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def response(stream: int, head: bytes = STATUS_200) -> bytes:
    return frame(HEADERS, END_HEADERS, stream, head) + frame(DATA, END_STREAM, stream, b"ok")


def http2(for_each: Callable, first: bytes = settings()) -> Callable:
    """A server that begins with these frames, and sends what `for_each(peer, stream)` returns for each request."""
    def talk(peer: Peer) -> None:
        peer.exactly(PREFACE_BYTES)
        peer.send(first)
        for kind, flags, stream, payload in frames(peer):
            if kind == SETTINGS and not flags & ACK:
                peer.send(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                peer.send(frame(PING, ACK, 0, payload))
            elif kind == HEADERS:
                peer.server.count()
                peer.send(for_each(peer, stream) or b"")
    return talk


def frames(peer: Peer) -> Iterator[tuple]:
    while True:
        head = peer.exactly(9)
        length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        yield kind, flags, int.from_bytes(head[5:], "big") & 0x7FFF_FFFF, peer.exactly(length)


DATES = {"good": ("20200101000000Z", "20991231000000Z"), "expired": ("20200101000000Z", "20210101000000Z"),
         "early": ("20980101000000Z", "20991231000000Z")}
AUTHORITY = "[ca]\ndefault_ca=a\n[a]\ndatabase={0}/index\nserial={0}/serial\nnew_certs_dir={0}\ndefault_md=sha256\npolicy=p\n" \
            "x509_extensions=x\n[p]\ncommonName=supplied\n[x]\nbasicConstraints=CA:FALSE\nsubjectAltName={1}\n"
NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def certificate(folder: Path, dates: str = "good", names: str = "IP:127.0.0.1,DNS:localhost") -> ssl.SSLContext:
    """A server's side of TLS, with a certificate of an authority of its own: `ca.pem` in the folder. By openssl(1)."""
    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
    (folder / "index").write_text("")
    (folder / "serial").write_text("01\n")
    (folder / "ca.cnf").write_text(AUTHORITY.format(folder, names))
    begin, end = DATES[dates]
    openssl("req", "-x509", *NEW_KEY, "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", "-new", *NEW_KEY, "-subj", "/CN=knock", "-keyout", "key.pem", "-out", "ask.pem")
    openssl("ca", "-batch", "-notext", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile", "ca.key", "-in", "ask.pem",
            "-out", "leaf.pem", "-startdate", begin, "-enddate", end)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "leaf.pem", folder / "key.pem")
    return context
