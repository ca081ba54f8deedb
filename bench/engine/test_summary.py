"""Tests of the summary: a wrong interval or a wrong pairing would print a wrong comparison."""

import random
import unittest

from summary import counts_differ, median_interval, ratios


class MedianInterval(unittest.TestCase):
    def test_ranks_and_levels_are_those_of_the_tables(self):
        # Ranks and levels as tabulated for the sign test; see Conover, Practical Nonparametric Statistics, 1999.
        for count, rank, level in [(6, 1, 0.96875), (7, 1, 0.984375), (9, 2, 0.9609375), (15, 4, 0.96484375)]:
            values = random.Random(count).sample(range(1, count + 1), count)
            interval = median_interval(values)
            self.assertEqual((interval.low, interval.high), (rank, count + 1 - rank))
            self.assertAlmostEqual(interval.level, level)

    def test_too_few_values_say_so_in_the_level(self):
        self.assertEqual(median_interval([3.0, 1.0, 2.0]), (1.0, 3.0, 0.75))
        self.assertEqual(median_interval([5.0]), (5.0, 5.0, 0.0))

    def test_covers_the_median_of_a_skewed_distribution_as_often_as_it_says(self):
        source = random.Random(1)
        median, runs = 0.6931471805599453, 4000
        covered = 0
        for _ in range(runs):
            low, high, _ = median_interval([source.expovariate(1) for _ in range(9)])
            covered += low <= median <= high
        # The level is 96.1 %, and four standard errors are 1.2 %.
        self.assertAlmostEqual(covered / runs, 0.961, delta=0.0125)


class Ratios(unittest.TestCase):
    def test_pairs_are_of_one_round(self):
        self.assertEqual(ratios({2: 9.0, 1: 2.0, 4: 1.0}, {1: 4.0, 2: 3.0, 3: 1.0}), [0.5, 3.0])


class Counts(unittest.TestCase):
    def test_what_was_in_flight_is_no_difference(self):
        self.assertIsNone(counts_differ(own=10_000, server=10_064, in_flight_max=64))
        self.assertIsNone(counts_differ(own=10_000, server=10_074, in_flight_max=64))

    def test_a_lost_share_is(self):
        self.assertAlmostEqual(counts_differ(own=9_000, server=10_000, in_flight_max=64), -0.1)
        self.assertAlmostEqual(counts_differ(own=11_000, server=10_000, in_flight_max=64), 0.1)
