#!/usr/bin/python3
import unittest

import lists
import tree

METRICS = """
const Names kCauses = {"gone", "expired"};
Metrics::Metrics(const telemetry::Metrics& all, const std::string& name)
    : created(all.counter("webhook_created_total",
                          "Events "
                          "created.")),
      dead(all.counter_by("webhook_dead_total", "Dead letters.", "cause", kCauses)),
      attempts(all.counter_by("webhook_attempts_total", "Exchanges.", {"cause", kCauses}, {"kind", kCauses})),
      settled(all.histogram("webhook_items", "Items.", kItems, {{"batch", "settle"}, {"outbox", name}})),
      fetched(all.histogram("webhook_items", "Items.", {1, 2}, {{"batch", "fetch"}})) {}
"""


class Lists(unittest.TestCase):
    def read(self, text):
        lists.sources = lambda: [("delivery/x.cpp", text)]
        self.addCleanup(setattr, lists, "sources", self.sources)

    def setUp(self):
        self.sources = lists.sources

    def test_a_chain_of_fields_belongs_to_its_event(self):
        self.read('void f() {\n  log_warn("settle_failed").field("error", "a; b").field("items", 1);\n  g.field("x", 1);\n}\n')
        self.assertEqual(lists.log_events(), {"settle_failed": ({"warn"}, {"error": None, "items": None}, {"delivery/x.cpp": True})})

    def test_fields_added_to_a_variable_are_found(self):
        self.read('void f() {\n  telemetry::LogLine out(telemetry::Level::info, "attempt");\n  if (a) out.field("cause", b);\n}\n')
        self.assertEqual(list(lists.log_events()["attempt"][1]), ["cause"])

    def test_a_name_that_is_passed_in_is_looked_up_at_the_callers(self):
        self.read('void report(const char* event) {\n  log_warn(event);\n}\nvoid f() {\n  report("expiring");\n  report("canceled");\n}\n')
        self.assertEqual(sorted(lists.log_events()), ["canceled", "expiring"])

    def test_a_name_that_cannot_be_found_is_an_error(self):
        self.read("void f() {\n  log_warn(name());\n}\nvoid g() {\n  log_warn(other);\n}\n")
        with self.assertRaises(lists.NotUnderstood):
            lists.log_events()

    def test_metrics_have_their_text_and_label_values(self):
        self.read(METRICS)
        self.assertEqual(lists.metrics(), {
            "webhook_attempts_total": ("counter", "Exchanges.", {"cause": ["gone", "expired"], "kind": ["gone", "expired"]}),
            "webhook_created_total": ("counter", "Events created.", {}),
            "webhook_dead_total": ("counter", "Dead letters.", {"cause": ["gone", "expired"]}),
            "webhook_items": ("histogram", "Items.", {"batch": ["settle", "fetch"], "outbox": []}),
        })

    def test_a_metric_in_an_unknown_form_is_an_error(self):
        self.read('auto x = make("webhook_new_total", "New.");')
        with self.assertRaises(lists.NotUnderstood):
            lists.metrics()

    def test_the_lists_of_this_source_are_complete(self):
        text = tree.read("src/postrider/config/settings.cpp")
        self.assertEqual(lists.settings_page().count("\n| `"), text.count("Secrecy::") - text.count("Secrecy::open ="))
        self.assertIn("`webhook_delivery_attempt` | info | `delivery_id`", lists.log_page(lists.log_events()))


if __name__ == "__main__":
    unittest.main()
