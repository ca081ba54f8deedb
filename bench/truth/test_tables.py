"""Tests of the tables: a cell in the wrong column is a false claim."""

import unittest
from math import exp, sqrt

from tables import drawn
from variance_table import pairs_of, spread, tables


def cells(text: str, begins: str) -> list:
    """Of the row that begins so."""
    row = next(row for row in text.splitlines() if row.startswith(f"| {begins} "))
    return [cell.strip() for cell in row.strip("|").split("|")]


def run(kind: str, effect: str, outcome: str, ratio: float, seconds: float = 20.0) -> dict:
    estimate = {"ratio": ratio, "low": ratio / 1.02, "high": ratio * 1.02, "sd_log": 0.01, "blocks": 10}
    return {"kind": kind, "effect": effect, "outcome": outcome, "estimate": estimate, "cpu_per_request": None,
            "blocks": 10, "seconds": seconds, "load_seconds": 8.0, "steal": 0.01}


def hand(effect: str, candidate: list) -> dict:
    return {"kind": "by-hand", "effect": effect, "baseline_rates": [100, 101, 102], "candidate_rates": candidate,
            "seconds": 15.0}


class Truth(unittest.TestCase):
    lines = [run("now", "none", "equivalent", 1.0), run("now", "none", "inconclusive", 1.01),
             run("now", "none", "worse", 0.9), run("now", "none", "invalid", 1.0),
             *[run("now", "spin-10", "worse", 0.91, seconds) for seconds in (30, 40, 50)],
             run("now", "spin-10", "better", 1.1, 60), run("now", "spin-10", "equivalent", 0.91, 75),
             hand("none", [101, 101, 102]), hand("none", [100, 101, 102]),
             hand("spin-10", [90, 91, 92]), hand("spin-10", [99, 104, 109]),
             {**hand("spin-10", [99, 104, 109]), "kind": "by-hand-pairs", "seconds": 60.0}]

    def test_each_method_is_wrong_in_its_own_column(self):
        text = drawn(self.lines)
        self.assertEqual(cells(text, "none: false difference")[1:],
                         ["50% (1 of 2)", "0% (0 of 2)", "0% (0 of 2)", "15 s", "–", "–", "25% (1 of 4)", "20 s"])
        self.assertEqual(cells(text, "spin-10: wrong sign")[1:],
                         ["50% (1 of 2)", "0% (0 of 2)", "0% (0 of 2)", "15 s", "0% (0 of 1)", "60 s", "20% (1 of 5)", "50 s"])
        self.assertEqual(cells(text, "spin-10: missed")[1:],
                         ["0% (0 of 2)", "50% (1 of 2)", "50% (1 of 2)", "15 s", "100% (1 of 1)", "60 s", "20% (1 of 5)", "50 s"])

    def test_against_itself_every_interval_should_hold_one(self):
        row = cells(drawn(self.lines), "none (throughput)")
        self.assertEqual(row[1:6], ["now", "4", "1 of 4, 25% (5% to 70%)", "1 of 4, 25% (5% to 70%)", "2"])
        self.assertEqual(row[7], "3 of 4, 75% (30% to 95%)")

    def test_what_is_right_depends_on_what_was_planted(self):
        row = cells(drawn(self.lines), "spin-10 (throughput)")
        self.assertEqual(row[2:6], ["5", "3 of 5, 60% (23% to 88%)", "2 of 5, 40% (12% to 77%)", "0"])
        # (0.91^4 * 1.1)^(1/5) is 0.945; 1 / 1.1 is in four of the intervals.
        self.assertEqual(row[6:8], ["-5.5%", "4 of 5, 80% (38% to 96%)"])
        self.assertEqual(row[9:11], ["50 s", "75 s"])

    def test_builds_are_compared_where_both_ran(self):
        pair = [{**run(build, "spin-5", "worse", 0.95, seconds), "number": 0} for build, seconds in (("a", 100.0), ("b", 40.0))]
        alone = {**run("b", "spin-5", "worse", 0.95, 9.0), "number": 1}
        self.assertIn("b / a in time: median 0.40 (0.40 to 0.40) of 1 pairs", drawn([*pair, alone]))

    def test_nothing_measured_draws_nothing(self):
        self.assertEqual(drawn([]), "")


def slices(treatment: str, number: int, process: int, *rates: float) -> list:
    return [{"service": "planted", "treatment": treatment, "pair": number, "process": process, "throughput": rate,
             "main_us": 4e5 / rate, "helpers_us": 1e5 / rate, "steal": 0.0} for rate in rates]


def pair(treatment: str, number: int, ratio: float, seconds: float) -> list:
    first, second = [1000.0] * 2, [1000.0 * ratio] * 2
    return [*slices(treatment, number, 0, *first), *slices(treatment, number, 1, *second),
            {"service": "planted", "treatment": treatment, "pair": number, "pair_s": seconds}]


class Variance(unittest.TestCase):
    def test_what_was_cut_off_is_no_pair(self):
        lines = [*slices("as it is", 0, 0, 1.0, 9.0), *pair("warm", 0, 1.1, 5.0), *slices("warm", 1, 0, 7.0)]
        found = pairs_of(lines)
        self.assertEqual(list(found), [("planted", "warm")])
        self.assertEqual(len(found["planted", "warm"][0].first), 2)

    def test_spreads_are_around_no_difference(self):
        lines = [*pair("as it is", 0, exp(0.02), 5.0), *pair("as it is", 1, exp(0.04), 5.0),
                 *pair("as it is", 2, exp(-0.01), 5.0)]
        one = spread(pairs_of(lines)["planted", "as it is"], "throughput")
        self.assertAlmostEqual(one.rms, sqrt((4 + 16 + 1) / 3) / 100)
        self.assertAlmostEqual(one.by_median, 1.4826 * 0.02)
        self.assertAlmostEqual(one.within, 0.0)
        # Twice the throughput is half the CPU time of a full core.
        self.assertAlmostEqual(spread(pairs_of(lines)["planted", "as it is"], "CPU per request").rms, one.rms)

    def test_half_the_spread_in_twice_the_time_is_worth_twice_as_much(self):
        lines = [*pair("slower", 0, exp(0.01), 10.0), *pair("as it is", 0, exp(0.02), 5.0)]
        text = tables(lines)
        self.assertEqual(cells(text, "slower")[-2:], ["0.50", "0.50"])
        self.assertLess(text.index("as it is"), text.index("slower"))
