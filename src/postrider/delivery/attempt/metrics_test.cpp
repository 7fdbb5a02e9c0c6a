#include "postrider/delivery/attempt/metrics.hpp"

#include <gtest/gtest.h>

#include "postrider/http/client/guard.hpp"
#include "postrider/http/net_error.hpp"

namespace postrider::delivery {
namespace {

TEST(DeliveryMetrics, HaveASeriesForEveryNetError) {
  const telemetry::Metrics all;
  const Metrics metrics(all);
  for (size_t i = 0; i < http::kNetErrorCount; ++i) {
    const auto name = to_string(static_cast<http::NetError>(i));
    EXPECT_NE(metrics.deliveries_failed.find(name), nullptr) << name;
  }
}

TEST(DeliveryMetrics, HaveASeriesForEveryBlockedReason) {
  const telemetry::Metrics all;
  const Metrics metrics(all);
  for (size_t i = 0; i < http::kBlockedReasonCount; ++i) {
    const auto name = to_string(static_cast<http::BlockedReason>(i));
    EXPECT_NE(metrics.blocked_destinations.find(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace postrider::delivery
