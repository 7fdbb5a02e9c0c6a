// Events of an outbox against the catalogue of event types, as the API judges what is published over HTTP.
// One loop.
#pragma once

#include <memory>
#include <string>

#include "postrider/pg/link.hpp"
#include "postrider/publish/new_event.hpp"
#include "postrider/registry/catalogue.hpp"
#include "postrider/telemetry/metrics.hpp"

namespace postrider::outbox {

class Judge {
 public:
  // The link is to postrider's own database and not within a transaction when refresh() is called.
  Judge(pg::Link& link, const telemetry::Metrics& metrics, bool refuses_unknown)
      : link_(link), metrics_(metrics), refuses_unknown_(refuses_unknown) {}

  // Reads the catalogue, if it has changed. Throws pg::Error.
  runtime::Task<void> refresh();
  // Why the event is refused, or empty; a warning is logged and counted.
  std::string fault_of(const publish::NewEvent& event) const;

  void apply(const registry::Change& change) { cache_.apply({&change, 1}); }

 private:
  pg::Link& link_;
  const telemetry::Metrics& metrics_;
  bool refuses_unknown_;
  registry::CatalogueCache cache_;
};

}  // namespace postrider::outbox
