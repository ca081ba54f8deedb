"""Pages of studies say what their records say, or fail."""

import unittest

from study_page import Dangling, filled, shortened


def comparison(outcome: str, ratio: float, low: float, high: float) -> dict:
    estimate = {"ratio": ratio, "low": low, "high": high}
    return {"label": "b against a", "metric": "throughput", "outcome": outcome, "estimate": estimate,
            "difference": None, "no_success": None}


def page(source: str, one: dict) -> str:
    return filled(source, {"study": {"comparisons": [one], "effects": [], "variants": []}})


class Pages(unittest.TestCase):
    SOURCE = "b is {{change study | b against a}}."

    def test_the_verdict_and_its_interval_are_the_records(self):
        self.assertEqual(page(self.SOURCE, comparison("worse", 0.9, 0.88, 0.93)), "b is 10.0 % slower (7.00 to 12.0 %).")
        self.assertEqual(page(self.SOURCE, comparison("better", 3, 2.5, 3.5)), "b is ×3.00 (faster, ×2.50 to ×3.50).")
        self.assertEqual(page(self.SOURCE, comparison("inconclusive", 1, 0.9, 1.1)), "b is inconclusive (−10.0 to +10.0 %).")

    def test_of_a_capacity_that_is_not_the_services_own_the_lower_end_is_told(self):
        one = {"variant": "a", "capacity_per_s": 2210, "reached_per_s": 2350, "reached_interval": {"low": 2210, "high": 2480},
               "at_least": False}
        others = [one | {"variant": "b", "at_least": True}, one | {"variant": "c", "capacity_per_s": None}]
        report = {"capacities": [one, *others], "findings": [], "variants": [{"name": name} for name in "abc"]}
        text = filled("{{capacity study | a}}; {{capacity study | b}}; {{capacity study | c}}", {"study": report})
        self.assertEqual(text, "2,350 (2,210 to 2,480); at least 2,210; –")

    def test_an_invalid_comparison_has_no_number(self):
        void = comparison("invalid", 1, 1, 1) | {"estimate": None}
        self.assertEqual(page(self.SOURCE, void), "b is invalid.")

    def test_a_report_keeps_doubtful_assumptions_and_tables_of_several_services(self):
        table = "Cost by service:\n\n| variant | service | CPU/request | share |\n|---|---|--:|--:|\n"
        single, proxied = "| a | api | 5 µs | 100 % |\n", "| b | api | 5 µs | 80 % |\n|  | proxy | 1 µs | 20 % |\n"
        doubtful, supported = "- **doubtful**: one\n", "- unchecked: two\n- supported: three\n"
        report = lambda rows, lines: f"{table}{rows}\n<details>\n\n#### Assumptions\n\n{lines}\n</details>\n"
        self.assertEqual(shortened(report(single + proxied, doubtful + supported)), report(single + proxied, doubtful))
        self.assertNotIn("Cost", shortened(report(single, supported)))

    def test_a_reference_that_leads_nowhere_is_an_error(self):
        for source in ["{{change study | c against a}}", "{{change other | b against a}}", "{{chang study | b}}"]:
            with self.assertRaises(Dangling):
                page(source, comparison("worse", 0.9, 0.88, 0.93))
