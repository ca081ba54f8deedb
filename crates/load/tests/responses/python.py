"""What Python's own HTTP client makes of responses: reads one case a line on standard input, `METHOD BYTES` with the bytes in
hexadecimal, and writes one line for each, in order, after one that tells its version. It must not judge: that is for whoever
compares.

  done STATUS LENGTH kept|closed     complete; whether the connection can be used again
  done STATUS LENGTH surplus EXTRA   the same, and there are bytes that it did not take
  ended STATUS LENGTH                complete because the bytes ended
  cut head | cut body STATUS LENGTH  incomplete when they did
  malformed head|body                refused; too-large where a limit was the reason

The client reads from memory. That it asked for more than there is tells that it would have waited for the connection's end.
"""

import http.client
import io
import platform
import sys


class Wire(io.BytesIO):
    """A connection that brings these bytes and ends."""

    ended = False
    taken = 0

    def noted(self, short):
        self.ended = self.ended or short
        self.taken = self.tell()

    def read(self, count=-1):
        data = super().read(count)
        self.noted(count is None or count < 0 or len(data) < count)
        return data

    def readinto(self, buffer):
        count = super().readinto(buffer)
        self.noted(count < len(buffer))
        return count

    def readline(self, limit=-1):
        line = super().readline(limit)
        self.noted(not line.endswith(b"\n") and len(line) != limit)
        return line

    def makefile(self, _mode):
        return self


def refused(error, phase):
    too_large = isinstance(error, http.client.LineTooLong) or "got more than" in str(error)
    return f"{'too-large' if too_large else 'malformed'} {phase}"


def outcome(method, data):
    wire = Wire(data)
    response = http.client.HTTPResponse(wire, method=method)
    try:
        response.begin()
    except (http.client.HTTPException, ConnectionError, ValueError) as error:
        return "cut head" if wire.ended else refused(error, "head")
    if wire.ended:
        # It takes the end of the connection for the end of the head.
        return f"ended {response.status} 0"
    length = 0
    try:
        while response.read(1):
            length += 1
    except http.client.IncompleteRead as error:
        return f"cut body {response.status} {length + len(error.partial)}" if wire.ended else "malformed body"
    except (http.client.HTTPException, ValueError) as error:
        return refused(error, "body")
    if wire.ended:
        complete = response.length in (None, 0)
        return f"{'ended' if complete else 'cut body'} {response.status} {length}"
    extra = len(data) - wire.taken
    rest = f"surplus {extra}" if extra else "closed" if response.will_close else "kept"
    return f"done {response.status} {length} {rest}"


def main():
    print(platform.python_version())
    for line in sys.stdin:
        method, _, data = line.strip().partition(" ")
        print(outcome(method, bytes.fromhex(data)))


main()
