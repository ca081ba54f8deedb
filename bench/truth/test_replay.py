"""Tests of the replay: a rule that is not the lab's would prove nothing."""

import random
import unittest
from math import log

from replay import boundaries, replayed, run, verdict


def noise(correlation: float, seed: int) -> list:
    """300 runs of 12 blocks, of a spread of 3 %."""
    source = random.Random(seed)
    series = []
    for _ in range(300):
        value, blocks = source.gauss(0, 1), []
        for _ in range(12):
            blocks.append(0.03 * value)
            value = correlation * value + (1 - correlation**2) ** 0.5 * source.gauss(0, 1)
        series.append(blocks)
    return series


class Replay(unittest.TestCase):
    def test_the_rule_is_that_of_the_methodology(self):
        look, ends = boundaries()
        # t is 8.89 and 3.18 after 4 blocks, at a look and at the end.
        for z, t in ((look, 8.89), (ends[4], 3.18)):
            for factor, found in ((1.01, "better"), (0.99, "none")):
                # A mean of t standard errors.
                blocks = [0.1 * (step + t * factor * (5 / 3) ** 0.5 / 2) for step in (-1.5, -0.5, 0.5, 1.5)]
                self.assertEqual(verdict(blocks, z), found, (z, t))
        self.assertEqual(verdict([0.01, 0.0101, 0.0099, 0.01], look), "equivalent")
        self.assertEqual(verdict([log(1.1)] * 4, look), "better")

    def test_a_run_ends_at_the_first_look_that_decides(self):
        looks = boundaries()
        self.assertEqual(run(iter([-0.5, -0.51, -0.49, -0.5, 9.0, 9.0]), 6, looks), "worse")
        self.assertEqual(run(iter([0.5, -0.5, 0.4, -0.4, 0.5, -0.5]), 6, looks), "none")

    def test_independent_blocks_err_as_promised_and_correlated_ones_more_often(self):
        independent = replayed(noise(0.0, 1), 10, 1, 1500).value
        self.assertLess(independent, 0.07)
        self.assertGreater(replayed(noise(0.5, 1), 10, 1, 1500).value, 2 * independent)
