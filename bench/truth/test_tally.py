"""Tests of the counting: who counts wrongly here proves the lab right or wrong with nothing behind it."""

import unittest
from math import log

from tally import Share, by_larger_mean, by_t_test, covering, lag_one, outcomes, pooled_ratio, wrong


def estimate(ratio: float, low: float, high: float, blocks: int = 10) -> dict:
    return {"ratio": ratio, "low": low, "high": high, "blocks": blocks, "sd_log": 0.01}


def hand(baseline: list, candidate: list) -> dict:
    return {"baseline_rates": baseline, "candidate_rates": candidate}


class Shares(unittest.TestCase):
    def test_intervals_are_wilsons(self):
        # Newcombe, Statistics in Medicine 17, 1998, table I, method 3.
        for count, of, low, high in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611),
                                     (1, 29, 0.0061, 0.1718)]:
            found = Share(count, of).interval()
            self.assertAlmostEqual(found[0], low, places=4)
            self.assertAlmostEqual(found[1], high, places=4)


class Truth(unittest.TestCase):
    def test_each_block_counts_once(self):
        short, long = estimate(1.0, 0.9, 1.1, blocks=6), estimate(2.0, 1.5, 2.5, blocks=18)
        pooled = pooled_ratio([short, short, short, short, None, long])
        self.assertAlmostEqual(log(pooled), 18 * log(2) / 42)

    def test_neighbours_count_within_a_run_only(self):
        self.assertAlmostEqual(lag_one([[1, -1, 1], [5, 5]]), (-2 + 25) / (2 + 25))
        self.assertIsNone(lag_one([[1.0], []]))

    def test_few_runs_are_no_truth(self):
        self.assertIsNone(pooled_ratio([estimate(1.0, 0.9, 1.1)] * 4 + [None] * 9))

    def test_runs_without_an_interval_neither_cover_nor_miss(self):
        estimates = [estimate(0.9, 0.85, 0.95), None, estimate(1.0, 0.9, 1.1), estimate(0.9, 0.8, 1.0)]
        self.assertEqual(covering(estimates, [1.0] * len(estimates)), (2, 3))
        self.assertIsNone(covering([None], [1.0]))
        self.assertIsNone(covering(estimates, [None] * len(estimates)))


class Answers(unittest.TestCase):
    def test_the_larger_mean_wins_by_as_much_as_is_asked(self):
        line = hand([100, 100, 103], [99, 99, 99])
        self.assertEqual(by_larger_mean(line), "worse")
        self.assertEqual(by_larger_mean(line, 0.03), "none")
        self.assertEqual(by_larger_mean(hand([100, 100, 100], [104, 104, 104]), 0.03), "better")

    def test_the_t_test_asks_how_much_the_runs_vary(self):
        self.assertEqual(by_t_test(hand([100, 101, 102], [90, 91, 92])), "worse")
        self.assertEqual(by_t_test(hand([90, 91, 92], [100, 101, 102])), "better")
        self.assertEqual(by_t_test(hand([80, 101, 122], [70, 91, 112])), "none")

    def test_each_way_to_be_wrong_is_counted_by_itself(self):
        answers = ["worse", "worse", "better", "inconclusive", "equivalent", "invalid"]
        self.assertEqual(wrong(answers), ((3, 6), (1, 6), (3, 6)))
        lines = [{"outcome": answer} for answer in answers]
        self.assertEqual(outcomes(lines, "better", "worse"), (3, 6))
