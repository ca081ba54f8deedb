"""Tests the table of capacities."""

import unittest

from capacity import table
from test_tables import cells


def line(per_s: float, low: float, high: float) -> dict:
    return {"kind": "capacity", "effect": "M/M/1, 1 ms", "per_s": per_s, "interval": {"low": low, "high": high}}


class Capacity(unittest.TestCase):
    def test_an_interval_holds_if_the_truth_lies_in_it(self):
        row = cells(table([line(900, 880, 920), line(950, 930, 970), {**line(1, 1, 1), "interval": None}]), "M/M/1, 1 ms")
        self.assertEqual((row[2], row[3], row[5]), ("2", "+1.8 %", "1 of 2"))

    def test_one_run_is_no_row(self):
        self.assertEqual(len(table([line(900, 880, 920)]).splitlines()), 2)
