"""Bad servers: what `proofload load` makes of them, row by row.

Each is loaded over few connections for half a second, with a limit of failures that none but a good one may pass. Whatever a server
does, the sums balance, no more succeeds than the server was asked, and the record opens.
"""

import select
import struct
import threading
import zlib
from contextlib import suppress
from functools import lru_cache
from typing import Callable, NamedTuple

from knock import Place, Wrong, add, balances, must, needs
from peers import (CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, INITIAL_WINDOW, MAX_FRAME, MAX_STREAMS, OK, PING,
                   PREFACE_BYTES, PUSH_PROMISE, RST_STREAM, STATUS_200, WINDOW_UPDATE, Peer, Server, answers, certificate,
                   field, frame, http2, response, settings)

LOADED = (0, 1, 4, 5)  # exit codes of a load that was carried out, and held against a limit; 5: too few requests to keep it
FAILED_MAX = 0.01
ASKED = ("--duration", "500ms", "--json", "--limit", "failed < 1%")


class Comes(NamedTuple):
    """What must come of it: in words, and a function of the result and the server that raises `Wrong`."""

    words: str
    check: Callable


def fails(*errors: str) -> Comes:
    """Nothing succeeds, and one of these is why: each a phase and a cause."""
    def check(result: dict, _: Server) -> None:
        must(result["successful"] == 0, f"{result['successful']} succeed")
        check_errors(result, errors)
    return Comes(f"none succeeds: {' or '.join(errors)}", check)


def partly(*errors: str) -> Comes:
    """Some succeed, and of those that do not one of these is why."""
    def check(result: dict, _: Server) -> None:
        must(result["successful"] > 0, "none succeeds")
        check_errors(result, errors)
    return Comes(f"some succeed; the others: {' or '.join(errors)}", check)


def answered_with(status: int) -> Comes:
    """Each request gets this status, and no other."""
    def check(result: dict, server: Server) -> None:
        must(list(result["status"]) == [str(status)], f"statuses {result['status']}")
        check_count(result, server)
        good = result["successful"]
        must((good > 0) == (200 <= status < 300), f"{good} succeed")
    return Comes(f"all are {status}, as many as the server read", check)


def check_unasked(result: dict, _: Server) -> None:
    check_errors(result, ("idle malformed",))
    must(bool(result["invalid"]), "figures of responses that nobody asked for")


def check_errors(result: dict, errors: tuple) -> None:
    seen = {f"{error['phase']} {error['cause']}" for error in result["errors"]}
    must(seen & set(errors), f"errors {sorted(seen)}")


def check_count(result: dict, server: Server) -> None:
    must(result["sent"] == server.requests > 0,
         f"{result['sent']} sent, {server.requests} at the server")


def check_good(result: dict, server: Server) -> None:
    must(result["sent"] == result["successful"], f"{result['successful']} of {result['sent']} succeed: {result['errors']}")
    check_count(result, server)


UNASKED = Comes("invalid: idle malformed", check_unasked)
ALL_GOOD = Comes("all succeed, as many as the server read", check_good)
ENDS = Comes("ends in time, the sums balance", lambda result, server: None)


def check_sums(result: dict, server: Server) -> None:
    balances(result)
    # More than it was asked for succeed only where the result says that no figure holds.
    must(result["successful"] <= server.requests or result["invalid"], f"{result['successful']} succeed, the server read {server.requests}")
    must(server.requests <= result["sent"], f"the server read {server.requests}, {result['sent']} sent")


