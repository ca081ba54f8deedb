"""Tests of the t-test: a wrong one would make the hand method look better or worse than it is."""

import unittest
from math import inf

from student import incomplete_beta, p_two_sided, paired, welch


class Student(unittest.TestCase):
    def test_quantiles_are_those_of_the_tables(self):
        # Two-sided 5 % and 1 % points; Abramowitz and Stegun, table 26.10.
        for freedom, five, one in [(1, 12.706, 63.657), (2, 4.303, 9.925), (4, 2.776, 4.604), (10, 2.228, 3.169),
                                   (120, 1.980, 2.617)]:
            self.assertAlmostEqual(p_two_sided(five, freedom), 0.05, delta=0.0001)
            self.assertAlmostEqual(p_two_sided(-one, freedom), 0.01, delta=0.0001)

    def test_ends_of_the_beta(self):
        self.assertEqual((incomplete_beta(2, 3, 0), incomplete_beta(2, 3, 1)), (0.0, 1.0))
        # I_x(a, 1) = x^a
        self.assertAlmostEqual(incomplete_beta(3, 1, 0.7), 0.343)

    def test_welch_is_that_of_scipy(self):
        # scipy.stats.ttest_ind(second, first, equal_var=False), SciPy 1.17.1
        test = welch([5012.1, 5101.7, 4980.4], [4703.2, 4811.9, 4866.0])
        for ours, theirs in zip(test, (-3.9557776739752715, 3.7296130177774685, 0.019156273145237542)):
            self.assertAlmostEqual(ours, theirs)

    def test_pairs_are_those_of_scipy(self):
        # scipy.stats.ttest_rel(log(second), log(first)), SciPy 1.17.1
        test = paired([5012.1, 5101.7, 4980.4, 5040.0], [4703.2, 4811.9, 4866.0, 4700.5])
        self.assertEqual(test.freedom, 3)
        for ours, theirs in zip((test.t, test.p), (-5.1534724628195640, 0.014165270681405006)):
            self.assertAlmostEqual(ours, theirs)

    def test_values_that_do_not_vary_leave_no_doubt(self):
        self.assertEqual(welch([5, 5, 5], [5, 5, 5]).p, 1.0)
        self.assertEqual(paired([4, 4], [4, 4]).p, 1.0)
        self.assertEqual(paired([4, 4], [8, 8]), (inf, 1, 0.0))
        self.assertEqual(welch([5, 5, 5], [4, 4, 4]), (-inf, inf, 0.0))
