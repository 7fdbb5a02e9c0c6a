// Creates, shows and revokes API keys and tokens; keys.hpp is about using them.
//
// A change is one transaction that writes to the audit log and ends with its note in the control log, so a
// revoked key stops working on every node within a moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/base/time.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/registry/keys.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::registry {

struct KeySettings {
  KeyKind kind = KeyKind::key;
  Role role = Role::reader;
  bool is_read_only = false;                // tokens only
  std::optional<model::TenantId> tenant{};  // bound to it; none: all tenants
  bool sees_payloads = true;
  std::optional<std::string> description{};
  std::optional<std::string> owner{};       // the person or program that uses it; of a token its label
  std::optional<double> rate_per_second{};  // requests per node
  std::optional<base::Timestamp> expires_at{};
};

struct ApiKey {
  model::KeyId id;
  KeySettings settings;
  base::Timestamp created_at{};
  std::optional<std::string> created_by;  // public ID of the key that made it; none: postrider itself
  std::optional<base::Timestamp> revoked_at;
  std::optional<base::Timestamp> last_used_at;  // to about a minute
};

// The reason for a rejection; all of these depend on the caller.
enum class KeyRejection {
  unknown_key,
  unknown_tenant,
  outlives_its_maker,  // the key that creates it expires earlier
  too_many_keys,       // or tokens, of this tenant
};

struct CreatedKey {
  ApiKey key;
  std::string text;  // shown only now
};
// The caller checks that it may grant these rights, except for facts that are known only here: a
// key does not outlive the one that made it, and at most `live_max` live ones of its kind are bound to one
// tenant.
runtime::Task<base::Result<CreatedKey, KeyRejection>> create_key(pg::Link& link, const Caller& caller,
                                                                 KeySettings settings, int live_max);

// `within`: only of this tenant; a foreign key is an unknown one.
using Within = std::optional<model::TenantId>;
using KeyResult = base::Result<ApiKey, KeyRejection>;
// `kind`: only of this kind; none: any.
runtime::Task<KeyResult> find_api_key(pg::Link& link, model::KeyId id, Within within,
                                      std::optional<KeyKind> kind = std::nullopt);

struct KeyFilter {
  KeyKind kind = KeyKind::key;
  Within within{};
  model::KeyId after{};
  int limit = 50;
};
// Those that are not revoked, in order of id.
runtime::Task<std::vector<ApiKey>> list_keys(pg::Link& link, KeyFilter filter);

// May be repeated.
runtime::Task<KeyResult> revoke_key(pg::Link& link, const Caller& caller, model::KeyId id, Within within,
                                    KeyKind kind = KeyKind::key);

// A time-ordered id from the wall clock: keys are made before a node has its slot, and rarely.
model::KeyId make_key_id();

}  // namespace postrider::registry
