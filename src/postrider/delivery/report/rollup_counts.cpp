#include "postrider/delivery/report/rollup_counts.hpp"

#include <algorithm>
#include <utility>

namespace postrider::delivery {

std::string_view type_in(const model::EventContent& event) {
  constexpr std::string_view kBegin = "{\"id\":\"", kMiddle = "\",\"type\":\"";
  const std::string_view body = event.body;
  const size_t middle = kBegin.size() + event.public_id.size();
  if (body.size() < middle || body.substr(middle, kMiddle.size()) != kMiddle) return {};
  const size_t begin = middle + kMiddle.size();
  const size_t end = body.find('"', begin);  // types have nothing to escape
  return end == std::string_view::npos ? std::string_view() : body.substr(begin, end - begin);
}

RollupCounts& RollupCounter::find(const Settlement& settlement, int64_t hour, std::string_view type) {
  auto& slot = settlement.lane->rollup_;
  if (slot.generation == generation_ && slot.counts->hour == hour && slot.counts->type == type)
    return *slot.counts;
  OfEndpoint& endpoint = endpoints_[settlement.lane->endpoint];
  auto& counts = endpoint.counts;
  if (counts.empty()) endpoint.tenant = settlement.lane->config()->endpoint.tenant_id;
  auto found = std::find_if(counts.begin(), counts.end(), [hour, type](const auto& each) {
    return each->hour == hour && each->type == type;
  });
  if (found == counts.end()) {
    counts.push_back(std::make_unique<RollupCounts>());
    found = counts.end() - 1;
    (*found)->hour = hour;
    (*found)->type = type;
  }
  slot.counts = found->get();
  slot.generation = generation_;
  return **found;
}

void RollupCounter::add(const Settlement& settlement) {
  const auto hour =
      std::chrono::duration_cast<std::chrono::hours>(settlement.facts.started_at.time_since_epoch()).count();
  const std::string_view type = settlement.row.event ? type_in(*settlement.row.event) : std::string_view();
  RollupCounts& counts = find(settlement, hour, type);
  const int attempts = settlement.row.attempts + (settlement.facts.is_exchange ? 1 : 0);
  switch (settlement.verdict.kind) {
    case Verdict::Kind::delivered:
      ++counts.delivered;
      counts.delivered_attempts += attempts;
      counts.first_attempt_successes += attempts == 1 ? 1 : 0;
      break;
    case Verdict::Kind::retrying:
      ++counts.retrying;
      break;
    case Verdict::Kind::dead_letter:
      ++counts.dead_letters;
      counts.dead_letter_attempts += attempts;
      break;
  }
  if (!settlement.facts.is_exchange) return;
  counts.exchanges += settlement.facts.requests();
  counts.latency_us += settlement.facts.total_us;
  counts.latency_us_max = std::max<int64_t>(counts.latency_us_max, settlement.facts.total_us);
}

std::vector<RollupRow> RollupCounter::take() {
  std::vector<RollupRow> rows;
  for (auto& [id, endpoint] : endpoints_)
    for (const auto& counts : endpoint.counts) rows.push_back({endpoint.tenant, id, std::move(*counts)});
  endpoints_.clear();
  ++generation_;
  return rows;
}

}  // namespace postrider::delivery
