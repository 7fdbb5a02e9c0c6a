#include "postrider/outbox/judge.hpp"

#include "postrider/telemetry/log.hpp"

namespace postrider::outbox {

runtime::Task<void> Judge::refresh() {
  if (cache_.find() != nullptr) co_return;
  co_await cache_.load(link_);
}

std::string Judge::fault_of(const publish::NewEvent& event) const {
  const std::shared_ptr<const registry::Catalogue> catalogue = cache_.last();
  if (!catalogue || !catalogue->judges(refuses_unknown_)) return {};
  std::optional<std::string_view> version;
  if (event.version) version = *event.version;
  const registry::Judgement judgement = catalogue->judge({event.type, version, event.data}, refuses_unknown_);
  if (judgement.kind == registry::Judgement::Kind::fine) return {};
  const auto& first = judgement.violations.front();
  if (judgement.kind == registry::Judgement::Kind::refused) {
    metrics_.unfit_events.at("refused").add();
    return "the event does not fit the catalogue: " + first.pointer + " " + first.detail;
  }
  metrics_.unfit_events.at("warned").add();
  telemetry::log_warn("event_invalid")
      .field("tenant_id", event.tenant_id)
      .field("event_type", event.type)
      .field("pointer", first.pointer)
      .field("detail", first.detail);
  return {};
}

}  // namespace postrider::outbox
