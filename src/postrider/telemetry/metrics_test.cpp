#include "postrider/telemetry/metrics.hpp"

#include <gtest/gtest.h>

#include <charconv>
#include <map>
#include <sstream>

namespace postrider::telemetry {
namespace {

// The text format, read strictly: "name{labels} value" lines and comments.
std::map<std::string, double> parse(const std::string& text) {
  std::map<std::string, double> series;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) continue;
    const size_t space = line.rfind(' ');
    EXPECT_NE(space, std::string::npos) << line;
    double value = 0;
    const auto [end, error] = std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
    EXPECT_TRUE(error == std::errc() && end == line.data() + line.size()) << line;
    EXPECT_TRUE(series.emplace(line.substr(0, space), value).second) << "twice: " << line;
  }
  return series;
}

TEST(Metrics, ExistAtZeroFromTheStart) {
  const Metrics metrics;
  const auto series = parse(metrics.text());
  for (const auto& [name, value] : series) EXPECT_EQ(value, 0) << name;
  for (const char* name : {
           "webhook_events_created_total",
           "webhook_deliveries_attempted_total{outcome=\"delivered\",status_class=\"2xx\"}",
           "webhook_deliveries_attempted_total{outcome=\"retrying\",status_class=\"none\"}",
           "webhook_deliveries_attempted_total{outcome=\"dead_letter\",status_class=\"4xx\"}",
           "webhook_deliveries_succeeded_total",
           "webhook_deliveries_failed_total{reason=\"timeout_connect\"}",
           "webhook_deliveries_failed_total{reason=\"status_5xx\"}",
           "webhook_dead_lettered_total{cause=\"rejected\"}",
           "webhook_dead_lettered_total{cause=\"gone\"}",
           "webhook_dead_lettered_total{cause=\"exhausted\"}",
           "webhook_dead_lettered_total{cause=\"expired\"}",
           "webhook_dead_lettered_total{cause=\"blocked\"}",
           "webhook_dead_lettered_total{cause=\"endpoint_disabled\"}",
           "webhook_replay_requests_total",
           "webhook_delivery_duration_seconds_count",
           "webhook_delivery_lag_seconds_count",
           "webhook_delivery_attempt_count_count",
           "webhook_queue_depth{state=\"pending\"}",
           "webhook_queue_depth{state=\"processing\"}",
           "webhook_queue_depth{state=\"retrying\"}",
           "webhook_oldest_pending_seconds",
           "webhook_endpoints{status=\"active\"}",
           "webhook_endpoints{status=\"paused\"}",
           "webhook_endpoints{status=\"disabled\"}",
           "webhook_blocked_destinations_total{reason=\"private_network\"}",
           "webhook_batch_items_count{batch=\"publish\"}",
           "webhook_batch_items_count{batch=\"settle\"}",
           "webhook_batch_items_count{batch=\"fetch\"}",
           "webhook_database_round_trips_total",
           "webhook_leases_held",
           "webhook_lanes",
           "webhook_in_flight",
           "webhook_late_settles_dropped_total",
           "webhook_api_requests_total{status_class=\"2xx\"}",
           "webhook_api_connections",
       })
    EXPECT_TRUE(series.contains(name)) << name;
}

TEST(Metrics, ShowWhatWasCounted) {
  const Metrics metrics;
  metrics.events_created.add(3);
  metrics.dead_lettered.at("gone").add();
  metrics.deliveries_attempted.at("delivered/2xx").add();
  metrics.queue_depth.at("pending").set(7);
  metrics.delivery_duration_seconds.observe(0.003);
  auto series = parse(metrics.text());
  EXPECT_EQ(series["webhook_events_created_total"], 3);
  EXPECT_EQ(series["webhook_dead_lettered_total{cause=\"gone\"}"], 1);
  EXPECT_EQ(series["webhook_deliveries_attempted_total{outcome=\"delivered\",status_class=\"2xx\"}"], 1);
  EXPECT_EQ(series["webhook_queue_depth{state=\"pending\"}"], 7);
  EXPECT_EQ(series["webhook_delivery_duration_seconds_bucket{le=\"0.0025\"}"], 0);
  EXPECT_EQ(series["webhook_delivery_duration_seconds_bucket{le=\"0.005\"}"], 1);
}

TEST(Metrics, KnowWhichLabelsTheyHave) {
  const Metrics metrics;
  EXPECT_NE(metrics.dead_lettered.find("expired"), nullptr);
  EXPECT_EQ(metrics.dead_lettered.find("bored"), nullptr);
  EXPECT_DEATH(metrics.dead_lettered.at("bored"), "");
}

}  // namespace
}  // namespace postrider::telemetry