def loaded(place: Place, server: Server, scheme: str, words: list, comes: Comes) -> str:
    url = f"{scheme}://127.0.0.1:{server.port}/"
    usual = {"--timeout": "1s", "--connections": "2"}
    usual = [word for flag, value in usual.items() if flag not in words for word in (flag, value)]
    said = place.proofload("load", url, *ASKED, *usual, "--out", place.path("record"), *words).ends(*LOADED)
    result = said.json()
    seen = f"{result['sent']} sent, {result['successful']} good, exit code {said.code}"
    try:
        check_sums(result, server)
        comes.check(result, server)
        failed = result["sent"] - result["successful"]
        must(said.code != 0 or result["sent"] > 0 and failed <= FAILED_MAX * result["sent"], "passes its limit")
        must(said.code != 5 or result["sent"] < 1 / FAILED_MAX, "its limit is open")
        place.opens()
    except Wrong as error:
        raise Wrong(f"{error} ({seen})") from error
    errors = ", ".join(f"{error['phase']} {error['cause']} {error['count']}" for error in result["errors"])
    return f"{seen}{'; ' if errors else ''}{errors}"


def row(name: str, setup: str, talk: Callable, comes: Comes, words: str = "", tls: str = "", scheme: str = "", seconds: float = 2) -> None:
    """A knock on a server. `tls`: which dates and names its certificate has."""
    def test(place: Place) -> str:
        context = None
        if tls:
            needs("openssl")
            context = certificate(place.folder, *tls.split(" ", 1))
        spoken = scheme or ("https" if tls or "--insecure" in words else "http")
        with Server(talk, context) as server:
            return loaded(place, server, spoken, [word.replace("@", str(place.folder)) for word in words.split()], comes)
    add(name, "servers", setup, comes.words, test, seconds)


def head(*lines: str, status: str = "200 OK", version: str = "HTTP/1.1") -> bytes:
    return "\r\n".join([f"{version} {status}", *lines, "", ""]).encode("latin-1")


def chunked(*pieces: bytes) -> bytes:
    return head("Transfer-Encoding: chunked") + b"".join(pieces)


def but_the_first(do: Callable) -> Callable:
    """The first connection is a look whether anybody is there."""
    return lambda peer: do(peer) if peer.number > 1 else peer.hold()


def sends_again(peer: Peer) -> None:
    def send() -> None:
        with suppress(OSError):
            peer.send(OK)
    threading.Timer(0.01, send).start()


def farewell(peer: Peer) -> None:
    for _ in peer.heads():
        peer.send(OK)
        if not peer.kept and not select.select([peer.socket], [], [], 0.1)[0]:
            peer.send(head("Connection: close", "Content-Length: 0", status="408 Request Timeout"))
            peer.close()


@lru_cache
def bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    body = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(256)), packer.flush()])
    return head("Content-Encoding: gzip", f"Content-Length: {len(body)}") + body


LONG = head(*[f"X-{i}: {'y' * 1000}" for i in range(60)], "Content-Length: 0")

# HTTP/1.1: heads.
row("good", "a good server", answers(OK), ALL_GOOD)
row("garbage", "garbage", answers(b"\xff\x00 garbage\r\n\r\n"), fails("head malformed"))
row("http09", "HTTP/0.9: a page without a head", answers(b"<html>hello</html>\r\n\r\n", Peer.close),
    fails("head malformed"))
row("http10", "HTTP/1.0 without keep-alive", answers(head("Content-Length: 2", version="HTTP/1.0") + b"ok", Peer.close),
    ALL_GOOD)
row("null-byte", "a NUL in a header", answers(head("X: a\0b", "Content-Length: 2") + b"ok"), fails("head malformed"))
row("folded", "a header folded over lines", answers(head("X: a", "  b", "Content-Length: 2") + b"ok"), ALL_GOOD)
row("c1-status", "C1 and escape characters in the reason",
    answers(head("Content-Length: 2", status="200 \x9b31mred") + b"ok"), ALL_GOOD)
row("status-999", "status 999", answers(head("Content-Length: 0", status="999 Odd")), answered_with(999))
row("status-abc", "status abc", answers(head("Content-Length: 0", status="abc Odd")), fails("head malformed"))
row("head-1.5-mib", "a head of 1.5 MiB", answers(head(*[f"X-{i}: {'y' * 15000}" for i in range(105)])),
    fails("head too-large"))
