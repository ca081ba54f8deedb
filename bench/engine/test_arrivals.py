"""Tests of the server that notes when requests were sent: a wrong count or a wrong clock would be taken for lateness."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from array import array
from pathlib import Path

from processes import free_port, started
from tools import HERE

REQUEST = b"GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n"
ANSWER_END = b"\r\n\r\nHello world\n"
STOPPED_SECONDS = 0.3


@unittest.skipUnless(shutil.which("cc"), "no C compiler, cc")
class Arrivals(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program, self.notes = Path(folder.name) / "arrivals", Path(folder.name) / "notes"
        subprocess.run(["cc", "-std=gnu11", "-o", program, HERE / "programs" / "arrivals.c"], check=True)
        port = free_port()
        self.server = subprocess.Popen([program, str(port), self.notes])
        self.addCleanup(self.end)
        self.client = started("arrivals", lambda: socket.create_connection(("127.0.0.1", port), 10), self.server)
        self.addCleanup(self.client.close)
        self.client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def end(self) -> array:
        if self.server.poll() is None:
            os.kill(self.server.pid, signal.SIGCONT)
            self.server.terminate()
        self.assertEqual(self.server.wait(10), 0)
        notes = array("q")
        notes.frombytes(self.notes.read_bytes())
        return notes

    def await_answers(self, count: int):
        received = b""
        while received.count(ANSWER_END) < count:
            part = self.client.recv(65536)
            self.assertTrue(part, "the server closed the connection")
            received += part

    def test_each_request_is_noted_once_however_it_is_divided(self):
        self.client.sendall(REQUEST[:20])
        time.sleep(0.05)
        self.client.sendall(REQUEST[20:-1])
        time.sleep(0.05)
        self.client.sendall(REQUEST[-1:] + REQUEST + REQUEST)
        self.await_answers(3)
        self.assertEqual(len(self.end()), 3)

    def test_the_time_is_that_of_sending_and_not_of_reading(self):
        self.client.sendall(REQUEST)
        self.await_answers(1)
        os.kill(self.server.pid, signal.SIGSTOP)
        before_ns = time.time_ns()
        self.client.sendall(REQUEST)
        after_ns = time.time_ns()
        time.sleep(STOPPED_SECONDS)
        os.kill(self.server.pid, signal.SIGCONT)
        self.await_answers(1)
        sent_ns = self.end()[1]
        self.assertLessEqual(before_ns, sent_ns)
        self.assertLess(sent_ns, after_ns + STOPPED_SECONDS * 1e9 / 2)
