"""The driver's arithmetic, drawing and wording, without any program running."""

import dataclasses
import pathlib
import sys
import tempfile
import unittest
import xml.dom.minidom

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import measure, report, svg  # noqa: E402
from harness.env import SHORT, Env  # noqa: E402

LIMITS = {"raw_requests_per_s": 1, "raw_http_us": 1, "raw_requests_per_s_64": 1, "raw_http_us_64": 1,
          "raw_writes_per_s": 1, "raw_write_us": 1, "commit_p50_us": 1, "post_p50_us": 1, "deliveries_per_s": 1}


def sustained(deliveries, arrived, acked):
    cpu = measure.Cpu(node=20, postgres=40, receiver=10, generator=10, machine=100)
    return measure.Sustained(per_s=1, seconds=1, deliveries=deliveries, cpu=cpu, others_share=0, series=[], latency={},
                             cdf=[], acked=acked, rejected=0, duplicates=0, body_bytes=0, arrived=arrived)


class Measuring(unittest.TestCase):
    def test_counts_of_100_ms_become_whole_seconds(self):
        stats = {"series": [1] * 25, "series_step_ms": 100}
        self.assertEqual(measure.per_second(stats), [(0, 10), (1, 10)])

    def test_quantile_of_nothing_is_zero(self):
        self.assertEqual(measure.quantile([], 0.99), 0)
        self.assertEqual(measure.quantile(range(1, 101), 0.99), 100)

    def test_no_verdict_over_deliveries_that_never_arrived(self):
        good = sustained(100, 100, 100)
        self.assertIsNone(measure.judged_times(lambda: True, sustained(0, 0, 0)))
        self.assertIsNone(measure.judged_times(lambda: True, good, sustained(10, 10, 100)))
        self.assertTrue(measure.judged_times(lambda: True, good))
        self.assertIsNone(measure.compare_rates(sustained(10, 10, 100), good, 0.9)[1])

    def test_on_a_busy_machine_times_are_not_judged_and_rates_by_cpu_time(self):
        quiet, busy = sustained(100, 100, 100), dataclasses.replace(sustained(100, 100, 100), others_share=0.5, per_s=0.1)
        self.assertIsNone(measure.judged_times(lambda: True, quiet, busy))
        self.assertTrue(measure.compare_rates(busy, quiet, 0.9)[1])
        self.assertFalse(measure.compare_rates(dataclasses.replace(busy, others_share=0), quiet, 0.9)[1])

    def test_cpu_of_others_is_what_the_benchmark_did_not_use(self):
        cpu = measure.Cpu(node=1, postgres=2, receiver=3, generator=4, machine=10)
        self.assertEqual(cpu.others_share(1), 0)
        self.assertGreater(dataclasses.replace(cpu, machine=1_000_000).others_share(1), 0)


class Drawing(unittest.TestCase):
    def test_chart_is_well_formed_and_escapes_its_texts(self):
        text = svg.chart("a < b", "x & y", "y", [("l", [(0.1, 1), (10, 5)])], x_log=True, marks=[(1, "<here>")])
        xml.dom.minidom.parseString(text)

    def test_chart_of_nothing_is_nothing(self):
        self.assertEqual(svg.chart("t", "x", "y", [("l", [])]), "")

    def test_ticks_are_round_and_inside(self):
        self.assertEqual(svg.nice_ticks(0, 50), [0, 10, 20, 30, 40, 50])


class Reporting(unittest.TestCase):
    def test_page_says_what_was_not_measured_and_keeps_remarks(self):
        env = Env("binary", "tools", SHORT, "scratch")
        env.say = lambda text: None
        env.figures["limits"] = LIMITS
        env.add("figure", "bar", "nothing", None)
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "benchmarks.md"
            page.write_text("old\n## Remarks\nkept\n", encoding="utf-8")
            report.write_page(env, "machine", page, "abc")
            text = page.read_text(encoding="utf-8")
        self.assertIn("not evaluated", text)
        self.assertIn("100,000 pending instead of 1,000,000", text)
        self.assertTrue(text.endswith("## Remarks\nkept\n"))
        self.assertNotIn("old", text)


if __name__ == "__main__":
    unittest.main()
