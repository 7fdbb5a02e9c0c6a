// Tenants: customers of the application that uses postrider.
//
// Every change is one transaction that writes to the audit log and ends with its note in the control log.
// Deleted tenants are kept for their history, but these functions do not find them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/ip_address.hpp"
#include "postrider/base/result.hpp"
#include "postrider/base/time.hpp"
#include "postrider/base/unique_function.hpp"
#include "postrider/model/endpoint_enums.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/registry/context.hpp"
#include "postrider/registry/rejection.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

// The caller's settings. Without a limit, only the node's own limit applies.
struct TenantSettings {
  std::optional<std::string> name;
  std::optional<int32_t> max_in_flight;
  std::optional<double> rate_per_second;
  std::optional<double> publish_rate_per_second;
  std::optional<int32_t> payload_bytes_max;
  std::optional<int32_t> endpoints_max;
  std::vector<base::Network> allow_networks;  // of all its endpoints; operators choose them
  std::optional<std::string> contacts;  // JSON: an array of e-mail addresses and URLs, all of them strings
  std::optional<std::string> metadata;  // JSON: an object

  bool operator==(const TenantSettings&) const = default;
};

struct Tenant {
  model::TenantId id;
  TenantSettings settings;
  std::optional<std::string> contact_secret = {};  // of the change that added the first URL: shown only then
  std::optional<std::string> contact_states;       // JSON: the contacts as objects, with the state of each
  model::TenantStatus status = model::TenantStatus::active;
  std::optional<std::string> status_reason;
  base::Timestamp status_since{};
  model::Actor status_by = model::Actor::operator_;  // the actor that set this status
  int32_t endpoint_count = 0;
  int32_t revision = 1;  // for If-Match
  base::Timestamp created_at{};
  base::Timestamp updated_at{};
};

using TenantResult = base::Result<Tenant, Rejection>;

// With the first URL among its contacts, a tenant gets the secret that signs notices to URLs.
runtime::Task<TenantResult> create_tenant(pg::Link& link, const Context& context, const Caller& caller,
                                          model::TenantId id, TenantSettings settings);

runtime::Task<std::optional<Tenant>> find_tenant(pg::Link& link, model::TenantId id);

// Tenants with ids after `after`, in order of id.
runtime::Task<std::vector<Tenant>> list_tenants(pg::Link& link, std::string after, int limit);

// `edit` changes the settings as they are at that moment, with the tenant locked; false abandons the change.
using TenantEdit = base::UniqueFunction<bool(TenantSettings&)>;
runtime::Task<TenantResult> change_tenant(pg::Link& link, const Context& context, const Caller& caller,
                                          model::TenantId id, TenantEdit edit);

// Nothing is sent to any endpoint of a paused tenant; events are still queued. Both may be repeated. For
// operators only.
runtime::Task<TenantResult> pause_tenant(pg::Link& link, const Caller& caller, model::TenantId id,
                                         std::optional<std::string> reason);
runtime::Task<TenantResult> resume_tenant(pg::Link& link, const Caller& caller, model::TenantId id,
                                          std::optional<std::string> reason);

// Its endpoints are deleted and its keys revoked with it. For operators only.
runtime::Task<std::optional<Rejection>> delete_tenant(pg::Link& link, const Caller& caller,
                                                      model::TenantId id);

}  // namespace postrider::registry