row("headers-65000", "65,000 headers", answers(head(*[f"X-{i}: y" for i in range(65_000)])), fails("head too-large"))
row("endless-head", "a head without end",
    answers(b"HTTP/1.1 200 OK\r\n", lambda peer: peer.flood(b"X: " + b"y" * 9000 + b"\r\n")), fails("head too-large"))
row("dripped-head", "a head a byte a packet", lambda peer: [peer.drip(OK, 0.001) for _ in peer.heads()], ALL_GOOD)
row("slow-drip", "a byte each 0.2 s", lambda peer: [peer.drip(OK, 0.2) for _ in peer.heads()], fails("head timeout"),
    seconds=3)
row("endless-100", "100 Continue without end",
    answers(b"", lambda peer: peer.flood(b"HTTP/1.1 100 Continue\r\n\r\n" * 500)),
    fails("head timeout", "head malformed", "head too-large"), seconds=3)
row("hints-before", "103 twice, then the response", answers(head("Link: </a>", status="103 Early") * 2 + OK), ALL_GOOD)
row("upgrade", "101 Switching Protocols", answers(head("Upgrade: x", "Connection: upgrade", status="101 Go")),
    fails("head malformed"))
row("redirects", "redirects in a loop", answers(head("Location: /", "Content-Length: 0", status="302 Found")),
    answered_with(302))
row("no-content-body", "204 with a body", answers(head("Content-Length: 2", status="204 None") + b"ok"),
    partly("idle malformed"))
row("not-modified-body", "304 with a body", answers(head("Content-Length: 2", status="304 Same") + b"ok"),
    fails("idle malformed"))

# HTTP/1.1: bodies.
row("length-short", "Content-Length 10, 4 bytes, closes", answers(head("Content-Length: 10") + b"half", Peer.close),
    fails("body closed-early"))
row("length-long", "Content-Length 2, 20 bytes", answers(head("Content-Length: 2") + b"x" * 20),
    partly("idle malformed"))
row("length-waits", "Content-Length 10, 4 bytes, no more", answers(head("Content-Length: 10") + b"half", Peer.hold),
    fails("body timeout"))
row("length-twice", "two lengths that differ", answers(head("Content-Length: 2", "Content-Length: 3") + b"oka"),
    fails("head malformed"))
row("length-negative", "Content-Length -1", answers(head("Content-Length: -1")), fails("head malformed"))
row("length-2-64", "Content-Length 2 to the 64", answers(head(f"Content-Length: {2 ** 64}") + b"ok"),
    fails("head malformed"))
