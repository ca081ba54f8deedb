"""Tests the table of services that wait."""

import unittest

from test_tables import cells, run
from waits import table


class Waits(unittest.TestCase):
    def test_the_ratio_of_uninterrupted_runs_is_the_truth(self):
        name = "Go, 50 ms and 55"
        lines = [run("waits", name, "worse", ratio) for ratio in (0.91, 0.91, 0.91, 0.91, 0.98)]
        lines += [{"kind": "uninterrupted", "effect": name, "rates": [[320.0, 288.0]]}] * 2
        row = cells(table(lines), name)
        self.assertEqual((row[1], row[2], row[5], row[7]), ("5", "-10.0% (± 0.0%)", "4 of 5", "worse 5"))
        self.assertEqual(row[3:5], ["-7.6%", "+2.6%"])

    def test_too_few_runs_are_no_row(self):
        self.assertEqual(len(table([]).splitlines()), 2)


if __name__ == "__main__":
    unittest.main()
