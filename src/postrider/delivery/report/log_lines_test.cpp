#include "postrider/delivery/report/log_lines.hpp"

#include <gtest/gtest.h>

#include "postrider/delivery/attempt/metrics.hpp"

namespace postrider::delivery {
namespace {

Settlement settlement_of(Verdict::Kind kind, std::optional<int> status, std::optional<std::string> error) {
  Settlement settlement;
  settlement.verdict.kind = kind;
  settlement.facts.status_code = status;
  settlement.facts.error = std::move(error);
  return settlement;
}

// A label that does not exist beforehand is a bug that stops the process: none may be possible.
TEST(AttemptMetrics, HaveASeriesForEveryOutcomeAndStatus) {
  telemetry::Metrics all;
  Metrics metrics{all};
  for (const auto kind : {Verdict::Kind::delivered, Verdict::Kind::retrying, Verdict::Kind::dead_letter})
    for (int status = 0; status < 1000; ++status) {
      const bool is_accepted = status >= 200 && status <= 299;
      if (is_accepted != (kind == Verdict::Kind::delivered)) continue;
      count_attempt(metrics, settlement_of(kind, status, "http_" + std::to_string(status)));
    }
  count_attempt(metrics, settlement_of(Verdict::Kind::retrying, std::nullopt, std::nullopt));
  EXPECT_EQ(metrics.deliveries_attempted.at("delivered/2xx").value(), 100);
  EXPECT_EQ(metrics.deliveries_failed.at("status_5xx").value(), 200);
}

TEST(AttemptMetrics, HaveASeriesForEveryFailureAndCause) {
  telemetry::Metrics all;
  Metrics metrics{all};
  for (size_t i = 0; i < http::kNetErrorCount; ++i) {
    const std::string word(http::to_string(static_cast<http::NetError>(i)));
    count_attempt(metrics, settlement_of(Verdict::Kind::retrying, std::nullopt, word));
    EXPECT_GE(metrics.deliveries_failed.at(word).value(), 1) << word;
  }
  for (const auto cause : {Cause::rejected, Cause::gone, Cause::exhausted, Cause::expired, Cause::blocked,
                           Cause::endpoint_disabled})
    EXPECT_EQ(metrics.dead_lettered.at(label(cause)).value(), 0);
}

}  // namespace
}  // namespace postrider::delivery
