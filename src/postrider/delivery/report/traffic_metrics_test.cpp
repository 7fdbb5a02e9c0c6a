#include "postrider/delivery/report/traffic_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::delivery {
namespace {

using testing::HasSubstr;
using testing::Not;

RollupRow row(const std::string& tenant, const std::string& type) {
  RollupRow made;
  made.tenant = tenant;
  made.counts.type = type;
  made.counts.delivered = 3;
  made.counts.retrying = 2;
  made.counts.dead_letters = 1;
  made.counts.first_attempt_successes = 2;
  return made;
}

TEST(TrafficMetrics, CountByEventTypeAndOutcome) {
  const telemetry::Metrics all;
  TrafficMetrics metrics(all, {});
  metrics.add(row("acme", "invoice.paid"));
  metrics.add(row("other", "invoice.paid"));
  const std::string text = all.text();
  EXPECT_THAT(
      text,
      HasSubstr("webhook_attempts_by_type_total{event_type=\"invoice.paid\",outcome=\"delivered\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("{event_type=\"invoice.paid\",outcome=\"retrying\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("{event_type=\"invoice.paid\",outcome=\"dead_letter\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("webhook_first_attempt_successes_total{event_type=\"invoice.paid\"} 4\n"));
  EXPECT_THAT(text, Not(HasSubstr("tenant=")));
}

TEST(TrafficMetrics, HaveSeriesForTheListedTenantsFromTheStart) {
  const telemetry::Metrics all;
  TrafficMetrics metrics(all, {"acme"});
  EXPECT_THAT(all.text(), HasSubstr("{outcome=\"delivered\",tenant=\"acme\"} 0\n"));
  metrics.add(row("acme", "a"));
  metrics.add(row("other", "a"));
  EXPECT_THAT(all.text(), HasSubstr("{outcome=\"delivered\",tenant=\"acme\"} 3\n"));
  EXPECT_THAT(all.text(), Not(HasSubstr("tenant=\"other\"")));
}

TEST(TrafficMetrics, AreBoundedHoweverManyTypesThereAre) {
  const telemetry::Metrics all;
  TrafficMetrics metrics(all, {});
  for (size_t i = 0; i < TrafficMetrics::kTypesMax + 50; ++i)
    metrics.add(row("acme", "t" + std::to_string(i)));
  EXPECT_THAT(all.text(),
              Not(HasSubstr("event_type=\"t" + std::to_string(TrafficMetrics::kTypesMax) + "\"")));
  EXPECT_THAT(all.text(), HasSubstr("{event_type=\"other\",outcome=\"delivered\"} 150\n"));
}

}  // namespace
}  // namespace postrider::delivery
