#include "postrider/api/resources/validate.hpp"

#include <utility>

#include "postrider/api/wire/authenticate.hpp"
#include "postrider/api/wire/problems.hpp"
#include "postrider/base/encoding.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::api {

using registry::Catalogue;
using registry::ValidationResult;

bool needs_catalogue(const Call& call) {
  const Catalogue* known = call.services.catalogue.find();
  return known == nullptr || known->validates(!call.services.config.allow_unknown_event_types);
}

Task<std::shared_ptr<const Catalogue>> catalogue_for_publishing(const Call& call) {
  registry::CatalogueCache& cache = call.services.catalogue;
  std::shared_ptr<const Catalogue> catalogue = cache.last();
  if (cache.find() == nullptr && !cache.is_being_read()) {
    co_await wait_for_lookups(call.services);
    catalogue = co_await cache.load(call.services.lookups);
  }
  if (!catalogue->validates(!call.services.config.allow_unknown_event_types)) co_return nullptr;
  co_return catalogue;
}

namespace {

// One version of an event, and where it is in the body.
struct VersionOfEvent {
  std::optional<std::string_view> name;
  std::string_view data;
  std::string at;       // of the event
  std::string data_at;  // of the data, in the event
};

std::string pointer_of(const VersionOfEvent& version, const std::string& pointer) {
  constexpr std::string_view kData = "/data";
  const bool is_data = pointer.starts_with(kData) && version.data_at != kData;
  return version.at + (is_data ? version.data_at + pointer.substr(kData.size()) : pointer);
}

std::optional<http::Problem> validate_version(const Call& call, const Catalogue& catalogue,
                                              const publish::NewEvent& event, const VersionOfEvent& version) {
  const bool rejects_unknown = !call.services.config.allow_unknown_event_types;
  const ValidationResult result =
      catalogue.validate({event.type, version.name, version.data}, rejects_unknown);
  if (result.kind == ValidationResult::Kind::valid) return std::nullopt;
  const bool is_rejected = result.kind == ValidationResult::Kind::rejected;
  call.services.own_metrics.registry.invalid_events.at(is_rejected ? "rejected" : "warned").add();
  if (!is_rejected) {
    telemetry::log_warn("event_invalid")
        .field("tenant_id", event.tenant_id)
        .field("event_type", event.type)
        .field("pointer", result.violations.front().pointer)
        .field("detail", result.violations.front().detail);
    return std::nullopt;
  }
  FieldProblems problems;
  for (const auto& violation : result.violations)
    problems.push_back({pointer_of(version, violation.pointer), violation.detail});
  http::Problem problem = invalid(std::move(problems));
  problem.type = "invalid-event";
  return problem;
}

}  // namespace

std::optional<http::Problem> validate(const Call& call, const Catalogue* catalogue,
                                      const publish::NewEvent& event, const std::string& at) {
  if (catalogue == nullptr) return std::nullopt;
  const auto place = [&event](const std::string& name) {
    return event.other_versions.empty() ? "/data" : "/versions/" + base::json_pointer_token(name);
  };
  const VersionOfEvent first{event.version, event.data, at, place(event.version.value_or(""))};
  if (auto problem = validate_version(call, *catalogue, event, first)) return problem;
  for (const auto& other : event.other_versions) {
    const VersionOfEvent version{other.name, other.data, at, place(other.name)};
    if (auto problem = validate_version(call, *catalogue, event, version)) return problem;
  }
  return std::nullopt;
}

}  // namespace postrider::api
