// telemetry is below this folder and cannot see these enumerations, so it spells their names again.
#include <gtest/gtest.h>

#include "postrider/http/client/guard.hpp"
#include "postrider/http/net_error.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::http {
namespace {

TEST(MetricLabels, CoverEveryNetError) {
  const telemetry::Metrics metrics;
  for (size_t i = 0; i < net_error_count; ++i) {
    const auto name = to_string(static_cast<NetError>(i));
    EXPECT_NE(metrics.deliveries_failed.find(name), nullptr) << name;
  }
}

TEST(MetricLabels, CoverEveryBlockedReason) {
  const telemetry::Metrics metrics;
  for (size_t i = 0; i < blocked_reason_count; ++i) {
    const auto name = to_string(static_cast<BlockedReason>(i));
    EXPECT_NE(metrics.blocked_destinations.find(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace postrider::http
