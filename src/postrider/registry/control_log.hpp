// Changes of the registry in commit order. Nodes read it every 250 ms to update their caches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/model/ids.hpp"
#include "postrider/pg/connection.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

enum class ChangeKind {
  tenant,    // any change of the tenant, its pause and its deletion included
  endpoint,  // any change of the endpoint: created, URL, limits, pause, resume, disable, delete, secrets
  subscriptions,
  key,
  source,      // any source of inbound webhooks, or its secrets
  event_type,  // any change of the catalogue
  retry,       // one delivery is to be sent now
  cancel,      // one delivery, or all pending ones of an endpoint when there is no delivery
  brakes,      // of the whole cluster
  other,       // written by a newer postrider; reload the named object
};

std::string_view label(ChangeKind kind);  // as stored

struct Change {
  int64_t version = 0;
  ChangeKind kind = ChangeKind::other;
  std::optional<model::TenantId> tenant_id;
  std::optional<model::EndpointId> endpoint_id;
  std::optional<model::DeliveryId> delivery_id;
};

// Whose deliveries a change concerns.
struct ChangedEndpoints {
  model::TenantId tenant;
  std::string endpoint;  // public ID; empty: all endpoints of the tenant
};

// Adds the note that must end every transaction that changes the registry: from it to the commit such
// transactions wait for each other, so send it with the last batch.
void add_note(pg::Batch& batch, ChangeKind kind, const model::TenantId& tenant,
              std::optional<model::EndpointId> endpoint = std::nullopt);

// The same for what belongs to no tenant.
void add_note(pg::Batch& batch, ChangeKind kind);

// The version of the latest committed change. Take it before loading what the log is to keep fresh.
runtime::Task<int64_t> current_version(pg::Link& link);
runtime::Task<int64_t> current_version(pg::Connection& connection);

// Changes after that version, oldest first, at most changes_max; ask again with the last version when full.
// Versions commit in order, so none is missed. Old rows are trimmed by upkeep: if the first version is not
// `after` + 1, something was missed (the node was away for days) and everything is to be loaded afresh.
inline constexpr int changes_max = 1'000;
runtime::Task<std::vector<Change>> read_changes(pg::Link& link, int64_t after);
runtime::Task<std::vector<Change>> read_changes(pg::Connection& connection, int64_t after);

}  // namespace postrider::registry
