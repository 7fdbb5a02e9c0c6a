// Sources: the senders of inbound webhooks, how their requests are verified, and where their messages go.
//
// Every change is one transaction that writes to the audit log and ends with its note in the control log.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "postrider/base/result.hpp"
#include "postrider/base/time.hpp"
#include "postrider/base/unique_function.hpp"
#include "postrider/inbox/hmac_scheme.hpp"
#include "postrider/inbox/provider.hpp"
#include "postrider/model/ids.hpp"
#include "postrider/pg/link.hpp"
#include "postrider/registry/caller.hpp"
#include "postrider/registry/context.hpp"
#include "postrider/registry/rejection.hpp"
#include "postrider/runtime/task.hpp"

namespace postrider::inbox {

using SourceId = std::string;  // chosen by the caller, as a tenant's

// Each message becomes an event of this tenant.
struct Forward {
  model::TenantId tenant_id;
  std::string type;  // template, see event_type.hpp

  bool operator==(const Forward&) const = default;
};

// The caller's settings, validated.
struct SourceSettings {
  std::optional<std::string> description;
  HmacScheme signature;  // provider hmac
  int32_t tolerance_seconds = 300;
  std::optional<std::string> idempotency_key;  // as Picker::at reads it; none: the provider's own
  std::optional<Deduplicate> deduplicate;      // none: see default_deduplicate()
  std::optional<std::string> partition_key;
  bool is_strict = false;
  std::vector<std::string> headers;  // kept in addition to the provider's; lower case
  int32_t body_bytes_max = 1 << 20;
  bool is_consumed = true;
  std::optional<Forward> forward;
  int32_t max_attempts = 8;

  bool operator==(const SourceSettings&) const = default;
};

struct Source {
  SourceId id;
  Provider provider = Provider::standard;
  SourceSettings settings{};
  base::Timestamp created_at{};
  base::Timestamp updated_at{};

  Deduplicate deduplicate() const {
    return settings.deduplicate.value_or(default_deduplicate(provider, settings.idempotency_key));
  }
  bool can_verify() const { return provider != Provider::hmac || settings.signature.can_verify(); }
};

struct SourceRejections {
  std::string reason;  // a RejectReason, or dropped_by_content
  int64_t count = 0;
  base::Timestamp last_at{};
  std::string last_detail;
};

// Beside the reasons of rejections: genuine, accepted and not stored, because its content was stored before.
inline constexpr std::string_view dropped_by_content = "duplicate_content";

using SourceResult = base::Result<Source, registry::Rejection>;

struct NewSource {
  SourceId id;
  Provider provider = Provider::standard;
  SourceSettings settings;
  std::optional<std::string> secret;  // made if not given, where the provider takes any
};
struct CreatedSource {
  Source source;
  std::string secret;  // shown only now
};
runtime::Task<base::Result<CreatedSource, registry::Rejection>> create_source(
    pg::Link& link, const registry::Context& context, const registry::Caller& caller, NewSource wanted);

// One that the configuration file names.
struct ConfiguredSource {
  SourceId id;
  Provider provider = Provider::standard;
  SourceSettings settings;
  std::vector<std::string> secrets;  // all that are active
};
// Makes the source so if it is not: its settings, and that these are its active secrets. Writes nothing if it
// is so already, so every node may do this at every start.
runtime::Task<std::optional<registry::Rejection>> apply_source(pg::Link& link,
                                                               const registry::Context& context,
                                                               const ConfiguredSource& wanted);

runtime::Task<std::optional<Source>> find_source(pg::Link& link, SourceId id);
runtime::Task<std::vector<SourceRejections>> list_rejections(pg::Link& link, SourceId id);
// In order of id.
runtime::Task<std::vector<Source>> list_sources(pg::Link& link, std::string after, int limit);

// `edit` changes the settings as they are at that moment, with the source locked; false abandons the change.
using SourceEdit = base::UniqueFunction<bool(Provider, SourceSettings&)>;
runtime::Task<SourceResult> change_source(pg::Link& link, const registry::Caller& caller, SourceId id,
                                          SourceEdit edit);
runtime::Task<std::optional<registry::Rejection>> delete_source(pg::Link& link,
                                                                const registry::Caller& caller, SourceId id);

}  // namespace postrider::inbox
