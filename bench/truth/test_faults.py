"""Tests of what is planted and how it is counted: a fault that is not planted, or found by chance, is a false claim."""

import re
import tempfile
import tomllib
import unittest
from pathlib import Path

import beside
from catalogue import BASE, FAULTS, GRADES, NOT_COVERED, PREVENTED, REFUSED, Fault, merged, pruned
from faults import filled, reason, steps
from faults_table import alarms, drawn, is_found
from reuse import ROOT, free_port
from test_tables import cells
from toml_writer import toml_text

KNOWN = {"@folder": "/tmp/f", "@port": 5000, "@now_ms": 17, "@seconds": 99}
PAGE = ROOT / "docs" / "validity.md"


def line(kind: str, effect: str, *findings: tuple, **more: object) -> dict:
    return {"kind": kind, "effect": effect, "number": 0, "checks": ["errors", "leak", "steal", "cores_shared"],
            "findings": [[check, grade, "why"] for check, grade in findings], "seconds": 20.0, **more}


class Catalogue(unittest.TestCase):
    def test_each_fault_has_a_file_that_differs_from_its_sound_one(self):
        for name, fault in FAULTS.items():
            with self.subTest(name):
                sound, faulty = (filled(fault.experiment(name, faulty), KNOWN) for faulty in (False, True))
                self.assertEqual(tomllib.loads(toml_text(faulty)), faulty)
                self.assertNotIn("@", toml_text(faulty))
                self.assertEqual(sound != faulty, bool(fault.planted))
                self.assertTrue(fault.planted or fault.beside)
                self.assertRegex(name, r"^[a-z0-9-]+$")

    def test_each_check_is_to_find_something_or_said_not_to(self):
        planted = {check for fault in FAULTS.values() for check in fault.checks}
        left_out = {check for checks in NOT_COVERED for check in checks.split(", ")}
        documented = set(re.findall(r"^`([a-z_]+)`, ", PAGE.read_text(), re.MULTILINE))
        self.assertEqual((planted | left_out) - {REFUSED, PREVENTED}, documented)
        self.assertTrue(all(fault.grade in GRADES for fault in FAULTS.values()))

    def test_tables_lie_over_each_other_and_leave_those_below_alone(self):
        later = merged({"a": {"b": None}}, {"a": {"c": [2]}})
        self.assertEqual(pruned(merged({"a": {"b": 1, "c": [1]}}, later)), {"a": {"c": [2]}})
        FAULTS["compression"].experiment("compression", True)
        sound = FAULTS["compression"].experiment("compression", False)
        self.assertEqual(sound["load"]["headers"], {"accept-encoding": "gzip"})
        self.assertNotIn("headers", BASE["load"])


class Files(unittest.TestCase):
    def test_tables_end_what_stands_above_them(self):
        table = {"name": "a", "services": {"api": {"templates": {"nginx.conf": "x"}, "port": 80}}, "on": True,
                 "words": ["\"", "ä\\"]}
        self.assertEqual(tomllib.loads(toml_text(table)), table)

    def test_what_is_known_is_filled_in(self):
        self.assertEqual(filled({"port": "@port", "list": ["a @folder/b"], "at": "@now_ms", "n": 3}, KNOWN),
                         {"port": 5000, "list": ["a /tmp/f/b"], "at": "17", "n": 3})


class Order(unittest.TestCase):
    def test_each_is_run_with_and_without_in_each_round_and_litter_comes_last(self):
        chosen = {"churn": FAULTS["churn"], "errors": FAULTS["errors"], "leak": FAULTS["leak"]}
        made = steps(chosen, ["sound", "fault"], 3, 1)
        self.assertEqual(len({step.key for step in made}), 18)
        self.assertEqual([step.number for step in made], [0] * 6 + [1] * 6 + [2] * 6)
        for number in range(3):
            self.assertEqual([step.effect for step in made[6 * number + 4:6 * number + 6]], ["churn"] * 2)


