// Secrets of a source: all active ones are tried, so that a rotation at the sender can come at any moment.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "postrider/inbox/sources.hpp"
#include "postrider/inbox/sources.sql.hpp"
#include "postrider/inbox/verify.hpp"

namespace postrider::inbox {

inline constexpr size_t source_secrets_max = 5;  // active at once

struct SourceSecret {
  model::SecretId id;
  std::optional<std::string> masked;  // no value if no configured master key decrypts it
  base::Timestamp created_at{};
  std::optional<base::Timestamp> expires_at;
};

// From the newest to the oldest.
runtime::Task<base::Result<std::vector<SourceSecret>, registry::Rejection>> list_source_secrets(
    pg::Link& link, const registry::Context& context, SourceId source);

struct NewSourceSecret {
  std::optional<std::string> secret;            // made if not given, where the provider takes any
  std::optional<std::chrono::seconds> overlap;  // the others end then; none: they stay
};
struct AddedSourceSecret {
  SourceSecret secret;
  std::string text;  // shown only now
};
runtime::Task<base::Result<AddedSourceSecret, registry::Rejection>> add_source_secret(
    pg::Link& link, const registry::Context& context, const registry::Caller& caller, SourceId source,
    NewSourceSecret wanted);

// Never the last one.
runtime::Task<std::optional<registry::Rejection>> delete_source_secret(pg::Link& link,
                                                                       const registry::Caller& caller,
                                                                       SourceId source,
                                                                       model::SecretId secret);

// The active keys, for verifying.
struct ActiveKey {
  VerifyKey key;
  std::optional<base::Timestamp> expires_at;
};
runtime::Task<std::vector<ActiveKey>> load_active_keys(pg::Link& link, const crypto::MasterKeys& keys,
                                                       const Source& source);

// Private to inbox/: adds the statements that make the wanted secrets the active ones.
void set_active_secrets(pg::Batch& batch, const registry::Context& context, const registry::Caller& caller,
                        const ConfiguredSource& wanted, const pg::RowsOf<sql::load_source_secrets>& active);

// Private to inbox/.
std::string seal_source_secret(const crypto::MasterKeys& keys, const SourceId& source, model::SecretId id,
                               std::string_view secret);
base::Result<std::string, registry::Rejection> choose_source_secret(Provider provider,
                                                                    const HmacScheme& scheme,
                                                                    const std::optional<std::string>& wanted);

}  // namespace postrider::inbox
