#include "postrider/delivery/report/traffic_metrics.hpp"

namespace postrider::delivery {

TrafficMetrics::TrafficMetrics(const telemetry::Metrics& all, const std::vector<model::TenantId>& tenants)
    : all_(all) {
  for (const model::TenantId& tenant : tenants) tenants_.emplace(tenant, series_of_tenant(tenant));
}

TrafficMetrics::Series TrafficMetrics::series_of_type(const std::string& type) const {
  const telemetry::Metrics& all = all_;
  return {.delivered = all.counter("webhook_attempts_by_type_total",
                                   "Attempts by event type and outcome. Beyond 200 types: other.",
                                   {{"event_type", type}, {"outcome", "delivered"}}),
          .retrying = all.counter("webhook_attempts_by_type_total",
                                  "Attempts by event type and outcome. Beyond 200 types: other.",
                                  {{"event_type", type}, {"outcome", "retrying"}}),
          .dead_letter = all.counter("webhook_attempts_by_type_total",
                                     "Attempts by event type and outcome. Beyond 200 types: other.",
                                     {{"event_type", type}, {"outcome", "dead_letter"}}),
          .first_attempt_successes = all.counter(
              "webhook_first_attempt_successes_total",
              "Deliveries that the first attempt delivered, by event type.", {{"event_type", type}})};
}

TrafficMetrics::Series TrafficMetrics::series_of_tenant(const std::string& tenant) const {
  const telemetry::Metrics& all = all_;
  return {.delivered = all.counter("webhook_tenant_attempts_total",
                                   "Attempts by outcome, of the tenants in metrics_tenants.",
                                   {{"tenant", tenant}, {"outcome", "delivered"}}),
          .retrying = all.counter("webhook_tenant_attempts_total",
                                  "Attempts by outcome, of the tenants in metrics_tenants.",
                                  {{"tenant", tenant}, {"outcome", "retrying"}}),
          .dead_letter = all.counter("webhook_tenant_attempts_total",
                                     "Attempts by outcome, of the tenants in metrics_tenants.",
                                     {{"tenant", tenant}, {"outcome", "dead_letter"}}),
          .first_attempt_successes =
              all.counter("webhook_tenant_first_attempt_successes_total",
                          "Deliveries that the first attempt delivered, of the tenants in metrics_tenants.",
                          {{"tenant", tenant}})};
}

void TrafficMetrics::Series::add(const RollupCounts& counts) const {
  delivered.add(static_cast<double>(counts.delivered));
  retrying.add(static_cast<double>(counts.retrying));
  dead_letter.add(static_cast<double>(counts.dead_letters));
  first_attempt_successes.add(static_cast<double>(counts.first_attempt_successes));
}

void TrafficMetrics::add(const RollupRow& row) {
  const std::string& type = row.counts.type;
  auto found = types_.find(type);
  if (found == types_.end()) {
    const std::string name = types_.size() < kTypesMax ? type : "other";
    found = types_.try_emplace(name, series_of_type(name)).first;
  }
  found->second.add(row.counts);
  if (const auto tenant = tenants_.find(row.tenant); tenant != tenants_.end()) tenant->second.add(row.counts);
}

}  // namespace postrider::delivery