class Counting(unittest.TestCase):
    def test_found_is_what_the_right_check_says_gravely_enough(self):
        fault = Fault("", ("errors", REFUSED), "invalid")
        self.assertTrue(is_found(line("fault", "errors", ("errors", "warning"), ("errors", "invalid")), fault))
        self.assertTrue(is_found(line("fault", "errors", (REFUSED, "invalid")), fault))
        self.assertFalse(is_found(line("fault", "errors", ("errors", "warning")), fault))
        self.assertFalse(is_found(line("fault", "errors", ("leak", "invalid")), fault))
        self.assertTrue(is_found(line("fault", "leak", ("leak", "invalid")), FAULTS["leak"]))

    def test_what_was_prevented_needs_no_finding(self):
        fault = FAULTS["left-over"]
        self.assertTrue(is_found(line("fault", "left-over", prevented=True), fault))
        self.assertFalse(is_found(line("fault", "left-over", prevented=False), fault))
        self.assertTrue(is_found(line("fault", "left-over", ("left_over", "invalid"), prevented=False), fault))

    def test_what_is_true_of_a_sound_run_and_what_is_a_note_are_no_alarms(self):
        fault = Fault("", ("errors",), "invalid", of_sound=("cores_shared",))
        spoken = line("sound", "errors", ("cores_shared", "warning"), ("killed", "note"), ("leak", "warning"))
        self.assertEqual(alarms(spoken, fault), {"leak": "warning"})

    def test_tables_count_runs_and_clean_checks(self):
        lines = [line("fault", "errors", ("errors", "invalid"), ("leak", "warning")), line("fault", "errors"),
                 line("fault", "leak", ("leak", "warning")),
                 line("sound", "errors", ("leak", "warning"), ("steal", "warning")), line("sound", "leak"),
                 line("sound", "one-worker", ("cores_shared", "warning"))]
        text = drawn(lines)
        self.assertEqual(cells(text, "errors")[3:], ["1 of 2", "leak (warning) in 1"])
        self.assertEqual(cells(text, "all")[3], "2 of 3, 67% (21% to 94%)")
        self.assertEqual(cells(text, "leak")[:1], ["leak"])
        # Three runs of errors and leak, two of cores_shared: of the third it is true. Steal is the host's.
        self.assertEqual(cells(text, "all checks")[2], "1 of 8, 12% (2% to 47%)")
        self.assertEqual(cells(text, "steal, of the host")[2], "1 of 3, 33% (6% to 79%)")
        self.assertEqual(drawn([]), "")


class Beside(unittest.TestCase):
    def test_two_servers_share_a_port_if_both_want_to(self):
        port = free_port()
        with beside.stale_server(port), beside.stale_server(port):
            pass
        with beside.stale_server(port):
            pass

    def test_a_server_comes_to_each_port_that_is_told_and_goes(self):
        with tempfile.TemporaryDirectory() as folder:
            ports, port = Path(folder) / "ports", free_port()
            with beside.stale_servers(ports):
                ports.write_text(f"{port}\n")
                self.assertTrue(comes_true(lambda: listens(port)))
            self.assertFalse(listens(port))

    def test_closing_connections_are_counted(self):
        self.assertEqual(beside.closing("sockets: used 9\nTCP: inuse 5 orphan 0 tw 1234 alloc 7 mem 1\n"), 1234)
        self.assertEqual(beside.closing(""), 0)


def listens(port: int) -> bool:
    wanted = f":{port:04X}"
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(wanted) and row[3] == "0A" for row in rows)


def comes_true(condition, patience_s: float = 20.0) -> bool:
    until = beside.time.monotonic() + patience_s
    while beside.time.monotonic() < until:
        if condition():
            return True
        beside.time.sleep(0.05)
    return False


class Talk(unittest.TestCase):
    def test_why_nothing_started_is_its_error(self):
        self.assertEqual(reason("running\nerror: port 80 is taken\n hint: x\n"), "error: port 80 is taken")
        self.assertEqual(reason(""), "no message")
