"""Tests of the tables of open loop and memory: a row that says less than was measured, or more, would be believed."""

import unittest

from markdown import Outcome
from memory_table import body_table, further_bytes
from over_time import table
from open_loop_table import Pace, rate_table, targets_line
from processes import Run
from recorder import Recorded
from schedule import Lag
from tools import Count, all_tools


def pace(sent: int, p99_us: float, own_p99_us=None) -> Pace:
    run = Run(client_us=500_000, server_us=0, others_share=0, rss_max_kb=0, server_count=sent, own=Count(sent, 1.0))
    return Pace(run, Recorded(Lag(5.0, p99_us, 20_000.0), own_p99_us, 0), due=100_000)


def run(requests: int, rss_max_kb: int) -> Run:
    return Run(0, 0, 0, rss_max_kb, requests, Count(requests, 1.0))


class OpenLoop(unittest.TestCase):
    outcome = Outcome({"steady": {0: pace(100_000, 15, 12), 1: pace(99_990, 16, 14), 2: pace(100_000, 900, 13)},
                       "coarse": {0: pace(99_999, 1000)}, "short": {0: pace(99_800, 15)}, "absent": {}},
                      {"absent": "not installed: make it"})

    def test_a_row_has_the_median_round_and_the_range(self):
        rows = rate_table(100_000, 0.5, 64, self.outcome).splitlines()
        steady = [cell.strip() for cell in next(row for row in rows if "steady" in row).split("|")]
        self.assertEqual(steady[2:8], ["1.0000 (0.9999 to 1.0000)", "5.00 µs (5.00 to 5.00)", "5.0 µs",
                                       "16.0 µs (15.0 µs to 900 µs)", "20 ms", "13.0 µs"])

    def test_a_tool_that_is_not_there_keeps_its_row_and_says_why(self):
        table = rate_table(100_000, 0.5, 64, self.outcome)
        self.assertIn("| absent [1] |", table)
        self.assertTrue(table.endswith("- [1] absent: not installed: make it"))

    def test_targets_are_met_by_the_median_round_in_both(self):
        self.assertIn("at 100,000 per second met by steady", targets_line({(100_000, 0.5): self.outcome}))
        self.assertNotIn("steady,", targets_line({(100_000, 0.5): self.outcome}))
        self.assertIn("at 64 per second not measured", targets_line({(64, 0.5): Outcome({"steady": {}}, {})}))


class Memory(unittest.TestCase):
    def test_growth_is_of_the_same_round(self):
        shorter = {0: run(1_000, 10_000), 1: run(1_000, 90_000)}
        longer = {0: run(11_240, 11_000), 1: run(11_240, 91_000), 2: run(11_240, 5)}
        self.assertEqual(further_bytes(shorter, longer), 100)
        self.assertIsNone(further_bytes(shorter, shorter))

    def test_each_length_has_its_row(self):
        short = Outcome({"tool": {0: run(1_000, 10_240)}, "absent": {}}, {})
        long = Outcome({"tool": {0: run(2_000, 10_240)}, "absent": {}}, {"tool": "failed in round 2: why"})
        table = body_table("/small", 400, {1: short, 4: long})
        self.assertIn("10.0 MiB (10.0 to 10.0) |                          |", table)
        self.assertIn("0.00 bytes", table)
        self.assertEqual(table.count("| absent"), 2)
        self.assertIn("- [1] tool: failed in round 2: why", table)


class OverTime(unittest.TestCase):
    def test_a_client_that_ended_early_or_is_not_there_keeps_its_row(self):
        lines = [{"tool": "stays", "note": None, "responses": 9_000, "resident_kb": {60: 1024, 120: 2048}},
                 {"tool": "goes", "note": "it ended before 120 s", "responses": None, "resident_kb": {60: 1024}}]
        rows = table(lines, 1000, 500, [60, 120]).splitlines()
        self.assertTrue(any("9,000 | 1.0 MiB | 2.0 MiB" in row for row in rows))
        self.assertTrue(any("goes [1]" in row and "– | 1.0 MiB |       – |" in row for row in rows))
        self.assertEqual(rows[-1], "- [1] goes: it ended before 120 s")

    def test_wrk_counts_for_as_long_as_it_runs(self):
        wrk = next(tool for tool in all_tools("proofload") if tool.name == "wrk")
        for text, seconds in {"750.00ms": 0.75, "9.99s": 9.99, "30.05m": 1803, "1.50h": 5400}.items():
            self.assertAlmostEqual(wrk.count(f"  9 requests in {text}, 2.00KB read").seconds, seconds)
