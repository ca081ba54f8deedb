"""Tests how advice on planted settings is judged."""

import argparse
import random
import tempfile
import tomllib
import unittest
from math import exp
from pathlib import Path
from unittest import mock

import busy
import tune
from reuse import Failed
from study import Step
from test_tables import cells
from tune import WORLDS, attempt, file_text, judged, planted_ratio, table


class Tune(unittest.TestCase):
    def test_a_set_is_right_with_all_that_gains_5_percent_and_nothing_useless(self):
        five = WORLDS["five"]
        self.assertEqual(judged(five, {"COST_0", "COST_1", "COST_2"}), (True, False))
        self.assertEqual(judged(five, {"COST_0", "COST_1"}), (False, False))
        self.assertEqual(judged(five, {"COST_0", "COST_1", "COST_2", "NOTHING_4"}), (False, True))
        self.assertAlmostEqual(planted_ratio(five, {"COST_0", "COST_1"}), 1.43)

    def test_half_a_pair_is_useless_and_what_breaks_a_limit_too(self):
        self.assertEqual(judged(WORLDS["a pair"], {"COST_0", "EITHER_A"}), (False, True))
        self.assertEqual(judged(WORLDS["a pair"], {"COST_0", "EITHER_A", "EITHER_B"}), (True, False))
        self.assertAlmostEqual(planted_ratio(WORLDS["a pair"], {"EITHER_A", "EITHER_B"}), 1.2)
        self.assertEqual(judged(WORLDS["a tail"], {"COST_0", "COST_TAIL"}), (False, True))
        self.assertEqual(judged(WORLDS["nothing"], set()), (True, False))

    def test_what_is_planted_is_in_the_file(self):
        file = tomllib.loads(file_text(WORLDS["a tail"], 75.5))
        env = file["services"]["planted"]["env"]
        self.assertEqual((env["COST_0"], env["COST_TAIL"], env["WORK_ALIKE"]), ("1.1000", "1.2000", "75.50"))
        self.assertEqual((file["tune"]["try"][0], file["tune"]["keep"]), ("COST_0=1.0000", ["p99 < +10%"]))

    def test_a_run_that_hangs_fails_and_does_not_end_the_study(self):
        budget_s = WORLDS["five"].budget_s
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(tune, "GRACE_S", 0.1 - budget_s):
            program = Path(folder) / "proofload"
            program.write_text("#!/bin/sh\nexec sleep 5\n")
            program.chmod(0o755)
            with self.assertRaises(Failed):
                attempt(argparse.Namespace(proofload=str(program), budget=None, seed=1), 1000, Step("tune", "five", 0, budget_s))

    def test_what_was_confirmed_agrees_with_the_pairs_within_the_errors_of_both(self):
        line = {"kind": "tune", "effect": "five", "seconds": 500, "verdicts": dict.fromkeys(["COST_0", "COST_1", "COST_2"], "set"),
                "confirmed": {"ratio": 1.5, "low": 1.4, "high": 1.6}}
        self.assertEqual(cells(table([line]), "five")[1:5], ["1", "1", "0", "1 of 1"])
        self.assertEqual(cells(table([{**line, "pairs": [(100, 162), (100, 162.2)]}]), "five")[4], "0 of 1")
        self.assertEqual(cells(table([{**line, "pairs": [(100, 150), (100, 175)]}]), "five")[4], "1 of 1")

    def test_a_host_that_is_never_busy_changes_no_ratio(self):
        source = random.Random(1)
        rounds = [(100 * exp(source.gauss(0, 0.2)), 150 * exp(source.gauss(0, 0.05))) for _ in range(2000)]
        ratios = [float(row.split("×")[1].split()[0]) for row in busy.table(rounds).splitlines()[2:]]
        self.assertTrue(len(ratios) == 5 and all(1.42 < ratio < 1.58 for ratio in ratios), ratios)
