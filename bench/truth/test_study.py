"""Tests of what is kept and of going on: a comparison that is lost, made twice or kept falsely spoils hours."""

import tempfile
import tomllib
import unittest
from math import log
from pathlib import Path

import study
from calibration import calibration_of
from effects import EFFECTS, truth, variables
from experiment import Variants, file_text, kept, log_ratios
from reuse import Failed

STEPS = [study.Step("by-hand", "none", number, 1) for number in range(3)]


def slice_event(kind: str, window_ns: int, steal: float) -> dict:
    return {"slice": {"kind": kind, "window_ns": window_ns, "machine": {"steal_share": steal}}}


class GoingOn(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "new" / "lines.jsonl"
        self.addCleanup(setattr, study, "progress", study.progress)
        study.progress = lambda _: None

    def test_what_is_there_is_not_done_again(self):
        study.append(self.file, {"kind": "by-hand", "effect": "none", "number": 1})
        study.append(self.file, {"kind": "by-hand", "effect": "spin-5", "number": 2})
        done = []
        study.conduct(self.file, STEPS, lambda step: done.append(step.number) or {"value": step.number})
        self.assertEqual(done, [0, 2])
        self.assertEqual(study.read(self.file)[-1], {"kind": "by-hand", "effect": "none", "number": 2, "value": 2})

    def test_a_line_that_was_cut_off_spoils_no_other(self):
        study.append(self.file, {"kind": "by-hand", "effect": "none", "number": 0})
        with open(self.file, "a") as out:
            out.write('{"kind": "by-h')
        study.conduct(self.file, STEPS, lambda step: {})
        self.assertEqual([line["number"] for line in study.read(self.file)], [0, 1, 2])

    def test_a_failure_is_left_for_the_next_time_and_several_end_it(self):
        def fail_at(*numbers):
            def attempt(step):
                if step.number in numbers:
                    raise Failed("why")
                return {}
            return attempt

        study.conduct(self.file, STEPS, fail_at(1))
        self.assertEqual([line["number"] for line in study.read(self.file)], [0, 2])
        more = [study.Step("by-hand", "none", number, 1) for number in range(3, 9)]
        with self.assertRaises(Failed):
            study.conduct(self.file, more, fail_at(3, 4, 5))
        self.assertEqual(len(study.read(self.file)), 2)

    def test_seeds_do_not_depend_on_what_was_done_before(self):
        self.assertEqual(STEPS[1].seed(7), study.Step("by-hand", "none", 1, 99).seed(7))
        self.assertEqual(len({step.seed(base) for step in STEPS for base in (7, 8)}), 6)

    def test_rounds_have_every_effect_once(self):
        steps = study.in_rounds("planted", {"spin-2": 270, "memory": 40}, 4, 1)
        self.assertEqual([step.number for step in steps], [0, 0, 1, 1, 2, 2, 3, 3])
        self.assertEqual(len({step.key for step in steps}), 8)


class Experiments(unittest.TestCase):
    def test_the_file_says_what_was_asked(self):
        effect = EFFECTS["tail-clear"]
        said = tomllib.loads(file_text("tail-clear", Variants({"NOT_READ": "1"}, effect.variables), effect, 120))
        self.assertEqual(said["factors"]["effect"], {
            "without": {"service": {"env": {"NOT_READ": "1"}}},
            "with": {"service": {"env": {"TAIL_SHARE": "0.02", "TAIL_MS": "20"}}}})
        self.assertEqual(said["design"], {"metric": "p99", "margin": "3%", "budget": "120s", "rate": effect.rate})

    def test_kept_is_what_the_report_and_the_measured_slices_say(self):
        figures = {"ratio": 0.9, "low": 0.8, "high": 0.95, "sd_log": 0.02, "blocks": 6}
        report = {"comparisons": [{"outcome": "worse", "estimate": {**figures, "critical_t": 2.6}, "exploratory": [
                      {"metric": "cpu_per_request", "estimate": {**figures, "ratio": 1.1, "critical_t": 2.6}}]}],
                  "blocks": 6, "blocks_planned": 9, "ended": {"reason": "decided", "seconds": 21.5}, "findings": [
                      {"check": "steal", "grade": "warning", "evidence": "long"}],
                  "seed": 5, "proofload": "0.1.0", "environment": {"commit": "abc"}}
        events = [{"block_started": {"block": 1}}, slice_event("warm_up", 10**9, 0.9),
                  slice_event("measured", 5 * 10**8, 0.1), slice_event("measured", 10**9, 0.3)]
        line = kept(report, events)
        self.assertEqual((line["outcome"], line["estimate"], line["seconds"]), ("worse", figures, 21.5))
        self.assertEqual(line["cpu_per_request"]["ratio"], 1.1)
        self.assertEqual(line["load_seconds"], 1.5)
        self.assertAlmostEqual(line["steal"], 0.2)

    def test_log_ratios_are_of_what_was_judged(self):
        rows = ["block,variant,dropped,metric,value"]
        for block, dropped, sides in ((1, "false", (10, 5)), (2, "true", (1, 9)), (10, "false", (10, 20))):
            rows += [f"{block},{variant},{dropped},cpu_per_request,{value}" for variant, value in zip("ab", sides)]
            rows += [f"{block},{variant},{dropped},throughput,7" for variant in "ab"]
        comparison = {"metric": "throughput", "baseline": 0, "candidate": 1, "estimate": {"ratio": 1.0, "blocks": 2}}
        report = {"comparisons": [comparison], "variants": [{"name": "a"}, {"name": "b"}]}
        self.assertEqual(log_ratios("\n".join(rows), report), [0.0, 0.0])
        comparison["estimate"]["ratio"] = 3.0
        self.assertIsNone(log_ratios("\n".join(rows), report))
        per_core = "\n".join(row for row in rows if "throughput" not in row)
        comparison["estimate"]["ratio"] = 1.0
        self.assertEqual(log_ratios(per_core, report), [log(2), -log(2)])

    def test_a_void_run_is_kept_without_figures(self):
        report = {"comparisons": [{"outcome": "invalid", "estimate": None, "exploratory": []}], "blocks": 0,
                  "blocks_planned": None, "ended": {"reason": "budget_spent", "seconds": 25.0}, "findings": [],
                  "seed": 5, "proofload": "0.1.0", "environment": {"commit": None}}
        line = kept(report, [])
        self.assertEqual((line["outcome"], line["estimate"], line["cpu_per_request"], line["steal"]),
                         ("invalid", None, None, None))


class Calibration(unittest.TestCase):
    def test_turns_follow_from_what_the_loop_cost(self):
        calibration = calibration_of(5000, [(100.0, 125.0), (200.0, 250.0)])
        self.assertAlmostEqual(calibration["turns_per_percent"], 200)
        self.assertAlmostEqual(calibration["percent_standard_error"], 0)
        self.assertEqual(variables(EFFECTS["spin-5"], {5: calibration}), {"SPIN": "5000"})
        self.assertEqual(truth(EFFECTS["spin-5"], {5: calibration}), 0.8)
        self.assertEqual(variables(EFFECTS["memory"], {}), {"HOLD_MB": "20"})

    def test_without_one_nothing_is_planted(self):
        with self.assertRaises(Failed):
            variables(EFFECTS["spin-5"], {10: {}})
        with self.assertRaises(Failed):
            calibration_of(5000, [(100.0, 99.0)])
