"""Tests how verdicts are held against runs of wrk."""

import shlex
import unittest
from unittest import mock

import ordinary
from ordinary_rows import FURTHER, ROWS, SIMPLE
from ordinary_services import Measured, in_turns, read_wrk
from reuse import Failed
from student import critical
from test_tables import cells

OUTPUT = """  40000 requests in 4.00s, 5.34MB read
  Socket errors: connect 0, read 3, write 0, timeout 100
  Non-2xx or 3xx responses: 300
Requests/sec:  10000.50
"""


def line(outcome: str, truth: float, interval: tuple = (), failed: float = 0.0, **more) -> dict:
    """A comparison whose truth is this ratio, known to about 2 %."""
    pairs = [[Measured(1000, 100, 0), Measured(1000 * truth * noise, 100, failed)] for noise in (0.99, 1.01, 1.0, 0.98, 1.02, 1.0)]
    estimate = dict(zip(("low", "ratio", "high"), interval)) if interval else None
    return {"effect": "10 headers more", "outcome": outcome, "estimate": estimate, "by_wrk": pairs, "known": None, "row_seconds": 100, **more}


class Classes(unittest.TestCase):
    def test_classes_of_verdicts(self):
        for expected, one in [
            ("right", line("better", 1.6, (1.5, 1.55, 1.65))),
            ("wrong", line("better", 1.6, (1.01, 1.03, 1.05))),
            ("wrong", line("worse", 1.6, (0.8, 0.85, 0.9))),
            ("right", line("better", 1.08, (1.01, 1.03, 1.05))),
            ("right", line("equivalent", 1.04, (0.99, 1.0, 1.02))),
            ("wrong", line("equivalent", 1.3, (0.99, 1.0, 1.02))),
            ("useless", line("inconclusive", 8.0)),
            ("inconclusive", line("inconclusive", 1.1)),
            ("useless", line("invalid", 0.5)),
            ("useless", line("failed", 0.5)),
            ("right", line("invalid", 8.0, failed=0.9)),
            ("wrong", line("better", 8.0, (7.0, 8.0, 9.0), failed=0.9)),
            ("right", line("better", 8.0, at_least=7.0)),
            ("wrong", line("better", 8.0, at_most=7.0)),
            ("right", line("better", 8.0, ratio_so_far=7.9)),
            ("wrong", line("better", 8.0, ratio_so_far=5.0)),
        ]:
            self.assertEqual(ordinary.class_of(one), expected, one)

    def test_known_truth_replaces_wrk(self):
        known = {"known": [1.5, 12], "by_wrk": []}
        self.assertEqual(ordinary.class_of(line("worse", 1, (1.7, 2, 2.3), **known)), "right")
        self.assertEqual(ordinary.class_of(line("better", 1, (0.7, 0.8, 0.9), **known)), "wrong")

    def test_one_pair_of_runs_is_no_truth(self):
        one = line("better", 1.6, (1.5, 1.55, 1.65))
        self.assertEqual(ordinary.class_of({**one, "by_wrk": one["by_wrk"][:1]}), "truth unknown")

    def test_table_counts_classes(self):
        text = ordinary.table([line("better", 1.6, (1.5, 1.55, 1.65), findings=[["V31", "warning", ""], ["V70", "note", ""]]),
                               line("inconclusive", 8.0)])
        row = cells(text, "10 headers more")
        self.assertEqual((row[1], row[2], row[5], row[6]), ("better", "+55.0% (+50.0% to +65.0%)", "right", "V31"))
        self.assertTrue(text.endswith("right 1, useless 1"))


class Rows(unittest.TestCase):
    def test_every_row_has_two_different_commands(self):
        self.assertEqual(len(ROWS), len(SIMPLE) + len(FURTHER))
        self.assertGreaterEqual(len(FURTHER), 30)
        for name, row in ROWS.items():
            self.assertNotEqual(row.baseline, row.candidate, name)
            for command in (row.baseline, row.candidate, row.beside):
                self.assertNotIn("*", command.replace("*)", ""), name)
                shlex.split(command)

    def test_part_of_a_name_chooses_rows(self):
        self.assertEqual(list(ordinary.chosen(["GOMAXPROCS"])), ["Go, GOMAXPROCS 1 and 2"])
        self.assertEqual(list(ordinary.chosen(["cache off and on"])), ["cache off and on"])
        with self.assertRaises(Failed):
            ordinary.chosen(["no such row"])

    def test_command_line_has_the_whole_load(self):
        words = ordinary.words("proofload", ROWS["Express, body as text and as JSON"], "record")
        self.assertEqual(words[words.index("-H") + 1], "Content-Type: application/json")
        self.assertIn("--body", words)


class ByWrk(unittest.TestCase):
    def test_failures_are_a_share_of_requests(self):
        self.assertEqual(read_wrk(OUTPUT, 2.0), Measured(10000.5, 50.0, 0.01))
        with self.assertRaises(Failed):
            read_wrk("0 requests in 4.00s", 2.0)

    def test_sides_alternate_and_stay_apart(self):
        baseline, candidate = mock.Mock(side_effect=[1, 2, 3]), mock.Mock(side_effect=[10, 20, 30])
        order = mock.Mock()
        order.attach_mock(baseline, "a")
        order.attach_mock(candidate, "b")
        self.assertEqual(in_turns([baseline, candidate], 3), [[1, 10], [2, 20], [3, 30]])
        self.assertEqual([call[0] for call in order.mock_calls], ["a", "b", "b", "a", "a", "b"])

    def test_critical_values_of_student(self):
        self.assertAlmostEqual(critical(5), 2.5706, places=3)
        self.assertAlmostEqual(critical(1), 12.706, places=2)


if __name__ == "__main__":
    unittest.main()
