// Validates the events of an outbox against the catalogue of event types, as the API does for events that are
// published over HTTP. One loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/pg/link.hpp"
#include "postrider/publish/new_event.hpp"
#include "postrider/registry/catalogue.hpp"
#include "postrider/registry/metrics.hpp"

namespace postrider::outbox {

class Validator {
 public:
  // The link is to postrider's own database and not within a transaction when refresh() is called.
  Validator(pg::Link& link, const telemetry::Metrics& metrics, bool rejects_unknown)
      : link_(link), metrics_(metrics), rejects_unknown_(rejects_unknown) {}

  // Reads the catalogue, if it has changed. Throws pg::Error.
  runtime::Task<void> refresh();
  // The reason why the event is rejected. A warning is only logged and counted.
  std::optional<std::string> error_of(const publish::NewEvent& event) const;

  void apply(const registry::Change& change) { cache_.apply({&change, 1}); }

 private:
  std::optional<std::string> error_of_version(const registry::Catalogue& catalogue,
                                              const publish::NewEvent& event,
                                              std::optional<std::string_view> version,
                                              std::string_view data) const;

  pg::Link& link_;
  registry::Metrics metrics_;
  bool rejects_unknown_;
  registry::CatalogueCache cache_;
};

}  // namespace postrider::outbox
