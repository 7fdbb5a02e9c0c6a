#include "postrider/delivery/tally.hpp"

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

Tally& Tallies::find(const Settlement& settlement, int64_t hour, std::string_view type) {
  TallySlot& slot = settlement.lane->tally_;
  if (slot.generation == generation_ && slot.tally->hour == hour && slot.tally->type == type)
    return *slot.tally;
  OfEndpoint& endpoint = endpoints_[settlement.lane->endpoint];
  auto& tallies = endpoint.tallies;
  if (tallies.empty()) endpoint.tenant = settlement.lane->config()->endpoint.tenant_id;
  auto found = std::find_if(tallies.begin(), tallies.end(), [hour, type](const auto& each) {
    return each->hour == hour && each->type == type;
  });
  if (found == tallies.end()) {
    tallies.push_back(std::make_unique<Tally>());
    found = tallies.end() - 1;
    (*found)->hour = hour;
    (*found)->type = type;
  }
  slot = {found->get(), generation_};
  return **found;
}

void Tallies::add(const Settlement& settlement) {
  const auto hour =
      std::chrono::duration_cast<std::chrono::hours>(settlement.facts.started_at.time_since_epoch()).count();
  const std::string_view type = settlement.row.event ? type_in(*settlement.row.event) : std::string_view();
  Tally& tally = find(settlement, hour, type);
  const int attempts = settlement.row.attempts + (settlement.facts.is_exchange ? 1 : 0);
  switch (settlement.verdict.kind) {
    case Verdict::Kind::delivered:
      ++tally.delivered;
      tally.delivered_attempts += attempts;
      tally.first_attempt_successes += attempts == 1 ? 1 : 0;
      break;
    case Verdict::Kind::retry:
      ++tally.retried;
      break;
    case Verdict::Kind::dead_letter:
      ++tally.dead;
      tally.dead_attempts += attempts;
      break;
  }
  if (!settlement.facts.is_exchange) return;
  ++tally.exchanges;
  tally.latency_us += settlement.facts.total_us;
  tally.latency_us_max = std::max<int64_t>(tally.latency_us_max, settlement.facts.total_us);
}

std::vector<TallyRow> Tallies::take() {
  std::vector<TallyRow> rows;
  for (auto& [id, endpoint] : endpoints_)
    for (const auto& tally : endpoint.tallies) rows.push_back({endpoint.tenant, id, std::move(*tally)});
  endpoints_.clear();
  ++generation_;
  return rows;
}

}  // namespace postrider::delivery
