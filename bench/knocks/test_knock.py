"""Tests of the place of a knock, with scripts for a proofload: what it does not see, no knock fails by."""

import errno
import subprocess
import unittest

import faults
import run
from knock import KNOCKS, Place, Skipped, Wrong


def place_of(script: str) -> Place:
    place = Place("/bin/sh")
    place.script = str(place.write("script", script))
    return place


class Knocks(unittest.TestCase):
    def seen(self, script: str, **more) -> str:
        """What is wrong with a program that does this, and with what it leaves."""
        place = place_of(script)
        try:
            place.proofload(place.script, **more)
            wrong = ""
        except Wrong as error:
            wrong = str(error)
        return f"{wrong}; {place.close(patience=0.2)}"

    def test_what_no_knock_allows_is_seen(self):
        for script, part in {
            "exit 5": "; None",
            "exit 101": "exit code 101 is not documented",
            "kill -SEGV $$": "exit code -11",
            "echo \"thread 'main' panicked at x.rs:1:1\" >&2; exit 6": "panics",
            "sleep 5": "hangs",
            "exec python3 -c 'x = b\"x\" * 90_000_000; import time; time.sleep(0.3)'": "more than 60 MB",
            "sleep 5 & exit 0": "leaves processes",
            "setsid env -i sh -c 'sleep 5; echo $0' $TMPDIR & exit 0": "leaves processes",
            "touch $TMPDIR/kept": "leaves files: kept",
        }.items():
            self.assertIn(part, self.seen(script, seconds=1, memory_mb=60), script)

    def test_a_knock_that_fails_is_told_and_ends_with_1(self):
        knock = next(iter(KNOCKS.values()))
        broken = knock._replace(test=lambda place: 1 / 0)
        result = run.carried_out(broken, "/bin/true", 1)
        self.assertEqual((result.outcome, "ZeroDivisionError" in result.seen), (run.FAIL, True))

    def test_calls_fail_when_and_how_they_are_asked_to_and_short_ones_lose_nothing(self):
        place = place_of("")
        try:
            faults.supervisor()
        except Skipped as why:
            self.skipTest(str(why))
        file, whole = place.write("text", "line\n" * 100), b"line\n" * 100
        for how, every, code, fewest, most in (("count", 0, 0, 0, 0), (errno.EIO, 0, 1, 1, 1), (faults.SHORT, 1, 0, 72, 73)):
            begun = [*faults.below(place, "main", "read", how, 1, every), "/bin/cat", str(file)]
            done = subprocess.run(begun, capture_output=True, check=False, env={"LC_ALL": "C"})
            (_, called, failed), = faults.counted(place)
            self.assertEqual((done.returncode, done.stdout == whole), (code, code == 0), how)
            self.assertTrue(fewest <= failed <= most and called >= failed, (how, called, failed))
        self.assertIsNone(place.close())

    def test_what_a_server_sent_does_not_break_the_table(self):
        self.assertEqual(run.cell("a|b\x1b[31m\n"), "a\\|b\\x1b[31m\\x0a")
