#include "postrider/api/judge.hpp"

#include <utility>

#include "postrider/api/problems.hpp"
#include "postrider/telemetry/log.hpp"

namespace postrider::api {

using registry::Catalogue;
using registry::Judgement;

bool needs_catalogue(const Call& call) {
  const Catalogue* known = call.services.catalogue.find();
  return known == nullptr || known->judges(!call.services.config.allow_unknown_event_types);
}

Task<std::shared_ptr<const Catalogue>> catalogue_for_publishing(const Call& call) {
  registry::CatalogueCache& cache = call.services.catalogue;
  std::shared_ptr<const Catalogue> catalogue = cache.last();
  if (cache.find() == nullptr && !cache.is_being_read()) {
    const pg::Pool::Lease lease = co_await call.database();
    catalogue = co_await cache.load(*lease);
  }
  if (!catalogue->judges(!call.services.config.allow_unknown_event_types)) co_return nullptr;
  co_return catalogue;
}

std::optional<http::Problem> judge(const Call& call, const Catalogue* catalogue,
                                   const publish::NewEvent& event, const std::string& at) {
  if (catalogue == nullptr) return std::nullopt;
  std::optional<std::string_view> version;
  if (event.version) version = *event.version;
  const bool refuses_unknown = !call.services.config.allow_unknown_event_types;
  const Judgement judgement = catalogue->judge({event.type, version, event.data}, refuses_unknown);
  if (judgement.kind == Judgement::Kind::fine) return std::nullopt;
  const bool is_refused = judgement.kind == Judgement::Kind::refused;
  call.services.metrics.unfit_events.at(is_refused ? "refused" : "warned").add();
  if (!is_refused) {
    telemetry::log_warn("event_unfit")
        .field("tenant_id", event.tenant_id)
        .field("event_type", event.type)
        .field("pointer", judgement.violations.front().pointer)
        .field("detail", judgement.violations.front().detail);
    return std::nullopt;
  }
  FieldProblems problems;
  for (const auto& violation : judgement.violations)
    problems.push_back({at + violation.pointer, violation.detail});
  http::Problem problem = invalid(std::move(problems));
  problem.type = "unfit-event";
  problem.detail = "The event does not fit the catalogue of event types.";
  return problem;
}

}  // namespace postrider::api
