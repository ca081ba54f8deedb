"""Tests of the lag: a sender that keeps its schedule must not look late, and one that does not must not look punctual."""

import random
import unittest

from schedule import lag

RATE = 80_000
INTERVAL_NS = 1_000_000_000 // RATE
COUNT = 20_000  # a quarter of a second


def due_ns(i: int) -> int:
    return 1_700_000_000_000_000_000 + i * INTERVAL_NS


class OfSenders(unittest.TestCase):
    def test_a_constant_delay_is_not_late_in_whatever_order_it_was_noted(self):
        sent = [due_ns(i) + 5_000_000 for i in range(COUNT)]
        random.Random(1).shuffle(sent)
        self.assertLess(lag(sent, RATE).max_us, 0.5)

    def test_random_lateness_has_the_quantiles_it_was_made_with(self):
        source = random.Random(1)
        # Below the time between requests, so that none overtakes another.
        found = lag([due_ns(i) + source.randrange(10_000) for i in range(COUNT)], RATE)
        self.assertAlmostEqual(found.p50_us, 5, delta=0.2)
        self.assertAlmostEqual(found.p99_us, 9.9, delta=0.1)

    def test_a_clock_of_one_millisecond_is_late_by_up_to_one(self):
        found = lag([(due_ns(i) // 1_000_000 + 1) * 1_000_000 for i in range(COUNT)], RATE)
        self.assertAlmostEqual(found.p50_us, 500, delta=20)
        self.assertAlmostEqual(found.p99_us, 1000, delta=20)

    def test_too_low_a_rate_is_later_and_later(self):
        found = lag([due_ns(0) + i * INTERVAL_NS * 101 // 100 for i in range(COUNT)], RATE)
        self.assertAlmostEqual(found.p99_us, 0.99 * 0.01 * COUNT / RATE * 1e6, delta=5)

    def test_a_stall_counts_by_the_share_of_requests_that_it_delayed(self):
        for stall_ns, p99_us in [(1_000_000, 0), (20_000_000, 17_500)]:
            over = due_ns(COUNT // 2) + stall_ns
            found = lag([max(due_ns(i), over) if i >= COUNT // 2 else due_ns(i) for i in range(COUNT)], RATE)
            self.assertAlmostEqual(found.p50_us, 0, delta=0.5)
            self.assertAlmostEqual(found.p99_us, p99_us, delta=13)
            self.assertAlmostEqual(found.max_us, stall_ns / 1000, delta=0.5)
