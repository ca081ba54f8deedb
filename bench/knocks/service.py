#!/usr/bin/env python3
"""A service that misbehaves as MODE says; its argument is the folder of the knock, so that it is found again whatever it does.

It answers each request with two bytes, and says at its end how many it got. Loopback only.
"""

import os
import signal
import socket
import sys
import threading
import time

ANSWERS = {"fails": b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno",
           "dirty-header": b"HTTP/1.1 200 OK\r\nX-Cache: \xc2\x9b2J\xe2\x80\xae\r\nContent-Length: 2\r\n\r\nok"}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
MODE, PORT, HOST = os.environ.get("MODE", "good"), int(os.environ.get("PORT") or 0), os.environ.get("HOST") or "127.0.0.1"
# By the number of a request: what a service does when it gets that many.
AFTER = 20
requests, listener, connections = 0, None, set()


def answer(connection: socket.socket) -> None:
    global requests
    kept = b""
    connections.add(connection)
    try:
        while data := connection.recv(65536):
            kept += data
            while b"\r\n\r\n" in kept:
                kept = kept.partition(b"\r\n\r\n")[2]
                requests += 1
                if requests == AFTER and MODE in LATER:
                    LATER[MODE]()
                connection.sendall(ANSWERS.get(MODE, OK))
                if MODE == "answers-twice":
                    time.sleep(0.005)
                    connection.sendall(OK)
    except OSError:
        pass
    finally:
        connections.discard(connection)
        connection.close()


def listen(host: str = HOST, port: int = PORT) -> None:
    global listener
    listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


def serve() -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            time.sleep(1000 if MODE == "closes-port" else 0.1)  # the port is closed, and the process stays
            continue
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def say_and_end(*_) -> None:
    os.write(1, f"requests {requests}\n".encode())
    os._exit(0)


def sleeper(code: str = "", environment: dict = os.environ) -> None:
    """A child in a session of its own, that lives on."""
    if os.fork() == 0:
        os.setsid()
        script = f"{code}\nimport time\ntime.sleep(1000)"
        os.execve(sys.executable, [sys.executable, "-S", "-c", script, sys.argv[1]], environment)


def as_daemon(environment: dict) -> None:
    """Double fork and a new session, as daemons did; the child begins anew with another environment. Returns in the parent."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            given = {"MODE": "good", "PORT": str(PORT), "HOST": HOST, **environment}
            # Only what it needs: its mark is gone.
            words = [sys.executable, "-S", "-c", f"import os, sys; os.environ.update({given!r}); exec(open({__file__!r}).read())"]
            os.execve(sys.executable, [*words, sys.argv[1]], {})
        os._exit(0)


def flood() -> None:
    piece = b"\x1b[31mflood \xff\x9b " * 8000
    while True:
        os.write(1, piece)


def close_port() -> None:
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for connection in list(connections):
        connection.close()


def zombies() -> None:
    for _ in range(100):
        if os.fork() == 0:
            os._exit(0)


def storm() -> None:
    for _ in range(20):
        sleeper("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)")


def chains() -> None:
    """60 processes at a time, each of which begins the next in a session of its own and ends; for a minute at most."""
    until = time.monotonic() + 60
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if all(os.fork() for _ in range(60)):
        os._exit(0)
    while time.monotonic() < until:
        if os.fork():
            os._exit(0)
        os.setsid()
        time.sleep(0.0005)
    os._exit(0)


def bomb() -> None:
    """As many processes as it may have, all of which try to have more."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)


def dirty_end() -> None:
    os.write(2, b"\x1b]0;title\x07\x1b[2J\x9b31m\xff\xfe\0 cannot go on \xc2\x9b\r\n" * 3)
    os._exit(7)


kept = []
# Before it listens; a mode that does not listen does not return.
BEFORE = {
    "never-ready": lambda: time.sleep(1000),
    "exits": lambda: os._exit(7),
    "exits-well": lambda: os._exit(0),
    "dirty-end": dirty_end,
    "another": lambda: [os.setgid(1234), os.setuid(1234)],
    "daemon": lambda: [as_daemon({}), os._exit(0)],
    "daemon-below": lambda: [as_daemon({}), time.sleep(1000)],
    "ignores-term": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "flood": lambda: threading.Thread(target=flood, daemon=True).start(),
    "flood-ignores-term": lambda: [BEFORE["flood"](), BEFORE["ignores-term"]()],
    "chains": lambda: signal.signal(signal.SIGTERM, lambda *_: chains()),
    "bomb": lambda: signal.signal(signal.SIGTERM, lambda *_: bomb()),
    "other-port": lambda: [listen(port=0), serve()],
    "ipv6-only": lambda: [listen("::1"), serve()],
    "slow-start": lambda: time.sleep(1),
    "eats": lambda: kept.append(b"x" * 300_000_000),
    "zombies": zombies,
    "leaves-child": lambda: sleeper(),
    "leaves-nameless": lambda: sleeper(environment={}),
    "storm": storm,
    "no-streams": lambda: [os.close(number) for number in (0, 1, 2)],
    "stops-at-once": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "removes-place": lambda: __import__("shutil").rmtree(os.getcwd(), ignore_errors=True),
}
# In the midst of load.
LATER = {
    "exits-later": lambda: os._exit(9),
    "crashes": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "closes-port": close_port,
    "moves-port": lambda: [close_port(), listen(port=0)],
    "stops": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "kills-group": lambda: os.killpg(0, signal.SIGKILL),
    "kills-parent": lambda: os.kill(os.getppid(), signal.SIGKILL),
    "stops-parent": lambda: os.kill(os.getppid(), signal.SIGSTOP),
    "nobody": lambda: [os.setgid(65534), os.setuid(65534)],
    # With a program that is setuid.
    "rises": lambda: [os.setresuid(0, 0, 0), os.kill(os.getppid(), signal.SIGKILL)],
}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, say_and_end)
    if MODE in BEFORE:
        BEFORE[MODE]()
    listen()
    serve()