row("smuggled", "length and chunks that hide a second response",
    answers(head("Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n" + OK), partly("idle malformed"))
row("chunk-size-bad", "a chunk of size zz", answers(chunked(b"zz\r\nok\r\n0\r\n\r\n")), fails("body malformed"))
row("chunk-size-huge", "a chunk of size ffffffffffffffff0", answers(chunked(b"ffffffffffffffff0\r\nok")),
    fails("body malformed"))
row("chunk-unended", "chunks, then the end of the connection", answers(chunked(b"2\r\nok\r\n"), Peer.close),
    fails("body closed-early"))
row("chunk-extensions", "an extension without end", answers(chunked(b"2;"), lambda peer: peer.flood(b"x" * 4096)),
    fails("body too-large"))
row("trailers", "trailers", answers(chunked(b"2\r\nok\r\n0\r\nX: y\r\nContent-Length: 9\r\n\r\n")), ALL_GOOD)
row("one-byte-chunks", "a body in 500 chunks of a byte", answers(chunked(b"1\r\nx\r\n" * 500, b"0\r\n\r\n")), ALL_GOOD)
row("body-10-gb", "a body of 10 GB",
    answers(head(f"Content-Length: {10 ** 10}"), lambda peer: peer.flood(b"x" * 65_536)), fails("body timeout"),
    seconds=3)
row("gzip-bomb", "256 MiB of zeros in 256 kB of gzip, read in full",
    lambda peer: [peer.send(bomb()) for _ in peer.heads()],
    Comes("none succeeds: content coding", lambda result, _: must(result["contract_failures"], "nobody noticed")),
    "--sample 1 --timeout 20s", seconds=5)
row("gzip-broken", "gzip that is none", answers(head("Content-Encoding: gzip", "Content-Length: 4") + b"none"),
    Comes("none succeeds: content coding", lambda result, _: must(
        result["successful"] < result["sent"] and result["contract_failures"], "nobody noticed")),
    "--sample 1")

# HTTP/1.1: connections.
row("never-answers", "reads and never answers", answers(b"", Peer.hold), fails("head timeout"), seconds=3)
row("never-reads", "accepts and never reads", Peer.hold, fails("head timeout", "send timeout"), seconds=3)
row("closes-at-once", "closes what it accepts", but_the_first(Peer.close),
    fails("idle closed", "head closed-early", "send reset", "head reset"))
row("resets-at-once", "resets what it accepts", but_the_first(Peer.reset),
    fails("idle reset", "head reset", "send reset", "connect reset"))
row("closes-after-head", "closes after the request", answers(b"", Peer.close), fails("head closed-early"))
row("resets-after-head", "resets after the request", answers(b"", Peer.reset), fails("head reset"))
row("resets-in-body", "resets in the body", answers(head("Content-Length: 10") + b"half", Peer.reset),
    fails("body reset", "head reset"))
row("half-closes", "answers, closes its side only", answers(OK, Peer.half_close),
    partly("head closed-early", "idle closed"))
row("answers-before", "answers before it is asked, once a connection", lambda peer: [peer.send(OK), answers(b"")(peer)],
    Comes("at most one succeeds a connection",
          lambda result, server: must(result["successful"] <= server.connections, "more succeed")), seconds=3)
TWICE = answers(OK, lambda peer: [peer.pause(0.005), peer.send(OK)])
row("answers-twice", "answers each request twice", answers(OK * 2), UNASKED)
row("answers-twice-later", "answers each request twice, 5 ms apart", TWICE, UNASKED)
row("answers-twice-pipelined", "the same, 8 requests ahead", TWICE, UNASKED, "--pipeline 8")
row("answers-twice-rate", "the same, 300 requests a second", TWICE, UNASKED, "--rate 300")
row("answers-twice-beside", "answers each request at once, and again 10 ms later", answers(OK, sends_again), UNASKED)
row("farewell", "408 to a connection that is idle for 0.1 s", farewell, ALL_GOOD, "--rate 5")
row("dripped-by-100", "a head of 60 kB a byte a packet, 100 connections", lambda peer: [peer.drip(LONG, 0) for _ in peer.heads()], ENDS,
    "--connections 100", seconds=6)
row("resets-every-other", "resets every other connection",
    lambda peer: peer.reset() if peer.number % 2 else answers(OK, Peer.close)(peer),
    partly("head reset", "connect reset"))
row("closes-each", "closes after each response, unannounced", answers(OK, Peer.close),
    partly("idle closed", "head closed-early"))
row("pipelined", "a good server, 8 requests ahead", answers(OK), ALL_GOOD, "--pipeline 8")
row("pipelined-half", "answers half of what is sent ahead, closes",
    lambda peer: [peer.send(OK) if i < 4 else peer.close() for i, _ in enumerate(peer.heads())],
    partly("head closed-early", "head reset"), "--pipeline 8")
row("new-connections", "a good server, a connection for each request", answers(OK, Peer.close), ALL_GOOD,
    "--no-keepalive")
row("resets-new", "resets after each response, a connection for each", answers(OK, Peer.reset), ENDS, "--no-keepalive")


def stops_listening(peer: Peer) -> None:
    for _ in peer.heads():
        peer.send(OK)
        if peer.server.requests > 50:
            peer.server.stop_listening()
            peer.close()


row("stops-listening", "stops listening in mid-run", stops_listening, partly("connect refused"))

# HTTP/2 without TLS.
NO_ERROR, REFUSED, ENHANCE = (struct.pack(">I", code) for code in (0, 7, 11))


def row2(name: str, setup: str, talk: Callable, comes: Comes, words: str = "", **more) -> None:
    row(f"http2-{name}", f"HTTP/2: {setup}", talk, comes, f"--http2 {words}", **more)


def each(make: Callable) -> Callable:
    """A server of HTTP/2 that sends `make(stream)` for each request."""
    return http2(lambda _, stream: make(stream))


def goodbye(peer: Peer, stream: int) -> bytes:
    """Says farewell at each tenth request, after its response."""
    if stream < 19:
        return response(stream)
    peer.send(response(stream) + frame(GOAWAY, 0, 0, struct.pack(">II", stream, 0)))
    peer.close()


def changing(peer: Peer, stream: int) -> bytes:
    """Allows 100 streams, then none, and a little later one."""
    if stream == 1:
        later = threading.Timer(0.1, lambda: peer.send(settings((MAX_STREAMS, 1))))
        later.daemon = True
        later.start()
        return settings((MAX_STREAMS, 0)) + response(stream)
    return response(stream)


def flooding(data: bytes) -> Callable:
    """Sends this as long as somebody takes it, and reads nothing."""
    def talk(peer: Peer) -> None:
        peer.exactly(PREFACE_BYTES)
        peer.send(settings())
        peer.flood(data * 100)
    return talk


row2("good", "a good server", each(response), ALL_GOOD)
row2("streams", "a good server, 10 streams", each(response), ALL_GOOD, "--streams 10")
row2("reset-without-length", "head, data without end, RST_STREAM(NO_ERROR)",
     each(lambda stream: frame(HEADERS, END_HEADERS, stream, STATUS_200) + frame(DATA, 0, stream, b"half")
          + frame(RST_STREAM, 0, stream, NO_ERROR)), fails("body stream-reset", "body closed-early"))
row2("refused", "refuses every stream", each(lambda stream: frame(RST_STREAM, 0, stream, REFUSED)),
    fails("head stream-refused"))
row2("calm-down", "resets with ENHANCE_YOUR_CALM", each(lambda stream: frame(RST_STREAM, 0, stream, ENHANCE)),
    fails("head stream-reset"))
row2("goaway", "GOAWAY after each 10", http2(goodbye), partly("head stream-refused", "idle closed"))
row2("goaway-silent", "GOAWAY for all streams, then nothing",
    http2(lambda *_: b"", settings() + frame(GOAWAY, 0, 0, bytes(8))), fails("connect closed-early"))
row2("ping-flood", "PING without end by a peer that never reads", flooding(frame(PING, 0, 0, bytes(8))),
    fails("idle malformed", "head malformed"))
row2("settings-flood", "SETTINGS without end", flooding(settings()), fails("idle malformed", "head malformed"))
row2("empty-frames", "empty DATA without end", http2(lambda peer, stream: [
    peer.send(frame(HEADERS, END_HEADERS, stream, STATUS_200)), peer.flood(frame(DATA, 0, stream) * 100)] and b""),
    fails("body timeout", "body malformed", "body abandoned"), seconds=3)
row2("window-0", "a window of 0 for ever, a body to send", http2(lambda *_: b"", settings((INITIAL_WINDOW, 0))),
     fails("send timeout", "head timeout"), "--method POST --body hello", seconds=3)
row2("streams-0", "allows no stream", http2(lambda *_: b"", settings((MAX_STREAMS, 0))),
    fails("connect timeout", "idle timeout"), seconds=3)
row2("streams-100-0-1", "allows 100 streams, then 0, then 1", http2(changing, settings((MAX_STREAMS, 100))), ALL_GOOD,
    "--streams 4")
row2("continuations", "CONTINUATION without end", http2(lambda peer, stream: [
    peer.send(frame(HEADERS, 0, stream, STATUS_200)), peer.flood(frame(CONTINUATION, 0, stream, field(b"x", b"y" * 100) * 100))] and b""),
    fails("head malformed", "head too-large", "head stream-reset", "head closed-early"))
row2("hpack-bomb", "one header of the table 100,000 times", each(lambda stream: frame(
    HEADERS, 0, stream, STATUS_200 + b"\x40\x01x\x7e" + b"y" * 126) + b"".join(
    frame(CONTINUATION, END_HEADERS if last else 0, stream, b"\xbe" * 16_000) for last in (False,) * 6 + (True,))),
    fails("head too-large", "head malformed", "head stream-reset"))
row2("no-settings", "no settings", lambda peer: [peer.exactly(PREFACE_BYTES), peer.hold()], fails("connect timeout"),
    seconds=3)
row2("settings-bad", "a maximal frame of 1 byte", http2(lambda *_: b"", settings((MAX_FRAME, 1))),
    fails("connect malformed"))
row2("push", "pushes what nobody allowed",
    each(lambda stream: frame(PUSH_PROMISE, END_HEADERS, stream, struct.pack(">I", 2) + STATUS_200)),
    fails("head malformed", "head closed-early"))
row2("frame-too-long", "a frame longer than allowed",
    each(lambda stream: frame(HEADERS, END_HEADERS, stream, STATUS_200)
     + frame(DATA, END_STREAM, stream, bytes(20_000))), fails("body malformed", "head malformed"))
row2("window-overflow", "a window beyond 2 to the 31",
    each(lambda stream: frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff")), fails("head malformed"))
row2("data-first", "data before the head", each(lambda stream: frame(DATA, END_STREAM, stream, b"ok")),
    fails("head malformed", "head stream-reset"))
row2("length-differs", "content-length 10, 2 bytes",
    each(lambda stream: response(stream, STATUS_200 + field(b"content-length", b"10"))),
    fails("body malformed", "body stream-reset", "head malformed"))
row2("answers-http1", "answers in HTTP/1.1", lambda peer: [peer.exactly(PREFACE_BYTES), peer.send(OK), peer.hold()],
    fails("connect malformed"))
row2("unknown-frames", "frames of unknown kinds, then the response",
    each(lambda stream: frame(0xEE, 0xFF, stream, b"?") + response(stream)), ALL_GOOD)
row2("stream-2", "a head on a stream that nobody opened",
    each(lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, 2, STATUS_200)),
    fails("head malformed", "head closed-early"))

# TLS.
TRUSTED = "--cacert @/ca.pem"
row("tls-good", "TLS with a certificate that is trusted", answers(OK), ALL_GOOD, TRUSTED, "good")
row("tls-wrong-name", "a certificate for another name", answers(OK), fails("tls certificate"), TRUSTED,
    "good DNS:elsewhere.test")
row("tls-expired", "a certificate that has expired", answers(OK), fails("tls certificate"), TRUSTED, "expired")
row("tls-early", "a certificate that is not valid yet", answers(OK), fails("tls certificate"), TRUSTED, "early")
row("tls-unknown", "an authority that nobody trusts", answers(OK), fails("tls certificate"), "", "good")
row("tls-no-farewell", "TLS, a body until the end, cut without close_notify",
    answers(head() + b"half", lambda peer: peer.socket.close()), fails("body closed-early", "head closed-early"),
    TRUSTED, "good")
row("tls-plain", "plain text on a port of TLS", lambda peer: [peer.exactly(1), peer.send(OK)],
    fails("tls tls", "tls malformed"), "--insecure")
row("tls-silent", "accepts, and no handshake", Peer.hold, fails("tls timeout"), "--insecure", seconds=3)
row("tls-no-http2", "TLS that does not agree on HTTP/2", answers(OK), fails("tls tls"), f"--http2 {TRUSTED}", "good")
row("tls-to-plain", "TLS on a port that is asked in plain text", answers(OK),
    fails("head malformed", "head closed-early", "head reset"), tls="good", scheme="http")
