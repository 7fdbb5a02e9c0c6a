#include "postrider/outbox/validator.hpp"

#include "postrider/telemetry/log.hpp"

namespace postrider::outbox {

runtime::Task<void> Validator::refresh() {
  if (cache_.find() != nullptr) co_return;
  co_await cache_.load(link_);
}

std::optional<std::string> Validator::error_of(const publish::NewEvent& event) const {
  const std::shared_ptr<const registry::Catalogue> catalogue = cache_.last();
  if (!catalogue || !catalogue->validates(rejects_unknown_)) return std::nullopt;
  std::optional<std::string_view> version;
  if (event.version) version = *event.version;
  if (auto error = error_of_version(*catalogue, event, version, event.data)) return error;
  for (const auto& other : event.other_versions)
    if (auto error = error_of_version(*catalogue, event, other.name, other.data)) return error;
  return std::nullopt;
}

std::optional<std::string> Validator::error_of_version(const registry::Catalogue& catalogue,
                                                       const publish::NewEvent& event,
                                                       std::optional<std::string_view> version,
                                                       std::string_view data) const {
  const registry::ValidationResult validation =
      catalogue.validate({event.type, version, data}, rejects_unknown_);
  if (validation.kind == registry::ValidationResult::Kind::valid) return std::nullopt;
  const auto& first = validation.violations.front();
  if (validation.kind == registry::ValidationResult::Kind::rejected) {
    metrics_.invalid_events.at("rejected").add();
    return "the event does not match the schema of its type: " + first.pointer + " " + first.detail;
  }
  metrics_.invalid_events.at("warned").add();
  telemetry::log_warn("event_invalid")
      .field("tenant_id", event.tenant_id)
      .field("event_type", event.type)
      .field("pointer", first.pointer)
      .field("detail", first.detail);
  return std::nullopt;
}

}  // namespace postrider::outbox
