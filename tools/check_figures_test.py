#!/usr/bin/python3
import unittest

import check_figures

ROWS = check_figures.results("""
| figure | target | measured |
|---|---|---|
| outbox to receiver, LISTEN |  | p50 1.54 ms, p99 5.8 ms |
| with publish, 64 committers |  | 0.48 × the rate; 2,643 transactions/s |
""")


def problems(text):
    return [problem for _, part in check_figures.parts(text) for problem in check_figures.problems_of(part, ROWS)]


class Figures(unittest.TestCase):
    def test_a_figure_of_its_row_is_accepted_rounded(self):
        self.assertEqual(problems("After 1.5 ms (median). <!-- figures: outbox to receiver, LISTEN -->"), [])
        self.assertEqual(problems("At 0.48 of it, 2,600/s <!-- figures: with publish, 64 committers -->"),
                         ["2,600 is not in docs/benchmarks.md"])

    def test_a_figure_that_was_measured_otherwise_is_rejected(self):
        self.assertEqual(problems("After 1.3 ms. <!-- figures: outbox to receiver, LISTEN -->"),
                         ["1.3 is not in docs/benchmarks.md"])
        self.assertEqual(problems("A rate of 0.6. <!-- figures: with publish, 64 committers -->"),
                         ["0.6 is not in docs/benchmarks.md"])

    def test_a_row_that_is_gone_is_reported(self):
        self.assertEqual(problems("After 1.5 ms. <!-- figures: gone -->"), ["docs/benchmarks.md has no row `gone`"])

    def test_a_paragraph_about_a_benchmark_needs_its_rows(self):
        self.assertEqual(len(problems("- After 1.5 ms (`./dev bench --only relay`).\n- Another item.\n")), 1)
        self.assertEqual(problems("- Run `./dev bench`.\n- It takes 3 ms.\n"), [])


if __name__ == "__main__":
    unittest.main()
