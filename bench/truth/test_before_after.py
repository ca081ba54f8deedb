"""Tests the table of two builds beside each other."""

import unittest

from before_after import ratios_of_pairs, table


def line(side: str, effect: str, number: int, outcome: str, seconds: float) -> dict:
    return {"kind": side, "effect": effect, "number": number, "outcome": outcome, "seconds": seconds, "blocks": 4,
            "estimate": {"sd_log": 0.02}}


LINES = [{"kind": "calibration"},
         line("before", "spin-5", 0, "worse", 100), line("after", "spin-5", 0, "worse", 40),
         line("before", "spin-5", 1, "equivalent", 100), line("after", "spin-5", 1, "inconclusive", 60),
         line("before", "none", 0, "better", 50)]


class BeforeAfter(unittest.TestCase):
    def test_what_is_right_depends_on_what_was_planted(self):
        rows = {tuple(cells[:2]): cells[2:6] for cells in (
            [cell.strip() for cell in row.strip("|").split("|")] for row in table(LINES).splitlines() if "|" in row)}
        self.assertEqual(rows["spin-5", "before"], ["2", "1", "1", "0"])
        self.assertEqual(rows["spin-5", "after"], ["2", "1", "0", "1"])
        self.assertEqual(rows["none", "before"], ["1", "0", "1", "0"])

    def test_times_are_compared_where_both_sides_ran(self):
        self.assertEqual(ratios_of_pairs(LINES, "spin-5"), [0.4, 0.6])
        self.assertEqual(ratios_of_pairs(LINES, "none"), [])


if __name__ == "__main__":
    unittest.main()
