#include "postrider/delivery/report/log_lines.hpp"

#include <string>

#include "postrider/telemetry/log.hpp"

namespace postrider::delivery {

namespace {

std::string_view outcome_label(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::delivered:
      return "delivered";
    case Verdict::Kind::retrying:
      return "retrying";
    case Verdict::Kind::dead_letter:
      return "dead_letter";
  }
  return "";
}

std::string_view status_class(std::optional<int> status) {
  if (!status || *status < 200 || *status > 599) return "none";
  static constexpr std::string_view names[] = {"2xx", "3xx", "4xx", "5xx"};
  return names[*status / 100 - 2];
}

std::string failure_reason(const AttemptFacts& facts) {
  const auto of_status = status_class(facts.status_code);
  if (of_status != "none") return "status_" + std::string(of_status);
  return facts.status_code ? "not_http" : facts.error.value_or("local_failure");
}

}  // namespace

void log_attempt(const AttemptLine& line) {
  const auto& endpoint = line.lane.config()->endpoint;
  telemetry::LogLine out(telemetry::Level::info, "webhook_delivery_attempt");
  out.field("delivery_id", line.row.id().public_id())
      .field("event_id", line.row.event->public_id)
      .field("tenant_id", endpoint.tenant_id)
      .field("endpoint_id", endpoint.public_id)
      .field("attempt", line.row.attempts + 1)
      .field("status_code", line.facts.status_code)
      .field("outcome", outcome_label(line.verdict.kind))
      .field("error", line.facts.error_detail)
      .field("latency_ms", line.facts.total_us / 1000.0);
  if (line.verdict.kind == Verdict::Kind::retrying)
    out.field("next_attempt_at", base::to_rfc3339(line.verdict.retry_at));
  if (line.verdict.kind == Verdict::Kind::dead_letter) out.field("cause", label(line.verdict.cause));
  if (line.is_probe) out.field("probe", true);
  if (line.facts.is_resent) out.field("resent", true);
}

void log_expired(const Lane& lane, const QueueRow& row) {
  telemetry::log_info("delivery_expired")
      .field("delivery_id", row.id().public_id())
      .field("tenant_id", lane.config()->endpoint.tenant_id)
      .field("endpoint_id", lane.config()->endpoint.public_id)
      .field("attempts", row.attempts);
}

namespace {

void count_lag(const Metrics& metrics, const Settlement& settlement, base::Timestamp now) {
  const double seconds = std::chrono::duration<double>(now - settlement.row.created_at).count();
  metrics.delivery_lag_seconds.observe(seconds);
  if (metrics.tenant_lag_seconds.empty()) return;
  const auto found = metrics.tenant_lag_seconds.find(settlement.lane->config()->endpoint.tenant_id);
  if (found != metrics.tenant_lag_seconds.end()) found->second.observe(seconds);
}

}  // namespace

void count_settlement(const Metrics& metrics, const Settlement& settlement, base::Timestamp now) {
  const bool is_exchange = settlement.facts.is_exchange;
  switch (settlement.verdict.kind) {
    case Verdict::Kind::delivered:
      metrics.deliveries_succeeded.add();
      count_lag(metrics, settlement, now);
      metrics.delivery_attempt_count.observe(settlement.row.attempts + 1);
      break;
    case Verdict::Kind::retrying:
      break;
    case Verdict::Kind::dead_letter:
      metrics.dead_lettered.at(label(settlement.verdict.cause)).add();
      metrics.delivery_attempt_count.observe(settlement.row.attempts + (is_exchange ? 1 : 0));
      break;
  }
  if (!is_exchange) return;
  metrics.delivery_duration_seconds.observe(settlement.facts.total_us / 1e6);
  count_attempt(metrics, settlement);
}

void count_attempt(const Metrics& metrics, const Settlement& settlement) {
  std::string labels(outcome_label(settlement.verdict.kind));
  labels += '/';
  labels += status_class(settlement.facts.status_code);
  metrics.deliveries_attempted.at(labels).add();
  if (settlement.facts.is_resent) metrics.deliveries_attempted.at("retrying/none").add();
  if (settlement.verdict.kind != Verdict::Kind::delivered)
    metrics.deliveries_failed.at(failure_reason(settlement.facts)).add();
}

}  // namespace postrider::delivery
