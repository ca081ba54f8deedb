"""When a load generator sent: the same run again, against a server of this bench that records when each request was sent.

Loopback only; the server is ended by its id. schedule.py evaluates the records.
"""

from array import array
from pathlib import Path
from typing import NamedTuple, Optional

from processes import Failed, Pinned, child_of, connect, read_output, run_measured, started
from schedule import Lag, lag
from tools import BENCH_TOOLS, Load, Tool


class Recorded(NamedTuple):
    """One tool at one rate, once. `own_p99_us` is the lateness that the tool itself reports, if any."""

    lag: Lag
    own_p99_us: Optional[float]
    others_share: float


class Recorder(Pinned):
    """The program `arrivals`, for one run."""

    def __enter__(self) -> "Recorder":
        self.stamps = self.folder / "stamps"
        self.stamps.unlink(missing_ok=True)
        self.start("arrivals.json", [str(BENCH_TOOLS / "bin" / "arrivals"), str(self.port), str(self.stamps)])
        try:
            started("the server that notes arrivals", lambda: connect(self.port), self.process)
            self.worker = child_of(self.process.pid)
        except BaseException:
            self.end()
            raise
        return self

    def sent_ns(self) -> array:
        """Ends the server, which writes its notes then."""
        self.end()
        notes = array("q")
        try:
            notes.frombytes(self.stamps.read_bytes())
        except OSError as error:
            raise Failed(f"the server that notes arrivals left no notes: {error}") from error
        return notes


def record(tool: Tool, load: Load, folder: Path) -> Recorded:
    """Runs the tool once, and compares when it sent with its schedule. Raises `Failed`."""
    with Recorder(folder) as recorder:
        measured = run_measured(tool, load._replace(port=recorder.port), recorder)
        sent_ns = recorder.sent_ns()
    if not sent_ns:
        raise Failed("it sent no request")
    own_p99_us = tool.schedule_lag_p99_us and read_output(tool.schedule_lag_p99_us, measured.output)
    return Recorded(lag(sent_ns, load.rate), own_p99_us, measured.others_share)
